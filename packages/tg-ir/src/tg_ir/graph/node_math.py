"""Arithmetic on nodes: the operators of `UOp`.

On `index` values constants and neutral elements fold as built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.ops import ConstType, Ops

if TYPE_CHECKING:
    from tg_ir.graph.uop import UOp


def is_zero(value: Any) -> bool:
    """Whether `value` (int or UOp) is the constant 0."""
    return value.op is Ops.CONST and value.arg == 0 if isinstance(value, NodeMath) else value == 0


def is_one(value: Any) -> bool:
    """Whether `value` (int or UOp) is the constant 1."""
    return value.op is Ops.CONST and value.arg == 1 if isinstance(value, NodeMath) else value == 1


class NodeMath:
    """The operators; `UOp` is the one class that has them."""

    __slots__ = ()

    if TYPE_CHECKING:
        op: Ops
        dtype: DType
        arg: Any

        @property
        def vmin(self) -> ConstType:
            """See `UOp.vmin`."""

        @property
        def vmax(self) -> ConstType:
            """See `UOp.vmax`."""

        def alu(self, op: Ops, *others: UOp) -> UOp:
            """See `UOp.alu`."""

        def const_like(self, value: ConstType) -> UOp:
            """See `UOp.const_like`."""

    def _operand(self, other: Any) -> UOp:
        return cast("UOp", other) if isinstance(other, NodeMath) else self.const_like(other)

    def __add__(self, other: Any) -> UOp:
        right = self._operand(other)
        if self.dtype is dtypes.index:
            if is_zero(right):
                return cast("UOp", self)
            if is_zero(self):
                return right
        return self.alu(Ops.ADD, right)

    def __radd__(self, other: Any) -> UOp:
        return self._operand(other) + self

    def __sub__(self, other: Any) -> UOp:
        right = self._operand(other)
        if self.dtype is dtypes.index:
            return self + right * -1
        return self.alu(Ops.SUB, right)

    def __rsub__(self, other: Any) -> UOp:
        return self._operand(other) - self

    def __mul__(self, other: Any) -> UOp:
        right = self._operand(other)
        if self.dtype is dtypes.index:
            if is_zero(right) or is_one(self):
                return right
            if is_zero(self) or is_one(right):
                return cast("UOp", self)
        return self.alu(Ops.MUL, right)

    def __rmul__(self, other: Any) -> UOp:
        return self._operand(other) * self

    def __neg__(self) -> UOp:
        return self * -1 if self.dtype is dtypes.index else self.alu(Ops.NEG)

    def __floordiv__(self, other: Any) -> UOp:
        right = self._operand(other)
        if self.dtype is dtypes.index and is_one(right):
            return cast("UOp", self)
        return self.alu(Ops.FLOORDIV, right)

    def __rfloordiv__(self, other: Any) -> UOp:
        return self._operand(other) // self

    def __mod__(self, other: Any) -> UOp:
        right = self._operand(other)
        if self.dtype is dtypes.index and is_one(right):
            return self.const_like(0)
        return self.alu(Ops.FLOORMOD, right)

    def __rmod__(self, other: Any) -> UOp:
        return self._operand(other) % self

    def __truediv__(self, other: Any) -> UOp:
        return self.alu(Ops.FDIV, self._operand(other))

    def __lt__(self, other: Any) -> UOp:
        return self.alu(Ops.CMPLT, self._operand(other))

    def __gt__(self, other: Any) -> UOp:
        return self._operand(other).alu(Ops.CMPLT, cast("UOp", self))

    def __ge__(self, other: Any) -> UOp:
        """`self >= other` of integers: not (self < other). Floats with NaN need their own form."""
        return self.alu(Ops.CMPLT, self._operand(other)).logical_not()

    def __le__(self, other: Any) -> UOp:
        return self._operand(other).alu(Ops.CMPLT, cast("UOp", self)).logical_not()

    def ne(self, other: Any) -> UOp:
        """Whether the values differ; true with NaN."""
        return self.alu(Ops.CMPNE, self._operand(other))

    def eq(self, other: Any) -> UOp:
        """Whether the values are equal; `==` asks for the same node."""
        return self.alu(Ops.CMPEQ, self._operand(other))

    def logical_not(self) -> UOp:
        """The opposite of this bool."""
        return self.alu(Ops.XOR, self.const_like(True))

    def __and__(self, other: Any) -> UOp:
        return self.alu(Ops.AND, self._operand(other))

    def __or__(self, other: Any) -> UOp:
        return self.alu(Ops.OR, self._operand(other))

    def __xor__(self, other: Any) -> UOp:
        return self.alu(Ops.XOR, self._operand(other))

    def maximum(self, other: Any) -> UOp:
        """The larger value; NaN if either is."""
        return self.alu(Ops.MAX, self._operand(other))

    def minimum(self, other: Any) -> UOp:
        """The smaller of two integers."""
        right = self._operand(other)
        if self.dtype is dtypes.index:
            # by MAX, whose bounds are as tight as they can be
            return -((-self).maximum(-right))
        return (self < right).where(self, right)

    def where(self, yes: Any, no: Any) -> UOp:
        """`yes` where this bool is true, else `no`."""
        template = yes if isinstance(yes, NodeMath) else no
        if not isinstance(template, NodeMath):
            raise TypeError("where: at least one of the two values must be a UOp")
        return self.alu(Ops.WHERE, template._operand(yes), template._operand(no))

    def __bool__(self) -> bool:
        """The truth of a symbolic value whose bounds decide it.

        Raises:
            TypeError: both outcomes are possible.
        """
        low, high = self.vmin, self.vmax
        if low == high:
            return bool(low)
        if self.dtype is dtypes.index and (low > 0 or high < 0):
            return True
        raise TypeError(
            f"the truth of {self!r} is not known: its bounds are {low}..{high}; "
            "what decides by a size takes no symbolic one: give an int, or closer bounds"
        )

    def __int__(self) -> int:
        """The value of a constant; bound variables are no constants.

        Raises:
            TypeError: the value depends on variables.
        """
        if self.op is Ops.CONST:
            return int(self.arg)
        raise TypeError(
            f"{self!r} is symbolic, and what takes ints takes no symbolic size; "
            "give an int, or use operators that take symbolic sizes"
        )
