"""From tensors to Python, numpy and other devices, and between dtypes by name."""

from __future__ import annotations

import builtins
import warnings
from typing import TYPE_CHECKING, Any, Self, TypeGuard

from tg_ir.device import open_device
from tg_ir.dtype import dtypes, from_bytes, struct_code
from tg_ir.errors import ShapeError
from tg_ir.graph import prod

from tg_frontend.capture import observers
from tg_frontend.device import Device
from tg_frontend.errors import ArgumentError, HostMemoryError, ItemError
from tg_frontend.lazy import array_from_bytes
from tg_frontend.live.registry import ValueHolder
from tg_frontend.nodes.sizes import known_shape, known_size
from tg_frontend.tensor import lazy
from tg_frontend.tensor.data import own_storage
from tg_frontend.tensor.display import shown
from tg_frontend.tensor.setitem import SetItem

if TYPE_CHECKING:
    import numpy
    from tg_ir.device import Buffer


MOST_AXES_OF_NUMPY = 64


class Conversion(SetItem):
    """What leaves the graph.

    The cast methods are last, since their names are those of Python's types.
    """

    __slots__ = ()

    # ---- computing

    def realize(self, *others: ValueHolder) -> Self:
        """Compute this and the others now, in one schedule, and return self.

        Values and gradients stay.

        Raises:
            ArgumentError: one of the others is no tensor.
        """
        for other in others:
            if not isinstance(other, ValueHolder):
                raise ArgumentError(
                    f"realize: expected tensors, got {type(other).__name__}; "
                    "give them one by one: realize(*tensors)"
                )
        lazy.realize(self, *others)
        return self

    def schedule(self, *others: Self) -> Any:
        """The LINEAR of kernels that `realize` would run; nothing runs."""
        return lazy.plan(self, *others)

    @property
    def is_realized(self) -> Any:
        """Whether the value is in storage, so that there is nothing to compute."""
        return lazy.is_realized(self)

    def _memory(self, what: str) -> Buffer | None:
        """The memory of the elements in order; None where there are none."""
        for observer in observers():
            observer.before_read(what)
        if not all(is_plain_int(extent) for extent in self.shape):
            return self._memory_of_symbolic_shape(what)
        self.realize()
        if lazy.is_whole_storage(self.uop):
            return lazy.memory_of(self)
        return lazy.memory_of(self._from_uop(self.uop.contiguous()))

    def _memory_of_symbolic_shape(self, what: str) -> Buffer | None:
        """The front of memory that has room for the largest values of the variables."""
        count = prod(known_shape(self.shape, what))
        if count == 0:
            return None
        self.realize()
        # one kernel for all values, whichever axes are symbolic
        flat = self._from_uop(self.uop.reshape((self.uop.size,)).contiguous())
        return lazy.storage_of(flat).view(count, self.dtype, 0)

    def data(self) -> memoryview:
        """The elements as a memoryview of this shape, a copy.

        Raises:
            TypeError: floats of 16 bits, which Python does not know.
        """
        memory = self._memory("data()")
        shape = known_shape(self.shape, "data()")
        raw = memoryview(_contents(memory, "data()"))
        code = struct_code(self.dtype)
        if code in (None, "e"):  # a memoryview of halves does not exist before Python 3.12
            raise TypeError(f"{self.dtype.name} has no Python format; cast to float32 first")
        if memory is None:
            return raw
        cast: Any = raw.cast  # typeshed knows only literal format codes
        typed: memoryview = cast(code, shape) if shape else cast(code)
        return typed

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """The elements as a new numpy array; bfloat16 becomes float32."""
        if self.dtype is dtypes.bfloat16:
            return self.cast(dtypes.float32).numpy()
        memory = self._memory("numpy()")
        shape = known_shape(self.shape, "numpy()")
        if self.ndim > MOST_AXES_OF_NUMPY:
            raise ShapeError(
                f"numpy(): numpy takes at most {MOST_AXES_OF_NUMPY} axes, this tensor has "
                f"{self.ndim}; reshape it first"
            )
        raw = _contents(memory, "numpy()")
        return array_from_bytes(raw, self.dtype.name, shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """The elements for numpy."""
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def host_array(self, what: str) -> Any:
        """The elements as a numpy array, for keys whose result shape depends on values."""
        for observer in observers():
            observer.before_read(what)
        return self.numpy()

    def tolist(self) -> Any:
        """The elements as nested lists; of a tensor without axes the number."""
        values: list[Any] = self._numbers("tolist()")
        if not self.shape:
            return values[0]
        shape = known_shape(self.shape, "tolist()")
        for extent in reversed(shape[1:]):
            count = len(values) // extent if extent else 0
            values = [values[k * extent : (k + 1) * extent] for k in range(count)]
        if not values and self.ndim > 1:
            return _empty_lists(shape)
        return values

    def _numbers(self, what: str) -> list[Any]:
        memory = self._memory(what)
        if memory is None:
            return []
        return from_bytes(_contents(memory, what), self.dtype)

    def item(self) -> Any:
        """The one element, as a Python number.

        Raises:
            ItemError: there is not exactly one.
        """
        if known_size(self.numel(), "item()") != 1:
            raise ItemError(
                f"item() of a tensor of shape {self.shape}, which has {self.numel()} elements; "
                "expected one: index it first, or use tolist()"
            )
        return self._numbers("item()")[0]

    def __float__(self) -> builtins.float:
        return float(self.item())

    def __int__(self) -> builtins.int:
        return int(self.item())

    def __repr__(self) -> str:
        return shown(self.uop, str(self.device), self.grad is not None)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    # ---- devices and storage

    def to(self, device: str | tuple[str, ...] | None) -> Self:
        """This on another device, or on each of several; the same value where it is there already.

        A value on several devices can be described, and differentiated, but not computed yet.
        """
        name = Device.canonicalize_all(device)
        if name == self.device:
            return self._from_uop(self.uop, self._requires_grad)
        if self.uop.device is None:
            return self._from_uop(self.uop.copy_to_device(name))
        return self._from_uop(self.uop.copy_to_device(name), self._requires_grad)

    def to_(self, device: str | tuple[str, ...] | None) -> Self:
        """Move this tensor, and its gradient, to another device."""
        self.uop = self.to(device).uop
        if self.grad is not None:
            self.grad = self.grad.to(device)
        return self

    def clone(self) -> Self:
        """A copy in storage of its own."""
        if self.numel() == 0 or not all(is_plain_int(s) for s in self.shape):
            return self._from_uop(self.uop.contiguous())
        return self._from_uop(own_storage(self.uop), self._requires_grad)

    def __copy__(self) -> Self:
        """A copy in storage of its own, with the gradient."""
        copied = self.clone().requires_grad_(self._requires_grad)
        copied.grad = None if self.grad is None else self.grad.clone()
        return copied

    def __deepcopy__(self, memo: dict[Any, Any]) -> Self:
        """As `__copy__`, so that a model can be copied."""
        copied = self.__copy__()
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Tensors are not pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a tensor cannot be pickled; save it by nn.state.safe_save, or pickle its numpy()"
        )

    # ---- dtypes by name

    def half(self) -> Self:
        """Cast to float16."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16."""
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """Cast to float64."""
        return self.cast(dtypes.float64)

    def long(self) -> Self:
        """Cast to int64."""
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        """Cast to int16."""
        return self.cast(dtypes.int16)

    def int(self) -> Self:
        """Cast to int32."""
        return self.cast(dtypes.int32)

    def float(self) -> Self:
        """Cast to float32."""
        return self.cast(dtypes.float32)

    def bool(self) -> Self:
        """Whether each element is not zero."""
        return self.cast(dtypes.bool)


def _contents(memory: Buffer | None, what: str) -> bytearray:
    """A copy of what device memory holds.

    Raises:
        HostMemoryError: this process cannot get so much memory.
    """
    if memory is None:
        return bytearray()
    _warn_of_no_values(memory.device, what)
    try:
        raw = bytearray(memory.nbytes)
    except (MemoryError, OverflowError):
        raise HostMemoryError(
            f"{what}: cannot get {memory.nbytes} bytes of host memory for a copy of the value; "
            "read it in smaller pieces"
        ) from None
    memory.ensure_allocated().copyout(raw)  # of empty() nothing may have been written yet
    return raw


def _warn_of_no_values(device: str, what: str) -> None:
    if not open_device(device).capabilities.stores_values:
        message = f"{what}: {device} stores no values, so nothing that it gives was computed"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def is_plain_int(extent: Any) -> TypeGuard[int]:
    """Whether an extent is no symbol. Outside of the class, where `int` is a method."""
    return isinstance(extent, int)


def _empty_lists(shape: tuple[int, ...]) -> list[Any]:
    if len(shape) == 1:
        return []
    return [_empty_lists(shape[1:]) for _ in range(shape[0])]
