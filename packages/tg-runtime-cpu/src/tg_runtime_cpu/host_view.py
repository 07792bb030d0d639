"""Memoryviews of plain addresses, and addresses of memoryviews."""

from __future__ import annotations

import ctypes

_WRITABLE = 0x200  # PyBUF_WRITE

# Made by the C API rather than as a ctypes array, because `c_ubyte * n` makes a new class for each
# n.
_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.restype = ctypes.py_object
_from_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def host_view(address: int, nbytes: int) -> memoryview:
    """Return `nbytes` bytes at `address`, writable; nothing keeps that memory alive."""
    view: memoryview = _from_memory(address, nbytes, _WRITABLE)
    return view


def address_of(memory: memoryview | bytearray) -> int:
    """Return the address of the first byte of writable, contiguous memory."""
    return ctypes.addressof(ctypes.c_ubyte.from_buffer(memory))
