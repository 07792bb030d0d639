"""Tensors to and from plain bytes, without numpy: row-major, little endian."""

from __future__ import annotations

from math import prod

from tg_ir.dtype import DType

from tg_frontend.tensor import Tensor


def contents_of(tensor: Tensor) -> memoryview:
    """The elements of a tensor as bytes; it is realised if it was not."""
    if not prod(tensor.shape):
        return memoryview(b"")
    return tensor.contiguous().data().cast("B")


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
        return Tensor.zeros(*shape, dtype=dtype, device=device)
    return Tensor(contents, dtype=dtype, device=device).reshape(shape)
