"""Symbolic integers: bounds, the canonical form of index arithmetic, exact simplification."""

from tg_ir.graph.symbolic.affine import split_affine
from tg_ir.graph.symbolic.bounds import bounds
from tg_ir.graph.symbolic.elementwise import elementwise_rules
from tg_ir.graph.symbolic.given import simplify_given
from tg_ir.graph.symbolic.simplify import simplify

__all__ = ["bounds", "elementwise_rules", "simplify", "simplify_given", "split_affine"]
