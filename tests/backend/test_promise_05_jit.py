"""Promise 5: the JIT replays what the program means; what cannot be captured raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, TinyJit, Variable
from tg_frontend.jit.errors import JitError
from tg_ir.counters import GlobalCounters

from .statements import Statement, in_tensors, statements

CALLS = 6


def input_of(call: int) -> np.ndarray:
    """Other numbers for each call."""
    return np.arange(6, dtype=np.float32) * (call + 1) - call


def run_calls(make: Callable[[], Callable[..., Any]], captured: bool) -> list[list[np.ndarray]]:
    """The results of several calls of a function that `make` gives with new state."""
    function = make()
    step = TinyJit(function) if captured else function
    results = []
    for call in range(CALLS):
        given_tensors = Tensor(input_of(call)), Tensor(input_of(call + 3))
        result = step(*given_tensors)
        shown = [*(result if isinstance(result, (list, tuple)) else [result]), *given_tensors]
        results.append([tensor.numpy() for tensor in shown])
    return results


def check(make: Callable[[], Callable[..., Any]]) -> None:
    """Every call gives the same with and without the JIT, and the last ones are replays."""
    for eager, replayed in zip(run_calls(make, False), run_calls(make, True), strict=True):
        assert len(eager) == len(replayed)
        for expected, actual in zip(eager, replayed, strict=True):
            np.testing.assert_array_equal(actual, expected)


# ---- inputs, state, results


@settings(max_examples=25)
@given(program=statements())
def test_any_program_on_updated_inputs(program: list[Statement]) -> None:
    check(lambda: lambda x, y: in_tensors(program, x, y))


@settings(max_examples=20)
@given(program=statements())
def test_any_program_on_captured_state(program: list[Statement]) -> None:
    def make() -> Callable[..., Any]:
        state = Tensor(np.arange(6, dtype=np.float32)), Tensor(np.ones(6, np.float32))
        for tensor in state:
            tensor.realize()

        def step(x: Tensor, y: Tensor) -> Any:
            variables = in_tensors(program, *state, x)
            return [*variables, y * 1]

        return step

    check(make)


def test_counter_that_the_function_keeps() -> None:
    def make() -> Callable[..., Any]:
        count, total = Tensor([0]).realize(), Tensor(np.zeros(6, np.float32))

        def step(x: Tensor, y: Tensor) -> Any:
            count.assign(count + 1)
            total.assign(total * 0.5 + x)
            return total * count + y, count

        return step

    check(make)


def test_argument_that_the_function_replaces() -> None:
    def step(x: Tensor, y: Tensor) -> Any:
        x.replace(x * 2 + y)
        return x + 1

    check(lambda: step)


def test_arguments_that_are_swapped() -> None:
    def step(x: Tensor, y: Tensor) -> Any:
        old = x + 0
        x.assign(y)
        y.assign(old)
        return x - y

    check(lambda: step)


def test_state_that_changes_between_calls() -> None:
    rate = Tensor([1.0]).realize()
    step = TinyJit(lambda x: x * rate)
    for call in range(CALLS):
        rate.assign(Tensor([float(call)]))
        result = step(Tensor(input_of(call))).numpy()
        np.testing.assert_array_equal(result, input_of(call) * call)


def test_result_that_is_held_is_not_overwritten() -> None:
    step = TinyJit(lambda x: (x + 1, x.sum()))
    held = [step(Tensor(input_of(call))) for call in range(CALLS)]
    for call, (shifted, total) in enumerate(held):
        np.testing.assert_array_equal(shifted.numpy(), input_of(call) + 1)
        assert total.item() == input_of(call).sum()


def test_view_of_an_earlier_result_is_not_overwritten() -> None:
    step = TinyJit(lambda x: x * 2)
    views = [step(Tensor(input_of(call)))[1:3] for call in range(CALLS)]
    for call, view in enumerate(views):
        np.testing.assert_array_equal(view.numpy(), input_of(call)[1:3] * 2)


def test_result_may_be_given_back() -> None:
    step = TinyJit(lambda x: x * 2 + 1)
    value, expected = Tensor(input_of(0)), input_of(0)
    for _ in range(CALLS):
        value, expected = step(value), expected * 2 + 1
        np.testing.assert_array_equal(value.numpy(), expected)


def test_old_value_of_state_that_is_held_stays() -> None:
    state = Tensor(np.zeros(3, np.float32)).realize()

    @TinyJit
    def step() -> Tensor:
        state.assign(state + 1)
        return state * 1

    views = []
    for call in range(2 * CALLS):
        if call >= CALLS:
            views.append(state[1:])
        step()
    assert step.captured is not None
    assert [view.tolist() for view in views] == [[float(CALLS + n)] * 2 for n in range(CALLS)]


def test_old_value_of_state_that_is_held_from_the_first_call_stays() -> None:
    state = Tensor(np.zeros(3, np.float32)).realize()

    @TinyJit
    def step() -> Tensor:
        state.assign(state + 1)
        return state * 1

    views = []
    for _ in range(CALLS):
        views.append(state[1:])
        step()
    assert [view.tolist() for view in views] == [[float(n)] * 2 for n in range(CALLS)]


def test_replays_do_not_run_python() -> None:
    calls = []

    @TinyJit
    def step(x: Tensor) -> Tensor:
        calls.append(1)
        return x + 1

    for call in range(CALLS):
        step(Tensor(input_of(call)))
    assert len(calls) == 2


# ---- random draws


def test_random_draws_continue_the_sequence() -> None:
    def draws(captured: bool) -> list[np.ndarray]:
        Tensor.manual_seed(5)

        def draw(x: Tensor) -> Tensor:
            return x + Tensor.rand(6) * Tensor.randn(6)

        step = TinyJit(draw) if captured else draw
        return [step(Tensor(input_of(call))).numpy() for call in range(CALLS)]

    for expected, actual in zip(draws(False), draws(True), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_draws_outside_go_on_after_those_of_replays() -> None:
    def draws(captured: bool) -> list[float]:
        Tensor.manual_seed(9)
        step = TinyJit(lambda: Tensor.rand(3)) if captured else lambda: Tensor.rand(3)
        numbers = []
        for _ in range(CALLS):
            step().realize()
            numbers.append(Tensor.rand(1).item())
        return numbers

    assert draws(True) == draws(False)


# ---- symbolic sizes


@settings(max_examples=8)
@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=8))
def test_symbolic_sizes(sizes: list[int]) -> None:
    data = np.arange(12, dtype=np.float32).reshape(6, 2) + 1
    table = Tensor(data)
    step = TinyJit(lambda part: (part * 2).sum(0))
    size = Variable("size", 1, 6)
    for count in sizes:
        part = table[: size.bind(count)]
        np.testing.assert_array_equal(step(part).numpy(), data[:count].sum(0) * 2)


def test_one_capture_serves_every_size() -> None:
    table = Tensor(np.ones((6, 2), np.float32))
    step = TinyJit(lambda part: part.sum(0))
    size = Variable("size", 1, 6)
    captured = []
    for count in (1, 2, 3, 6, 4):
        assert step(table[: size.bind(count)]).tolist() == [count, count]
        captured.append(step.captured)
    assert captured[2] is captured[3] is captured[4] is not None


# ---- training


def test_training_step_leaves_what_an_eager_one_leaves() -> None:
    def weights(captured: bool) -> list[np.ndarray]:
        weight = Tensor(np.float32([[0.5, -1.0], [2.0, 0.1]]), requires_grad=True)
        moment = Tensor.zeros(2, 2).realize()

        def train(x: Tensor) -> Tensor:
            loss = ((x.reshape(3, 2) @ weight).tanh() - 0.3).square().mean()
            (slope,) = loss.gradient(weight)
            moment.assign(moment * 0.9 + slope.detach())
            weight.assign(weight.detach() - moment * 0.1)
            return loss.realize(weight, moment)

        step = TinyJit(train) if captured else train
        losses = [step(Tensor(input_of(call))).numpy() for call in range(CALLS)]
        return [*losses, weight.numpy(), moment.numpy()]

    for expected, actual in zip(weights(False), weights(True), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


# ---- refused

UNCAPTURABLE: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x * x.sum().item(),
    "numpy": lambda x: x + Tensor(x.numpy()),
    "tolist": lambda x: x + x.tolist()[0],
    "bool index": lambda x: x[x > 2],
    "nonzero": lambda x: x.nonzero(),
    "format": lambda x: x + float(f"{x.sum():.1f}"),
}


@pytest.mark.parametrize("name", UNCAPTURABLE)
def test_value_that_leaves_for_python_is_refused_at_capture(name: str) -> None:
    step = TinyJit(UNCAPTURABLE[name])
    step(Tensor(input_of(0)))
    with pytest.raises(JitError):
        step(Tensor(input_of(1)))


def test_seeding_inside_is_refused_at_capture() -> None:
    def draw(x: Tensor) -> Tensor:
        Tensor.manual_seed(1)
        return x + Tensor.rand(6)

    step = TinyJit(draw)
    step(Tensor(input_of(0)))
    with pytest.raises(JitError, match="manual_seed"):
        step(Tensor(input_of(1)))


@pytest.mark.parametrize(
    "other",
    [Tensor.zeros(5), Tensor.zeros(2, 3), Tensor(np.zeros(6, np.int32)), 3.0],
    ids=["longer", "shape", "dtype", "number"],
)
def test_other_shape_dtype_or_number_is_refused(other: Any) -> None:
    step = TinyJit(lambda x: x + 1)
    for call in range(3):
        step(Tensor(input_of(call)))
    with pytest.raises(JitError, match="expected"):
        step(other)


def test_replay_launches_what_the_capture_launched() -> None:
    step = TinyJit(lambda x: ((x + 1).sum(), x * 2))
    counts = []
    for call in range(CALLS):
        inputs = Tensor(input_of(call))
        first = GlobalCounters.kernel_count
        step(inputs)
        counts.append(GlobalCounters.kernel_count - first)
    assert len(set(counts[2:])) == 1
