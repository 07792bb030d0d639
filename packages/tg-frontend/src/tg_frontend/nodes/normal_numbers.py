"""Normally distributed numbers of uniform ones, by the method of Box and Muller (1958).

Built only of steps that IEEE 754 rounds in one way, so that every device gives the same bits
(SEMANTICS 6): the logarithm and cosine of a device may differ in the last place.
"""

from __future__ import annotations

import math

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

# terms of each series, by bits of the format; the next term is below half an ulp
_LOGARITHM_TERMS = {32: 6, 64: 13}
_CIRCLE_TERMS = {32: 6, 64: 10}


def standard_normal(first: UOp, second: UOp) -> UOp:
    """Normal numbers, mean 0 and deviation 1, of two float32 or float64 uniform from 0 to below 1.

    Requires: both are multiples of the spacing of the format below 1.
    """
    # from above 0, so that its logarithm is finite; exact
    above_zero = first * -1.0 + 1.0
    radius = (_logarithm(above_zero) * -2.0).alu(Ops.SQRT)
    return radius * _cosine_of_turn(second)


def _logarithm(x: UOp) -> UOp:
    """The natural logarithm of a float above 0 and at most 1, no subnormal.

    With `x = 2^e * m` and m around 1 it is `e ln 2 + 2 artanh((m - 1) / (m + 1))`.
    """
    exponent, mantissa = _parts(x)
    is_high = mantissa > math.sqrt(2.0)
    mantissa = is_high.where(mantissa * 0.5, mantissa)
    exponent = is_high.where(exponent + 1.0, exponent)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    terms = _LOGARITHM_TERMS[x.dtype.bits]
    series = ratio.const_like(1.0 / (2 * terms + 1))
    for number in reversed(range(terms)):
        series = series * square + 1.0 / (2 * number + 1)
    return exponent * math.log(2.0) + ratio * series * 2.0


def _parts(x: UOp) -> tuple[UOp, UOp]:
    """Exponent and mantissa, from 1 to below 2, of a positive float that is no subnormal."""
    mantissa_bits = dtypes.finfo(x.dtype).mantissa_bits
    bits = x.bitcast(_integer_like(x.dtype))
    bias = (1 << (x.dtype.bits - mantissa_bits - 2)) - 1
    exponent = bits.alu(Ops.SHR, bits.const_like(mantissa_bits)) - bias
    fraction = bits & bits.const_like((1 << mantissa_bits) - 1)
    one = bits.const_like(bias << mantissa_bits)
    return exponent.cast(x.dtype), (fraction | one).bitcast(x.dtype)


def _integer_like(dtype: DType) -> DType:
    return dtypes.int32 if dtype.bits == 32 else dtypes.int64


def _cosine_of_turn(x: UOp) -> UOp:
    """The cosine of 2 pi x, for x from 0 to below 1.

    The nearest quarter turn is taken off exactly, the rest goes to the series of sine and cosine.
    """
    quarters = (x * 4.0 + 0.5).alu(Ops.TRUNC)
    angle = (x - quarters * 0.25) * (2.0 * math.pi)
    square = angle * angle
    terms = _CIRCLE_TERMS[x.dtype.bits]
    cosine, sine = square.const_like(0.0), square.const_like(0.0)
    for number in reversed(range(terms)):
        sign = -1.0 if number % 2 else 1.0
        cosine = cosine * square + sign / math.factorial(2 * number)
        sine = sine * square + sign / math.factorial(2 * number + 1)
    is_first = quarters.eq(quarters.const_like(1.0))
    is_third = quarters.eq(quarters.const_like(3.0))
    is_negative = is_first | quarters.eq(quarters.const_like(2.0))
    value = (is_first | is_third).where(angle * sine, cosine)
    return is_negative.where(-value, value)
