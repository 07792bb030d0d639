"""What the CPU runtime refuses: code for other CPUs, and more threads than the system gives."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest
from tg_ir.host import host_cpu
from tg_runtime_cpu import required_features
from tg_runtime_cpu.errors import ForeignCodeError, WorkerThreadError
from tg_runtime_cpu.required_features import require_features
from tg_runtime_cpu.thread_pool import ThreadPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the CPU is known on Linux only")


@pytest.fixture
def old_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without AVX2."""
    features = frozenset({"sse", "sse2", "ssse3", "sse4.2", "avx"})
    old = replace(host_cpu(), family="x86_64", features=features)
    monkeypatch.setattr(required_features, "host_cpu", lambda: old)


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ("CPU:LLVM:x86_64,x86-64-v3", "avx2, f16c, fma"),
        ("CPU:LLVM:x86_64,x86-64-v2,avx2", "avx2"),
        ("CPU:LLVM:x86_64,native,amx-tile", "amx-tile"),
        ("CPU:LLVM:x86_64,x86-64-v3,-f16c", "avx2, fma"),
    ],
)
def test_code_with_instructions_that_this_cpu_lacks_is_refused(
    old_cpu: None, target: str, missing: str
) -> None:
    with pytest.raises(ForeignCodeError) as caught:
        require_features(target)
    message = str(caught.value)
    assert f"may use {missing}, which this machine's CPU lacks" in message
    assert "compile for x86_64,native" in message


@pytest.mark.parametrize(
    "target",
    [
        "CPU",
        "CPU:LLVM:x86_64,native",
        "CPU:LLVM:x86_64,x86-64",
        "CPU:LLVM:x86_64,x86-64-v2",
        "CPU:LLVM:x86_64,x86-64-v3,-avx2,-f16c,-fma",
        "CPU:LLVM:arm64,cortex-a72",  # the object file loader refuses that
        "CPU:LLVM:x86_64,a-type-of-tomorrow",
    ],
)
def test_code_that_can_run_or_says_too_little_is_let_through(old_cpu: None, target: str) -> None:
    require_features(target)


def test_threads_that_do_not_start_are_told_and_those_that_did_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = set(threading.enumerate())
    start = threading.Thread.start
    left = [3]

    def start_three(self: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_three)
    with pytest.raises(WorkerThreadError, match="no more than 3; set THREADS to 4") as caught:
        ThreadPool(10)
    assert caught.value.__cause__ is None
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(timeout=5)
    assert not any(thread.is_alive() for thread in started)
