"""The tensor arguments of a captured function: what they have to be, and where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tg_ir.dtype import DType
from tg_ir.graph import Ops, UOp

from tg_frontend import storage
from tg_frontend.jit.arguments import binds_of
from tg_frontend.jit.errors import JitError
from tg_frontend.jit.template import ViewTemplate, hole_like
from tg_frontend.live.walk import is_view_of_storage, place_of
from tg_frontend.realize import is_whole_storage
from tg_frontend.tensor import Tensor


@dataclass(frozen=True)
class InputSpec:
    """What one tensor argument has to be.

    Attributes:
        path: which argument.
        shape: its extents, variables instead of their values; `template.view` has them.
        dtype: of an element.
        device: where it is.
        template: how it lies in the buffer that the program takes.
    """

    path: str
    shape: tuple[object, ...]
    dtype: DType
    device: str
    template: ViewTemplate

    def check(self, tensor: Tensor) -> None:
        """Refuse another shape, dtype or device.

        Raises:
            JitError: says what was expected, what came and what to do.
        """
        shape = tuple(_unbound_extent(extent) for extent in tensor.shape)
        if shape == self.shape and tensor.dtype is self.dtype and tensor.device == self.device:
            return
        raise JitError(
            f"{self.path}: expected {self.dtype.name} of shape {_shown(self.shape)} "
            f"on {self.device}, as at the capture, got {tensor.dtype.name} "
            f"of shape {_shown(shape)} on {tensor.device}; "
            "use one TinyJit for each, pad to one shape, or call reset() to capture anew"
        )


def realized_input(path: str, tensor: Tensor) -> UOp:
    """The BUFFER that holds an argument: all of it, in order; around it if its shape has variables.

    Raises:
        JitError: the argument has no elements, or its variables stand where no buffer can be bound.
    """
    if tensor.numel() == 0:
        raise JitError(f"{path} has no elements (shape {tensor.shape}); pass at least one")
    tensor.realize()
    if binds_of(tensor.uop):
        if not is_view_of_storage(tensor.uop):
            raise JitError(f"{path} of shape {_shown(tensor.shape)} is no part of a buffer")
        return place_of(tensor.uop)
    if is_whole_storage(tensor.uop) and place_of(tensor.uop).arg.size == tensor.numel():
        return place_of(tensor.uop)
    copied = tensor.contiguous().realize()
    return place_of(copied.uop)


def spec_of(path: str, tensor: Tensor, node: UOp) -> InputSpec:
    """What an argument like this one has to be; `node` is its BUFFER."""
    hole = hole_like(node)
    binds = binds_of(tensor.uop)
    template = ViewTemplate.of(tensor.uop, hole, binds) if binds else ViewTemplate(
        hole.reshape(tensor.shape), hole
    )
    shape = tuple(_unbound_extent(extent) for extent in tensor.shape)
    return InputSpec(path, shape, tensor.dtype, str(tensor.device), template)


def private_copy(node: UOp) -> UOp:
    """A new BUFFER with the contents of `node`."""
    copied = storage.new_buffer(node.arg.device, node.arg.size, node.dtype)
    # contents that nobody wrote yet may still be passed on
    storage.buffer_of(copied).copy_from(storage.buffer_of(node).ensure_allocated())
    return copied


def bind_mapping(binds: Iterable[UOp]) -> dict[UOp, UOp]:
    """For each variable its BIND."""
    return {bind.src[0]: bind for bind in binds}


def _unbound_extent(extent: object) -> object:
    if not isinstance(extent, UOp):
        return extent
    binds = {node: node.src[0] for node in extent.toposort() if node.op is Ops.BIND}
    return extent.substitute(binds)


def _shown(shape: tuple[object, ...]) -> str:
    return f"({', '.join(str(extent) for extent in shape)}{',' if len(shape) == 1 else ''})"
