"""Functions of one value.

Exponentials, roots, trigonometry, rounding, and the activations of networks.
"""

from __future__ import annotations

import math
from typing import Self

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops

from tg_frontend.nodes import hyperbolic_functions as hyperbolic
from tg_frontend.nodes import special_functions as special
from tg_frontend.nodes.error_function import erf
from tg_frontend.tensor.elementwise import Elementwise


class Functions(Elementwise):
    """Functions of one value. Ints are cast to the default float where the result is one."""

    __slots__ = ()

    def _floating(self) -> Self:
        """This in the dtype of the result of a function: negation and products of ints may wrap."""
        return self if dtypes.is_float(self.dtype) else self.cast(dtypes.default_float)

    def _in_float(self, function: special.NodeFunction) -> Self:
        """A function of floats, computed in 32 bits at least."""
        return self._from_uop(special.widened(function, special.as_float(self.uop)))

    # ---- exponentials and roots

    def exp(self) -> Self:
        """E to the power of each element."""
        return self._from_uop(special.exp(special.as_float(self.uop)))

    def exp2(self) -> Self:
        """2 to the power of each element."""
        return self._from_uop(special.exp2(special.as_float(self.uop)))

    def log(self) -> Self:
        """The natural logarithm: -inf of 0, NaN of negative numbers."""
        return self._from_uop(special.log(special.as_float(self.uop)))

    def log2(self) -> Self:
        """The logarithm to base 2."""
        return self._from_uop(special.log2(special.as_float(self.uop)))

    def log10(self) -> Self:
        """The logarithm to base 10."""
        return self.log2().mul(math.log10(2.0))

    def sqrt(self) -> Self:
        """The square root; NaN of negative numbers."""
        return self._from_uop(special.as_float(self.uop).alu(Ops.SQRT))

    def rsqrt(self) -> Self:
        """One divided by the square root."""
        return self.sqrt().reciprocal()

    def reciprocal(self) -> Self:
        """One divided by each element."""
        return self._from_uop(special.as_float(self.uop).alu(Ops.RECIPROCAL))

    def square(self) -> Self:
        """Each element times itself."""
        return self.mul(self)

    # ---- trigonometry

    def sin(self) -> Self:
        """The sine, of radians."""
        return self._from_uop(special.sine(special.as_float(self.uop)))

    def cos(self) -> Self:
        """The cosine, of radians."""
        return self._from_uop(special.cosine(special.as_float(self.uop)))

    def tan(self) -> Self:
        """The tangent, of radians."""
        return self.sin().div(self.cos())

    def sinh(self) -> Self:
        """The hyperbolic sine."""
        return self._in_float(hyperbolic.sinh)

    def cosh(self) -> Self:
        """The hyperbolic cosine."""
        return self._in_float(hyperbolic.cosh)

    def tanh(self) -> Self:
        """The hyperbolic tangent, exact to an ulp or two near 0 as well."""
        return self._in_float(special.tanh)

    # ---- sign and rounding

    def abs(self) -> Self:
        """The magnitude; of the least integer, itself. The gradient at 0 is 0."""
        return self._from_uop(special.absolute(self.uop))

    def sign(self) -> Self:
        """-1, 0 or 1; NaN of NaN. The gradient is 0."""
        x = self.uop
        if dtypes.is_bool(x.dtype) or dtypes.is_unsigned(x.dtype):
            return self._from_uop(x.cast(dtypes.bool).cast(x.dtype))
        zero = x.const_like(0)
        # the branch for NaN also carries the path of a gradient that is 0
        not_positive = x.ne(x).where(x, zero)
        not_negative = (zero < x).where(x.const_like(1), not_positive)
        return self._from_uop((x < zero).where(x.const_like(-1), not_negative))

    def floor(self) -> Self:
        """The largest whole number not above. Of ints, themselves."""
        return self._rounded(special.floor)

    def ceil(self) -> Self:
        """The least whole number not below."""
        return self._rounded(special.ceil)

    def __abs__(self) -> Self:
        return self.abs()

    def __round__(self) -> Self:
        return self.round()

    def round(self) -> Self:
        """The nearest whole number, the even one of two."""
        return self._rounded(special.round_half_even)

    def trunc(self) -> Self:
        """The whole part."""
        return self._rounded(lambda x: x.alu(Ops.TRUNC))

    def _rounded(self, function: special.NodeFunction) -> Self:
        if not dtypes.is_float(self.dtype):
            return self._from_uop(self.uop)
        return self._from_uop(function(self.uop))

    def isnan(self) -> Self:
        """Whether NaN."""
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Whether infinite, of the signs asked for."""
        if not dtypes.is_float(self.dtype):
            return self.ne(self)
        positive = self.eq(math.inf).bitwise_and(detect_positive)
        return positive.bitwise_or(self.eq(-math.inf).bitwise_and(detect_negative))

    def isfinite(self) -> Self:
        """Whether neither infinite nor NaN."""
        return self.isinf().bitwise_or(self.isnan()).logical_not()

    # ---- activations

    def relu(self) -> Self:
        """The value where positive, else 0; NaN stays. The gradient at 0 is 0."""
        return self.le(0).where(0, self)

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x)), without overflow on either side."""
        x = self._floating()
        is_negative = x.lt(0)
        small = is_negative.where(x, x.neg()).exp()
        return is_negative.where(small, 1.0).div(small.add(1))

    def silu(self) -> Self:
        """X * sigmoid(x)."""
        return self.mul(self.sigmoid())

    def swish(self) -> Self:
        """Alias of `silu`."""
        return self.silu()

    def relu6(self) -> Self:
        """`relu` up to 6."""
        return self.relu().minimum(6)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """The value where positive, else `neg_slope` times it."""
        return self.lt(0).where(self.mul(neg_slope), self)

    def elu(self, alpha: float = 1.0) -> Self:
        """The value where positive, else `alpha * (exp(x) - 1)`."""
        return self.gt(0).where(self, self.exp().sub(1).mul(alpha))

    def celu(self, alpha: float = 1.0) -> Self:
        """`elu` with a smooth derivative."""
        negative = self.minimum(0).div(alpha).exp().sub(1).mul(alpha)
        return self.maximum(0).add(negative)

    def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Self:
        """Scaled `elu`."""
        return self.elu(alpha).mul(gamma)

    def gelu(self, approximate: str = "tanh") -> Self:
        """X times the normal distribution function, by its tanh approximation or ("none") exactly.

        Raises:
            ValueError: another approximation.
        """
        if approximate not in ("tanh", "none"):
            raise ValueError(f"gelu: approximate is 'tanh' or 'none', got {approximate!r}")
        x = self._floating()
        if approximate == "none":
            return x.mul(0.5).mul(x.mul(math.sqrt(0.5)).erf().add(1))
        inner = x.mul(x).mul(x).mul(0.044715).add(x).mul(math.sqrt(2 / math.pi))
        return x.mul(0.5).mul(inner.tanh().add(1))

    def quick_gelu(self) -> Self:
        """X * sigmoid(1.702 x)."""
        return self.mul(self.mul(1.702).sigmoid())

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta x)) / beta, without overflow."""
        x = self._floating()
        scaled = x.mul(beta)
        # which side 0 is on matters to the gradient: relu takes none there
        small = x.le(0).where(scaled, scaled.neg()).exp()
        return x.relu().add(self._from_uop(special.log1p(small.uop)).div(beta))

    def mish(self) -> Self:
        """X * tanh(softplus(x))."""
        return self.mul(self.softplus().tanh())

    def logsigmoid(self) -> Self:
        """The logarithm of the sigmoid."""
        return self._floating().neg().softplus().neg()

    def softsign(self) -> Self:
        """X / (1 + |x|)."""
        x = self._floating()
        return x.div(x.abs().add(1))

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """`alpha x + beta` between 0 and 1."""
        return self.mul(alpha).add(beta).clamp(0, 1)

    def hardswish(self) -> Self:
        """X * relu6(x + 3) / 6."""
        x = self._floating()
        return x.mul(x.add(3).relu6()).mul(1 / 6)

    def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Self:
        """The value between the two bounds."""
        return self.clamp(min_val, max_val)

    def erf(self) -> Self:
        """The error function, within two ulp."""
        return self._in_float(erf)
