"""The power of a positive float by its logarithm in two parts.

The error of a logarithm counts as often as the exponent says: a power of 100 would lose seven bits
to one in working precision. So the logarithm is the sum of two floats, by the series of the inverse
hyperbolic tangent, whose leading term is carried in two parts (Dekker, 1971).
"""

from __future__ import annotations

from tg_ir.graph import Ops, UOp

from tg_frontend.nodes.special_functions import LN2, exp2, log2, round_half_even

# 2 / ln 2 in two parts, and how many terms of the series count, by the bits of the float
_CONSTANTS = {
    32: (2.885390043258667, 3.851925982253235e-08, 5),
    64: (2.8853900817779268, 4.0710547481862066e-17, 11),
}


def positive_power(base: UOp, exponent: UOp) -> UOp:
    """`base ** exponent` of floats of 32 or 64 bits, `base` above 0."""
    plain = exp2(exponent * log2(base))
    # the derivatives are those of the plain formula; the correction only rounds better
    correction = _exact_power(base.detach(), exponent.detach()) - plain.detach()
    is_finite = (correction - correction).eq(correction.const_like(0))
    return plain + is_finite.where(correction, correction.const_like(0)).detach()


def _exact_power(base: UOp, exponent: UOp) -> UOp:
    high, low = _logarithm(base)
    product = exponent * high
    rest = exponent.alu(Ops.MULACC, high, -product) + exponent * low
    value = exp2(product)
    return value.alu(Ops.MULACC, rest * LN2, value)


def _logarithm(x: UOp) -> tuple[UOp, UOp]:
    """log2(x) as the sum of two floats."""
    high, low, terms = _CONSTANTS[x.dtype.bits]
    whole = round_half_even(log2(x))
    # scaled in two steps, since 2^149 is no float
    first = (whole * 0.5).alu(Ops.TRUNC)
    mantissa = x * exp2(-first) * exp2(first - whole)
    above = mantissa + 1.0
    lost = mantissa - (above - 1.0)
    ratio = (mantissa - 1.0) / above
    residue = (-ratio).alu(Ops.MULACC, above, mantissa - 1.0) - ratio * lost
    square = ratio * ratio
    tail = square.const_like(0)
    for order in range(terms, 0, -1):
        tail = (tail + 1.0 / (2 * order + 1)) * square
    scale = ratio.const_like(high)
    leading = ratio * scale
    rest = ratio.alu(Ops.MULACC, scale, -leading) + ratio * low
    rest = rest + (residue / above + ratio * tail) * scale
    total = whole + leading
    rest = leading - (total - whole) + rest
    rounded = total + rest
    return rounded, rest - (rounded - total)
