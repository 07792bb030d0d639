"""`Buffer`: a piece of a device's memory, from first use to the last reference.

A view is a Buffer with a `base`: it holds no memory of its own and keeps its base alive. What the
memory means (shape, order, versions) is not here.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

from tg_ir.device.allocator import Allocator, BufferSpec
from tg_ir.device.errors import BufferSizeError, BufferStateError
from tg_ir.device.registry import canonical_device_name, open_device
from tg_ir.dtype import DType


class Buffer:
    """`size` elements of `dtype` on one device.

    Args:
        device: name of the device; made canonical.
        size: number of elements, >= 0.
        dtype: element type, with a size in memory.
        options: how to allocate; None takes the device's default.
        base: makes this a view into another buffer of the same device.
        offset: where the view begins in `base`, in bytes.

    Raises:
        BufferSizeError: a negative size, a dtype without size, or a view that leaves its base.
    """

    __slots__ = (
        "__weakref__",
        "_allocator",
        "_exports",
        "_handle",
        "_mapped",
        "_offset_handle",
        "base",
        "device",
        "dtype",
        "nbytes",
        "offset",
        "options",
        "size",
    )

    def __init__(
        self,
        device: str,
        size: int,
        dtype: DType,
        options: BufferSpec | None = None,
        base: Buffer | None = None,
        offset: int = 0,
    ) -> None:
        """Describe the memory; nothing is allocated yet."""
        self._handle: Any = None  # first, so that __del__ works when a check below fails
        self._allocator: Allocator[Any] | None = None  # kept, so that freeing never opens a device
        self._mapped: dict[str, tuple[Allocator[Any], Any]] = {}
        self._offset_handle: tuple[Any, Any] | None = None  # of a view: (handle of the root, own)
        self._exports: list[weakref.ref[Any]] = []
        if size < 0 or dtype.kind in ("void", "index"):
            raise BufferSizeError(
                f"a buffer of {size} x {dtype.name}; expected size >= 0, a sized dtype"
            )
        self.device = canonical_device_name(device)
        self.size = size
        self.dtype = dtype
        self.nbytes = size * dtype.itemsize
        self.options = options
        self.base = base
        self.offset = offset
        if base is not None:
            self._become_view(base, offset)
        elif offset:
            raise BufferSizeError(f"offset {offset} without a base; only a view has an offset")

    def _become_view(self, base: Buffer, offset: int) -> None:
        if offset < 0 or offset + self.nbytes > base.nbytes:
            raise BufferSizeError(
                f"a view of {self.nbytes} bytes at byte {offset} "
                f"leaves its base of {base.nbytes} bytes"
            )
        if base.device != self.device:
            raise BufferSizeError(
                f"a view on {self.device} of a base on {base.device}; expected one device"
            )
        self.base = base.root
        self.offset = base.offset + offset

    @property
    def root(self) -> Buffer:
        """The buffer that owns the memory: itself, or its base if it is a view."""
        return self if self.base is None else self.base

    @property
    def allocator(self) -> Allocator[Any]:
        """The allocator of the device; opens the device."""
        owner = self.root._allocator
        return open_device(self.device).allocator if owner is None else owner

    @property
    def is_allocated(self) -> bool:
        """Whether the memory exists."""
        return self.root._handle is not None

    def allocate(self) -> Buffer:
        """Allocate and return self.

        Raises:
            BufferStateError: it is allocated already.
            OutOfDeviceMemory: the device is full; nothing has changed.
        """
        if self.is_allocated:
            raise BufferStateError(f"{self!r} is allocated already; use ensure_allocated()")
        return self.ensure_allocated()

    def ensure_allocated(self) -> Buffer:
        """Allocate unless that is done, and return self."""
        root = self.root
        if root._handle is None:
            allocator = open_device(root.device).allocator
            # An empty buffer still needs an address to pass to a kernel.
            handle = allocator.alloc(max(root.nbytes, 1), root.options)
            if root._handle is not None:  # another thread was faster
                allocator.free(handle, max(root.nbytes, 1), root.options)
            else:
                root._allocator = allocator
                root._handle = handle
        return self

    def deallocate(self) -> None:
        """Free the memory now rather than with the last reference; views of it lose theirs.

        Raises:
            BufferStateError: this is a view, it is not allocated, or a memoryview of it is in use.
        """
        if self.base is not None:
            raise BufferStateError(f"{self!r} is a view; deallocate its base")
        if self._handle is None:
            raise BufferStateError(f"{self!r} is not allocated; nothing to free")
        if any(export() is not None for export in self._exports):
            raise BufferStateError(f"a memoryview of {self!r} is in use; delete it first")
        self._release()

    def get_buf(self, device: str | None = None) -> Any:
        """Return the device's handle for this memory, allocated if need be.

        Args:
            device: the device that will use it; another device than the owner gets it mapped.

        Raises:
            UnsupportedByDevice: that device cannot reach this memory.
        """
        self.ensure_allocated()
        if device is None or device == self.device:
            return self._own_handle()
        if device not in self._mapped:
            allocator = open_device(device).allocator
            self._mapped[device] = (allocator, allocator.map(self))
        return self._mapped[device][1]

    def view(self, size: int, dtype: DType, byte_offset: int) -> Buffer:
        """Return `size` elements of `dtype` that begin `byte_offset` bytes into this buffer.

        Raises:
            BufferSizeError: the view would leave this buffer.
        """
        return Buffer(self.device, size, dtype, base=self, offset=byte_offset)

    def copyin(self, src: memoryview | bytes | bytearray) -> Buffer:
        """Fill the buffer from host bytes and return self.

        Args:
            src: contiguous memory of exactly `nbytes` bytes.

        Raises:
            BufferSizeError: the sizes differ, or `src` is not contiguous.
        """
        source = self._checked_host_memory(memoryview(src), "copyin")
        self.ensure_allocated()
        if self.nbytes:
            self.allocator.copyin(self._own_handle(), source)
        return self

    def copyout(self, dest: memoryview | bytearray) -> memoryview:
        """Copy the whole buffer to host memory of exactly `nbytes` bytes; return it as bytes.

        Raises:
            BufferSizeError: the sizes differ, or `dest` is read-only or not contiguous.
            BufferStateError: the buffer was never allocated, or was freed.
        """
        target = self._checked_host_memory(memoryview(dest), "copyout")
        if target.readonly:
            raise BufferSizeError(f"copyout of {self!r} into read-only memory; give a bytearray")
        self._require_allocated("copyout")
        if self.nbytes:
            self.allocator.copyout(target, self._own_handle())
        return target

    def as_memoryview(self, allow_copy: bool = True) -> memoryview:
        """Return the bytes: the memory itself where the host can address it, else a copy.

        The memory stays alive as long as the memoryview does. It is writable.

        Args:
            allow_copy: False to be refused rather than given a copy.

        Raises:
            BufferStateError: the buffer was never allocated, or was freed.
            UnsupportedByDevice: the host cannot address the memory and `allow_copy` is False.
        """
        self._require_allocated("as_memoryview")
        if self.nbytes == 0:
            return memoryview(bytearray())
        if self.allocator.supports_as_buffer or not allow_copy:
            return self._export(self.host_memory())
        return self.copyout(bytearray(self.nbytes))

    def host_memory(self) -> memoryview:
        """Return the memory itself as bytes, without keeping it alive; see `as_memoryview`.

        Raises:
            BufferStateError: the buffer was never allocated, or was freed.
            UnsupportedByDevice: the host cannot address the memory.
        """
        self._require_allocated("host_memory")
        memory = self.allocator.as_buffer(self._own_handle())
        open_device(self.device).synchronize()
        return memory[: self.nbytes]

    def copy_from(self, source: Buffer) -> Buffer:
        """Copy all of `source`, on any device, into this buffer and return self.

        Raises:
            BufferSizeError: the sizes in bytes differ.
            BufferStateError: `source` was never allocated, or was freed.
        """
        if source.nbytes != self.nbytes:
            raise BufferSizeError(f"copy of {source!r} to {self!r}: the sizes in bytes differ")
        source._require_allocated("copy")
        self.ensure_allocated()
        if self.nbytes == 0:
            return self
        allocator = self.allocator
        same_kind = source.device.partition(":")[0] == self.device.partition(":")[0]
        if same_kind and allocator.supports_transfer:
            allocator.transfer(self._own_handle(), source._own_handle(), self.nbytes, source.device)
        elif allocator.supports_as_buffer:
            source.copyout(self.host_memory())
        else:
            allocator.copyin(self._own_handle(), source.as_memoryview())
        return self

    def _own_handle(self) -> Any:
        root = self.root
        if root is self:
            return self._handle
        if self.offset == 0 and self.nbytes == root.nbytes:
            return root._handle
        # Kept as long as the root keeps its memory, so that an executor sees the same handle again.
        kept = self._offset_handle
        if kept is None or kept[0] is not root._handle:
            own = self.allocator.offset(root._handle, max(self.nbytes, 1), self.offset)
            kept = (root._handle, own)
            self._offset_handle = kept
        return kept[1]

    def _require_allocated(self, use: str) -> None:
        if not self.is_allocated:
            raise BufferStateError(f"{use} of {self!r}, which is not allocated; write to it first")

    def _checked_host_memory(self, memory: memoryview, use: str) -> memoryview:
        if not memory.c_contiguous:
            raise BufferSizeError(
                f"{use} of {self!r}: host memory is not contiguous; copy it first"
            )
        if memory.nbytes != self.nbytes:
            raise BufferSizeError(
                f"{use} of {self!r}: expected {self.nbytes} bytes of host memory, "
                f"got {memory.nbytes}"
            )
        return memory.cast("B") if memory.nbytes else memoryview(bytearray())

    def _export(self, memory: memoryview) -> memoryview:
        if memory.readonly:  # of a file that cannot be written; it holds its own mapping
            return memory
        # A ctypes array can carry a reference, a memoryview cannot: this one keeps the buffer
        # alive.
        array = (ctypes.c_ubyte * self.nbytes).from_buffer(memory)
        array.owner = self  # type: ignore[attr-defined]  # ctypes arrays take attributes
        exports = self.root._exports
        exports[:] = [export for export in exports if export() is not None]
        exports.append(weakref.ref(array))
        return memoryview(array).cast("B")

    def _release(self) -> None:
        for allocator, mapped in self._mapped.values():
            allocator.unmap(mapped)
        self._mapped.clear()
        handle = self._handle
        self._handle = None
        self.allocator.free(handle, max(self.nbytes, 1), self.options)

    def __del__(self) -> None:
        """Free the memory with the last reference."""
        if self._handle is not None:
            self._release()

    def __repr__(self) -> str:
        """Say what and where, without the contents."""
        where = "" if self.base is None else f" at byte {self.offset} of {self.base.nbytes}"
        return f"<Buffer {self.device} {self.size} x {self.dtype.name}{where}>"
