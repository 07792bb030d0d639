"""Addresses of the functions that kernels call: libm, memcpy, the compiler's own support."""

from __future__ import annotations

import ctypes
import sys
from ctypes.util import find_library

from tg_runtime_cpu.errors import UnresolvedSymbolError

# In search order. libgcc_s holds the conversions to and from 16-bit floats that LLVM calls by name.
_LIBRARY_NAMES = {
    "linux": ("libc.so.6", "libm.so.6", "libgcc_s.so.1"),
    "darwin": ("libSystem.B.dylib",),
    "win32": ("ucrtbase", "msvcrt"),
}

_addresses: dict[str, int] = {}
_libraries: list[ctypes.CDLL] = []


def external_address(name: str) -> int:
    """Return the address of a function of the C, maths or compiler support library.

    Raises:
        UnresolvedSymbolError: no library of this machine offers it.
    """
    if (address := _addresses.get(name)) is None:
        address = _find(name)
        _addresses[name] = address
    return address


def _find(name: str) -> int:
    for library in _opened_libraries():
        try:
            function = getattr(library, name)
        except AttributeError:
            continue
        address = ctypes.cast(function, ctypes.c_void_p).value
        if address:
            return address
    searched = ", ".join(str(library._name or "this process") for library in _opened_libraries())
    raise UnresolvedSymbolError(
        f"a kernel calls '{name}', which no library of this machine offers; searched: {searched}; "
        "the renderer should lower this operation itself"
    )


def _opened_libraries() -> list[ctypes.CDLL]:
    if not _libraries:
        for name in _LIBRARY_NAMES.get(sys.platform, ()):
            _open(name)
        for name in ("c", "m"):  # systems without the names above, such as musl
            if not _libraries and (found := find_library(name)) is not None:
                _open(found)
    return _libraries


def _open(name: str) -> None:
    try:
        _libraries.append(ctypes.CDLL(name))
    except OSError:
        return  # a missing library only matters if one of its functions is asked for
