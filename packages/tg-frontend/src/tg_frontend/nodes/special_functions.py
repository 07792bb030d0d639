"""Functions of one node that the IR has no op for, built of those it has, to about an ulp.

They are shared by the operators and the gradient rules. Floats of 16 bits are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

NodeFunction = Callable[[UOp], UOp]

LN2 = math.log(2.0)
LOG2_E = 1.0 / LN2
# log2(e) in two parts for each float: the nearest number, and what is missing
_LOG2_E = {
    "float32": (1.44269502162933349609375, 1.925963033500011079e-8),
    "float64": (1.4426950408889634, 2.0355273740931033e-17),
}
# pi/2 in two parts for each float: the nearest number, and what is missing
_HALF_PI = {
    "float32": (1.57079637050628662109375, -4.37113900018624283e-8),
    "float64": (1.5707963267948966, 6.123233995736766e-17),
}


def as_float(uop: UOp) -> UOp:
    """`uop` itself if it is a float, else in the default float."""
    return uop if dtypes.is_float(uop.dtype) else uop.cast(dtypes.default_float)


def widened(function: NodeFunction, uop: UOp) -> UOp:
    """`function` of a float, computed in float32 where that has fewer bits."""
    if uop.dtype.bits >= 32:
        return function(uop)
    return function(uop.cast(dtypes.float32)).cast(uop.dtype)


def exp2(uop: UOp) -> UOp:
    """2 to the power of a float."""
    return widened(lambda x: x.alu(Ops.EXP2), uop)


def log2(uop: UOp) -> UOp:
    """The logarithm to base 2 of a float."""
    return widened(lambda x: x.alu(Ops.LOG2), uop)


def exp(uop: UOp) -> UOp:
    """E to the power of a float."""
    return widened(_exp, uop)


def _exp(x: UOp) -> UOp:
    log2_e, rest = _LOG2_E[x.dtype.name]
    exponent = x * log2_e
    plain = exponent.alu(Ops.EXP2)
    # the rounding error of the exponent, exact by the fused step, counts up to 700 times
    lost = x.alu(Ops.MULACC, x.const_like(log2_e), -exponent) + x * rest
    in_range = (exponent < 2000.0) & (x.const_like(-2000.0) < exponent)
    usable = in_range & (plain < dtypes.max(x.dtype))
    correction = usable.where(plain * lost * LN2, x.const_like(0))
    return plain + correction.detach()


def log1p(uop: UOp) -> UOp:
    """The logarithm of 1 + a float that is not negative, accurate near 0 (W. Kahan's quotient)."""
    return widened(_log1p, uop)


def _log1p(x: UOp) -> UOp:
    total = x + 1.0
    plain = log(total)
    exact = total.eq(x.const_like(1)).where(x, plain * (x / (total - 1.0)))
    finite = total < dtypes.max(x.dtype)
    return plain + finite.where(exact - plain, x.const_like(0)).detach()


def log(uop: UOp) -> UOp:
    """The natural logarithm of a float."""
    return widened(lambda x: x.alu(Ops.LOG2) * LN2, uop)


def sine(uop: UOp) -> UOp:
    """The sine of a float."""
    return widened(lambda x: x.alu(Ops.SIN), uop)


def cosine(uop: UOp) -> UOp:
    """The cosine of a float, as the sine of pi/2 - |x|.

    With the rounding of that difference put right.
    """
    return widened(_cosine, uop)


def _cosine(x: UOp) -> UOp:
    high, low = _HALF_PI[x.dtype.name]
    magnitude = absolute(x)
    top = x.const_like(high)
    complement = top - magnitude
    # what rounding took from the difference (two-sum, Knuth), up to half the spacing at |x|
    part = complement - top
    lost = (top - (complement - part)) - (magnitude + part) + low
    sine_of_complement = complement.alu(Ops.SIN)
    slope = magnitude.alu(Ops.SIN)
    odd = slope * (lost - lost * lost * lost * (1 / 6))
    correction = odd + sine_of_complement * (lost * lost * 0.5)
    near = sine_of_complement + correction.detach()
    # beyond this the spacing is too wide for that; half the argument is exact
    half = (x * 0.5).alu(Ops.SIN)
    limit = 2.0**18 if x.dtype.bits == 32 else 2.0**46
    return (magnitude < limit).where(near, 1.0 + half * half * -2.0)


def absolute(uop: UOp) -> UOp:
    """The magnitude; -0 gives +0, the least integer itself."""
    if dtypes.is_unsigned(uop.dtype) or dtypes.is_bool(uop.dtype):
        return uop
    return uop.maximum(-uop)


def bitwise_not(uop: UOp) -> UOp:
    """Every bit flipped; of a bool, its negation."""
    return uop ^ uop.const_like(True if dtypes.is_bool(uop.dtype) else all_ones(uop.dtype))


def all_ones(dtype: DType) -> int:
    """The integer with every bit set."""
    return int(dtypes.max(dtype)) if dtypes.is_unsigned(dtype) else -1


def minimum(left: UOp, right: UOp) -> UOp:
    """The smaller of two values of one dtype; NaN if either is."""
    if dtypes.is_float(left.dtype):
        return -((-left).maximum(-right))
    # negation would wrap at the least integer; flipping all bits reverses the order exactly
    return bitwise_not(bitwise_not(left).maximum(bitwise_not(right)))


def less_equal(left: UOp, right: UOp) -> UOp:
    """Whether left <= right; false with NaN."""
    if dtypes.is_float(left.dtype):
        return (left < right) | left.eq(right)
    return (right < left).logical_not()


def floor(uop: UOp) -> UOp:
    """The largest whole number not above a float."""
    whole = uop.alu(Ops.TRUNC)
    return (uop < whole).where(whole - 1, whole)


def ceil(uop: UOp) -> UOp:
    """The least whole number not below a float."""
    whole = uop.alu(Ops.TRUNC)
    return (whole < uop).where(whole + 1, whole)


def round_half_even(uop: UOp) -> UOp:
    """The nearest whole number, the even one of two."""
    whole = uop.alu(Ops.TRUNC)
    distance = absolute(uop - whole)
    half = whole * 0.5
    is_odd = half.ne(half.alu(Ops.TRUNC))
    away = (distance > 0.5) | (distance.eq(distance.const_like(0.5)) & is_odd)
    step = (uop < 0).where(uop.const_like(-1), uop.const_like(1))
    return away.where(whole + step, whole)


def is_infinite(uop: UOp) -> UOp:
    """Whether a float is an infinity of either sign."""
    return absolute(uop).eq(uop.const_like(math.inf))


def is_negative(uop: UOp) -> UOp:
    """Whether a float is below zero or is -0; false for NaN."""
    below_zero = uop.alu(Ops.RECIPROCAL) < 0
    return (uop < 0) | (uop.eq(uop.const_like(0)) & below_zero)


def float_remainder(left: UOp, right: UOp) -> UOp:
    """The remainder of floats with the sign of the dividend, as C's `fmod`."""
    is_flipped = is_negative(left)
    magnitude = is_flipped.where(-left, left)  # unlike `absolute` with a derivative at 0
    remainder = float_floor_division(magnitude, absolute(right))[1]
    return is_flipped.where(-remainder, remainder)


def float_floor_division(left: UOp, right: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder of floats by Python's rules.

    The remainder has the sign of the divisor.

    The rounded quotient may be one off. The remainder, which one fused step gives, tells.
    """
    zero = right.const_like(0)
    ratio = left / right
    quotient = floor(ratio)
    remainder = (-quotient).alu(Ops.MULACC, right, left)
    # an infinite divisor leaves all of a finite dividend
    leaves_all = is_infinite(right) & (left - left).eq(zero)
    quotient = leaves_all.where(ratio, quotient)
    remainder = leaves_all.where(left, remainder)
    # rounding to nearest never takes the quotient below a whole number, so it is at most too large
    is_over = (zero < right).where(remainder < 0, remainder > 0)
    quotient = is_over.where(quotient - 1, quotient)
    quotient = (is_infinite(left) & right.ne(zero)).where(right.const_like(math.nan), quotient)
    remainder = is_over.where(remainder + right, remainder)
    signed_zero = (right < 0).where(right.const_like(-0.0), zero)
    remainder = remainder.eq(zero).where(signed_zero, remainder)
    return quotient, remainder


# (tanh(x) / x - 1) / x^2 as a polynomial in x^2 for |x| < 0.65, by interpolation at Chebyshev
# points; relative error of tanh below 2**-29 and 2**-57
_TANH = {
    32: (
        -0.3333333432674408,
        0.13333290815353394,
        -0.053956348448991776,
        0.021746186539530754,
        -0.00827245693653822,
        0.0022149027790874243,
    ),
    64: (
        -0.3333333333333333,
        0.1333333333333269,
        -0.053968253967523805,
        0.021869488503715003,
        -0.00886323478311531,
        0.0035921178555848596,
        -0.001455745948797281,
        0.0005895179288801019,
        -0.0002371475243883848,
        9.171864832560293e-05,
        -3.027591747967918e-05,
        6.052277071089027e-06,
    ),
}


def tanh(uop: UOp) -> UOp:
    """The hyperbolic tangent of a float of 32 or 64 bits.

    Near 0 a polynomial, elsewhere `1 - 2 / (exp(2|x|) + 1)`.
    """
    is_negative = uop < 0
    magnitude = is_negative.where(-uop, uop)
    # above 30 the result is 1 in every format; bounded, so that the derivative is no 0 times
    # infinity
    bounded = minimum(magnitude, magnitude.const_like(30.0))
    square = bounded * bounded
    coefficients = _TANH[uop.dtype.bits]
    inner = square.const_like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        inner = inner.alu(Ops.MULACC, square, square.const_like(coefficient))
    near = (bounded * square).alu(Ops.MULACC, inner, bounded)
    # what the rounded exponent is off by counts half an ulp of the result at most
    exponential = (bounded * 2.0 * LOG2_E).alu(Ops.EXP2)
    far = (exponential + 1.0).alu(Ops.RECIPROCAL) * -2.0 + 1.0
    result = (magnitude < 0.65).where(near, far)
    return is_negative.where(-result, result)
