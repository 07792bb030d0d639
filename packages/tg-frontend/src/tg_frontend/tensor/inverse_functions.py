"""Inverse trigonometric and hyperbolic functions, and logarithms and signs of two operands."""

from __future__ import annotations

import math
from typing import Self

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes import special_functions as special
from tg_frontend.tensor.core import Operand
from tg_frontend.tensor.functions import Functions


class InverseFunctions(Functions):
    """Inverse functions."""

    __slots__ = ()

    def atan(self) -> Self:
        """The inverse tangent, from -pi/2 to pi/2."""
        return self._from_uop(special.widened(_atan, special.as_float(self.uop)))

    def asin(self) -> Self:
        """The inverse sine, from -pi/2 to pi/2; NaN outside of -1 to 1."""
        return self._from_uop(special.widened(_asin, special.as_float(self.uop)))

    def acos(self) -> Self:
        """The inverse cosine, from 0 to pi; NaN outside of -1 to 1."""
        x = special.as_float(self.uop)
        # 2 asin(sqrt((1 - x) / 2)) does not cancel near 1
        return self._from_uop(
            special.widened(lambda v: _asin(((1.0 - v) * 0.5).alu(Ops.SQRT)) * 2.0, x)
        )

    def asinh(self) -> Self:
        """The inverse hyperbolic sine."""
        magnitude = self.abs()
        square = magnitude.square()
        # |x| + x^2 / (1 + sqrt(x^2 + 1)) is what the argument exceeds 1 by
        excess = magnitude.add(square.div(square.add(1).sqrt().add(1)))
        huge = magnitude.gt(1e15)
        small = huge.where(0.0, excess)
        near = self._from_uop(special.log1p(special.as_float(small.uop)))
        result = huge.where(magnitude.log().add(math.log(2.0)), near)
        return self.lt(0).where(result.neg(), result)

    def acosh(self) -> Self:
        """The inverse hyperbolic cosine; NaN below 1."""
        return self.add(self.sub(1).mul(self.add(1)).sqrt()).log()

    def atanh(self) -> Self:
        """The inverse hyperbolic tangent; infinite at -1 and 1."""
        magnitude = self.abs()
        ratio = magnitude.mul(2).div(magnitude.neg().add(1))
        result = self._from_uop(special.log1p(special.as_float(ratio.uop))).mul(0.5)
        return self.lt(0).where(result.neg(), result)

    def logaddexp(self, other: Operand) -> Self:
        """log(exp(self) + exp(other)), without overflow."""
        largest = self.maximum(other).detach()
        base = largest.isfinite().where(largest, 0.0)
        second = self._from_uop(self._operand_uop(other))
        return self.sub(base).exp().add(second.sub(base).exp()).log().add(base)

    def copysign(self, other: Operand) -> Self:
        """The magnitude of this with the sign of `other`, that of zeros included."""
        sign = self._from_uop(self._operand_uop(other))
        negative = sign.lt(0)
        if dtypes.is_float(sign.dtype):
            negative = negative.bitwise_or(sign.eq(0).bitwise_and(sign.reciprocal().lt(0)))
        magnitude = self.abs()
        return negative.where(magnitude.neg(), magnitude)


def _atan(x: UOp) -> UOp:
    """By the series, after `atan x = 2 atan(x / (1 + sqrt(1 + x^2)))`, twice, made x small."""
    is_negative = x < 0
    magnitude = is_negative.where(-x, x)
    is_large = x.const_like(1) < magnitude
    # 1/x where that is below 1; selected before it is used, so that 0 gives no infinity
    divisor = is_large.where(magnitude, x.const_like(1))
    reduced = is_large.where(divisor.alu(Ops.RECIPROCAL), magnitude)
    for _ in range(2):
        reduced = reduced / ((reduced * reduced + 1.0).alu(Ops.SQRT) + 1.0)
    square = reduced * reduced
    terms = 7 if x.dtype.bits == 32 else 13
    series = x.const_like(0)
    for order in range(terms, 0, -1):
        series = (series + (-1.0) ** order / (2 * order + 1)) * square
    angle = (series * reduced + reduced) * 4.0
    angle = is_large.where(math.pi / 2 - angle, angle)
    return is_negative.where(-angle, angle)


def _asin(x: UOp) -> UOp:
    cosine = ((1.0 - x) * (x + 1.0)).alu(Ops.SQRT)
    return _atan(x / cosine)
