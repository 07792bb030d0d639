"""The contract of device memory: `BufferSpec`, `Allocator` with its hooks, and `LRUAllocator`.

A device writes the hooks `_alloc _free _copyin _copyout _map _unmap _offset` and declares what
else it can do. Accounting, the error of a full device, caching and thread safety are here, once.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tg_ir.config import LRU
from tg_ir.counters import GlobalCounters
from tg_ir.device.errors import BufferSizeError, OutOfDeviceMemory, UnsupportedByDevice
from tg_ir.events import BufferAllocated, BufferFreed, emit, listening

HandleT = TypeVar("HandleT")
"""What a device calls a piece of its memory. Opaque: only the device that made it looks inside."""


@dataclass(frozen=True)
class BufferSpec:
    """How to allocate; a device may ignore any of it but `external_ptr`."""

    uncached: bool = False  # not through the processor's caches
    cpu_access: bool = False  # device memory that the host can address
    host: bool = False  # host memory that the device can address
    nolru: bool = False  # given back to the system when freed
    zero: bool = False  # starts filled with zeros
    external_ptr: int | None = None  # address of memory that somebody else owns and keeps alive

    @property
    def cacheable(self) -> bool:
        """Whether freed memory of this kind may be handed out again."""
        return not (self.nolru or self.zero or self.external_ptr is not None)


class HostVisible(Protocol):
    """Memory of some device that may be reachable through a host address."""

    @property
    def device(self) -> str:
        """Canonical name of the device that owns the memory."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""

    def host_memory(self) -> memoryview:
        """Return the memory itself as writable bytes, valid as long as its owner keeps it."""


class Allocator(ABC, Generic[HandleT]):
    """Memory of one device.

    Subclasses write the hooks; users call `alloc`, `free` and `map`, which may be called from any
    thread.

    Args:
        device: canonical name of the device, for messages.
        default_buffer_spec: how memory is allocated when the caller does not say.
    """

    supports_transfer: ClassVar[bool] = False
    supports_as_buffer: ClassVar[bool] = False
    supports_copy_from_disk: ClassVar[bool] = False
    supports_encode_decode: ClassVar[bool] = False

    def __init__(self, device: str, default_buffer_spec: BufferSpec = BufferSpec()) -> None:
        """Start with nothing allocated."""
        self.device = device
        self.default_buffer_spec = default_buffer_spec
        self._bytes_in_use = 0
        self._lock = threading.Lock()
        # A buffer may be freed by the garbage collector in the middle of `alloc`, in the same
        # thread: `free` only appends here (one atomic step) and whoever holds the lock next does
        # the work.
        self._pending_frees: deque[tuple[HandleT, int, BufferSpec]] = deque()
        _ALLOCATORS.add(self)

    @property
    def bytes_in_use(self) -> int:
        """Bytes handed out and not freed; memory owned by others and cached memory not counted."""
        self._drain_pending_frees()
        return self._bytes_in_use

    def alloc(self, size: int, options: BufferSpec | None = None) -> HandleT:
        """Return memory of at least `size` bytes.

        Args:
            size: bytes, > 0.
            options: how to allocate it; None takes the device's default.

        Raises:
            BufferSizeError: `size` is not positive.
            OutOfDeviceMemory: the device is full; the next allocation works.
        """
        if size <= 0:
            raise BufferSizeError(
                f"{self.device}: cannot allocate {size} bytes; expected a size > 0"
            )
        spec = self.default_buffer_spec if options is None else options
        with self._lock:
            self._release_pending()
            try:
                handle = self._obtain(size, spec)
            except MemoryError:
                raise OutOfDeviceMemory(self.device, size, self._bytes_in_use) from None
            self._count(size, spec)
        if listening():
            emit(BufferAllocated(self.device, size))
        return handle

    def free(self, handle: HandleT, size: int, options: BufferSpec | None = None) -> None:
        """Give back what `alloc(size, options)` returned; the handle must not be used again."""
        self._pending_frees.append(
            (handle, size, self.default_buffer_spec if options is None else options)
        )
        self._drain_pending_frees()
        if listening():
            emit(BufferFreed(self.device, size))

    def map(self, memory: HostVisible) -> HandleT:
        """Return the handle by which this device reaches memory of another device, without a copy.

        Raises:
            UnsupportedByDevice: it cannot be reached.
        """
        return self._map(memory)

    def unmap(self, handle: HandleT) -> None:
        """End what `map` began; the memory stays with its owner."""
        self._unmap(handle)

    def free_cache(self) -> int:
        """Give cached memory back to the system and return how many bytes that was."""
        return 0

    def copyin(self, dest: HandleT, src: memoryview) -> None:
        """Copy host bytes to the start of `dest`."""
        self._copyin(dest, src)

    def copyout(self, dest: memoryview, src: HandleT) -> None:
        """Copy the start of `src` to the host until `dest` is full."""
        self._copyout(dest, src)

    def offset(self, handle: HandleT, size: int, byte_offset: int) -> HandleT:
        """Return the handle of `size` bytes that begin `byte_offset` into `handle`."""
        return self._offset(handle, size, byte_offset)

    def as_buffer(self, handle: HandleT) -> memoryview:
        """Return the memory itself as writable bytes. Needs `supports_as_buffer`."""
        return self._as_buffer(handle)

    def transfer(self, dest: HandleT, src: HandleT, size: int, source_device: str) -> None:
        """Copy `size` bytes from a handle of `source_device`. Needs `supports_transfer`."""
        self._transfer(dest, src, size, source_device)

    # Hooks that every device writes.

    @abstractmethod
    def _alloc(self, size: int, options: BufferSpec) -> HandleT:
        """Allocate; raise a MemoryError if the device is full."""

    @abstractmethod
    def _free(self, handle: HandleT, options: BufferSpec) -> None:
        """Give memory back to the system; with `external_ptr` only forget it."""

    @abstractmethod
    def _copyin(self, dest: HandleT, src: memoryview) -> None:
        """Copy host bytes to the device."""

    @abstractmethod
    def _copyout(self, dest: memoryview, src: HandleT) -> None:
        """Copy device bytes to the host, after everything that was launched before."""

    @abstractmethod
    def _offset(self, handle: HandleT, size: int, byte_offset: int) -> HandleT:
        """Return a handle into the same memory."""

    # Hooks that a device writes if it declares the capability.

    def _map(self, memory: HostVisible) -> HandleT:
        raise UnsupportedByDevice(
            f"{self.device} cannot reach memory of {memory.device}; "
            f"copy it with `.to({self.device!r})`"
        )

    def _unmap(self, handle: HandleT) -> None:
        raise UnsupportedByDevice(f"{self.device} maps no memory of other devices")

    def _transfer(self, dest: HandleT, src: HandleT, size: int, source_device: str) -> None:
        raise UnsupportedByDevice(f"{self.device} has no direct transfer from {source_device}")

    def _as_buffer(self, handle: HandleT) -> memoryview:
        raise UnsupportedByDevice(f"memory of {self.device} is not addressable by the host")

    def copy_from_disk(self, dest: HandleT, path: str, byte_offset: int, size: int) -> None:
        """Read part of a file straight into device memory. Needs `supports_copy_from_disk`."""
        raise UnsupportedByDevice(f"{self.device} cannot read files directly")

    def _encode_decode(self, dest: HandleT, src: HandleT, shape: tuple[int, ...]) -> None:
        raise UnsupportedByDevice(f"{self.device} has no media engine")

    # What LRUAllocator replaces.

    def _obtain(self, size: int, options: BufferSpec) -> HandleT:
        return self._alloc(size, options)

    def _return(self, handle: HandleT, size: int, options: BufferSpec) -> None:
        self._free(handle, options)

    def _drain_pending_frees(self) -> None:
        # Looped, because another thread may append between our last look and the release of the
        # lock.
        while self._pending_frees and self._lock.acquire(blocking=False):
            try:
                self._release_pending()
            finally:
                self._lock.release()

    def _release_pending(self) -> None:
        while self._pending_frees:
            handle, size, options = self._pending_frees.popleft()
            self._count(-size, options)
            self._return(handle, size, options)

    def _count(self, nbytes: int, options: BufferSpec) -> None:
        if options.external_ptr is None:
            self._bytes_in_use += nbytes
            GlobalCounters.count_memory(nbytes)


class LRUAllocator(Allocator[HandleT]):
    """An allocator that keeps freed memory by `(size, options)` and hands it out again.

    `LRU=0` turns that off. When the device is full it empties its cache and tries once more. Above
    `cache_limit` bytes the memory that was unused longest goes back to the system.
    """

    def __init__(
        self,
        device: str,
        default_buffer_spec: BufferSpec = BufferSpec(),
        cache_limit: int | None = None,
    ) -> None:
        """Start with an empty cache.

        Args:
            device: canonical name of the device, for messages.
            default_buffer_spec: how memory is allocated when the caller does not say.
            cache_limit: most bytes to keep; None for no limit.
        """
        super().__init__(device, default_buffer_spec)
        self._cache: OrderedDict[tuple[int, BufferSpec], list[HandleT]] = OrderedDict()
        self._cache_limit = cache_limit
        self._cached_bytes = 0

    @property
    def cached_bytes(self) -> int:
        """Bytes kept for the next allocation."""
        return self._cached_bytes

    def free_cache(self) -> int:
        """Give cached memory back to the system and return how many bytes that was."""
        with self._lock:
            self._release_pending()
            return self._empty_cache()

    def _obtain(self, size: int, options: BufferSpec) -> HandleT:
        if options.cacheable and (kept := self._cache.get((size, options))):
            self._cached_bytes -= size
            return self._take(kept, (size, options))
        try:
            return self._alloc(size, options)
        except MemoryError:
            if self._empty_cache() == 0:
                raise
        return self._alloc(size, options)

    def _return(self, handle: HandleT, size: int, options: BufferSpec) -> None:
        if not (options.cacheable and LRU):
            self._free(handle, options)
            return
        key = (size, options)
        self._cache.setdefault(key, []).append(handle)
        self._cache.move_to_end(key)
        self._cached_bytes += size
        while self._cache_limit is not None and self._cached_bytes > self._cache_limit:
            self._evict_oldest()

    def _take(self, kept: list[HandleT], key: tuple[int, BufferSpec]) -> HandleT:
        handle = kept.pop()
        if not kept:
            del self._cache[key]
        return handle

    def _evict_oldest(self) -> None:
        key = next(iter(self._cache))
        size, options = key
        self._free(self._take(self._cache[key], key), options)
        self._cached_bytes -= size

    def _empty_cache(self) -> int:
        freed = self._cached_bytes
        while self._cache:
            self._evict_oldest()
        return freed


_ALLOCATORS: weakref.WeakSet[Allocator[Any]] = weakref.WeakSet()


def _remake_locks_after_fork() -> None:
    # Another thread of the parent may have held a lock; that thread does not exist in the child.
    for allocator in list(_ALLOCATORS):
        allocator._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remake_locks_after_fork)
