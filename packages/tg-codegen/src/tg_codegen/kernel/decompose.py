"""The pass that replaces ops a target does not have by ops it has.

What each op means stands in docs/explanation/ir.md; each replacement means exactly that, the
transcendental functions within 2 ulp (float32).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tg_ir.graph import Ops, ReduceArg, UOp
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.rewrite import PatternMatcher, RuleFunction, UPat, graph_rewrite

from tg_codegen.kernel.decompose_cast import clamp_float_to_int
from tg_codegen.kernel.decompose_exponential import exp2, log2
from tg_codegen.kernel.decompose_integer import (
    compare_equal,
    divide_exactly_by_reciprocal,
    floor_division,
    floor_remainder,
    maximum,
    multiply_add,
    negative,
    reciprocal,
    subtraction,
    truncating_remainder,
)
from tg_codegen.kernel.decompose_sine import sine
from tg_codegen.kernel.decompose_threefry import threefry

_REPLACEMENTS: dict[Ops, RuleFunction] = {
    Ops.EXP2: exp2,
    Ops.LOG2: log2,
    Ops.SIN: sine,
    Ops.THREEFRY: threefry,
    Ops.FLOORDIV: floor_division,
    Ops.FLOORMOD: floor_remainder,
    Ops.CMOD: truncating_remainder,
    Ops.RECIPROCAL: reciprocal,
    Ops.FDIV: divide_exactly_by_reciprocal,
    Ops.NEG: negative,
    Ops.SUB: subtraction,
    Ops.CMPEQ: compare_equal,
    Ops.MAX: maximum,
    Ops.MULACC: multiply_add,
    Ops.CAST: clamp_float_to_int,
}


@cache
def _rules(ops: frozenset[Ops]) -> PatternMatcher:
    missing = [op for op in _REPLACEMENTS if op not in ops]
    rules = [(UPat(op, name="node"), _REPLACEMENTS[op]) for op in missing]
    bodies = (UPat({Ops.REDUCE, Ops.SCAN}, name="node"), decompose_combine)
    return PatternMatcher([*rules, bodies])


def decompose(sink: UOp, capabilities: TargetCapabilities) -> UOp:
    """Replaces ops that are not in `capabilities.ops`.

    Requires: a kernel graph. Ensures: where a replacement exists, no op that the target lacks; the
    bodies of reductions included.
    """
    return graph_rewrite(sink, _rules(capabilities.ops), ctx=capabilities, name="decompose")


def decompose_combine(ctx: TargetCapabilities, node: UOp) -> UOp | None:
    """A reduction whose body has such ops: the same one with a new body."""
    arg: ReduceArg = node.arg
    body = tuple([decompose(state, ctx) for state in arg.combine.body])
    if body == arg.combine.body:
        return None
    return node.replace(arg=replace(arg, combine=replace(arg.combine, body=body)))
