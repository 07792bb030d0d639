"""Operators that work element by element: arithmetic, comparison, bits and choice.

Operands broadcast and are promoted; a Python number takes the tensor's dtype and has to fit it.
Functions of one value are in `functions`.
"""

from __future__ import annotations

from typing import Any, Self

from tg_ir.dtype import DType, check_literal, dtypes, result_type, to_dtype
from tg_ir.errors import DTypeError
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes import powers
from tg_frontend.nodes import special_functions as special
from tg_frontend.nodes.broadcasting import broadcast_shape, broadcast_to
from tg_frontend.tensor.core import Operand, TensorCore

# on bools, addition is "or" and multiplication "and", as in numpy
_OF_BOOLS = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.MAX: Ops.OR}


class Elementwise(TensorCore):
    """Elementwise operators."""

    __slots__ = ()

    # ---- dtype

    def cast(self, dtype: DType | str) -> Self:
        """The same values in another dtype.

        Rounded, truncated, wrapped or saturated (SEMANTICS 10).
        """
        return self._with(self.uop.cast(to_dtype(dtype)))

    def bitcast(self, dtype: DType | str) -> Self:
        """The same bits read as another dtype of the same size.

        Raises:
            DTypeError: the sizes differ.
        """
        target = to_dtype(dtype)
        if target.itemsize != self.dtype.itemsize:
            raise DTypeError(
                f"bitcast keeps the size: {self.dtype.name} has {self.dtype.itemsize} bytes, "
                f"{target.name} {target.itemsize}; use cast to change the width"
            )
        return self._with(self.uop.bitcast(target))

    # ---- arithmetic

    def _binary(self, op: Ops, other: Operand, reverse: bool = False) -> Self:
        left, right = self._binary_operands(other, reverse)
        if left.dtype is dtypes.bool:
            op = _OF_BOOLS.get(op, op)
        return self._from_uop(left.alu(op, right))

    def add(self, x: Operand, reverse: bool = False) -> Self:
        """The sum."""
        return self._binary(Ops.ADD, x, reverse)

    def sub(self, x: Operand, reverse: bool = False) -> Self:
        """The difference.

        Raises:
            DTypeError: both operands are bools.
        """
        if self.dtype is dtypes.bool and getattr(x, "dtype", type(x)) in (dtypes.bool, bool):
            raise DTypeError("bools do not subtract; use ^ for their difference, or cast to an int")
        return self._binary(Ops.SUB, x, reverse)

    def mul(self, x: Operand, reverse: bool = False) -> Self:
        """The product."""
        return self._binary(Ops.MUL, x, reverse)

    def div(self, x: Operand, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """The quotient: a float, or rounded if `rounding_mode` is "trunc" or "floor".

        Raises:
            ValueError: another rounding mode.
        """
        if rounding_mode == "floor":
            return self.floordiv(x, reverse)
        if rounding_mode not in (None, "trunc"):
            raise ValueError(f"rounding_mode is None, 'trunc' or 'floor', got {rounding_mode!r}")
        left, right = self._binary_operands(x, reverse)
        if rounding_mode == "trunc":
            if not dtypes.is_float(left.dtype):
                return self._from_uop(left.alu(Ops.CDIV, right))
            return self._from_uop((left / right).alu(Ops.TRUNC))
        return self._from_uop(special.as_float(left) / special.as_float(right))

    def idiv(self, x: Operand, reverse: bool = False) -> Self:
        """The quotient of integers, rounded towards zero; by zero it is 0."""
        return self.div(x, reverse, rounding_mode="trunc")

    def cdiv(self, x: Operand, reverse: bool = False) -> Self:
        """The quotient rounded towards zero, as in C."""
        return self.div(x, reverse, rounding_mode="trunc")

    def cmod(self, x: Operand, reverse: bool = False) -> Self:
        """The remainder with the sign of the dividend, as in C; by zero it is 0."""
        left, right = self._binary_operands(x, reverse)
        if dtypes.is_float(left.dtype):
            return self._from_uop(special.float_remainder(left, right))
        return self._from_uop(left.alu(Ops.CMOD, right))

    def fmod(self, x: Operand) -> Self:
        """Alias of `cmod`."""
        return self.cmod(x)

    def floordiv(self, x: Operand, reverse: bool = False) -> Self:
        """The quotient rounded down, as in Python; of integers by zero it is 0."""
        left, right = self._integer_operands(x, reverse)
        if dtypes.is_float(left.dtype):
            return self._from_uop(special.float_floor_division(left, right)[0])
        return self._from_uop(left // right)

    def mod(self, x: Operand, reverse: bool = False) -> Self:
        """The remainder with the sign of the divisor, as in Python; of integers by zero it is 0."""
        left, right = self._integer_operands(x, reverse)
        if dtypes.is_float(left.dtype):
            return self._from_uop(special.float_floor_division(left, right)[1])
        return self._from_uop(left % right)

    def _integer_operands(self, x: Operand, reverse: bool) -> tuple[UOp, UOp]:
        left, right = self._binary_operands(x, reverse)
        if left.dtype is dtypes.bool:
            return left.cast(dtypes.int8), right.cast(dtypes.int8)
        return left, right

    def pow(self, x: Operand, reverse: bool = False) -> Self:
        """This to the power of `x`.

        Raises:
            DTypeError: an int tensor to the power of a negative Python int.
        """
        if isinstance(x, (bool, int, float)) and not reverse:
            return self._from_uop(powers.power_of_number(self.uop, x))
        left, right = self._binary_operands(x, reverse)
        return self._from_uop(powers.power(left, right))

    def maximum(self, x: Operand) -> Self:
        """The larger of the two; NaN if either is."""
        return self._binary(Ops.MAX, x)

    def minimum(self, x: Operand) -> Self:
        """The smaller of the two; NaN if either is."""
        left, right = self._binary_operands(x)
        if left.dtype is dtypes.bool:
            return self._from_uop(left & right)
        return self._from_uop(special.minimum(left, right))

    def neg(self) -> Self:
        """The negation; of a bool, its opposite."""
        if self.dtype is dtypes.bool:
            return self.logical_not()
        return self._from_uop(-self.uop)

    # ---- comparison

    def lt(self, x: Operand) -> Self:
        """Whether less; false with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(left < right)

    def le(self, x: Operand) -> Self:
        """Whether less or equal; false with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(special.less_equal(left, right))

    def gt(self, x: Operand) -> Self:
        """Whether greater; false with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(right < left)

    def ge(self, x: Operand) -> Self:
        """Whether greater or equal; false with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(special.less_equal(right, left))

    def eq(self, x: Operand) -> Self:
        """Whether equal; false with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(left.eq(right))

    def ne(self, x: Operand) -> Self:
        """Whether not equal; true with NaN."""
        left, right = self._binary_operands(x)
        return self._from_uop(left.ne(right))

    # ---- bits

    def _bits(self, op: Ops, x: Operand, reverse: bool) -> Self:
        left, right = self._binary_operands(x, reverse)
        if dtypes.is_float(left.dtype):
            raise DTypeError(
                f"bitwise {op.name.lower()} takes ints or bools, got {left.dtype.name}; "
                "cast to an int, or bitcast to work on the bits of a float"
            )
        return self._from_uop(left.alu(op, right))

    def bitwise_and(self, x: Operand, reverse: bool = False) -> Self:
        """The bits that both have."""
        return self._bits(Ops.AND, x, reverse)

    def bitwise_or(self, x: Operand, reverse: bool = False) -> Self:
        """The bits that either has."""
        return self._bits(Ops.OR, x, reverse)

    def bitwise_xor(self, x: Operand, reverse: bool = False) -> Self:
        """The bits that one of the two has."""
        return self._bits(Ops.XOR, x, reverse)

    def bitwise_not(self) -> Self:
        """Every bit flipped.

        Raises:
            DTypeError: this is a float.
        """
        if dtypes.is_float(self.dtype):
            raise DTypeError(f"bitwise not takes ints or bools, got {self.dtype.name}")
        return self._from_uop(special.bitwise_not(self.uop))

    def lshift(self, x: Operand, reverse: bool = False) -> Self:
        """Shifted left; by the width or more gives 0."""
        return self._bits(Ops.SHL, x, reverse)

    def rshift(self, x: Operand, reverse: bool = False) -> Self:
        """Shifted right, signed ints keep their sign; by the width or more gives 0 or -1."""
        return self._bits(Ops.SHR, x, reverse)

    def logical_not(self) -> Self:
        """Whether each element is zero."""
        return self._from_uop(self.uop.cast(dtypes.bool).logical_not())

    # ---- choice

    def where(self, x: Operand, y: Operand) -> Self:
        """`x` where this is not zero, else `y`."""
        condition = self.uop.cast(dtypes.bool)
        tensors = [self._operand_uop(v) for v in (x, y) if not isinstance(v, (bool, int, float))]
        numbers = [v for v in (x, y) if isinstance(v, (bool, int, float))]
        dtype = result_type([t.dtype for t in tensors], numbers)
        shape = broadcast_shape(condition.shape, *(t.shape for t in tensors))
        remaining = iter(tensors)
        values = []
        for value in (x, y):
            if isinstance(value, (bool, int, float)):
                check_literal(value, dtype)
                node = UOp.const(dtype, value)
            else:
                node = next(remaining).cast(dtype)
            values.append(broadcast_to(node, shape))
        return self._from_uop(broadcast_to(condition, shape).where(*values))

    def clamp(self, min_: Operand = None, max_: Operand = None, **named: Any) -> Self:
        """Not below `min_` (or `min=`) and not above `max_` (or `max=`); NaN stays.

        Raises:
            ValueError: neither bound is given.
        """
        low = named.pop("min", min_)
        high = named.pop("max", max_)
        if named:
            raise TypeError(f"clamp takes min and max, not {sorted(named)}")
        if low is None and high is None:
            raise ValueError("clamp needs min, max or both")
        result = self if low is None else self.maximum(low)
        return result if high is None else result.minimum(high)

    def clip(self, min_: Operand = None, max_: Operand = None, **named: Any) -> Self:
        """Alias of `clamp`."""
        return self.clamp(min_, max_, **named)

    def masked_fill(self, mask: Operand, value: Operand) -> Self:
        """`value` where `mask` is true, else this."""
        chosen = self._from_uop(self._operand_uop(mask).cast(dtypes.bool))
        return chosen.where(value, self)

    def lerp(self, end: Operand, weight: Operand) -> Self:
        """On the line from this to `end`, at `weight` from 0 to 1."""
        step = self._from_uop(self._operand_uop(end)).sub(self)
        return self.add(step.mul(weight))

    def isclose(
        self, other: Self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Self:
        """Whether within `atol + rtol * |other|`; equal infinities are close."""
        other = self._from_uop(self._operand_uop(other))
        distance = self.sub(other)
        magnitude = self._from_uop(special.absolute(distance.uop))
        allowed = self._from_uop(special.absolute(other.uop)).mul(rtol).add(atol)
        finite = other.sub(other).eq(0)
        close = (finite.bitwise_and(magnitude.le(allowed))).bitwise_or(self.eq(other))
        if not equal_nan:
            return close
        return close.bitwise_or(self.ne(self).bitwise_and(other.ne(other)))

    # ---- operators

    def __neg__(self) -> Self:
        return self.neg()

    def __invert__(self) -> Self:
        return self.bitwise_not()

    def __add__(self, x: Operand) -> Self:
        return self.add(x)

    def __radd__(self, x: Operand) -> Self:
        return self.add(x, True)

    def __sub__(self, x: Operand) -> Self:
        return self.sub(x)

    def __rsub__(self, x: Operand) -> Self:
        return self.sub(x, True)

    def __mul__(self, x: Operand) -> Self:
        return self.mul(x)

    def __rmul__(self, x: Operand) -> Self:
        return self.mul(x, True)

    def __truediv__(self, x: Operand) -> Self:
        return self.div(x)

    def __rtruediv__(self, x: Operand) -> Self:
        return self.div(x, True)

    def __floordiv__(self, x: Operand) -> Self:
        return self.floordiv(x)

    def __rfloordiv__(self, x: Operand) -> Self:
        return self.floordiv(x, True)

    def __mod__(self, x: Operand) -> Self:
        return self.mod(x)

    def __rmod__(self, x: Operand) -> Self:
        return self.mod(x, True)

    def __pow__(self, x: Operand) -> Self:
        return self.pow(x)

    def __rpow__(self, x: Operand) -> Self:
        return self.pow(x, True)

    def __and__(self, x: Operand) -> Self:
        return self.bitwise_and(x)

    def __rand__(self, x: Operand) -> Self:
        return self.bitwise_and(x, True)

    def __or__(self, x: Operand) -> Self:
        return self.bitwise_or(x)

    def __ror__(self, x: Operand) -> Self:
        return self.bitwise_or(x, True)

    def __xor__(self, x: Operand) -> Self:
        return self.bitwise_xor(x)

    def __rxor__(self, x: Operand) -> Self:
        return self.bitwise_xor(x, True)

    def __lshift__(self, x: Operand) -> Self:
        return self.lshift(x)

    def __rlshift__(self, x: Operand) -> Self:
        return self.lshift(x, True)

    def __rshift__(self, x: Operand) -> Self:
        return self.rshift(x)

    def __rrshift__(self, x: Operand) -> Self:
        return self.rshift(x, True)

    def __lt__(self, x: Operand) -> Self:
        return self.lt(x)

    def __le__(self, x: Operand) -> Self:
        return self.le(x)

    def __gt__(self, x: Operand) -> Self:
        return self.gt(x)

    def __ge__(self, x: Operand) -> Self:
        return self.ge(x)

    def __eq__(self, x: object) -> Self:  # type: ignore[override]  # elementwise, as in numpy
        return self.eq(x)

    def __ne__(self, x: object) -> Self:  # type: ignore[override]  # elementwise, as in numpy
        return self.ne(x)

    def __hash__(self) -> int:
        return id(self)  # defining __eq__ removes the inherited one
