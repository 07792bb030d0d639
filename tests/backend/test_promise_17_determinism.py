"""Promise 17: a program gives bit-equal results and byte-equal kernels, whatever ran before."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tg_codegen.compile.driver import clear_kernel_cache
from tg_codegen.schedule.schedule_cache import clear_schedule_cache
from tg_frontend import Tensor
from tg_ir.events import CacheHit, CacheMissed, Event, subscribe

from .determinism_probe import other_work
from .programs import Program, Run
from .statements import Statement, in_numpy, in_tensors, statements

PROBE = Path(__file__).with_name("determinism_probe.py")


@functools.cache
def probe(before: str, hash_seed: str) -> dict[str, Any]:
    """What the probe prints in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    run = subprocess.run(
        [sys.executable, str(PROBE), before],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    printed: dict[str, Any] = json.loads(run.stdout)
    return printed


@pytest.mark.parametrize(
    ("before", "hash_seed"),
    [("nothing", "1"), ("other_work", "0"), ("failures", "2")],
)
def test_another_process_gives_the_same_results_and_kernels(before: str, hash_seed: str) -> None:
    first, other = probe("nothing", "0"), probe(before, hash_seed)
    assert len(first["kernels"]) > 5
    assert other["results"] == first["results"]
    assert other["kernels"] == first["kernels"]


def keys_of(program: Program, *arrays: np.ndarray) -> tuple[list[bytes], list[str]]:
    """The results of a program, and the keys of its kernels in order."""
    clear_schedule_cache()
    clear_kernel_cache()
    events: list[Event] = []
    with subscribe(events.append):
        result = program(*[Tensor(array) for array in arrays])
        tensors = [result] if isinstance(result, Tensor) else list(result)
        values = [tensor.numpy().tobytes() for tensor in tensors]
    cached = [event for event in events if isinstance(event, CacheHit | CacheMissed)]
    return values, [event.key for event in cached if event.cache == "kernel"]


@settings(max_examples=15)
@given(program=statements())
def test_any_program_makes_the_same_kernels_again(program: list[Statement]) -> None:
    x, y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    first = keys_of(lambda x, y: in_tensors(program, x, y), x, y)
    kept = [Tensor.rand(3), Tensor.zeros(2).realize()]
    other_work()
    again = keys_of(lambda x, y: in_tensors(program, x, y), x, y)
    assert again == first
    del kept


@settings(max_examples=15)
@given(program=statements())
def test_any_program_gives_the_same_again(run: Run, program: list[Statement]) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(6, np.float32), rng.standard_normal(6, np.float32)
    results = [run(lambda x, y: in_tensors(program, x, y), x, y) for _ in range(2)]
    for first, again in zip(*results, strict=True):
        np.testing.assert_array_equal(again, first)
    for result, expected in zip(results[0], in_numpy(program, x, y), strict=True):
        np.testing.assert_array_equal(result, expected)


def reduce_in_many_ways(x: Tensor) -> list[Tensor]:
    """Sums whose order matters in the last place."""
    return [x.sum(), x.sum(0), x.mean(1), x.softmax(1), x @ x.T, x.var(0), x.cumsum(1)]


def test_reductions_repeat_bit_for_bit(run: Run) -> None:
    x = np.random.default_rng(0).standard_normal((19, 33), np.float32)
    first = run(reduce_in_many_ways, x)
    other_work()
    for actual, expected in zip(run(reduce_in_many_ways, x), first, strict=True):
        np.testing.assert_array_equal(actual, expected)
