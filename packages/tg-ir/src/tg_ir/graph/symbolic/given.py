"""`simplify_given`: an expression simplified where a condition holds, such as a load's mask."""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.symbolic.linear import build_sum, linear_form
from tg_ir.graph.symbolic.simplify import simplify
from tg_ir.graph.uop import UOp


def conditions_of(condition: UOp) -> list[UOp]:
    """The operands of nested ANDs."""
    found: list[UOp] = []
    stack = [condition]
    while stack:
        node = stack.pop()
        if node.op is Ops.AND:
            stack.extend(reversed(node.src))
        else:
            found.append(node)
    return found


def known_limits(condition: UOp) -> dict[UOp, tuple[int, int]]:
    """Bounds of index values where `condition` (simplified) holds, tighter than their own."""
    found: dict[UOp, tuple[int, int]] = {}
    for node in conditions_of(condition):
        if node.op not in {Ops.CMPLT, Ops.CMPEQ} or node.src[0].dtype is not dtypes.index:
            continue
        left, right = node.src
        value = left if right.op is Ops.CONST else right
        if value.op is Ops.CONST or (left.op is not Ops.CONST and right.op is not Ops.CONST):
            continue
        low, high = found.get(value, (int(value.vmin), int(value.vmax)))
        if node.op is Ops.CMPEQ:
            low, high = max(low, right.arg), min(high, right.arg)
        elif value is left:
            high = min(high, right.arg - 1)
        else:
            low = max(low, left.arg + 1)
        found[value] = (low, high)
    return found


def simplify_given(expression: UOp, condition: UOp) -> UOp:
    """`expression` simplified; the same value wherever `condition` is true, any value elsewhere.

    Args:
        expression: an index or bool value.
        condition: a bool value; comparisons of sums with constants joined by AND are used.
    """
    result = simplify(expression)
    for value, (low, high) in known_limits(simplify(condition)).items():
        if low > high:
            continue
        narrowed = _narrow(result, value, low, high)
        if narrowed is not None:
            result = narrowed
    return result


def _narrow(expression: UOp, value: UOp, low: int, high: int) -> UOp | None:
    """`expression` simplified knowing that low <= value <= high; None: nothing is gained."""
    if (low, high) == (value.vmin, value.vmax):
        return None
    terms, offset = linear_form(value)
    # one term stands for the value: term = (value - the other terms) / factor
    pivot = next((term for term, by in terms.items() if by in {1, -1}), None)
    if pivot is None:
        return None
    nodes = expression.toposort()
    if pivot not in nodes:
        return None
    stand_in = UOp.variable("given", low, high)
    sign = terms[pivot]
    solved = {term: -by * sign for term, by in terms.items() if term is not pivot}
    solved[stand_in] = sign
    replacement = simplify(build_sum(solved, -offset * sign))
    inside = simplify(expression.substitute({pivot: replacement}))
    outside = simplify(inside.substitute({stand_in: value}))
    return outside if len(outside.toposort()) < len(nodes) else None
