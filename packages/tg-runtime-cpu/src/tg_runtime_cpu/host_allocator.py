"""Memory of the CPU device: aligned, large pieces on huge pages, freed pieces reused."""

from __future__ import annotations

import mmap
import os
import sys

from tg_ir.device import BufferSpec, HostVisible, LRUAllocator

from tg_runtime_cpu.host_view import address_of, host_view

ALIGNMENT = 64  # a cache line, and the widest vector register
HUGE_PAGE = 2 << 20

# Fresh 4 KiB pages are touched at 3 GB/s, huge ones at 22-25 GB/s (measured): worth it from one
# page on.
HUGE_FROM = HUGE_PAGE

# A process whose sizes keep changing would otherwise keep every size it ever used.
CACHED_SHARE_OF_MEMORY = 4


class HostMemory:
    """A range of addresses; `owner` keeps it alive and is None once it was freed.

    Attributes:
        address: where it begins.
        nbytes: size in bytes.
        owner: the object whose memory this is, or None for memory that somebody else keeps alive.
    """

    __slots__ = ("address", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, owner: object = None) -> None:
        """Describe a range that exists."""
        self.address = address
        self.nbytes = nbytes
        self.owner = owner


class HostAllocator(LRUAllocator[HostMemory]):
    """Allocates from the host's own memory, which needs no copy to be read."""

    supports_transfer = True
    supports_as_buffer = True

    def __init__(self, device: str) -> None:
        """Limit what is kept to a share of the machine's memory."""
        super().__init__(device, cache_limit=_physical_memory() // CACHED_SHARE_OF_MEMORY)

    def _alloc(self, size: int, options: BufferSpec) -> HostMemory:
        if options.external_ptr is not None:
            return HostMemory(options.external_ptr, size)
        if size < HUGE_FROM:
            small = bytearray(size + ALIGNMENT)
            return HostMemory(_aligned(address_of(small), ALIGNMENT), size, small)
        return _map_huge(size)

    def _free(self, handle: HostMemory, options: BufferSpec) -> None:
        handle.owner = None  # the last reference: bytearray and mmap free themselves

    def _copyin(self, dest: HostMemory, src: memoryview) -> None:
        host_view(dest.address, src.nbytes)[:] = src

    def _copyout(self, dest: memoryview, src: HostMemory) -> None:
        dest[:] = host_view(src.address, dest.nbytes)

    def _offset(self, handle: HostMemory, size: int, byte_offset: int) -> HostMemory:
        return HostMemory(handle.address + byte_offset, size, handle)

    def _map(self, memory: HostVisible) -> HostMemory:
        return HostMemory(address_of(memory.host_memory()), memory.nbytes)

    def _unmap(self, handle: HostMemory) -> None:
        handle.address = 0

    def _as_buffer(self, handle: HostMemory) -> memoryview:
        return host_view(handle.address, handle.nbytes)

    def _transfer(self, dest: HostMemory, src: HostMemory, size: int, source_device: str) -> None:
        host_view(dest.address, size)[:] = host_view(src.address, size)


def _map_huge(size: int) -> HostMemory:
    """Map `size` bytes that begin on a huge page. The unused part of the mapping is never touched.

    Raises:
        MemoryError: the system refused.
    """
    try:
        mapping = _anonymous_mapping(size + HUGE_PAGE)
    except (OSError, OverflowError, ValueError) as error:
        raise MemoryError(str(error)) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without huge pages: slower, not wrong
    return HostMemory(_aligned(address_of(memoryview(mapping)), HUGE_PAGE), size, mapping)


def _anonymous_mapping(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # Python's default is MAP_SHARED: no huge pages, and a forked child would write to our memory.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment


def _physical_memory() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 8 << 30  # not told by this system's os module
