"""Memory that is a memoryview over some Python object: what PYTHON, DISK and NPY have in common."""

from __future__ import annotations

from tg_ir.device import Allocator, BufferSpec, HostVisible

from tg_runtime_cpu.host_view import host_view

_FREED = memoryview(b"")


class ViewMemory:
    """Bytes of some Python object; empty once they were freed.

    Attributes:
        view: the bytes.
    """

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        """Keep the view, which keeps the object alive."""
        self.view = view


class ViewAllocator(Allocator[ViewMemory]):
    """Every hook but `_allocate`, which says where the bytes come from."""

    supports_as_buffer = True
    supports_transfer = True

    def _alloc(self, size: int, options: BufferSpec) -> ViewMemory:
        if options.external_ptr is not None:
            return ViewMemory(host_view(options.external_ptr, size))
        return ViewMemory(self._allocate(size))

    def _allocate(self, size: int) -> memoryview:
        """Return `size` bytes; raise a MemoryError if there are none."""
        raise NotImplementedError

    def _free(self, handle: ViewMemory, options: BufferSpec) -> None:
        handle.view = _FREED

    def _copyin(self, dest: ViewMemory, src: memoryview) -> None:
        dest.view[: src.nbytes] = src

    def _copyout(self, dest: memoryview, src: ViewMemory) -> None:
        dest[:] = src.view[: dest.nbytes]

    def _offset(self, handle: ViewMemory, size: int, byte_offset: int) -> ViewMemory:
        return ViewMemory(handle.view[byte_offset : byte_offset + size])

    def _map(self, memory: HostVisible) -> ViewMemory:
        return ViewMemory(memory.host_memory())

    def _unmap(self, handle: ViewMemory) -> None:
        handle.view = _FREED

    def _as_buffer(self, handle: ViewMemory) -> memoryview:
        return handle.view

    def _transfer(self, dest: ViewMemory, src: ViewMemory, size: int, source_device: str) -> None:
        dest.view[:size] = src.view[:size]
