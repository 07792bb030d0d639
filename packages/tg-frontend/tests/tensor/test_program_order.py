"""Random programs of reads, views and writes against a model in numpy: promises 1 to 3.

The model: every tensor is a value of its own. Writing to a view also writes to the tensor it looks
into; the view follows that tensor only if it still showed its current value. Realising anything at
any time changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

SHAPE = (4, 3)

VIEWS = {
    "row": lambda x: x[1],
    "rows": lambda x: x[1:3],
    "reversed": lambda x: x[::-1],
    "every_second": lambda x: x[::2],
    "transposed": lambda x: x.T,
    "flat": lambda x: x.reshape(-1),
    "column": lambda x: x[:, 2],
}


@dataclass
class Model:
    """What a tensor should be: its value, and for a view the tensor it looks into."""

    value: np.ndarray
    tensor: Tensor
    base: Model | None = None
    view: str = ""
    is_current: bool = True
    views: list[Model] = field(default_factory=list)

    def write(self, change) -> None:
        """Apply `change`, a function that edits an array in place."""
        if self.base is None:
            for view in self.views:
                view.is_current = False
            self.value = self.value.copy()
            change(self.value)
            return
        base, was_current = self.base, self.is_current
        for view in base.views:
            view.is_current = False
        base.value = base.value.copy()
        change(VIEWS[self.view](base.value))
        if was_current:
            self.value = VIEWS[self.view](base.value).copy()
            self.is_current = True
        else:
            self.value = self.value.copy()
            change(self.value)


class Program:
    """A program being run: its tensors with their models, and the source of its choices."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.models: list[Model] = []
        rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
        for _ in range(2):
            array = rng.integers(-9, 9, SHAPE).astype(np.float32)
            self.models.append(Model(array.copy(), Tensor(array)))

    def pick(self) -> Model:
        return self.models[self.data.draw(st.integers(0, len(self.models) - 1))]

    def pick_like(self, model: Model) -> Model | None:
        other = self.pick()
        return other if other.value.shape == model.value.shape else None

    def view(self, model: Model) -> None:
        if model.base is None and model.value.shape == SHAPE:
            name = self.data.draw(st.sampled_from(sorted(VIEWS)))
            value, tensor = VIEWS[name](model.value).copy(), VIEWS[name](model.tensor)
            made = Model(value, tensor, model, name)
            model.views.append(made)
            self.models.append(made)

    def expression(self, model: Model) -> None:
        other = self.pick_like(model)
        if other is not None:
            value, tensor = model.value * 2 + other.value, model.tensor * 2 + other.tensor
            self.models.append(Model(value, tensor))

    def assign(self, model: Model) -> None:
        other = self.pick_like(model)
        if other is not None:
            value = other.value + 1
            model.tensor.assign(other.tensor + 1)
            model.write(lambda target: np.copyto(target, value))

    def copy(self, model: Model) -> None:
        other = self.pick_like(model)
        if other is not None and other is not model:
            value = other.value.copy()
            model.tensor.assign(other.tensor)
            model.write(lambda target: np.copyto(target, value))

    def setitem(self, model: Model) -> None:
        number = self.data.draw(st.integers(-5, 5))
        model.tensor[-1] = number
        model.write(lambda target: target.__setitem__(-1, number))

    def mask(self, model: Model) -> None:
        mask = model.value > 0
        model.tensor[model.tensor > 0] = -1
        model.write(lambda target: target.__setitem__(mask, -1))

    def iadd(self, model: Model) -> None:
        doubled = model.value * 2
        model.tensor += model.tensor
        model.write(lambda target: np.copyto(target, doubled))

    def realize(self, model: Model) -> None:
        others = self.data.draw(st.lists(st.sampled_from(self.models)))
        model.tensor.realize(*[other.tensor for other in others])

    def drop(self, model: Model) -> None:
        is_base = model.base is None and model.views  # a dropped base is another test
        if len(self.models) > 2 and not is_base:
            self.models = [other for other in self.models if other is not model]


STATEMENTS = ["view", "expression", "assign", "copy", "setitem", "mask", "iadd", "realize", "drop"]


def run_program(data: st.DataObject) -> None:
    program = Program(data)
    for _ in range(data.draw(st.integers(1, 8))):
        statement = data.draw(st.sampled_from(STATEMENTS))
        getattr(program, statement)(program.pick())
    for number, model in enumerate(program.models):
        np.testing.assert_array_equal(
            model.tensor.numpy(), model.value, err_msg=f"tensor {number}"
        )


@given(st.data())
@settings(max_examples=120)
def test_random_programs_do_what_their_order_says(data: st.DataObject) -> None:
    run_program(data)


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_writing_to_a_view_writes_to_its_base_and_nothing_else(view: str) -> None:
    array = np.arange(12, dtype=np.float32).reshape(SHAPE)
    x = Tensor(array)
    before = x + 0
    other = VIEWS[view](x)
    seen = VIEWS[view](x)
    seen.assign(seen * 0 - 1)
    VIEWS[view](array)[...] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(seen.numpy(), VIEWS[view](array))
    original = np.arange(12, dtype=np.float32).reshape(SHAPE)
    np.testing.assert_array_equal(other.numpy(), VIEWS[view](original))
    np.testing.assert_array_equal(before.numpy(), original)
