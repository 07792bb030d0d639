"""Bounds of integer values, by interval arithmetic, and the folding of integer constants.

Exact for `index` values; for ordinary ints the bounds hold at their own width (a sum that may wrap
gets the bounds of its dtype).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import ConstType, Ops
from tg_ir.graph.scalar import alu, truncating_division
from tg_ir.graph.uop import UOp, toposort

Interval = tuple[ConstType, ConstType]


def fold_index(op: Ops, values: Sequence[int]) -> int:
    """The result of `op` on mathematical integers (and bools, as 0 and 1).

    Raises:
        DTypeError: `op` is not an operation on index values.
    """
    return int(alu(op, dtypes.index, values))


def bounds(root: UOp) -> Interval:
    """`(vmin, vmax)` of `root`; also kept on every node below it."""
    if root._bounds is not None:
        return root._bounds
    for node in toposort((root,), lambda n: n._bounds is None):
        if node._bounds is None:
            node._bounds = _bounds_of(node)
    return _of(root)


def _dtype_bounds(node: UOp) -> Interval:
    scalar = node.dtype.scalar()
    if scalar is dtypes.index:
        return (-(1 << 63), (1 << 63) - 1)
    if scalar is dtypes.void:
        return (0, 0)
    if scalar is dtypes.bool:
        return (False, True)
    return (dtypes.min(scalar), dtypes.max(scalar))


def _bounds_of(node: UOp) -> Interval:
    match node.op:
        case Ops.CONST:
            return (node.arg, node.arg)
        case Ops.DEFINE_VAR:
            return (node.arg.vmin, node.arg.vmax)
        case Ops.BIND | Ops.BROADCAST:
            return _of(node.src[0])
        case Ops.RANGE | Ops.SPECIAL:
            return (0, max(0, int(_of(node.src[0])[1]) - 1))
        case Ops.LANES:
            return (0, node.dtype.count - 1)
    scalar = node.dtype.scalar()
    if dtypes.is_float(scalar) or scalar is dtypes.void:
        return _dtype_bounds(node)
    found = _alu_bounds(node)
    if found is None:
        return _dtype_bounds(node)
    if scalar is dtypes.index or scalar is dtypes.bool:
        return found
    low, high = _dtype_bounds(node)
    return found if low <= found[0] and found[1] <= high else (low, high)


def _of(node: UOp) -> Interval:
    return cast("Interval", node._bounds)


def _alu_bounds(node: UOp) -> Interval | None:
    op = node.op
    if op is Ops.WHERE:
        (a, b), (c, d) = _of(node.src[1]), _of(node.src[2])
        return (min(a, c), max(b, d))
    if op is Ops.CAST:
        inner = node.src[0].dtype.scalar()
        return None if dtypes.is_float(inner) else _of(node.src[0])
    if len(node.src) != 2 or dtypes.is_float(node.src[0].dtype.scalar()):
        return None
    (a, b), (c, d) = _of(node.src[0]), _of(node.src[1])
    if node.src[0].dtype.scalar() is dtypes.bool:
        return _bool_bounds(op, bool(a), bool(b), bool(c), bool(d))
    return _int_bounds(op, int(a), int(b), int(c), int(d))


def _bool_bounds(op: Ops, a: bool, b: bool, c: bool, d: bool) -> Interval | None:
    match op:
        case Ops.AND | Ops.MUL:
            return (a and c, b and d)
        case Ops.OR | Ops.MAX | Ops.ADD:
            return (a or c, b or d)
        case Ops.XOR | Ops.CMPNE:
            return (a != c, b != d) if a == b and c == d else None
        case Ops.CMPEQ:
            return (a == c, b == d) if a == b and c == d else None
        case Ops.CMPLT:
            return (not b and c, not a and d)
        case _:
            return None


def _int_bounds(  # noqa: C901 - a flat match
    op: Ops, a: int, b: int, c: int, d: int
) -> Interval | None:
    match op:
        case Ops.ADD:
            return (a + c, b + d)
        case Ops.SUB:
            return (a - d, b - c)
        case Ops.MUL:
            corners = (a * c, a * d, b * c, b * d)
            return (min(corners), max(corners))
        case Ops.MAX:
            return (max(a, c), max(b, d))
        case Ops.CMPLT:
            return (b < c, a < d)
        case Ops.CMPNE:
            return (b < c or d < a, not a == b == c == d)
        case Ops.CMPEQ:
            return (a == b == c == d, not (b < c or d < a))
        case Ops.AND if c >= 0 and a >= 0:
            return (0, min(b, d))
        case Ops.FLOORDIV | Ops.CDIV if c == d and c > 0:
            if op is Ops.FLOORDIV:
                return (a // c, b // c)
            return (truncating_division(a, c), truncating_division(b, c))
        case Ops.FLOORDIV if c > 0:
            corners = (a // c, a // d, b // c, b // d)
            return (min(corners), max(corners))
        case Ops.FLOORMOD if c > 0:
            if c == d and a // c == b // c:
                return (a % c, b % c)
            return (0, min(b, d - 1) if a >= 0 else d - 1)
        case Ops.CMOD if c > 0:
            return (max(a, -(d - 1)) if a < 0 else 0, min(b, d - 1) if b > 0 else 0)
        case Ops.SHR if c == d and 0 <= c < 64:
            return (a >> c, b >> c)
        case _:
            return None
