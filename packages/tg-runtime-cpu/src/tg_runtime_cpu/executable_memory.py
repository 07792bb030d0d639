"""Memory for machine code that is never writable and executable at once (W^X).

Life of a piece: mapped readable and writable, filled, then sealed, after which its code is
read-execute and its constants read-only. One class per operating system; Linux is tested here,
macOS and Windows are written to their documented calls.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tg_runtime_cpu.errors import ExecutableMemoryError
from tg_runtime_cpu.host_view import host_view

PAGE = mmap.PAGESIZE


class Protection(Enum):
    """What a sealed segment allows. There is no member that allows both writing and executing."""

    READ = 1
    READ_WRITE = 3
    READ_EXECUTE = 5


@dataclass(frozen=True)
class Segment:
    """A whole number of pages with one protection, `offset` bytes into the memory."""

    offset: int
    size: int
    protection: Protection


class ExecutableMemory(ABC):
    """A mapped range; `close` or the last reference unmaps it.

    Args:
        size: bytes, > 0; rounded up to whole pages.
        below_2_gib: map it where 32-bit absolute addresses reach.

    Raises:
        ExecutableMemoryError: the operating system refused.
    """

    def __init__(self, size: int, below_2_gib: bool = False) -> None:
        """Map the range readable and writable."""
        self.size = round_to_page(size)
        self.address = 0  # first, so that __del__ works when mapping fails
        self.address = self._map(below_2_gib)

    def view(self) -> memoryview:
        """Return the range as writable bytes; use it before `seal` only."""
        return host_view(self.address, self.size)

    def seal(self, segments: Sequence[Segment]) -> None:
        """Give each segment its protection and make the code visible to the instruction fetch."""
        for segment in segments:
            if segment.size:
                self._protect(segment)
        self._flush_instruction_cache()

    def close(self) -> None:
        """Unmap the range; code in it must not run any more."""
        address = self.address
        self.address = 0
        if address:
            self._unmap(address)

    def __del__(self) -> None:
        """Unmap with the last reference."""
        self.close()

    @abstractmethod
    def _map(self, below_2_gib: bool) -> int:
        """Return the address of a fresh range of `self.size` bytes, readable and writable."""

    @abstractmethod
    def _protect(self, segment: Segment) -> None:
        """Change the protection of one segment."""

    @abstractmethod
    def _unmap(self, address: int) -> None:
        """Unmap the range."""

    @abstractmethod
    def _flush_instruction_cache(self) -> None:
        """Make written code visible to the instruction fetch; x86 needs nothing."""


class PosixExecutableMemory(ExecutableMemory):
    """Linux and other systems with POSIX mmap and mprotect."""

    map_flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if sys.platform != "win32" else 0
    map_32bit = 0x40  # MAP_32BIT, Linux on x86-64 only

    def _map(self, below_2_gib: bool) -> int:
        low = below_2_gib and sys.platform == "linux" and platform.machine() == "x86_64"
        flags = self.map_flags | (self.map_32bit if low else 0)
        address = _posix().mmap(None, self.size, Protection.READ_WRITE.value, flags, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise ExecutableMemoryError(
                ctypes.get_errno(), f"mmap of {self.size} bytes for code failed"
            )
        return int(address)

    def _protect(self, segment: Segment) -> None:
        start = self.address + segment.offset
        if _posix().mprotect(start, segment.size, segment.protection.value) != 0:
            raise ExecutableMemoryError(
                ctypes.get_errno(),
                f"mprotect to {segment.protection.name} failed; "
                "does a security policy forbid code at run time?",
            )

    def _unmap(self, address: int) -> None:
        _posix().munmap(address, self.size)

    def _flush_instruction_cache(self) -> None:
        if platform.machine() in ("aarch64", "arm64"):
            # libgcc's function for it; compilers emit the same call for __builtin___clear_cache.
            libgcc = ctypes.CDLL("libgcc_s.so.1")
            libgcc.__clear_cache(
                ctypes.c_void_p(self.address), ctypes.c_void_p(self.address + self.size)
            )


class MacExecutableMemory(PosixExecutableMemory):
    """macOS: MAP_JIT memory; Apple silicon switches its write permission by thread."""

    map_flags = PosixExecutableMemory.map_flags | 0x0800  # MAP_JIT

    def _map(self, below_2_gib: bool) -> int:
        self._switched = platform.machine() == "arm64"
        self._protection_at_map = 7 if self._switched else Protection.READ_WRITE.value
        address = _posix().mmap(None, self.size, self._protection_at_map, self.map_flags, -1, 0)
        if address in (None, ctypes.c_void_p(-1).value):
            raise ExecutableMemoryError(
                ctypes.get_errno(), f"mmap of {self.size} bytes for code failed"
            )
        if self._switched:
            # On Apple silicon the hardware refuses writing and executing at once, thread by thread.
            ctypes.CDLL(None).pthread_jit_write_protect_np(0)
        return int(address)

    def seal(self, segments: Sequence[Segment]) -> None:
        """Switch this thread's write permission off, or protect page by page on Intel."""
        if not self._switched:
            super().seal(segments)
            return
        ctypes.CDLL(None).pthread_jit_write_protect_np(1)
        self._flush_instruction_cache()

    def _flush_instruction_cache(self) -> None:
        ctypes.CDLL(None).sys_icache_invalidate(
            ctypes.c_void_p(self.address), ctypes.c_size_t(self.size)
        )


class WindowsExecutableMemory(ExecutableMemory):
    """Windows: VirtualAlloc, VirtualProtect, FlushInstructionCache."""

    _page_constants = {
        Protection.READ: 0x02,
        Protection.READ_WRITE: 0x04,
        Protection.READ_EXECUTE: 0x20,
    }

    def _map(self, below_2_gib: bool) -> int:
        kernel32 = _kernel32()
        reserve_and_commit = 0x3000
        read_write = self._page_constants[Protection.READ_WRITE]
        address = kernel32.VirtualAlloc(None, self.size, reserve_and_commit, read_write)
        if not address:
            raise ExecutableMemoryError(f"VirtualAlloc of {self.size} bytes for code failed")
        return int(address)

    def _protect(self, segment: Segment) -> None:
        old = ctypes.c_uint32()
        wanted = self._page_constants[segment.protection]
        start = self.address + segment.offset
        if not _kernel32().VirtualProtect(start, segment.size, wanted, ctypes.byref(old)):
            raise ExecutableMemoryError(f"VirtualProtect to {segment.protection.name} failed")

    def _unmap(self, address: int) -> None:
        release = 0x8000
        _kernel32().VirtualFree(address, 0, release)

    def _flush_instruction_cache(self) -> None:
        kernel32 = _kernel32()
        kernel32.FlushInstructionCache(kernel32.GetCurrentProcess(), self.address, self.size)


def allocate_executable(size: int, below_2_gib: bool = False) -> ExecutableMemory:
    """Return fresh memory for code on this operating system.

    Raises:
        ExecutableMemoryError: the operating system refused.
    """
    if sys.platform == "win32":
        return WindowsExecutableMemory(size, below_2_gib)
    if sys.platform == "darwin":
        return MacExecutableMemory(size, below_2_gib)
    return PosixExecutableMemory(size, below_2_gib)


def round_to_page(size: int) -> int:
    """Return `size` rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


_LIBRARIES: dict[str, ctypes.CDLL] = {}


def _posix() -> ctypes.CDLL:
    if (libc := _LIBRARIES.get("libc")) is None:
        libc = ctypes.CDLL(None, use_errno=True)
        pointer, size, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        libc.mmap.restype = pointer
        libc.mmap.argtypes = (pointer, size, integer, integer, integer, ctypes.c_longlong)
        libc.mprotect.argtypes = (pointer, size, integer)
        libc.munmap.argtypes = (pointer, size)
        _LIBRARIES["libc"] = libc
    return libc


def _kernel32() -> ctypes.CDLL:
    if (kernel32 := _LIBRARIES.get("kernel32")) is None:
        kernel32 = ctypes.CDLL("kernel32")
        pointer, size, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
        kernel32.VirtualAlloc.restype = pointer
        kernel32.VirtualAlloc.argtypes = (pointer, size, integer, integer)
        kernel32.VirtualProtect.argtypes = (pointer, size, integer, pointer)
        kernel32.VirtualFree.argtypes = (pointer, size, integer)
        kernel32.GetCurrentProcess.restype = pointer
        kernel32.FlushInstructionCache.argtypes = (pointer, pointer, size)
        _LIBRARIES["kernel32"] = kernel32
    return kernel32
