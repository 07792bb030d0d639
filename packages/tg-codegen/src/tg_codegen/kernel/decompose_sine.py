"""SIN within 2 ulp for every argument: reduction modulo pi/2 in integers, then two polynomials.

Reduction after Payne and Hanek (1983): of the bits of 2/pi only a window matters, because those
before it contribute whole turns. It is picked by the exponent of the argument with selects alone,
so lanes of different sizes share one path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp
from tg_ir.graph.render_api import TargetCapabilities

from tg_codegen.kernel.float_steps import (
    FloatSteps,
    float_steps,
    in_float32,
    shift_left,
    shift_right,
)

# 2/pi * 2**1216, cut to a whole number
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561"
    "b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484"
    "e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b"
    "3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
_TWO_OVER_PI_BITS = 1216

# pi/2 as the sum of two numbers of the type
_HALF_PI = {
    32: (1.5707963705062866, -4.371138828673793e-08),
    64: (1.5707963267948966, 6.123233995736766e-17),
}

# (sin(r) - r)/r**3 and (cos(r) - 1 + r*r/2)/r**4 as polynomials in r*r, |r| <= pi/4 and a little
# more
_SINE = {
    32: (
        -0.1666666716337204,
        0.008333329111337662,
        -0.00019839272135868669,
        2.7177090942132054e-06,
    ),
    64: (
        -0.1666666666666663,
        0.008333333333321513,
        -0.00019841269829057524,
        2.7557313422632537e-06,
        -2.505071468137635e-08,
        1.589421104415005e-10,
    ),
}
_COSINE = {
    32: (0.04166664555668831, -0.0013887317618355155, 2.443260746076703e-05),
    64: (
        0.041666666666666595,
        -0.0013888888888872906,
        2.480158728868987e-05,
        -2.755731411520064e-07,
        2.0875690020890787e-09,
        -1.1357877815257984e-11,
    ),
}
# below this an argument is its own remainder
_SMALL = 0.75


@dataclass(frozen=True, slots=True)
class _Reduced:
    """|x| = quadrant * pi/2 +- (high + low), `negative` where it is minus (a word, 0 or 1)."""

    quadrant: UOp
    high: UOp
    low: UOp
    negative: UOp


def sine(ctx: TargetCapabilities, node: UOp) -> UOp | None:
    """sin(x); NaN for infinities, -0.0 for -0.0."""
    narrow = in_float32(node)
    if narrow is not None:
        return narrow
    x = node.src[0]
    steps = float_steps(node.dtype, ctx)
    pattern = x.bitcast(steps.unsigned)
    sign = pattern & pattern.const_like(1 << (steps.bits - 1))
    magnitude = steps.from_bits(pattern ^ sign)
    reduced = _reduce(magnitude, pattern ^ sign, steps, dtypes.uint64 in ctx.dtypes)
    small = magnitude < steps.const(_SMALL)
    zero = pattern.const_like(0)
    high = small.where(magnitude, reduced.high)
    low = small.where(steps.const(0.0), reduced.low)
    quadrant = small.where(zero, reduced.quadrant)
    negative = small.where(zero, reduced.negative)
    is_cosine = (quadrant & quadrant.const_like(1)).ne(zero)
    value = is_cosine.where(_cosine(high, low, steps), _sine(high, low, steps))
    # the half turn, and the sign of the remainder where an odd function takes it
    flips = shift_right(quadrant, 1) ^ is_cosine.where(zero, negative)
    turned = value.bitcast(steps.unsigned) ^ shift_left(flips, steps.bits - 1) ^ sign
    return (magnitude < steps.const(math.inf)).where(steps.from_bits(turned), x - x)


def _sine(high: UOp, low: UOp, steps: FloatSteps) -> UOp:
    square = high * high
    # cos(high)*low, of which the first two terms are enough
    correction = low - low * (square * steps.const(0.5))
    inner = steps.polynomial(square, _SINE[steps.bits])
    return high + steps.multiply_add(high * square, inner, correction)


def _cosine(high: UOp, low: UOp, steps: FloatSteps) -> UOp:
    one = steps.const(1.0)
    square = high * high
    half = square * steps.const(0.5)
    first = one - half
    inner = steps.polynomial(square, _COSINE[steps.bits])
    rest = steps.multiply_add(square * square, inner, (high * low).alu(Ops.NEG))
    return first + (((one - first) - half) + rest)


def _reduce(magnitude: UOp, pattern: UOp, steps: FloatSteps, has_uint64: bool) -> _Reduced:
    """The remainder of a number from `_SMALL` up; garbage for infinities, NaN and smaller numbers.

    With magnitude = m * 2**e, m a whole number, the product of m with a window of three words of
    2/pi that begins at weight 2**(1 - e) is the argument in quarter turns, modulo 4, times
    2**(3*word - 2).
    """
    word, digits = steps.bits, steps.layout.mantissa_bits
    mantissa = (pattern & pattern.const_like((1 << digits) - 1)) | pattern.const_like(1 << digits)
    # the window begins at bit e - 2 of 2/pi; one word of zeros in front keeps that positive
    start_of_zero_exponent = steps.layout.max_exponent + digits + 2 - word
    start = shift_right(pattern, digits) - pattern.const_like(start_of_zero_exponent)
    window = _window(start, word, 1 << steps.layout.exponent_bits)
    middle_high, middle_low = _wide_product(mantissa, window[1], word, has_uint64)
    last_high, _ = _wide_product(mantissa, window[2], word, has_uint64)
    low = middle_low + last_high
    carry = (low < last_high).where(low.const_like(1), low.const_like(0))
    top = mantissa * window[0] + middle_high + carry
    return _remainder(top, low, steps)


def _words_of_two_over_pi(word: int, count: int) -> list[int]:
    """A word of zeros and then the first bits of 2/pi."""
    mask = (1 << word) - 1
    available = _TWO_OVER_PI_BITS // word
    shifts = [_TWO_OVER_PI_BITS - word * (k + 1) for k in range(min(count, available))]
    return [0] + [(_TWO_OVER_PI >> shift) & mask for shift in shifts]


def _window(start: UOp, word: int, exponents: int) -> tuple[UOp, UOp, UOp]:
    """Three words of 2/pi from bit `start` on."""
    most_words_before = exponents // 2 // word
    table = _words_of_two_over_pi(word, most_words_before + 3)
    words = [start.const_like(value) for value in table]
    position = shift_right(start, word.bit_length() - 1)
    step = 1 << (most_words_before.bit_length() - 1)
    while step:
        bit = (position & position.const_like(step)).ne(position.const_like(0))
        needed = min(len(words), 4 + step - 1)
        words = [
            bit.where(words[k + step], words[k]) if k + step < len(words) else words[k]
            for k in range(needed)
        ]
        step //= 2
    amount = start & start.const_like(word - 1)
    rest = amount.const_like(word - 1) - amount
    joined = [
        words[k].alu(Ops.SHL, amount) | shift_right(words[k + 1], 1).alu(Ops.SHR, rest)
        for k in range(3)
    ]
    return joined[0], joined[1], joined[2]


def _wide_product(x: UOp, y: UOp, word: int, has_uint64: bool) -> tuple[UOp, UOp]:
    """The high and the low word of a product."""
    if word == 32 and has_uint64:
        double = dtypes.uint64 if x.dtype.count == 1 else dtypes.uint64.vec(x.dtype.count)
        product = x.cast(double) * y.cast(double)
        return shift_right(product, 32).cast(x.dtype), product.cast(x.dtype)
    half = word // 2
    mask = x.const_like((1 << half) - 1)
    x_low, x_high = x & mask, shift_right(x, half)
    y_low, y_high = y & mask, shift_right(y, half)
    lowest = x_low * y_low
    cross = x_low * y_high
    # at most word bits: x has fewer than word bits
    middle = shift_right(lowest, half) + (cross & mask) + x_high * y_low
    high = x_high * y_high + shift_right(cross, half) + shift_right(middle, half)
    return high, shift_left(middle, half) | (lowest & mask)


def _remainder(top: UOp, low: UOp, steps: FloatSteps) -> _Reduced:
    """From quarter turns modulo 4 in two words, 2 bits before the binary point."""
    word, digits = steps.bits, steps.layout.mantissa_bits + 1
    one, zero = top.const_like(1), top.const_like(0)
    fraction = shift_left(top, 2) | shift_right(low, word - 2)
    fraction_low = shift_left(low, 2)
    negative = shift_right(fraction, word - 1)
    quadrant = shift_right(top, word - 2) + negative
    # minus the fraction where it is more than a half: then it lies below the next quadrant
    all_bits = zero - negative
    borrow = fraction_low.eq(zero).where(negative, zero)
    high = (fraction ^ all_bits) + borrow
    rest = (fraction_low ^ all_bits) + negative
    spare = word - digits
    first = _to_float(shift_right(high, spare), steps) * steps.const(2.0**-digits)
    between = shift_left(high & top.const_like((1 << spare) - 1), digits - spare)
    second = _to_float(between | shift_right(rest, 2 * spare), steps)
    third = _to_float(rest & top.const_like((1 << 2 * spare) - 1), steps)
    second = second * steps.const(2.0 ** (-2 * digits)) + third * steps.const(2.0 ** (-2 * word))
    half_pi, half_pi_low = _HALF_PI[word]
    product = first * steps.const(half_pi)
    error = steps.product_error(first, half_pi, product)
    error = error + (first + second) * steps.const(half_pi_low)
    error = steps.multiply_add(second, steps.const(half_pi), error)
    total = product + error
    return _Reduced(quadrant & top.const_like(3), total, (product - total) + error, negative & one)


def _to_float(value: UOp, steps: FloatSteps) -> UOp:
    """A word that fits the significand, by the cheaper signed conversion."""
    return value.bitcast(steps.signed).cast(steps.dtype)
