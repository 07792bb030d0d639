"""Shared by the tests of renderers: running what they made, and golden files."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import pytest
from tg_runtime_cpu.object_file import load_object

GOLDEN = Path(__file__).parent / "golden"

_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class NativeKernel:
    """Machine code for this CPU, called by the calling convention of CPU kernels."""

    def __init__(self, code: bytes, name: str) -> None:
        self._object = load_object(code)
        self.address = self._object.address(name)
        self.function = _PROTOTYPE(self.address)

    def __call__(
        self, buffers: Sequence[bytearray], vals: Sequence[int] = (), begin: int = 0, end: int = 1
    ) -> None:
        views = [(ctypes.c_char * len(buffer)).from_buffer(buffer) for buffer in buffers]
        table = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(view) for view in views])
        integers = (ctypes.c_int64 * max(1, len(vals)))(*vals)
        self.function(ctypes.addressof(table), ctypes.addressof(integers), begin, end)


class GoldenFiles:
    """Texts that are compared with files under `golden`, or written there."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def check(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if self._update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path.name}; run pytest with --update-golden"
        assert text == path.read_text(encoding="utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> GoldenFiles:
    return GoldenFiles(bool(request.config.getoption("--update-golden")))


@pytest.fixture
def native_kernel() -> type[NativeKernel]:
    return NativeKernel
