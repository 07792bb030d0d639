"""Powers of a node.

By a Python number, by repeated multiplication where it is whole, else by logarithms.
"""

from __future__ import annotations

import math

from tg_ir.dtype import check_literal, dtypes, result_type
from tg_ir.errors import DTypeError
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes import special_functions as special

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
    magnitude = special.exp2(exponent * special.log2(special.absolute(base)))
    half = exponent * 0.5
    is_whole = exponent.eq(exponent.alu(Ops.TRUNC))
    is_odd = is_whole & half.ne(half.alu(Ops.TRUNC))
    signed = is_odd.where(-magnitude, magnitude)
    # C99 F.10.4.4: powers of -0 and -inf are defined, the infinite ones of -1 are 1
    is_defined = is_whole | special.is_infinite(base) | base.eq(base.const_like(0))
    of_negative = is_defined.where(signed, base.const_like(math.nan))
    result = special.is_negative(base).where(of_negative, magnitude)
    one = base.const_like(1)
    is_one = base.eq(one) | (base.eq(-one) & special.is_infinite(exponent))
    return (exponent.eq(exponent.const_like(0)) | is_one).where(one, result)
