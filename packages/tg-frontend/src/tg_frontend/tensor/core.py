"""`TensorCore`: what a tensor holds, and how operators take their operands.

A tensor holds an immutable graph node, its value; writing rebinds it (see `writes`). The operators
are in the files beside this one, each a class that builds on the one before; `Tensor` is the last
of the chain.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from tg_ir.dtype import DType, check_literal, dtypes, result_type, to_dtype
from tg_ir.errors import DTypeError
from tg_ir.graph import Ops, UOp, prod

from tg_frontend.device import Device
from tg_frontend.errors import ArgumentError
from tg_frontend.live.registry import ValueHolder, register
from tg_frontend.nodes.broadcasting import Shape, broadcast_shape, broadcast_to, resolve_axis
from tg_frontend.nodes.sizes import expect_plain_sizes
from tg_frontend.tensor.data import uop_from_data

Scalar = bool | int | float
Operand = Any
"""A tensor, a Python number, or what a tensor can be made of (list, numpy array)."""


ViewStep = tuple[Ops, tuple[UOp, ...], Any]
"""A movement node: its op, its sources but the first, its argument."""


class ViewLink:
    """What a view remembers: the tensor it looks into, by which steps, in which state that was."""

    __slots__ = ("_last_steps", "_outer", "base", "writes")

    def __init__(
        self,
        base: TensorCore,
        last_steps: tuple[ViewStep, ...],
        writes: int,
        outer: ViewLink | None = None,
    ) -> None:
        """Keep only a weak reference: who cannot see the base does not miss a write to it.

        Args:
            base: the tensor looked into.
            last_steps: movement from what `outer` shows, else from the base.
            writes: how often the base had been written to.
            outer: the link of the view that this is a view of.
        """
        self.base = weakref.ref(base)
        self.writes = writes
        self._last_steps = last_steps
        self._outer = outer

    @property
    def steps(self) -> list[ViewStep]:
        """The movement from the base outwards.

        Joined only here, since a chain of views would else take time in the square of its length.
        """
        links: list[ViewLink] = []
        link: ViewLink | None = self
        while link is not None:
            links.append(link)
            link = link._outer
        return [step for link in reversed(links) for step in link._last_steps]


def expect_tensors(what: str, *values: Any) -> None:
    """Check that all are tensors, for functions that take nothing else.

    Raises:
        ArgumentError: one is not; a list of tensors is to be unpacked.
    """
    for value in values:
        if isinstance(value, TensorCore):
            continue
        hint = "make one of it with Tensor(...)"
        if isinstance(value, (list, tuple)) and any(isinstance(v, TensorCore) for v in value):
            hint = f"give the tensors one by one: {what}(*tensors)"
        raise ArgumentError(f"{what}: expected a tensor, got {type(value).__name__}; {hint}")


class TensorCore(ValueHolder):
    """A value of one dtype and shape, computed when it is asked for.

    Attributes:
        uop: the graph node that is the value.
        grad: the gradient that `backward` left here, or None.
    """

    __slots__ = ("_view", "_writes", "grad")

    # `array + tensor` is a tensor, as `tensor + array` is: numpy's own sum would lose the gradient
    __array_priority__: ClassVar[float] = 1000.0
    training: ClassVar[bool] = False
    grad: Self | None
    _view: ViewLink | None
    _writes: int

    def __init__(
        self,
        data: Any,
        device: str | tuple[str, ...] | None = None,
        dtype: DType | str | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        """A tensor of `data`.

        A number, nested lists or tuples, bytes, a numpy array, a UOp or a tensor.

        Args:
            data: what it holds; copied.
            device: where; None takes `Device.DEFAULT`.
            dtype: of an element; None follows from the data.
            requires_grad: whether `backward` fills `grad`.

        Raises:
            DataError: no tensor can be made of `data`.
            LiteralError: a number does not fit `dtype`.
        """
        wanted = None if dtype is None else to_dtype(dtype)
        if isinstance(data, TensorCore):
            data = data.uop
        self._set_up(uop_from_data(data, device, wanted), None)
        if requires_grad is not None:
            self.requires_grad_(requires_grad)

    @classmethod
    def _from_uop(cls, uop: UOp, requires_grad: bool | None = None) -> Self:
        """A new tensor with the value `uop`."""
        made = object.__new__(cls)
        made._set_up(uop, requires_grad)
        return made

    def _set_up(self, uop: UOp, requires_grad: bool | None) -> None:
        self.uop = uop
        self.grad = None
        self._requires_grad = requires_grad
        self._view = None
        self._writes = 0
        _ = uop.shape  # operands that do not fit are told here, where the operator is written
        register(self)

    # ---- facts

    @property
    def dtype(self) -> DType:
        """The type of an element."""
        return self.uop.dtype

    @property
    def shape(self) -> Shape:
        """The extents, a tuple of `int | UOp`."""
        return self.uop.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.uop.shape)

    def dim(self) -> int:
        """The number of axes."""
        return len(self.uop.shape)

    def numel(self) -> Any:
        """The number of elements, `int | UOp`."""
        return prod(self.uop.shape)

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def nbytes(self) -> Any:
        """The size in bytes, `int | UOp`."""
        return self.numel() * self.dtype.itemsize

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        return self.shape if dim is None else self.shape[resolve_axis(dim, self.ndim)]

    @property
    def device(self) -> str | tuple[str, ...]:
        """The device that holds the value, or that would."""
        from_uop = self.uop.device
        return Device.DEFAULT if from_uop is None else from_uop

    @property
    def requires_grad(self) -> bool | None:
        """Whether `backward` fills `grad`; None means: as the optimiser that takes it decides."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool | None) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool | None = True) -> Self:
        """Say whether `backward` fills `grad`, and return self.

        Raises:
            ArgumentError: neither a bool nor None.
            DTypeError: the elements are no floats.
        """
        if requires_grad is not None and not isinstance(requires_grad, bool):
            raise ArgumentError(
                f"requires_grad: expected True, False or None, got {requires_grad!r}"
            )
        if requires_grad and not dtypes.is_float(self.dtype):
            raise DTypeError(
                f"only float tensors have gradients, this one is {self.dtype.name}; "
                "cast it to a float first"
            )
        self._requires_grad = requires_grad
        return self

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float."""
        return dtypes.is_float(self.dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes; it holds one element: use .item()")
        expect_plain_sizes(self.shape[:1], "len()")
        return int(self.shape[0])

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of a tensor is its elements': use .item() for one element, "
            ".any() or .all() for more"
        )

    def __hash__(self) -> int:
        return id(self)

    # ---- results

    def _with(self, uop: UOp) -> Self:
        """A tensor of this one's class with the value `uop`.

        A new one, as the next write may be to either.
        """
        return type(self)._from_uop(uop)

    def detach(self) -> Self:
        """The same value, through which no gradient goes."""
        return type(self)._from_uop(self.uop.detach(), False)

    def contiguous(self) -> Self:
        """The same value in storage of its own."""
        return type(self)._from_uop(self.uop.contiguous())

    # ---- operands

    def _operand_uop(self, other: Operand, dtype: DType | None = None) -> UOp:
        """The node of an operand that is no Python number."""
        if isinstance(other, TensorCore):
            return other.uop
        if isinstance(other, UOp) and other.dtype is dtypes.index:
            return other.cast(dtype or dtypes.default_int)
        if other is None:
            raise ArgumentError(
                "None is no operand; expected a tensor or a number: compare with `is None`"
            )
        device = self.uop.device
        return uop_from_data(other, device if isinstance(device, str) else None, dtype)

    def _binary_operands(self, other: Operand, reverse: bool = False) -> tuple[UOp, UOp]:
        """Both operands with one dtype and one shape.

        Raises:
            LiteralError: `other` is a number that the dtype cannot hold.
            ShapeError: the shapes do not broadcast.
        """
        left = self.uop
        if isinstance(other, (bool, int, float)):
            dtype = result_type([left.dtype], [other])
            if not isinstance(other, bool):
                check_literal(other, dtype)
            left = left.cast(dtype)
            right = broadcast_to(UOp.const(dtype, other), left.shape)
        else:
            right = self._operand_uop(other)
            dtype = result_type([left.dtype, right.dtype])
            shape = broadcast_shape(left.shape, right.shape)
            left = broadcast_to(left.cast(dtype), shape)
            right = broadcast_to(right.cast(dtype), shape)
        return (right, left) if reverse else (left, right)


def common_operands(
    tensors: Sequence[UOp], scalars: Sequence[Scalar] = ()
) -> tuple[tuple[UOp, ...], DType]:
    """Nodes and numbers, nodes first, cast to one dtype and expanded to one shape."""
    dtype = result_type([uop.dtype for uop in tensors], scalars)
    shape = broadcast_shape(*(uop.shape for uop in tensors)) if tensors else ()
    for scalar in scalars:
        if not isinstance(scalar, bool):
            check_literal(scalar, dtype)
    nodes = [broadcast_to(uop.cast(dtype), shape) for uop in tensors]
    nodes += [broadcast_to(UOp.const(dtype, scalar), shape) for scalar in scalars]
    return tuple(nodes), dtype
