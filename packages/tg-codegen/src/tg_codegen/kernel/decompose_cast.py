"""Casts from float to int for targets whose own casts promise nothing outside the range."""

from __future__ import annotations

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp


def clamp_float_to_int(node: UOp) -> UOp | None:
    """A cast that truncates and saturates, NaN as 0, made of one whose operand is in range.

    To 8 and 16 bits it goes through int32 and wraps, as everywhere.
    """
    value = node.src[0]
    target = node.dtype.scalar()
    if value.dtype.kind != "float" or target.kind not in {"int", "uint"}:
        return None
    if _is_clamped(value):
        return None
    if target.bits < 32:
        wide = dtypes.int32 if node.dtype.count == 1 else dtypes.int32.vec(node.dtype.count)
        return value.cast(wide).cast(node.dtype)
    low, high = float(dtypes.min(target)), _largest_below(int(dtypes.max(target)), value.dtype)
    number = value.ne(value).where(value.const_like(0.0), value)
    floored = (number < value.const_like(low)).where(value.const_like(low), number)
    clamped = (value.const_like(high) < floored).where(value.const_like(high), floored)
    cast = UOp(Ops.CAST, node.dtype, (clamped,))
    if int(high) == dtypes.max(target):
        return cast
    # the largest int lies between two floats: what is above the lower one saturates
    too_large = value.const_like(high) < value
    return too_large.where(node.const_like(int(dtypes.max(target))), cast)


def _largest_below(limit: int, dtype: DType) -> float:
    """The largest number of the float `dtype` that is not above `limit`."""
    layout = dtypes.finfo(dtype)
    digits = layout.mantissa_bits + 1
    shift = max(0, limit.bit_length() - digits)
    return min(float(limit >> shift << shift), layout.largest)


def _is_clamped(value: UOp) -> bool:
    """Whether `value` is what `clamp_float_to_int` made: two nested choices of constants."""
    if value.op is not Ops.WHERE or value.src[0].op is not Ops.CMPLT:
        return False
    inner = value.src[2]
    return value.src[0].src[0] is value.src[1] and inner.op is Ops.WHERE
