"""TinyJit replays the program: inputs, state, results, random draws and gradients behave as in eager mode."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Context, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from tg_frontend.nn.optim import SGD, Adam

CALLS = 5


def values(tensors: Any) -> Any:
    """A result as numpy arrays."""
    if isinstance(tensors, Tensor):
        return tensors.numpy()
    if isinstance(tensors, (list, tuple)):
        return [values(item) for item in tensors]
    return tensors


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(left, right)


def run_both(make: Callable[[], Callable[[int], Any]]) -> None:
    """`make` gives a fresh program that takes the number of the call; it has to do the same both ways."""
    with Context(JIT=0):
        program = make()
        eager = [values(program(number)) for number in range(CALLS)]
    program = make()
    replayed = [values(program(number)) for number in range(CALLS)]
    assert_same(eager, replayed)


@pytest.fixture
def captured() -> Iterator[Callable[[TinyJit], None]]:
    """Asserts that a function is replayed by now."""

    def check(function: TinyJit) -> None:
        assert function.captured is not None

    yield check


# ---- inputs


def test_inputs_are_bound_anew(captured: Callable[[TinyJit], None]) -> None:
    @TinyJit
    def add(x: Tensor, y: Tensor) -> Tensor:
        return (x + 2 * y).realize()

    for number in range(CALLS):
        assert add(Tensor([number]), Tensor([10 * number])).tolist() == [21 * number]
    captured(add)


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


# ---- gradients and training


def test_gradients_left_by_a_replay_are_those_of_the_call() -> None:
    def make() -> Callable[[int], Any]:
        weight = Tensor([1.0, 2.0], requires_grad=True)

        @TinyJit
        def step(x: Tensor) -> None:
            weight.grad = None
            (weight * x).sum().backward()

        def call(number: int) -> Any:
            step(Tensor([1.0, float(number)]))
            return weight.grad

        return call

    run_both(make)


def test_gradients_accumulate_over_replays() -> None:
    def make() -> Callable[[int], Any]:
        weight = Tensor([1.0, 2.0], requires_grad=True)

        @TinyJit
        def step(x: Tensor) -> None:
            (weight * x).sum().backward()

        def call(number: int) -> Any:
            step(Tensor([1.0, float(number)]))
            assert weight.grad is not None
            return weight.grad * 1

        return call

    run_both(make)


def test_gradient_of_an_input() -> None:
    def make() -> Callable[[int], Any]:
        @TinyJit
        def step(x: Tensor) -> None:
            x.square().sum().backward()

        def call(number: int) -> Any:
            x = Tensor([1.0, float(number)], requires_grad=True)
            step(x)
            return x.grad

        return call

    run_both(make)


@pytest.mark.parametrize("optimizer", [lambda p: Adam(p, 0.1), lambda p: SGD(p, 0.1, 0.9)])
def test_training_is_the_same(optimizer: Callable[[list[Tensor]], Any]) -> None:
    def make() -> Callable[[int], Any]:
        Tensor.manual_seed(5)
        layers = [nn.Linear(4, 3), nn.BatchNorm(3), nn.Linear(3, 1)]
        parameters = nn.state.get_parameters(layers)
        chosen = optimizer(parameters)

        @TinyJit
        def step(x: Tensor, rate: Tensor) -> Tensor:
            chosen.lr.assign(rate)
            chosen.zero_grad()
            y = layers[2](layers[1](layers[0](x)).relu())
            loss = y.square().mean()
            loss.backward()
            chosen.step()
            return loss.detach()

        def call(number: int) -> Any:
            x = Tensor(np.random.default_rng(number).normal(size=(6, 4)).astype(np.float32))
            with Tensor.train():
                loss = step(x, Tensor([0.1 / (number + 1)]))
            return loss, parameters

        return call

    run_both(make)


def test_memory_is_flat_after_the_second_step() -> None:
    layer = nn.Linear(64, 64)
    optimizer = Adam(nn.state.get_parameters(layer))

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = layer(layer(x).relu()).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    used = []
    with Tensor.train():
        for _ in range(8):
            step(Tensor.ones(16, 64)).item()
            gc.collect()
            used.append(GlobalCounters.mem_used)
    assert len(set(used[3:])) == 1, used


def test_a_dead_object_frees_what_its_method_captured() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = Tensor.ones(1000, 1000).realize()

        @TinyJit
        def call(self, x: Tensor) -> Tensor:
            return x * self.weight

    gc.collect()
    before = GlobalCounters.mem_used
    model = Model()
    for _ in range(3):
        model.call(Tensor([1.0])).realize()
    del model
    gc.collect()
    assert GlobalCounters.mem_used - before < 1000


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
