"""Launching: arguments, threads, fork, and what a wrong launch says."""

from __future__ import annotations

import os
import signal
import threading
import time
from array import array
from collections.abc import Callable

import pytest
from tg_ir.config import Context
from tg_ir.device import Buffer, BufferSpec, TinyELF, open_device
from tg_ir.dtype import dtypes
from tg_runtime_cpu.cpu_program import ThreadingChoice
from tg_runtime_cpu.errors import KernelCallError
from tg_runtime_cpu.host_allocator import HUGE_PAGE
from tg_runtime_cpu.host_view import address_of
from tg_runtime_cpu.thread_pool import ThreadPool, split_evenly, thread_count, thread_pool

COUNT = 10_000


def ints(values: range | list[int]) -> Buffer:
    return Buffer("CPU", len(values), dtypes.int32).copyin(array("i", values).tobytes())


def values_of(buffer: Buffer) -> list[int]:
    return array("i", bytes(buffer.as_memoryview())).tolist()


def run_add(kernel: TinyELF, extent: int = COUNT) -> list[int]:
    out = ints([0] * COUNT)
    program = open_device("CPU").runtime(kernel)
    program(
        out.get_buf(),
        ints(range(COUNT)).get_buf(),
        ints(range(COUNT)).get_buf(),
        global_size=(extent, 1, 1),
    )
    return values_of(out)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_iteration_runs_once_whatever_the_thread_count(
    add_kernel: TinyELF, threads: int
) -> None:
    with Context(THREADS=threads):
        for _ in range(8):  # enough launches for both ways to be tried
            assert run_add(add_kernel) == list(range(0, 2 * COUNT, 2))


def test_extent_zero_runs_nothing(add_kernel: TinyELF) -> None:
    assert run_add(add_kernel, extent=0) == [0] * COUNT


def test_wrong_buffer_count_says_what_the_kernel_takes(add_kernel: TinyELF) -> None:
    program = open_device("CPU").runtime(add_kernel)
    with pytest.raises(KernelCallError, match="kernel add takes 3 buffers and 0 integers.*got 1"):
        program(ints([1]).get_buf())


def test_integer_beyond_64_bits_is_refused(fill_kernel: TinyELF) -> None:
    program = open_device("CPU").runtime(fill_kernel)
    with pytest.raises(KernelCallError, match="1 integers of 64 bits"):
        program(ints([1]).get_buf(), vals=(2**63,))


def test_code_of_another_format_is_refused(add_kernel: TinyELF) -> None:
    other = TinyELF("add", b"", "ptx", "CUDA", add_kernel.signature)
    with pytest.raises(KernelCallError, match="CPU loads code of format 'elf', got 'ptx'"):
        open_device("CPU").runtime(other)


@pytest.mark.parametrize(("extent", "workers"), [(1, 1), (5, 2), (7, 3), (2, 8), (100, 7)])
def test_parts_cover_the_extent_without_overlap(extent: int, workers: int) -> None:
    parts = split_evenly(extent, workers)
    assert [i for begin, end in parts for i in range(begin, end)] == list(range(extent))
    lengths = [end - begin for begin, end in parts]
    assert len(parts) <= workers
    assert max(lengths) - min(lengths) <= 1


def test_pool_runs_parts_in_different_threads() -> None:
    pool = ThreadPool(3)
    meeting = threading.Barrier(4, timeout=10)  # passes only if all four run at the same time
    seen: list[int] = []

    def work(begin: int, end: int) -> None:
        meeting.wait()
        seen.append(begin)

    pool.run(work, [(n, n + 1) for n in range(4)])
    pool.stop()
    assert sorted(seen) == [0, 1, 2, 3]


def test_busy_pool_does_not_block_another_launch() -> None:
    pool = ThreadPool(1)
    inner: list[int] = []

    def outer(begin: int, end: int) -> None:
        if begin == 0:
            pool.run(lambda b, e: inner.append(b), [(0, 1), (1, 2)])

    pool.run(outer, [(0, 1), (1, 2)])
    pool.stop()
    assert inner == [0, 1]


def test_interrupt_waits_for_the_workers() -> None:
    pool = ThreadPool(1)
    finished: list[int] = []

    def work(begin: int, end: int) -> None:
        if begin == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        finished.append(begin)

    with pytest.raises(KeyboardInterrupt):
        pool.run(work, [(0, 1), (1, 2)])
    assert finished == [1]
    pool.run(lambda begin, end: finished.append(begin + 10), [(0, 1), (1, 2)])
    pool.stop()
    assert sorted(finished) == [1, 10, 11]


def test_setting_bounds_the_threads() -> None:
    with Context(THREADS=3):
        assert thread_count() == 3
    with Context(THREADS=0):
        assert thread_count() >= 1


def test_short_kernels_stop_using_threads() -> None:
    choice = ThreadingChoice()
    while choice.is_learning:
        threaded = choice.use_threads()
        choice.learn(threaded, 50e-6 if threaded else 5e-6)
    assert not choice.use_threads()


def test_slow_start_of_the_workers_does_not_make_a_kernel_long() -> None:
    choice = ThreadingChoice()
    choice.learn(True, 1e-3)  # the first launch started the threads
    while choice.is_learning:
        threaded = choice.use_threads()
        choice.learn(threaded, 40e-6 if threaded else 5e-6)
    assert not choice.use_threads()


def test_long_kernels_use_threads_from_the_first_launch_on() -> None:
    choice = ThreadingChoice()
    assert choice.use_threads()
    choice.learn(True, 1.0)
    assert choice.use_threads()
    assert not choice.is_learning


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child_computes_with_threads_of_its_own(add_kernel: TinyELF) -> None:
    with Context(THREADS=2):
        expected = run_add(add_kernel)
        parent_pool = thread_pool(1)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a hang must not outlive the test
            same = thread_pool(1) is parent_pool
            os._exit(0 if run_add(add_kernel) == expected and not same else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_memory_is_aligned_for_vectors_and_huge_pages() -> None:
    for size, alignment in (
        (1, 64),
        (1000, 64),
        (HUGE_PAGE, HUGE_PAGE),
        (HUGE_PAGE + 1, HUGE_PAGE),
    ):
        buffer = Buffer("CPU", size, dtypes.uint8).allocate()
        assert buffer.get_buf().address % alignment == 0


def test_freed_memory_is_handed_out_again() -> None:
    first = Buffer("CPU", 54321, dtypes.uint8).allocate()
    address = first.get_buf().address
    del first
    assert Buffer("CPU", 54321, dtypes.uint8).allocate().get_buf().address == address


def test_external_memory_is_used_in_place_and_not_counted() -> None:
    mine = bytearray(b"abcd" * 4)
    used = open_device("CPU").allocator.bytes_in_use
    options = BufferSpec(external_ptr=address_of(mine))
    buffer = Buffer("CPU", 16, dtypes.uint8, options).allocate()
    buffer.as_memoryview()[0] = ord("X")
    assert mine[:4] == b"Xbcd"
    assert open_device("CPU").allocator.bytes_in_use == used
    del buffer
    assert mine[:4] == b"Xbcd"


def test_second_cpu_reaches_memory_of_the_first(
    add_kernel: TinyELF, make_kernel: Callable[..., TinyELF]
) -> None:
    source = ints(range(100))
    mapped = source.get_buf("CPU:1")
    assert mapped.address == source.get_buf().address


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("count", [10, HUGE_PAGE])
def test_forked_child_writes_to_memory_of_its_own(count: int) -> None:
    buffer = Buffer("CPU", count, dtypes.uint8).allocate()
    buffer.as_memoryview()[0] = 1
    child = os.fork()
    if child == 0:
        buffer.as_memoryview()[0] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert buffer.as_memoryview()[0] == 1
