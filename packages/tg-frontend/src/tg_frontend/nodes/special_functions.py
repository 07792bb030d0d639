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
    return widened(lambda x: (x * LOG2_E).alu(Ops.EXP2), uop)


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
    complement = x.const_like(high) - magnitude
    # what rounding took from the difference; of size ulp(x), so it matters for large x
    lost = ((x.const_like(high) - complement) - magnitude) + low
    slope = magnitude.alu(Ops.SIN)
    return complement.alu(Ops.SIN) + (lost * slope).detach()


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


def float_floor_division(left: UOp, right: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder of floats by Python's rules.

    The remainder has the sign of the divisor.

    The rounded quotient may be one off; the remainder, which one fused step gives, tells.
    """
    quotient = floor(left / right)
    remainder = (-quotient).alu(Ops.MULACC, right, left)
    positive = right.const_like(0) < right
    below = positive.where(remainder < 0, remainder > 0)
    reached = positive.where(less_equal(right, remainder), less_equal(remainder, right))
    quotient = below.where(quotient - 1, reached.where(quotient + 1, quotient))
    remainder = below.where(remainder + right, reached.where(remainder - right, remainder))
    return quotient, remainder


def tanh(uop: UOp) -> UOp:
    """The hyperbolic tangent of a float of 32 or 64 bits.

    Near 0 it is `e / (e + 2)` with `e = exp(2|x|) - 1` by its series, elsewhere `1 - 2 /
    (exp(2|x|) + 1)`.
    """
    is_negative = uop < 0
    magnitude = is_negative.where(-uop, uop)
    # above 30 the result is 1 in every format; bounded, so that the derivative is no 0 times
    # infinity
    doubled = minimum(magnitude, magnitude.const_like(30.0)) * 2.0
    is_small = magnitude < 0.25
    terms = 10 if uop.dtype.bits == 32 else 18
    excess = doubled.const_like(0)
    for order in range(terms, 0, -1):
        excess = (excess + 1.0) * doubled * (1.0 / order)
    near = excess / (excess + 2.0)
    far = (exp(doubled) + 1.0).alu(Ops.RECIPROCAL) * -2.0 + 1.0
    result = is_small.where(near, far)
    return is_negative.where(-result, result)
