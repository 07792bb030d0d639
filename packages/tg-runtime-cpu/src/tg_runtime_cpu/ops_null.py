"""The NULL device: allocates and runs nothing, but counts; for tests up to the launch."""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.device import (
    Allocator,
    BufferSpec,
    Compiled,
    DeviceCapabilities,
    HostVisible,
    LaunchSize,
    Program,
    TinyELF,
)


class NullMemory:
    """A size without memory.

    Attributes:
        nbytes: size in bytes.
    """

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        """Remember the size."""
        self.nbytes = nbytes


class NullAllocator(Allocator[NullMemory]):
    """Hands out sizes. What is read is zero, whatever was written.

    Attributes:
        bytes_copied: bytes that were copied in and out so far.
    """

    supports_transfer = True

    def __init__(self, device: str) -> None:
        """Start to count."""
        super().__init__(device)
        self.bytes_copied = 0

    def _alloc(self, size: int, options: BufferSpec) -> NullMemory:
        return NullMemory(size)

    def _free(self, handle: NullMemory, options: BufferSpec) -> None:
        handle.nbytes = 0

    def _copyin(self, dest: NullMemory, src: memoryview) -> None:
        self.bytes_copied += src.nbytes

    def _copyout(self, dest: memoryview, src: NullMemory) -> None:
        self.bytes_copied += dest.nbytes
        dest[:] = bytes(dest.nbytes)

    def _offset(self, handle: NullMemory, size: int, byte_offset: int) -> NullMemory:
        return NullMemory(size)

    def _map(self, memory: HostVisible) -> NullMemory:
        return NullMemory(memory.nbytes)

    def _unmap(self, handle: NullMemory) -> None:
        handle.nbytes = 0

    def _transfer(self, dest: NullMemory, src: NullMemory, size: int, source_device: str) -> None:
        self.bytes_copied += size


class NullProgram(Program[NullMemory]):
    """A kernel that is only counted.

    Attributes:
        launches: how often it was launched.
    """

    def __init__(self, obj: TinyELF) -> None:
        """Accept code of any format."""
        self.name = obj.name
        self.launches = 0

    def __call__(
        self,
        *buffers: NullMemory,
        global_size: LaunchSize = (1, 1, 1),
        local_size: LaunchSize | None = None,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """Count the launch; it takes no time."""
        self.launches += 1
        return 0.0 if wait else None


class NULLDevice(Compiled[NullMemory]):
    """A device without hardware.

    Args:
        device: canonical name.
    """

    runtime_api = 1

    def __init__(self, device: str) -> None:
        """Open the device; there is nothing to start."""
        super().__init__(
            device,
            NullAllocator(device),
            renderers=("LLVM", "CLANG", "SERIAL"),
            runtime=NullProgram,
            capabilities=DeviceCapabilities(stores_values=False, max_alignment=1),
        )
