"""What the replacements of transcendental functions share: bits, polynomials, exact products.

Everything here works on scalars and on vectors of any width, and needs only + - *, comparisons,
shifts and bitcasts. No step may be reordered: each says which roundings are exact.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.dtype import DType, FloatFormat, bitcast_scalar, dtypes
from tg_ir.graph import Ops, UOp
from tg_ir.graph.render_api import TargetCapabilities


@dataclass(frozen=True, slots=True)
class FloatSteps:
    """Builds expressions on values of `dtype`, float32 or float64 of any number of lanes.

    `fused`: the target rounds a*b + c once.
    """

    dtype: DType
    fused: bool

    @property
    def layout(self) -> FloatFormat:
        """The format of one lane."""
        return dtypes.finfo(self.dtype)

    @property
    def bits(self) -> int:
        """The width of one lane."""
        return self.dtype.bits

    def lanes_of(self, scalar: DType) -> DType:
        """`scalar` in as many lanes."""
        return scalar if self.dtype.count == 1 else scalar.vec(self.dtype.count)

    @property
    def signed(self) -> DType:
        """The int of the same width."""
        return self.lanes_of(dtypes.int32 if self.bits == 32 else dtypes.int64)

    @property
    def unsigned(self) -> DType:
        """The unsigned int of the same width."""
        return self.lanes_of(dtypes.uint32 if self.bits == 32 else dtypes.uint64)

    def const(self, value: float) -> UOp:
        """A constant of the float type."""
        return UOp.const(self.dtype, value)

    def bits_of(self, value: float) -> int:
        """The bits of a constant, as a signed int."""
        signed = self.signed.scalar()
        return int(bitcast_scalar(value, self.dtype.scalar(), signed))

    def from_bits(self, value: UOp) -> UOp:
        """The float with the bits of an int of the same width."""
        return value.bitcast(self.dtype)

    def multiply_add(self, x: UOp, y: UOp, z: UOp) -> UOp:
        """x*y + z, rounded once if the target can, else twice."""
        return x.alu(Ops.MULACC, y, z) if self.fused else x * y + z

    def polynomial(self, x: UOp, coefficients: Sequence[float]) -> UOp:
        """c0 + c1*x + c2*x**2 + ..., by Horner's rule."""
        result = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.multiply_add(result, x, self.const(coefficient))
        return result

    def power_of_two(self, exponent: UOp) -> UOp:
        """2**n for an int n in the range of normal numbers."""
        biased = exponent + exponent.const_like(self.layout.max_exponent)
        return self.from_bits(shift_left(biased, self.layout.mantissa_bits))

    def product_error(self, x: UOp, factor: float, product: UOp) -> UOp:
        """x*factor - product, where `product` is x*factor rounded; exact up to its own rounding.

        Without a fused multiply-add both are cut in halves whose products are exact (Dekker, 1971).
        """
        if self.fused:
            return x.alu(Ops.MULACC, self.const(factor), product.alu(Ops.NEG))
        cut = -1 << (self.layout.mantissa_bits // 2 + 1)
        pattern = x.bitcast(self.signed)
        high = self.from_bits(pattern & pattern.const_like(cut))
        low = x - high
        factor_high = self._cut(factor, cut)
        factor_low = factor - factor_high
        error = high * self.const(factor_high) - product
        error = error + high * self.const(factor_low)
        error = error + low * self.const(factor_high)
        return error + low * self.const(factor_low)

    def _cut(self, value: float, mask: int) -> float:
        codes = ("<f", "<i") if self.bits == 32 else ("<d", "<q")
        pattern = struct.unpack(codes[1], struct.pack(codes[0], value))[0] & mask
        return float(struct.unpack(codes[0], struct.pack(codes[1], pattern))[0])


def float_steps(dtype: DType, capabilities: TargetCapabilities) -> FloatSteps:
    """The steps for `dtype` on a target."""
    return FloatSteps(dtype, Ops.MULACC in capabilities.ops)


def in_float32(node: UOp) -> UOp | None:
    """A unary op on a 16-bit float, computed in float32 and rounded; None for wider floats."""
    if node.dtype.bits >= 32:
        return None
    wide = dtypes.float32 if node.dtype.count == 1 else dtypes.float32.vec(node.dtype.count)
    return node.src[0].cast(wide).alu(node.op).cast(node.dtype)


def shift_left(value: UOp, amount: int) -> UOp:
    """`value << amount`."""
    return value.alu(Ops.SHL, value.const_like(amount)) if amount else value


def shift_right(value: UOp, amount: int) -> UOp:
    """`value >> amount`; keeps the sign of signed ints."""
    return value.alu(Ops.SHR, value.const_like(amount)) if amount else value
