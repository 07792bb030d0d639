"""The DISK device: `DISK:/path/to/file`, whose memory is a mapped file. It runs no programs."""

from __future__ import annotations

import mmap
from pathlib import Path

from tg_ir.device import (
    BufferSpec,
    Compiled,
    DeviceCapabilities,
    Program,
    TinyELF,
    UnsupportedByDevice,
)

from tg_runtime_cpu.view_allocator import ViewAllocator, ViewMemory


class DiskAllocator(ViewAllocator):
    """Every buffer begins at the start of the file; use views for parts of it.

    A buffer that is longer than the file makes it longer, and a file that does not exist is made.
    A file that may not be written is mapped read-only, and writing to its buffers is refused.

    Args:
        device: canonical name, for messages.
        path: the file.
    """

    def __init__(self, device: str, path: Path) -> None:
        """Open nothing yet."""
        super().__init__(device)
        self._path = path
        self._mapping: mmap.mmap | None = None

    def _alloc(self, size: int, options: BufferSpec) -> ViewMemory:
        if options.external_ptr is not None:
            raise UnsupportedByDevice(
                f"{self.device} maps a file; external_ptr has no meaning there"
            )
        return super()._alloc(size, options)

    def _allocate(self, size: int) -> memoryview:
        if self._mapping is None or len(self._mapping) < size:
            # Buffers that are alive keep the mapping they have; both show the same file.
            self._mapping = _map_file(self._path, size)
        return memoryview(self._mapping)[:size]

    def _copyin(self, dest: ViewMemory, src: memoryview) -> None:
        if dest.view.readonly:
            raise UnsupportedByDevice(f"{self.device} is a file that may not be written")
        super()._copyin(dest, src)


def _map_file(path: Path, size: int) -> mmap.mmap:
    if path.exists() and path.stat().st_size >= size and not _may_write(path):
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mode = "r+b" if path.exists() else "w+b"
    with path.open(mode) as file:
        if path.stat().st_size < size:
            file.truncate(size)
        return mmap.mmap(file.fileno(), 0)


def _may_write(path: Path) -> bool:
    try:
        with path.open("r+b"):
            return True
    except PermissionError:
        return False


class DISKDevice(Compiled[ViewMemory]):
    """One file as a device.

    Args:
        device: `DISK:` and the path.

    Raises:
        ValueError: there is no path.
    """

    runtime_api = 1
    is_named_by_path = True

    def __init__(self, device: str) -> None:
        """Take the path from the name."""
        path = device.partition(":")[2]
        if not path:
            raise ValueError("a DISK device needs a path, such as DISK:/tmp/weights.bin")
        super().__init__(
            device,
            DiskAllocator(device, Path(path)),
            renderers=(),
            runtime=_refuse_program,
            capabilities=DeviceCapabilities(runs_programs=False, host_memory=True, max_alignment=1),
        )


def _refuse_program(obj: TinyELF) -> Program[ViewMemory]:
    raise UnsupportedByDevice(
        f"DISK runs no kernels, so not '{obj.name}'; copy to another device first"
    )
