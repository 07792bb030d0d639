"""Powers of a node.

By a Python number, by repeated multiplication where it is whole, else by logarithms.
"""

from __future__ import annotations

import math

from tg_ir.dtype import check_literal, dtypes, result_type
from tg_ir.errors import DTypeError
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes import special_functions as special
from tg_frontend.nodes.positive_powers import positive_power

_LARGEST_UNROLLED = 64  # above it, logarithms are as exact and shorter


def power_of_number(base: UOp, exponent: bool | int | float) -> UOp:
    """`base` to the power of a Python number.

    Raises:
        DTypeError: an int base and a negative int exponent: the result would not be an int.
    """
    exponent = int(exponent) if isinstance(exponent, bool) else exponent
    dtype = result_type([base.dtype], [exponent])
    check_literal(exponent, dtype)
    value = base.cast(dtype)
    whole = math.isfinite(exponent) and exponent == int(exponent)
    if not dtypes.is_float(dtype):
        if exponent < 0:
            raise DTypeError(
                f"{dtype.name} to the power of {exponent} is no integer; cast to a float first"
            )
        return _repeated(value, int(exponent))
    if whole and abs(exponent) <= _LARGEST_UNROLLED:
        result = _repeated(value, abs(int(exponent)))
        return result.alu(Ops.RECIPROCAL) if exponent < 0 else result
    if exponent in (0.5, -0.5):
        root = (value + 0.0).alu(Ops.SQRT)
        return root if exponent > 0 else root.alu(Ops.RECIPROCAL)
    return power(value, value.const_like(exponent))


def power(base: UOp, exponent: UOp) -> UOp:
    """`base ** exponent` of two nodes of one dtype and shape."""
    if dtypes.is_float(base.dtype):
        return _float_power(base, exponent)
    if dtypes.is_bool(base.dtype):
        return base | exponent.logical_not()
    return _integer_power(base, exponent)


def _repeated(base: UOp, count: int) -> UOp:
    """`base` multiplied `count` times by squaring."""
    result: UOp | None = None
    square = base
    while count:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if count:
            square = square * square
    return base.const_like(1) if result is None else result


def _integer_power(base: UOp, exponent: UOp) -> UOp:
    """Wraps like repeated multiplication.

    A negative exponent gives 0, of 1 and -1 what it should.
    """
    width = exponent.dtype.bits - (0 if dtypes.is_unsigned(exponent.dtype) else 1)
    result = base.const_like(1)
    square = base
    for bit in range(width):
        taken = (exponent & (1 << bit)).ne(0)
        result = taken.where(result * square, result)
        if bit + 1 < width:
            square = square * square
    if dtypes.is_unsigned(exponent.dtype):
        return result
    # the bits of a negative exponent below the sign have the same parity, which decides for -1
    unit = special.absolute(base).eq(base.const_like(1))
    return ((exponent < 0) & unit.logical_not()).where(base.const_like(0), result)


def _float_power(base: UOp, exponent: UOp) -> UOp:
    """Special values as in C99 F.10.4.4; 16-bit floats are computed in float32."""
    if base.dtype.bits < 32:
        wide = _float_power(base.cast(dtypes.float32), exponent.cast(dtypes.float32))
        return wide.cast(base.dtype)
    one, nan = base.const_like(1), base.const_like(math.nan)
    is_zero = base.eq(base.const_like(0))
    flipped = special.is_negative(base)
    unsigned = flipped.where(-base, base)  # unlike `absolute` with a derivative at 0
    magnitude = is_zero.where(
        _power_of_zero(unsigned, exponent), positive_power(is_zero.where(one, unsigned), exponent)
    )
    half = exponent * 0.5
    is_whole = exponent.eq(exponent.alu(Ops.TRUNC))
    is_odd = is_whole & half.ne(half.alu(Ops.TRUNC))
    # of a negative number only whole powers are defined; those of -0 and -inf all are
    is_defined = is_whole | special.is_infinite(base) | is_zero
    of_negative = is_defined.where(is_odd.where(-magnitude, magnitude), nan)
    result = flipped.where(of_negative, magnitude)
    # 1, where the formula has no value; elsewhere it gives 1 too, and the right derivatives
    of_any = exponent.eq(exponent.const_like(0)) & (is_zero | _is_not_finite(base))
    to_any = base.eq(one) & _is_not_finite(exponent)
    to_infinity = base.eq(-one) & special.is_infinite(exponent)
    return (of_any | to_any | to_infinity).where(one, result)


def _is_not_finite(uop: UOp) -> UOp:
    return (uop - uop).ne(uop.const_like(0))


def _power_of_zero(zero: UOp, exponent: UOp) -> UOp:
    """The power of a value that is 0, with its derivative there."""
    nothing = zero.const_like(0)
    result = exponent.eq(exponent).where(nothing, zero.const_like(math.nan))
    result = exponent.eq(exponent.const_like(1)).where(zero, result)
    # a root is as steep at 0 as any power below 1
    result = ((nothing < exponent) & (exponent < 1.0)).where(zero.alu(Ops.SQRT), result)
    return (exponent < 0).where(zero.alu(Ops.RECIPROCAL), result)
