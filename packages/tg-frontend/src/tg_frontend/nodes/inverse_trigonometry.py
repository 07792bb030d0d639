"""Arc tangent, sine and cosine of floats of 32 or 64 bits.

The arc tangent is a polynomial after two reductions, so that its argument is below tan(pi/8); the
other two are arc tangents of half the angle. The coefficients are Chebyshev fits computed with 200
bits and rounded to the type, highest first.
"""

from __future__ import annotations

import math

from tg_ir.graph import Ops, UOp

from tg_frontend.nodes.special_functions import is_negative

# (atan(z) / z - 1) / z^2 as a polynomial in z^2
_FITS = {
    "float32": (
        -0.06451927870512009,
        0.10743731260299683,
        -0.14263956248760223,
        0.19999539852142334,
        -0.3333333134651184,
    ),
    "float64": (
        -0.01917688711906226,
        0.03923165829558719,
        -0.0508544973794026,
        0.0585814891280221,
        -0.06664511447381948,
        0.07692183190826087,
        -0.09090904578123903,
        0.11111111015256361,
        -0.14285714284666542,
        0.1999999999999552,
        -0.3333333333333333,
    ),
}
_FIRST_LIMIT = math.tan(math.pi / 8)
_SECOND_LIMIT = math.tan(3 * math.pi / 8)


def atan(x: UOp) -> UOp:
    """The arc tangent, from -pi/2 to pi/2."""
    flipped = is_negative(x)
    magnitude = flipped.where(-x, x)
    is_middle = (magnitude > _FIRST_LIMIT) & (magnitude < _SECOND_LIMIT)
    is_large = (magnitude < _SECOND_LIMIT).logical_not() & magnitude.eq(magnitude)
    middle = is_middle.where(magnitude, magnitude.const_like(1))
    large = is_large.where(magnitude, magnitude.const_like(1))
    outer = is_middle.where((middle - 1.0) / (middle + 1.0), -large.alu(Ops.RECIPROCAL))
    z = (is_middle | is_large).where(outer, magnitude)
    square = z * z
    rest = z.const_like(0)
    for coefficient in _FITS[x.dtype.name]:
        rest = rest * square + coefficient
    angle = z + z * square * rest
    quarter = is_middle.where(angle + math.pi / 4, angle)
    result = is_large.where(angle + math.pi / 2, quarter)
    return flipped.where(-result, result)


def asin(x: UOp) -> UOp:
    """The arc sine, from -pi/2 to pi/2; NaN outside of -1 to 1."""
    cosine = ((1.0 - x) * (x + 1.0)).alu(Ops.SQRT)
    return atan(x / (cosine + 1.0)) * 2.0


def acos(x: UOp) -> UOp:
    """The arc cosine, from 0 to pi; NaN outside of -1 to 1."""
    return atan((1.0 - x).alu(Ops.SQRT) / (x + 1.0).alu(Ops.SQRT)) * 2.0
