"""`split_affine`: an index as coefficient times a loop counter plus a rest."""

from __future__ import annotations

from tg_ir.graph.symbolic.integer_division import sum_of
from tg_ir.graph.symbolic.linear import Terms, add_multiple, factors_of, linear_form, product_of
from tg_ir.graph.symbolic.simplify import simplify
from tg_ir.graph.uop import UOp


def split_affine(index: UOp, range_: UOp) -> tuple[UOp, UOp] | None:
    """`(coefficient, rest)` with `index == coefficient*range_ + rest`, both free of `range_`.

    Both are simplified. None: the index depends on `range_` in another way (or may, as far as is
    known).

    Args:
        index: an index value, scalar.
        range_: a RANGE or a variable.
    """
    terms, offset = linear_form(simplify(index))
    coefficient: Terms = {}
    coefficient_offset = 0
    rest: Terms = {}
    for term, factor in terms.items():
        if not depends_on(term, range_):
            rest[term] = factor
            continue
        others = factors_of(term)
        if range_ not in others:
            return None
        others.remove(range_)
        if any(depends_on(other, range_) for other in others):
            return None
        coefficient_offset += add_multiple(coefficient, product_of(others), factor)
    return sum_of(coefficient, coefficient_offset), sum_of(rest, offset)


def depends_on(node: UOp, leaf: UOp) -> bool:
    """Whether the value of `node` may change with `leaf`, a RANGE or a variable."""
    if node is leaf:
        return True
    if not node.src:
        return False
    return leaf in node.ranges or (not leaf.src and leaf in node.toposort())
