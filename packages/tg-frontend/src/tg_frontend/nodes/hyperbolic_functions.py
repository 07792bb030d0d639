"""Hyperbolic functions and their inverses, of floats of 32 or 64 bits.

Near 0, where the difference of exponentials would cancel, they are series; where an exponential
would overflow before the result does, it is taken in two halves. `tanh` is in `special_functions`.
"""

from __future__ import annotations

import math

from tg_ir.graph import Ops, UOp

from tg_frontend.nodes.special_functions import LN2, exp, is_negative, log, log1p

_TERMS = {32: 5, 64: 9}  # of the series of sinh, for |x| < 1


def _magnitude(x: UOp) -> tuple[UOp, UOp]:
    """Whether below 0 or -0, and |x|; unlike the larger of x and -x with a derivative at 0."""
    flipped = is_negative(x)
    return flipped, flipped.where(-x, x)


def _half_exponential(magnitude: UOp) -> UOp:
    """exp(|x|) / 2, finite as far as the type goes."""
    # where the exponential may overflow it is taken as the square of a root
    is_large = magnitude > 64.0
    usual = exp(is_large.where(magnitude.const_like(0), magnitude)) * 0.5
    root = exp(is_large.where(magnitude, magnitude.const_like(0)) * 0.5)
    return is_large.where(root * 0.5 * root, usual)


def sinh(x: UOp) -> UOp:
    """The hyperbolic sine."""
    flipped, magnitude = _magnitude(x)
    is_near = magnitude < 1.0
    inner = is_near.where(x, x.const_like(0))
    square = inner * inner
    near = x.const_like(1)
    for term in range(_TERMS[x.dtype.bits], 0, -1):
        near = near * square * (1.0 / (2 * term * (2 * term + 1))) + 1.0
    outer = is_near.where(magnitude.const_like(1), magnitude)
    half = _half_exponential(outer)
    far = half - half.const_like(0.25) / half
    return is_near.where(inner * near, flipped.where(-far, far))


def cosh(x: UOp) -> UOp:
    """The hyperbolic cosine."""
    half = _half_exponential(_magnitude(x)[1])
    return half + half.const_like(0.25) / half


def asinh(x: UOp) -> UOp:
    """The inverse of `sinh`: ln(|x| + sqrt(x^2 + 1)) with the sign of x."""
    flipped, magnitude = _magnitude(x)
    is_large = magnitude > _LARGE[x.dtype.bits]
    inner = is_large.where(magnitude.const_like(1), magnitude)
    square = inner * inner
    small = log1p(inner + square / ((square + 1.0).alu(Ops.SQRT) + 1.0))
    outer = is_large.where(magnitude, magnitude.const_like(1))
    result = is_large.where(log(outer) + LN2, small)
    return flipped.where(-result, result)


# from here on x^2 + 1 is x^2 in the type
_LARGE = {32: 2.0**13, 64: 2.0**28}


def acosh(x: UOp) -> UOp:
    """The inverse of `cosh`: ln(x + sqrt(x^2 - 1)); NaN below 1."""
    is_large = x > _LARGE[x.dtype.bits]
    excess = is_large.where(x.const_like(1), x) - 1.0
    below = excess < 0
    usable = below.where(excess.const_like(0), excess)
    small = log1p(usable + (usable * (usable + 2.0)).alu(Ops.SQRT))
    outer = is_large.where(x, x.const_like(1))
    result = is_large.where(log(outer) + LN2, small)
    return below.where(result.const_like(math.nan), result)


def atanh(x: UOp) -> UOp:
    """The inverse of `tanh`: ln((1 + x) / (1 - x)) / 2; infinite at 1, NaN beyond."""
    flipped, magnitude = _magnitude(x)
    outside = magnitude > 1.0
    inner = outside.where(magnitude.const_like(0), magnitude)
    result = log1p(inner * 2.0 / (1.0 - inner)) * 0.5
    result = outside.where(result.const_like(math.nan), result)
    return flipped.where(-result, result)
