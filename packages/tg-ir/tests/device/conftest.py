"""A device for tests: memory is bytearrays, a kernel is the name of a Python function."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from tg_ir.device import (
    BufferParameter,
    BufferSpec,
    Compiled,
    DeviceCapabilities,
    DeviceGraph,
    GraphLaunch,
    KernelSignature,
    LRUAllocator,
    Program,
    TinyELF,
    register_device,
    unregister_device,
)

CAPACITY = 1 << 20


class Memory:
    def __init__(self, view: memoryview) -> None:
        self.view = view


class TinyAllocator(LRUAllocator[Memory]):
    """Has `CAPACITY` bytes, and counts what reaches the system."""

    supports_as_buffer = True

    def __init__(self, device: str) -> None:
        super().__init__(device, cache_limit=CAPACITY)
        self.from_system = 0
        self.system_calls: list[str] = []

    def _alloc(self, size: int, options: BufferSpec) -> Memory:
        if self.from_system + size > CAPACITY:
            raise MemoryError("full")
        self.from_system += size
        self.system_calls.append(f"alloc {size}")
        return Memory(memoryview(bytearray(size)))

    def _free(self, handle: Memory, options: BufferSpec) -> None:
        self.from_system -= len(handle.view)
        self.system_calls.append(f"free {len(handle.view)}")

    def _copyin(self, dest: Memory, src: memoryview) -> None:
        dest.view[: src.nbytes] = src

    def _copyout(self, dest: memoryview, src: Memory) -> None:
        dest[:] = src.view[: dest.nbytes]

    def _offset(self, handle: Memory, size: int, byte_offset: int) -> Memory:
        return Memory(handle.view[byte_offset : byte_offset + size])

    def _as_buffer(self, handle: Memory) -> memoryview:
        return handle.view


def _add(buffers: Sequence[memoryview], vals: Sequence[int], count: int) -> None:
    out, left, right = buffers
    for i in range(count):
        out[i] = left[i] + right[i]


def _fill(buffers: Sequence[memoryview], vals: Sequence[int], count: int) -> None:
    for i in range(count):
        buffers[0][i] = vals[0]


FUNCTIONS: dict[str, Callable[[Sequence[memoryview], Sequence[int], int], None]] = {
    "add": _add,
    "fill": _fill,
}


class TinyProgram(Program[Memory]):
    loads = 0

    def __init__(self, obj: TinyELF) -> None:
        type(self).loads += 1
        self.function = FUNCTIONS[obj.code.decode()]

    def __call__(
        self,
        *buffers: Memory,
        global_size: tuple[int, ...] = (1, 1, 1),
        local_size: tuple[int, ...] | None = None,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        views = [buffer.view.cast("i") for buffer in buffers]
        self.function(views, vals, global_size[0])
        return 0.001 if wait else None


class TinyGraph(DeviceGraph[Memory]):
    made: list[TinyGraph] = []

    def __init__(
        self,
        device: Compiled[Any],
        launches: Sequence[GraphLaunch],
        handles: Sequence[Memory],
        support: Mapping[str, Program[Any]],
    ) -> None:
        self.support = support
        self.launches = list(launches)
        self.handles = list(handles)
        self.runs = 0
        self.made.append(self)

    def set_handle(self, slot: int, handle: Memory) -> None:
        self.handles[slot] = handle

    def set_sizes(self, index: int, global_size: tuple[int, ...], vals: tuple[int, ...]) -> None:
        old = self.launches[index]
        self.launches[index] = GraphLaunch(old.program, old.slots, global_size, None, vals)

    def run(self, wait: bool = False) -> float | None:
        self.runs += 1
        for launch in self.launches:
            buffers = [self.handles[slot] for slot in launch.slots]
            launch.program(*buffers, global_size=launch.global_size, vals=launch.vals)
        return 0.002 if wait else None


class TinyDevice(Compiled[Memory]):
    """Registered as TINY (without graphs) and GRAPHED (with)."""

    runtime_api = 1

    def __init__(self, device: str) -> None:
        super().__init__(
            device,
            TinyAllocator(device),
            renderers=("TINY",),
            runtime=TinyProgram,
            graph=TinyGraph if device.startswith("GRAPHED") else None,
            capabilities=DeviceCapabilities(host_memory=True),
        )


class OtherDevice(TinyDevice):
    """A second class, so that the names differ in more than their spelling."""


@pytest.fixture(autouse=True)
def tiny_devices() -> Iterator[None]:
    """TINY and GRAPHED exist in every test here."""
    TinyGraph.made.clear()
    register_device("TINY", TinyDevice)
    register_device("GRAPHED", OtherDevice)
    yield
    unregister_device("TINY")
    unregister_device("GRAPHED")


@pytest.fixture
def graphs() -> list[TinyGraph]:
    """Every graph that was made in this test."""
    return TinyGraph.made


@pytest.fixture
def add_kernel() -> TinyELF:
    """out[i] = left[i] + right[i]."""
    parameters = tuple(BufferParameter("int32", n == 0) for n in range(3))
    return TinyELF("add", b"add", "python", "TINY", KernelSignature(parameters))


@pytest.fixture
def fill_kernel() -> TinyELF:
    """out[i] = value."""
    signature = KernelSignature((BufferParameter("int32", True),), ("value",))
    return TinyELF("fill", b"fill", "python", "TINY", signature)


@pytest.fixture
def as_bytes() -> Callable[[Sequence[int]], bytes]:
    """int32 values to bytes."""
    return lambda values: array("i", values).tobytes()
