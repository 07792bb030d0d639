"""EXP2 and LOG2 as polynomials, within 2 ulp, special values as in C99 Annex F.

The coefficients are minimax fits (Remez exchange, computed with 300 bits), rounded to the type.
"""

from __future__ import annotations

import math

from tg_ir.graph import Ops, UOp
from tg_ir.graph.render_api import TargetCapabilities

from tg_codegen.kernel.float_steps import (
    FloatSteps,
    float_steps,
    in_float32,
    shift_left,
    shift_right,
)

# (2**f - 1) / f for |f| <= 1/2; relative error of 2**f below 2**-28 and 2**-57
_EXP2_FLOAT32 = (
    0.6931471824645996,
    0.24022647738456726,
    0.05550340190529823,
    0.009618446230888367,
    0.0013396503636613488,
    0.00015347688167821616,
)
_EXP2_FLOAT64 = (
    0.6931471805599453,
    0.2402265069591012,
    0.05550410866482038,
    0.009618129107598683,
    0.001333355814673467,
    0.00015403530451955292,
    1.5252733513569285e-05,
    1.3215437626599586e-06,
    1.0178196007274116e-07,
    7.073411381358877e-09,
    4.4347840582457125e-10,
)

# 1/ln 2 as the sum of two float32
_LOG2_E_HIGH = 1.4426950216293335
_LOG2_E_LOW = 1.925963033500011e-08
# (log2(1 + f) - f/ln 2) / f**2 for sqrt(1/2) <= 1 + f <= sqrt(2); relative error below 2**-27
_LOG2_FLOAT32 = (
    -0.7213473916053772,
    0.48089799284935,
    -0.36069217324256897,
    0.2885805070400238,
    -0.2397197037935257,
    0.2043951004743576,
    -0.19008326530456543,
    0.18715527653694153,
    -0.11344031989574432,
)

# 1/ln 2, the first with 22 significant bits
_LOG2_E_SHORT = 1.4426946640014648
_LOG2_E_REST = 3.768874985636099e-07
# (log((1 + s)/(1 - s)) - 2*s) / s**3 as a polynomial in s**2; relative error below 2**-59
_ATANH_FLOAT64 = (
    0.6666666666666734,
    0.3999999999941469,
    0.2857142874238511,
    0.22222198573351978,
    0.18183564320816914,
    0.15314050623490924,
    0.14795949478481474,
)
_HIGH_WORD = -1 << 32


def exp2(ctx: TargetCapabilities, node: UOp) -> UOp | None:
    """Rewrites 2**x as 2**n * 2**f with n the nearest integer.

    The scale 2**n is applied in two halves, so that results below the normal range are rounded only
    once and 2**128 is infinite.
    """
    narrow = in_float32(node)
    if narrow is not None:
        return narrow
    x = node.src[0]
    steps = float_steps(node.dtype, ctx)
    layout = steps.layout
    lowest = steps.const(-(layout.max_exponent + layout.mantissa_bits + 1.0))
    highest = steps.const(layout.max_exponent + 1.0)
    # comparisons with NaN are false, so NaN stays
    x = (x < lowest).where(lowest, x)
    x = (highest < x).where(highest, x)
    # adding 1.5 * 2**mantissa_bits rounds to an integer, which the low bits then hold
    shifter = 1.5 * 2.0**layout.mantissa_bits
    shifted = x + steps.const(shifter)
    fraction = x - (shifted - steps.const(shifter))
    pattern = shifted.bitcast(steps.signed)
    exponent = pattern - pattern.const_like(steps.bits_of(shifter))
    coefficients = _EXP2_FLOAT32 if steps.bits == 32 else _EXP2_FLOAT64
    inner = steps.polynomial(fraction, coefficients)
    value = steps.multiply_add(fraction, inner, steps.const(1.0))
    half = shift_right(exponent, 1)
    return value * steps.power_of_two(half) * steps.power_of_two(exponent - half)


def log2(ctx: TargetCapabilities, node: UOp) -> UOp | None:
    """Rewrites the logarithm of x = m * 2**e, sqrt(1/2) <= m < sqrt(2), as e plus that of m."""
    narrow = in_float32(node)
    if narrow is not None:
        return narrow
    x = node.src[0]
    steps = float_steps(node.dtype, ctx)
    exponent, fraction = _exponent_and_fraction(x, steps)
    if steps.bits == 32:
        value = _log2_float32(exponent, fraction, steps)
    else:
        value = _log2_float64(exponent, fraction, steps)
    zero = steps.const(0.0)
    infinity = steps.const(math.inf)
    of_negative = (x < zero).where(steps.const(math.nan), x)
    special = x.eq(zero).where(steps.const(-math.inf), of_negative)
    ordinary = (zero < x) & (x < infinity)
    return ordinary.where(value, special)


def _exponent_and_fraction(x: UOp, steps: FloatSteps) -> tuple[UOp, UOp]:
    """(e as a float, m - 1) for a positive finite x; both exact."""
    digits = steps.layout.mantissa_bits
    tiny = x < steps.const(steps.layout.smallest_normal)
    normal = tiny.where(x * steps.const(2.0 ** (digits + 1)), x)
    pattern = normal.bitcast(steps.signed)
    exponent = shift_right(
        pattern - pattern.const_like(steps.bits_of(math.sqrt(0.5))), digits
    )
    mantissa = steps.from_bits(pattern - shift_left(exponent, digits))
    raised = tiny.where(exponent.const_like(digits + 1), exponent.const_like(0))
    return (exponent - raised).cast(steps.dtype), mantissa - steps.const(1.0)


def _log2_float32(exponent: UOp, f: UOp, steps: FloatSteps) -> UOp:
    """The rounding errors of the small second part hardly count."""
    inner = steps.polynomial(f, _LOG2_FLOAT32)
    second = f * steps.multiply_add(f, inner, steps.const(_LOG2_E_LOW))
    return exponent + steps.multiply_add(f, steps.const(_LOG2_E_HIGH), second)


def _log2_float64(exponent: UOp, f: UOp, steps: FloatSteps) -> UOp:
    """log(1 + f) = f - f*f/2 + s*(f*f/2 + R), s = f/(2 + f), R = s*s*polynomial(s*s).

    The difference f - f*f/2 is cut to its high word, whose product with 1/ln 2 is then exact (the
    scheme of fdlibm's e_log2).
    """
    s = f.alu(Ops.FDIV, f + steps.const(2.0))
    square = s * s
    remainder = square * steps.polynomial(square, _ATANH_FLOAT64)
    half_square = steps.const(0.5) * f * f
    pattern = (f - half_square).bitcast(steps.signed)
    high = steps.from_bits(pattern & pattern.const_like(_HIGH_WORD))
    low = ((f - high) - half_square) + s * (half_square + remainder)
    first = high * steps.const(_LOG2_E_SHORT)
    second = (low + high) * steps.const(_LOG2_E_REST) + low * steps.const(_LOG2_E_SHORT)
    total = exponent + first
    return (second + ((exponent - total) + first)) + total
