"""After refused operations, failures and Ctrl-C every tensor is what its program says."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit
from tg_ir.device.execute import Executor

ERRORS = (ValueError, TypeError, IndexError, MemoryError)


def add(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor += value
    array += value


def set_first(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor[0] = value
    array[0] = value


def set_last_from_first(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor[-1:] = tensor[:1] * value
    array[-1:] = (array[:1] * value).copy()


def assign(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor.assign(tensor * 2 + value)
    array[...] = array * 2 + value


def set_by_mask(tensor: Tensor, array: np.ndarray, value: float) -> None:
    mask = array > value
    tensor[Tensor(mask)] = value
    array[mask] = value


def set_through_view(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor.reshape(-1)[0] = value
    array.reshape(-1)[0] = value


def realize(tensor: Tensor, array: np.ndarray, value: float) -> None:
    tensor.realize()


WRITES = (add, set_first, set_last_from_first, assign, set_by_mask, set_through_view, realize)

REFUSED: tuple[Callable[[Tensor], object], ...] = (
    lambda tensor: tensor.assign(Tensor.ones(7)),
    lambda tensor: tensor.__setitem__(99, 1.0),
    lambda tensor: tensor.__setitem__(0, Tensor.ones(9, 9)),
    lambda tensor: tensor.__setitem__(Tensor([True] * 9), 1.0),
    lambda tensor: tensor.__iadd__(Tensor.ones(11)),
    lambda tensor: (tensor * Tensor.ones(13)).realize(),
    lambda tensor: tensor.reshape(-1)[:2].__setitem__(slice(None), Tensor.ones(5)),
    lambda tensor: tensor.realize((tensor.sum() + Tensor.ones(1 << 45)).contiguous()),
)


@pytest.mark.parametrize("seed", range(15))
def test_refused_operations_between_writes_change_nothing(seed: int) -> None:
    choose = random.Random(seed)
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(4, dtype=np.float32)]
    tensors = [Tensor(array) for array in arrays]
    for _ in range(20):
        place = choose.randrange(len(arrays))
        if choose.random() < 0.5:
            with pytest.raises(ERRORS):
                choose.choice(REFUSED)(tensors[place])
        else:
            value = float(choose.randrange(4))
            choose.choice(WRITES)(tensors[place], arrays[place], value)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.fixture
def interrupted_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`interrupted_runs(n)`: Ctrl-C is pressed n times while the next program runs."""
    run = Executor.run
    presses = [0]

    def pressed(self: Executor, *given: Any, **options: Any) -> Any:
        result = run(self, *given, **options)
        count, presses[0] = presses[0], 0
        for _ in range(count):
            os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(Executor, "run", pressed)

    def arm(count: int) -> None:
        presses[0] = count

    return arm


def test_ctrl_c_is_raised_once_the_write_is_known(interrupted_runs: Callable[[int], None]) -> None:
    x = Tensor.ones(4).realize()
    x += 1
    interrupted_runs(1)
    with pytest.raises(KeyboardInterrupt):
        x.realize()
    assert x.tolist() == [2.0] * 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_replay_leaves_the_state_of_whole_steps(
    interrupted_runs: Callable[[int], None],
) -> None:
    state = Tensor([0.0]).realize()

    def step(x: Tensor) -> Tensor:
        state.assign(state + 1)
        return x.add(state).realize(state)

    jit = TinyJit(step)
    ones = Tensor.ones(2).realize()
    for calls in range(1, 7):
        if calls > 3:
            interrupted_runs(1)
            with pytest.raises(KeyboardInterrupt):
                jit(ones)
        else:
            jit(ones)
        assert state.item() == calls


def test_a_second_ctrl_c_stops_at_once_and_half_written_values_are_not_read(
    interrupted_runs: Callable[[int], None],
) -> None:
    x = Tensor.ones(4).realize()
    x += 1
    interrupted_runs(2)
    with pytest.raises(KeyboardInterrupt):
        x.realize()
    with pytest.raises(RuntimeError, match="buffer"):
        x.tolist()
    assert (Tensor.ones(4) + 1).tolist() == [2.0] * 4


def test_a_handler_of_the_program_stays(interrupted_runs: Callable[[int], None]) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        interrupted_runs(1)
        assert (Tensor.ones(2) + 1).tolist() == [2.0, 2.0]
        assert len(seen) == 1
    finally:
        signal.signal(signal.SIGINT, before)
