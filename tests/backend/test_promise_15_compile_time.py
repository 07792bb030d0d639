"""Promise 15: compiling takes time in proportion to the ops, at any depth, and can be interrupted.

Work is counted in calls of Python functions, which no other load on the machine changes.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_codegen.compile.driver import clear_kernel_cache
from tg_codegen.schedule.schedule_cache import clear_schedule_cache
from tg_frontend import Tensor
from tg_ir.config import Context

from .programs import Run

X = np.linspace(-1, 1, 5, dtype=np.float32)


def chain(x: Tensor, count: int) -> Tensor:
    """One op after the other."""
    for number in range(count):
        x = x + float(number % 7)
    return x


def diamonds(x: Tensor, count: int) -> Tensor:
    """Each value is read twice: 2^count paths."""
    for _ in range(count // 2):
        x = x * 0.5 + x * 0.25
    return x


def two_inputs(x: Tensor, count: int) -> Tensor:
    """A ladder of two values that read each other."""
    y = x + 1
    for _ in range(count // 2):
        x, y = y * 0.5 - x * 0.25, x * 0.5
    return x + y


def movements(x: Tensor, count: int) -> Tensor:
    """Views of views."""
    for number in range(count):
        x = x.flip(0) if number % 2 else x.reshape(5, 1).reshape(5)
    return x + 1


def stack(x: Tensor, count: int) -> Tensor:
    """Many pieces of one tensor."""
    pieces = [x + float(number) for number in range(count // 6)]
    return Tensor.stack(*pieces).sum(0)


def reductions(x: Tensor, count: int) -> Tensor:
    """Each step needs the whole of the one before."""
    for _ in range(count // 4):
        x = x - x.mean()
    return x


def layers(x: Tensor, count: int) -> Tensor:
    """A deep network."""
    weight = Tensor(np.eye(5, dtype=np.float32))
    for _ in range(count // 4):
        x = (x @ weight).relu() * 0.5 + x * 0.5
    return x


def gradient(x: Tensor, count: int) -> Tensor:
    """A deep network's backward pass."""
    weight = Tensor(np.eye(5, dtype=np.float32), requires_grad=True)
    value = x
    for _ in range(count // 8):
        value = (value @ weight).relu() * 0.5
    return value.sum().gradient(weight)[0]


def writes(x: Tensor, count: int) -> Tensor:
    """One version after the other."""
    x = x + 0
    for number in range(count // 4):
        x[number % 5] = x[(number + 1) % 5] + 1
    return x


PROGRAMS = [
    *(chain, diamonds, two_inputs, movements, stack, reductions, layers, gradient, writes),
]


def calls_of(action: Callable[[], object]) -> int:
    """How many functions `action` calls."""
    count = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def compile_only(program: Callable[[Tensor, int], Tensor], count: int) -> None:
    """Build, schedule and compile a program, with nothing in any cache."""
    clear_schedule_cache()
    clear_kernel_cache()
    program(Tensor(X), count).realize()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_work_for_each_op_does_not_grow(program: Callable[[Tensor, int], Tensor]) -> None:
    with Context(CCACHE=0, SPEC=0):
        compile_only(program, 40)  # what is done once a process
        few = calls_of(lambda: compile_only(program, 480))
        many = calls_of(lambda: compile_only(program, 1440))
    assert many <= 3 * few * 1.2


@contextlib.contextmanager
def little_recursion(frames: int) -> Iterator[None]:
    """Allow only so many frames above the present ones."""
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def test_ten_thousand_ops_need_no_recursion() -> None:
    with Context(SPEC=0), little_recursion(120):
        result = chain(Tensor(X), 10_000).numpy()
    expected = X.copy()
    for number in range(10_000):
        expected = expected + np.float32(number % 7)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "program", [program for program in PROGRAMS if program is not chain], ids=lambda p: p.__name__
)
def test_deep_programs_need_no_recursion(program: Callable[[Tensor, int], Tensor]) -> None:
    with Context(SPEC=0), little_recursion(120):
        result = program(Tensor(X), 1200).numpy()
    assert np.isfinite(result).all()


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "halve": lambda x, y: x * 0.5,
    "shift": lambda x, y: x + 0.25,
    "mix": lambda x, y: x * 0.5 - y * 0.5,
    "turn": lambda x, y: x[::-1],
    "square": lambda x, y: x * x * 0.125,
    "smaller": lambda x, y: (x < y) * x,
}


@settings(max_examples=5)
@given(pattern=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5))
def test_any_pattern_repeated_needs_no_recursion(run: Run, pattern: list[str]) -> None:
    def program(x: Any) -> Any:
        y = x * 0.75
        for _ in range(600 // len(pattern)):
            for name in pattern:
                x, y = STEPS[name](x, y), x
        return x + y

    with np.errstate(all="ignore"):
        expected = program(X)
    with Context(SPEC=0), little_recursion(160):
        np.testing.assert_array_equal(run(program, X)[0], expected)


def test_deep_graph_is_verified_shown_and_freed_without_recursion() -> None:
    with little_recursion(120):
        deep = chain(Tensor(X), 3000)
        assert "float32" in repr(deep)
        deep.schedule()
        del deep


# ---- Ctrl-C


def interrupt_after(
    seconds: float, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether `action` was stopped by what Ctrl-C raises."""

    def run() -> None:
        action()

    def interrupt(number: int, frame: FrameType | None) -> None:
        # again and again, as a person would: one may come inside a finalizer, which swallows it
        while frame is not None:
            if frame.f_code is run.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.02)
        run()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return False


@pytest.mark.parametrize("seconds", [0.01, 0.05, 0.15])
def test_compiling_can_be_interrupted_and_tried_again(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = Tensor(X)
    kept = x * 3
    with Context(CCACHE=0):
        clear_schedule_cache()
        result = layers(chain(x, 2000) + kept, 4000)
        assert interrupt_after(seconds, result.realize, monkeypatch)
    np.testing.assert_array_equal(kept.numpy(), X * 3)
    np.testing.assert_array_equal(x.numpy(), X)
    small = layers(x, 40)
    np.testing.assert_array_equal(small.numpy(), layers(Tensor(X), 40).numpy())
