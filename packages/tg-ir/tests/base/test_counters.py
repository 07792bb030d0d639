"""GlobalCounters add up over threads, and `reset` keeps what is allocated."""

import threading
from collections.abc import Iterator

import pytest
from tg_ir.counters import GlobalCounters


@pytest.fixture(autouse=True)
def fresh_counters() -> Iterator[None]:
    in_use = GlobalCounters.mem_used
    GlobalCounters.reset()
    yield
    GlobalCounters.count_memory(in_use - GlobalCounters.mem_used)
    GlobalCounters.reset()


def test_launches_add_up_until_reset() -> None:
    GlobalCounters.count_launches(ops=10, mem=20, time_s=0.5)
    GlobalCounters.count_launches(kernels=3, ops=1, mem=2, time_s=0.25)
    assert GlobalCounters.kernel_count == 4
    assert GlobalCounters.global_ops == 11
    assert GlobalCounters.global_mem == 22
    assert GlobalCounters.time_sum_s == 0.75
    GlobalCounters.reset()
    assert GlobalCounters.kernel_count == GlobalCounters.global_ops == 0
    assert GlobalCounters.global_mem == GlobalCounters.time_sum_s == 0


def test_memory_in_use_survives_reset_and_its_peak_is_kept() -> None:
    start = GlobalCounters.mem_used
    GlobalCounters.reset_peak()
    GlobalCounters.count_memory(100)
    GlobalCounters.count_memory(-60)
    GlobalCounters.reset()
    assert GlobalCounters.mem_used - start == 40
    assert GlobalCounters.mem_peak - start == 100
    GlobalCounters.reset_peak()
    assert GlobalCounters.mem_peak - start == 40


def test_threads_lose_no_count() -> None:
    def work() -> None:
        for _ in range(2000):
            GlobalCounters.count_launches(ops=1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert GlobalCounters.kernel_count == GlobalCounters.global_ops == 8000
