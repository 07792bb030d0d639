"""Caching, accounting and the error of a full device."""

from __future__ import annotations

import gc

import pytest
from tg_ir import GlobalCounters
from tg_ir.config import Context
from tg_ir.device import Buffer, BufferSpec, OutOfDeviceMemory, open_device
from tg_ir.dtype import dtypes
from tg_ir.events import BufferAllocated, BufferFreed, Event, subscribe


def allocator():  # type: ignore[no-untyped-def]  # the class lives in conftest
    return open_device("TINY").allocator


def test_freed_memory_is_reused_for_the_same_size_only() -> None:
    first = allocator().alloc(100)
    allocator().free(first, 100)
    assert allocator().alloc(101) is not first
    assert allocator().alloc(100) is first


def test_cache_keeps_kinds_of_memory_apart() -> None:
    first = allocator().alloc(100, BufferSpec(host=True))
    allocator().free(first, 100, BufferSpec(host=True))
    assert allocator().alloc(100) is not first


@pytest.mark.parametrize("options", [BufferSpec(nolru=True), BufferSpec(zero=True)])
def test_some_kinds_are_never_cached(options: BufferSpec) -> None:
    allocator().free(allocator().alloc(100, options), 100, options)
    assert allocator().cached_bytes == 0
    assert allocator().system_calls == ["alloc 100", "free 100"]


def test_setting_turns_the_cache_off() -> None:
    with Context(LRU=0):
        allocator().free(allocator().alloc(100), 100)
    assert allocator().system_calls == ["alloc 100", "free 100"]


def test_full_device_empties_its_cache_and_tries_again() -> None:
    half = 600_000
    allocator().free(allocator().alloc(half), half)
    assert allocator().cached_bytes == half
    allocator().alloc(half + 1)
    assert allocator().cached_bytes == 0


def test_full_device_says_what_was_asked_and_what_is_used() -> None:
    keep = Buffer("TINY", 1000, dtypes.uint8).allocate()
    with pytest.raises(OutOfDeviceMemory) as caught:
        Buffer("TINY", 1 << 30, dtypes.uint8).allocate()
    error = caught.value
    assert (error.device, error.bytes_asked, error.bytes_in_use) == ("TINY", 1 << 30, 1000)
    assert "TINY: out of memory: asked for 1073741824 bytes (1.0 GiB), 1000 bytes in use" in str(
        error
    )
    assert isinstance(error, MemoryError)
    Buffer("TINY", 1000, dtypes.uint8).allocate()
    assert keep.is_allocated


def test_cache_is_bounded_and_drops_what_was_unused_longest() -> None:
    allocator()._cache_limit = 50_000
    for size in (30_000, 15_000, 1_000, 10_000):
        allocator().free(allocator().alloc(size), size)
    frees = [call for call in allocator().system_calls if call.startswith("free")]
    assert frees == ["free 30000"]
    assert allocator().cached_bytes == 26_000


def test_cache_can_be_emptied() -> None:
    allocator().free(allocator().alloc(100), 100)
    assert allocator().free_cache() == 100
    assert allocator().system_calls[-1] == "free 100"


def test_global_counter_follows_buffers() -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    buffer = Buffer("TINY", 10, dtypes.int32).allocate()
    assert GlobalCounters.mem_used == before + 40
    del buffer
    assert GlobalCounters.mem_used == before


def test_a_buffer_freed_inside_an_allocation_is_not_lost() -> None:
    # What the garbage collector does: free while the allocator is at work in the same thread.
    tiny = allocator()
    first = tiny.alloc(64)
    original = tiny._alloc

    def alloc_and_collect(size: int, options: BufferSpec) -> object:
        tiny.free(first, 64)
        return original(size, options)

    tiny._alloc = alloc_and_collect
    tiny.alloc(128)
    tiny._alloc = original
    assert tiny.bytes_in_use == 128
    assert tiny.alloc(64) is first


def test_events_tell_of_memory() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        buffer = Buffer("TINY", 7, dtypes.uint8).allocate()
        del buffer
    assert seen[-2:] == [BufferAllocated("TINY", 7), BufferFreed("TINY", 7)]
