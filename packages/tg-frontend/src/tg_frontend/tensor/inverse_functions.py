"""Inverse trigonometric and hyperbolic functions, and logarithms and signs of two operands."""

from __future__ import annotations

from typing import Self

from tg_ir.dtype import dtypes

from tg_frontend.nodes import hyperbolic_functions as hyperbolic
from tg_frontend.nodes import inverse_trigonometry as inverse
from tg_frontend.tensor.core import Operand
from tg_frontend.tensor.functions import Functions


class InverseFunctions(Functions):
    """Inverse functions."""

    __slots__ = ()

    def asin(self) -> Self:
        """The angle from -pi/2 to pi/2 with this sine; NaN outside of -1 to 1."""
        return self._in_float(inverse.asin)

    def acos(self) -> Self:
        """The angle from 0 to pi with this cosine; NaN outside of -1 to 1."""
        return self._in_float(inverse.acos)

    def atan(self) -> Self:
        """The angle from -pi/2 to pi/2 with this tangent."""
        return self._in_float(inverse.atan)

    def asinh(self) -> Self:
        """The inverse of `sinh`."""
        return self._in_float(hyperbolic.asinh)

    def acosh(self) -> Self:
        """The inverse of `cosh`; NaN below 1."""
        return self._in_float(hyperbolic.acosh)

    def atanh(self) -> Self:
        """The inverse of `tanh`; infinite at 1 and -1, NaN beyond."""
        return self._in_float(hyperbolic.atanh)

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
