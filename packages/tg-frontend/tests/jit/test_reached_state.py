"""What a captured function sees beside its arguments: found in linear time, noticed if replaced."""

from __future__ import annotations

from typing import Any

import pytest
from tg_frontend import Tensor, TinyJit, Variable, nn
from tg_frontend.jit.reachable import ReachedTensors, reachable_tensors
from tg_frontend.nn.optim import SGD, OptimizerGroup
from tg_ir.device import Launch


class Node:
    """Two others, which may be one."""

    def __init__(self, left: object, right: object) -> None:
        self.left = left
        self.right = right


class Model:
    """A weight, a factor and a list of offsets."""

    def __init__(self) -> None:
        self.weight = Tensor([2.0]).realize()
        self.factor = 3
        self.offsets = [1.0, 2.0]
        self.calls = 0
        self.spare: Model | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return self.weight * x * self.factor + sum(self.offsets)


def replayed(model: Model, calls: int = 4) -> TinyJit[[Tensor], Tensor]:
    """A JIT of the model, captured."""
    jitted = TinyJit(lambda x: model(x))
    for _ in range(calls):
        jitted(Tensor([1.0]))
    assert jitted.captured is not None
    return jitted


# ---- the walk


def test_shared_objects_are_entered_once() -> None:
    chain: object = Tensor([1.0])
    for _ in range(100):
        chain = Node(chain, chain)
    reached = ReachedTensors(lambda: chain)
    assert len(reached.places) == 2 + 2 * 100


def test_numbers_of_a_long_list_are_no_places() -> None:
    numbers = list(range(1_000_000))
    by_name = dict.fromkeys(map(str, range(1000)), 1.5)
    reached = ReachedTensors(lambda: (numbers, by_name))
    assert len(reached.places) == 3


def test_tensors_among_many_numbers_are_found() -> None:
    mixed = [*range(1000), Tensor([1.0]), *range(1000)]
    reached = ReachedTensors(lambda: mixed)
    assert len(reached.places) == 3
    assert list(reachable_tensors(lambda: mixed)) == ["mixed.1000"]


def test_compiled_programs_of_another_jit_are_not_entered() -> None:
    model = Model()
    inner = replayed(model)
    assert len(ReachedTensors(lambda x: inner(x)).places) < 12
    assert list(reachable_tensors(lambda x: inner(x))) == ["inner.model.weight"]


def test_cycles_slots_and_keyword_defaults_are_followed() -> None:
    class Slotted:
        __slots__ = ("held", "me")
        held: Tensor
        me: object

    item = Slotted()
    item.held = Tensor([1.0])
    item.me = item

    def step(*, other: object = item) -> object:
        return other

    assert list(reachable_tensors(step)) == ["other.held"]


# ---- replaced tensors and numbers


def test_replaced_tensor_is_seen() -> None:
    model = Model()
    jitted = replayed(model)
    model.weight = Tensor([10.0])
    assert [jitted(Tensor([1.0])).item() for _ in range(3)] == [33.0] * 3


def test_replaced_constant_is_seen() -> None:
    model = Model()
    model.weight = Tensor.full((1,), 2.0)
    jitted = replayed(model)
    model.weight = Tensor.full((1,), 4.0)
    assert jitted(Tensor([1.0])).item() == 15.0


def test_replaced_layer_is_seen() -> None:
    layers = [Model(), Model()]
    jitted = TinyJit(lambda x: layers[1](layers[0](x)))
    for _ in range(4):
        assert jitted(Tensor([1.0])).item() == 57.0
    layers[1] = Model()
    layers[1].weight.assign(Tensor([0.0]))
    assert jitted(Tensor([1.0])).item() == 3.0


@pytest.mark.parametrize(
    ("name", "value", "expected"), [("factor", 5, 13.0), ("factor", 0.5, 4.0)]
)
def test_changed_number_is_seen(name: str, value: Any, expected: float) -> None:
    model = Model()
    jitted = replayed(model)
    setattr(model, name, value)
    assert [jitted(Tensor([1.0])).item() for _ in range(2)] == [expected] * 2


def test_number_changed_in_a_list_is_seen() -> None:
    model = Model()
    jitted = replayed(model)
    model.offsets.append(4.0)
    assert jitted(Tensor([1.0])).item() == 13.0


def test_number_of_the_enclosing_function_is_seen() -> None:
    factor = 2
    jitted = TinyJit(lambda x: x * factor)
    for _ in range(4):
        assert jitted(Tensor([1.0])).item() == 2.0
    factor = 7
    assert jitted(Tensor([1.0])).item() == 7.0


def test_other_value_of_a_bound_variable_is_seen() -> None:
    size = Variable("size", 1, 4)
    held = [size.bind(2)]
    data = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    jitted = TinyJit(lambda: data[: held[0]].sum())
    for _ in range(4):
        assert jitted().item() == 3.0
    held[0] = size.bind(4)
    assert jitted().item() == 10.0


def test_number_that_the_code_does_not_name_may_change() -> None:
    model = Model()
    jitted = replayed(model)
    captured = jitted.captured
    model.calls += 1
    jitted(Tensor([1.0]))
    assert jitted.captured is captured


def test_number_of_an_object_that_the_code_does_not_name_may_change() -> None:
    model = Model()
    model.spare = Model()
    jitted = replayed(model)
    captured = jitted.captured
    model.spare.factor = 10
    assert jitted(Tensor([1.0])).item() == 9.0
    assert jitted.captured is captured


def test_written_tensor_is_no_other_one() -> None:
    model = Model()
    jitted = replayed(model)
    captured = jitted.captured
    model.weight.assign(Tensor([10.0]))
    assert jitted(Tensor([1.0])).item() == 33.0
    assert jitted.captured is captured


def test_jit_of_a_method_sees_what_its_object_holds() -> None:
    class Holder:
        def __init__(self) -> None:
            self.factor = 2

        @TinyJit
        def step(self, x: Tensor) -> Tensor:
            return x * self.factor

    holder = Holder()
    for _ in range(4):
        assert holder.step(Tensor([1.0])).item() == 2.0
    holder.factor = 6
    assert holder.step(Tensor([1.0])).item() == 6.0


# ---- the learning rate


def test_learning_rate_set_to_a_number_or_tensor_reaches_captured_steps() -> None:
    weight = Tensor([1.0]).realize()
    optimizer = SGD([weight], lr=0.25)

    @TinyJit
    def step() -> None:
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    with Tensor.train():
        for _ in range(4):
            step()
        captured = step.captured
        assert weight.item() == 0.0
        optimizer.lr = 1.0
        step()
        assert weight.item() == -1.0
        optimizer.lr = Tensor([2.0])
        step()
        assert weight.item() == -3.0
        optimizer.lr.assign(Tensor([4.0]))
        step()
        assert weight.item() == -7.0
        optimizer.lr *= 0.5
        step()
        assert weight.item() == -9.0
    assert step.captured is captured


def test_learning_rate_of_a_group_is_that_of_all() -> None:
    parts = [SGD([Tensor([1.0])], lr=0.5), SGD([Tensor([1.0])], lr=0.25)]
    group = OptimizerGroup(*parts)
    group.lr = 2
    assert [part.lr.item() for part in (group, *parts)] == [2.0, 2.0, 2.0]


def test_learning_rate_keeps_its_name_in_state_dicts() -> None:
    optimizer = SGD([Tensor([1.0])], lr=0.5)
    assert nn.state.get_state_dict(optimizer)["lr"] is optimizer.lr


# ---- what the call makes


def test_what_the_call_makes_is_no_constant_of_the_program() -> None:
    weight = Tensor([1.0, 2.0], requires_grad=True).realize()
    optimizer = SGD([weight], lr=0.5)

    @TinyJit
    def gradient(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    with Tensor.train():
        for _ in range(3):
            gradient(Tensor([1.0, 1.0]))
    captured = gradient.captured
    assert captured is not None
    program = captured.executor.program
    assert program.constants == ()
    assert all(isinstance(step, Launch) for step in program.steps)
