"""AND, OR and NOT of simplified bools: repeated, opposite and implied conditions."""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.symbolic.comparison import FALSE, TRUE, less_than, truth
from tg_ir.graph.symbolic.linear import constant
from tg_ir.graph.uop import UOp

# Conditions longer than this are not searched: a chain of n would cost n*n.
_LONGEST = 64


def negate(x: UOp) -> UOp:
    """Not `x`. Comparisons of integers turn round; float `<` does not, because of NaN."""
    if x.op is Ops.CONST:
        return truth(not x.arg)
    if x.op is Ops.XOR and x.src[1] is TRUE:
        return x.src[0]
    if x.op is Ops.CMPEQ:
        return UOp(Ops.CMPNE, x.dtype, x.src)
    if x.op is Ops.CMPNE:
        return UOp(Ops.CMPEQ, x.dtype, x.src)
    if x.op is Ops.CMPLT:
        left, right = x.src
        if left.dtype is dtypes.index:
            return less_than(right, constant(1) + left)
        turned = _negate_wrapping(left, right)
        if turned is not None:
            return turned
    return UOp(Ops.XOR, x.dtype, (x, TRUE if x.dtype.count == 1 else x.const_like(True)))


def _negate_wrapping(left: UOp, right: UOp) -> UOp | None:
    """Not (x < c) -> c - 1 < x for machine integers, where c - 1 does not wrap."""
    dtype = left.dtype
    if not dtypes.is_int(dtype) or dtype.count != 1:
        return None
    if right.op is Ops.CONST and right.arg > dtypes.min(dtype):
        return UOp(Ops.CMPLT, dtypes.bool, (left.const_like(right.arg - 1), left))
    if left.op is Ops.CONST and left.arg < dtypes.max(dtype):
        return UOp(Ops.CMPLT, dtypes.bool, (right, left.const_like(left.arg + 1)))
    return None


def _operands(op: Ops, x: UOp, y: UOp) -> list[UOp] | None:
    """The distinct operands of nested `op`, in order; None: too many."""
    found: dict[UOp, None] = {}
    stack = [y, x]
    while stack:
        node = stack.pop()
        if node.op is op:
            stack.append(node.src[1])
            stack.append(node.src[0])
        else:
            found[node] = None
        if len(found) + len(stack) > _LONGEST:
            return None
    return list(found)


def _join(op: Ops, operands: list[UOp], neutral: UOp) -> UOp:
    result = operands[0] if operands else neutral
    for operand in operands[1:]:
        result = UOp(op, dtypes.bool, (result, operand))
    return result


def _limits(operands: list[UOp]) -> dict[UOp, list[tuple[int, bool, UOp]]]:
    """By the value compared: (constant, whether it is an upper limit, the condition)."""
    found: dict[UOp, list[tuple[int, bool, UOp]]] = {}
    for node in operands:
        if node.op is not Ops.CMPLT or node.src[0].dtype is not dtypes.index:
            continue
        left, right = node.src
        if right.op is Ops.CONST:
            found.setdefault(left, []).append((right.arg, True, node))
        elif left.op is Ops.CONST:
            found.setdefault(right, []).append((left.arg, False, node))
    return found


def _opposites(operands: list[UOp]) -> bool:
    """Whether a condition and its negation are both there."""
    present = set(operands)
    return any(negate(node) in present for node in operands)


def conjunction(x: UOp, y: UOp) -> UOp:
    """`x and y`."""
    operands = _operands(Ops.AND, x, y)
    if operands is None:
        return UOp(Ops.AND, x.dtype, (x, y))
    operands = [node for node in operands if node is not TRUE]
    if FALSE in operands or _opposites(operands):
        return FALSE
    dropped: set[UOp] = set()
    for limits in _limits(operands).values():
        upper = [entry for entry in limits if entry[1]]
        lower = [entry for entry in limits if not entry[1]]
        tightest_upper = min(upper, key=lambda entry: entry[0], default=None)
        tightest_lower = max(lower, key=lambda entry: entry[0], default=None)
        if tightest_upper and tightest_lower and tightest_lower[0] + 1 >= tightest_upper[0]:
            return FALSE
        keep = {entry[2] for entry in (tightest_upper, tightest_lower) if entry}
        dropped.update(entry[2] for entry in limits if entry[2] not in keep)
    return _join(Ops.AND, [node for node in operands if node not in dropped], TRUE)


def disjunction(x: UOp, y: UOp) -> UOp:
    """`x or y`."""
    operands = _operands(Ops.OR, x, y)
    if operands is None:
        return UOp(Ops.OR, x.dtype, (x, y))
    operands = [node for node in operands if node is not FALSE]
    if TRUE in operands or _opposites(operands):
        return TRUE
    dropped: set[UOp] = set()
    for limits in _limits(operands).values():
        upper = [entry for entry in limits if entry[1]]
        lower = [entry for entry in limits if not entry[1]]
        loosest_upper = max(upper, key=lambda entry: entry[0], default=None)
        loosest_lower = min(lower, key=lambda entry: entry[0], default=None)
        if loosest_upper and loosest_lower and loosest_lower[0] < loosest_upper[0]:
            return TRUE
        keep = {entry[2] for entry in (loosest_upper, loosest_lower) if entry}
        dropped.update(entry[2] for entry in limits if entry[2] not in keep)
    return _join(Ops.OR, [node for node in operands if node not in dropped], FALSE)
