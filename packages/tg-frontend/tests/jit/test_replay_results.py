"""TinyJit replays a program: results, variables and random draws behave as in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, TinyJit, Variable, dtypes

from .both_ways import CALLS, run_both

# ---- results


def test_held_results_are_not_overwritten() -> None:
    triple = TinyJit(lambda x: x * 3)
    held = [triple(Tensor([number])) for number in range(6)]
    assert [result.item() for result in held] == [0, 3, 6, 9, 12, 15]


class Pair(NamedTuple):
    first: Tensor
    second: list[Tensor]


def test_results_keep_their_form() -> None:
    @TinyJit
    def form(x: Tensor) -> dict[str, Any]:
        y = x + 1
        return {"pair": Pair(y, [y, x * 2]), "view": y.reshape(1, 2).permute(1, 0), "n": 3}

    for number in range(CALLS):
        result = form(Tensor([number, 1]))
        assert isinstance(result["pair"], Pair)
        assert result["pair"].first is result["pair"].second[0]
        assert result["pair"].first.tolist() == [number + 1, 2]
        assert result["pair"].second[1].tolist() == [2 * number, 2]
        assert result["view"].tolist() == [[number + 1], [2]]
        assert result["n"] == 3


def test_result_that_is_state_or_input_is_that_tensor() -> None:
    state = Tensor([5.0]).realize()
    step = TinyJit(lambda x: (state, x))
    for _ in range(CALLS):
        x = Tensor([1.0])
        first, second = step(x)
        assert first is state and second is x


def test_result_that_shares_memory_with_state_keeps_its_value() -> None:
    state = Tensor([0.0]).realize()

    @TinyJit
    def step() -> Tensor:
        state.assign(state + 1)
        return state.detach()

    held = [step() for _ in range(CALLS)]
    assert [result.item() for result in held] == [1, 2, 3, 4, 5]


def test_constant_result() -> None:
    step = TinyJit(lambda x: (Tensor([1, 2]), Tensor(3), x.shape[0]))
    for _ in range(CALLS):
        first, second, third = step(Tensor([1.0]))
        assert (first.tolist(), second.item(), third) == ([1, 2], 3, 1)
        first += 1


def test_contents_made_in_the_function_start_anew() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        total = Tensor([10.0, 20.0])
        total += x
        total.realize()
        total += x
        return total

    for number in range(CALLS):
        assert step(Tensor([float(number)])).tolist() == [10 + 2 * number, 20 + 2 * number]


# ---- variables, random numbers


def test_symbolic_sizes() -> None:
    size = Variable("n", 1, 10)
    base = Tensor(np.arange(10, dtype=np.float32)).realize()

    @TinyJit
    def total(x: Tensor) -> Tensor:
        return (x * 2).sum()

    for n in (3, 5, 10, 1, 7):
        assert total(base[: size.bind(n)]).item() == n * (n - 1)


def test_random_draws_continue_the_sequence() -> None:
    def make() -> Callable[[int], Any]:
        Tensor.manual_seed(3)

        @TinyJit
        def draw(x: Tensor) -> Any:
            return x + Tensor.rand(3), Tensor.randn(2), Tensor.randint(4, high=100)

        return lambda n: (draw(Tensor([float(n)])), Tensor.rand(2))

    run_both(make)


def test_dropout_differs_from_call_to_call_as_in_eager_mode() -> None:
    def make() -> Callable[[int], Any]:
        Tensor.manual_seed(1)
        drop = TinyJit(lambda x: x.dropout(0.5))

        def call(number: int) -> Any:
            with Tensor.train():
                return drop(Tensor.ones(8))

        return call

    run_both(make)


# ---- property: any short program

STEPS = st.lists(
    st.sampled_from(["add", "mul", "assign", "slice", "draw", "sum", "setitem", "realize"]),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(steps=STEPS, outside=st.booleans())
def test_any_program_does_the_same(steps: list[str], outside: bool) -> None:
    def make() -> Callable[[int], Any]:
        Tensor.manual_seed(9)
        state = Tensor([1.0, 2.0, 3.0]).realize()

        @TinyJit
        def program(x: Tensor) -> Tensor:
            value = x
            for step in steps:
                value = apply(step, value, state)
            return value + state

        def call(number: int) -> Any:
            if outside:
                state.assign(state * 0.5)
            return program(Tensor([1.0, 0.5, float(number)])), state

        return call

    run_both(make)


def apply(step: str, value: Tensor, state: Tensor) -> Tensor:
    match step:
        case "add":
            return value + state
        case "mul":
            return value * 0.5
        case "assign":
            state.assign(state + value)
        case "slice":
            return value.flip(0)
        case "draw":
            return value + Tensor.rand(3)
        case "sum":
            return value - value.sum()
        case "setitem":
            state[1] = value[0]
        case "realize":
            return value.realize()
    return value


def test_dtype_of_results() -> None:
    step = TinyJit(lambda x: (x.half(), x.int()))
    for _ in range(3):
        first, second = step(Tensor([1.5]))
        assert first.dtype is dtypes.float16 and second.dtype is dtypes.int32
