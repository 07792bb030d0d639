"""Tensors to and from plain bytes, without numpy: row-major, little endian, of every dtype."""

from __future__ import annotations

from math import prod

from tg_ir.dtype import DType

from tg_frontend.capture import observers
from tg_frontend.realize import is_whole_storage, memory_of
from tg_frontend.tensor import Tensor


def contents_of(tensor: Tensor) -> memoryview:
    """The elements of a tensor as bytes, a copy; it is realised if it was not."""
    for observer in observers():
        observer.before_read("saving a tensor")
    tensor.realize()
    whole = is_whole_storage(tensor.uop)
    memory = memory_of(tensor if whole else tensor.contiguous())
    return memoryview(b"") if memory is None else memory.copyout(bytearray(memory.nbytes))


def tensor_from_contents(
    contents: bytes | memoryview, dtype: DType, shape: tuple[int, ...], device: str | None = None
) -> Tensor:
    """A tensor that holds a copy of `contents`.

    Args:
        contents: exactly as many bytes as `dtype` and `shape` need.
        dtype: of an element.
        shape: its extents.
        device: where; None takes the default device.
    """
    if not prod(shape):
        return Tensor.empty(*shape, dtype=dtype, device=device)
    return Tensor(contents, dtype=dtype, device=device).reshape(shape)
