"""TinyJit replays a program: inputs and state behave as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit, Variable

from .both_ways import CALLS, run_both

# ---- inputs


def test_inputs_are_bound_anew() -> None:
    @TinyJit
    def add(x: Tensor, y: Tensor) -> Tensor:
        return (x + 2 * y).realize()

    for number in range(CALLS):
        assert add(Tensor([number]), Tensor([10 * number])).tolist() == [21 * number]
    assert add.captured is not None


def test_inputs_in_containers_and_by_name() -> None:
    @TinyJit
    def total(items: list[Tensor], *, more: dict[str, tuple[Tensor]]) -> Tensor:
        return items[0] + items[1] + more["x"][0]

    for n in range(CALLS):
        result = total([Tensor([n]), Tensor([2 * n])], more={"x": (Tensor([4 * n]),)})
        assert result.tolist() == [7 * n]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x.transpose(0, 1)[0],
        lambda x: x[0, ::-1],
        lambda x: x[0] + 1,
        lambda x: x.sum(0).expand(2, 3)[1],
        lambda x: x[0].contiguous(),
    ],
    ids=["row", "column", "flip", "lazy", "expand", "contiguous"],
)
def test_an_input_may_be_any_view(view: Callable[[Tensor], Tensor]) -> None:
    double = TinyJit(lambda x: x * 2)
    for number in range(CALLS):
        array = np.arange(6, dtype=np.float32).reshape(2, 3) + number
        expected = view(Tensor(array)).numpy() * 2
        np.testing.assert_array_equal(double(view(Tensor(array))).numpy(), expected)


def test_one_tensor_given_twice_may_become_two() -> None:
    subtract = TinyJit(lambda x, y: x - y)
    same = Tensor([3])
    for _ in range(3):
        assert subtract(same, same).tolist() == [0]
    for number in range(3):
        assert subtract(Tensor([number]), Tensor([1])).tolist() == [number - 1]


def test_two_tensors_may_become_one() -> None:
    subtract = TinyJit(lambda x, y: x - y)
    for number in range(3):
        assert subtract(Tensor([number]), Tensor([1])).tolist() == [number - 1]
    same = Tensor([3])
    for _ in range(3):
        assert subtract(same, same).tolist() == [0]


def test_a_written_input_is_the_callers() -> None:
    @TinyJit
    def bump(x: Tensor) -> Tensor:
        x += 1
        return x * 10

    for number in range(CALLS):
        x = Tensor([number, 2])
        alias = x * 1
        held = x.detach()
        assert bump(x).tolist() == [10 * number + 10, 30]
        assert x.tolist() == [number + 1, 3]
        assert alias.tolist() == held.tolist() == [number, 2]


def test_an_input_that_is_also_state() -> None:
    def make() -> Callable[[int], Any]:
        state = Tensor([1.0, 2.0]).realize()

        @TinyJit
        def step(x: Tensor) -> Tensor:
            state.assign(state + x)
            return state + x

        return lambda n: (step(state if n % 2 else Tensor([0.5, 0.5])), state)

    run_both(make)


# ---- state


def test_state_written_by_the_function_stays_where_it_is() -> None:
    state = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def step(x: Tensor) -> None:
        state.assign(state * x).realize()

    for number in range(1, CALLS):
        step(Tensor([2.0, 3.0]))
        assert state.tolist() == [2.0**number, 2 * 3.0**number]


def test_state_written_from_outside_is_seen() -> None:
    def make() -> Callable[[int], Any]:
        state = Tensor([1.0, 2.0]).realize()
        step = TinyJit(lambda x: x * state)

        def call(number: int) -> Any:
            if number % 2:
                state.assign(Tensor([3.0, 4.0]) * number)
            else:
                state[0] = float(number)
            return step(Tensor([1.0, 1.0])), state

        return call

    run_both(make)


def test_state_given_other_storage_is_seen() -> None:
    state = Tensor([1.0]).realize()
    step = TinyJit(lambda x: x * state)
    for number in range(CALLS):
        state.replace(Tensor([float(number)]) + 1)
        assert step(Tensor([2.0])).item() == 2.0 * (number + 1)


def test_values_read_before_a_replay_are_kept() -> None:
    state = Tensor([0.0, 1.0]).realize()

    @TinyJit
    def step() -> None:
        state.assign(state + 1)

    kept = []
    for _ in range(CALLS):
        kept.append((state[1], state + 10, state.detach()))
        step()
    for number, (view, lazy, alias) in enumerate(kept):
        assert view.item() == number + 1
        assert lazy.tolist() == [number + 10, number + 11]
        assert alias.tolist() == [number, number + 1]


def test_state_swapped_by_the_function() -> None:
    def make() -> Callable[[int], Any]:
        left, right = Tensor([1.0]).realize(), Tensor([2.0]).realize()

        @TinyJit
        def swap(x: Tensor) -> None:
            old = left * 1
            left.assign(right + x)
            right.assign(old)

        def call(number: int) -> Any:
            swap(Tensor([float(number)]))
            return left, right

        return call

    run_both(make)


def test_state_that_is_lazy_when_captured() -> None:
    def make() -> Callable[[int], Any]:
        base = Tensor([1.0, 2.0])
        state = base * 3
        step = TinyJit(lambda x: (x + state).realize())

        def call(number: int) -> Any:
            result = step(Tensor([float(number)]))
            base.assign(base + 100).realize()
            return result

        return call

    run_both(make)


def test_tensor_that_the_function_leaves_behind() -> None:
    class Model:
        last: Tensor | None = None

        @TinyJit
        def step(self, x: Tensor) -> Tensor:
            self.last = x * 3
            return x * 2

    def make() -> Callable[[int], Any]:
        model = Model()

        def call(number: int) -> Any:
            return model.step(Tensor([float(number)])), model.last

        return call

    run_both(make)


def test_part_of_state_written_at_a_variable_position() -> None:
    def make() -> Callable[[int], Any]:
        cache = Tensor.zeros(8, 2).contiguous().realize()
        position = Variable("position", 0, 7)

        @TinyJit
        def step(x: Tensor, at: Any) -> Tensor:
            cache[at : at + 1] = x.reshape(1, 2)
            return cache.sum(0)

        return lambda n: (step(Tensor([1.0, float(n)]), position.bind(n)), cache)

    run_both(make)


def test_methods_of_two_objects_are_captured_apart() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = Tensor([factor]).realize()

        @TinyJit
        def call(self, x: Tensor) -> Tensor:
            return x * self.factor

    two, three = Scale(2.0), Scale(3.0)
    for number in range(CALLS):
        x = Tensor([float(number)])
        assert (two.call(x).item(), three.call(x).item()) == (2 * number, 3 * number)
