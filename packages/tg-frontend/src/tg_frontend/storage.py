"""Which device memory a BUFFER node stands for, and when that memory is freed.

A node names its storage by id and version. Writing in place makes the next version: the old node
keeps its name but no longer its contents, and reading it is an error. Memory is freed when the
node of the current version dies.
"""

from __future__ import annotations

import weakref

from tg_ir.device import Buffer
from tg_ir.dtype import DType
from tg_ir.graph import UOp

from tg_frontend.errors import StaleVersionError


class _Storage:
    """Memory and the version that its contents are."""

    __slots__ = ("buffer", "version")

    def __init__(self, buffer: Buffer, version: int) -> None:
        self.buffer = buffer
        self.version = version


_storages: dict[int, _Storage] = {}


def new_buffer(device: str, size: int, dtype: DType) -> UOp:
    """A BUFFER node of `size` elements with memory that is allocated on first use.

    Contents undefined.
    """
    node = UOp.new_buffer(device, size, dtype)
    adopt(node)
    return node


def buffer_with_contents(device: str, dtype: DType, contents: memoryview | bytes) -> UOp:
    """A BUFFER node on `device` that holds a copy of `contents`, of at least one element."""
    node = new_buffer(device, len(memoryview(contents).cast("B")) // dtype.itemsize, dtype)
    buffer_of(node).copyin(contents)
    return node


def adopt(node: UOp, buffer: Buffer | None = None) -> None:
    """Give a new BUFFER node its memory: `buffer`, or memory that is allocated on first use."""
    arg = node.arg
    memory = Buffer(arg.device, arg.size, node.dtype) if buffer is None else buffer
    _storages[arg.id] = _Storage(memory, arg.version)
    _free_with(node)


def is_stored(node: UOp) -> bool:
    """Whether `node` is the current version of memory that exists."""
    storage = _storages.get(node.arg.id)
    return storage is not None and storage.version == node.arg.version


def buffer_of(node: UOp) -> Buffer:
    """The memory that holds the contents `node` names.

    Raises:
        StaleVersionError: the contents were overwritten, or the memory is freed.
    """
    storage = _storages.get(node.arg.id)
    if storage is None or storage.version != node.arg.version:
        raise StaleVersionError(stale_message(node))
    return storage.buffer


def stale_message(node: UOp) -> str:
    """Why the contents that `node` names cannot be read, and what to do."""
    storage = _storages.get(node.arg.id)
    where = f"buffer {node.arg.id} of {node.arg.size} x {node.dtype.name} on {node.arg.device}"
    if storage is None:
        return f"{where} was freed; realize what needs it while the tensor that holds it is alive"
    return (
        f"{where} is at version {storage.version}, version {node.arg.version} was overwritten; "
        "compute gradients before writing to what they depend on, or write to a clone()"
    )


def memory_of_id(node: UOp) -> Buffer | None:
    """The memory of the storage that `node` is some version of, or None where there is none yet."""
    storage = _storages.get(node.arg.id)
    return None if storage is None else storage.buffer


def written(node: UOp) -> None:
    """Make `node`, a later version of its storage, the current one.

    Earlier ones become unreadable.
    """
    storage = _storages[node.arg.id]
    if node.arg.version > storage.version:
        storage.version = node.arg.version
        _free_with(node)


def _free_with(node: UOp) -> None:
    finalizer = weakref.finalize(node, _forget, node.arg.id, node.arg.version)
    finalizer.atexit = False


def _forget(storage_id: int, version: int) -> None:
    storage = _storages.get(storage_id)
    if storage is not None and storage.version == version:
        del _storages[storage_id]
