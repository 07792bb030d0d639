"""Random programs of reads, views and writes against a model in numpy: promises 1 to 3 of SEMANTICS.

The model: every tensor is a value of its own. Writing to a view also writes to the tensor it looks into; the view
follows that tensor only if it still showed its current value. Realising anything at any time changes nothing.
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


def run_program(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    models: list[Model] = []
    for _ in range(2):
        array = rng.integers(-9, 9, SHAPE).astype(np.float32)
        models.append(Model(array.copy(), Tensor(array)))

    def pick() -> Model:
        return models[data.draw(st.integers(0, len(models) - 1))]

    for _ in range(data.draw(st.integers(1, 8))):
        action = data.draw(
            st.sampled_from(
                ["view", "expression", "assign", "copy", "setitem", "mask", "iadd", "realize", "drop"]
            )
        )
        model = pick()
        if action == "view" and model.base is None and model.value.shape == SHAPE:
            name = data.draw(st.sampled_from(sorted(VIEWS)))
            made = Model(
                VIEWS[name](model.value).copy(), VIEWS[name](model.tensor), model, name
            )
            model.views.append(made)
            models.append(made)
        elif action == "expression":
            other = pick()
            if other.value.shape == model.value.shape:
                models.append(
                    Model(model.value * 2 + other.value, model.tensor * 2 + other.tensor)
                )
        elif action == "assign":
            other = pick()
            if other.value.shape == model.value.shape:
                value = other.value + 1
                model.tensor.assign(other.tensor + 1)

                def assign(target, value=value):
                    target[...] = value

                model.write(assign)
        elif action == "copy":
            other = pick()
            if other.value.shape == model.value.shape and other is not model:
                value = other.value.copy()
                model.tensor.assign(other.tensor)

                def copy(target, value=value):
                    target[...] = value

                model.write(copy)
        elif action == "setitem":
            number = data.draw(st.integers(-5, 5))
            model.tensor[-1] = number

            def setitem(target, number=number):
                target[-1] = number

            model.write(setitem)
        elif action == "mask":
            mask = model.value > 0
            model.tensor[model.tensor > 0] = -1

            def masked(target, mask=mask):
                target[mask] = -1

            model.write(masked)
        elif action == "iadd":
            old = model.value.copy()
            model.tensor += model.tensor

            def add(target, old=old):
                target[...] = old + old

            model.write(add)
        elif action == "realize":
            Tensor.realize(*[m.tensor for m in data.draw(st.lists(st.sampled_from(models), min_size=1))])
        elif action == "drop" and len(models) > 2:
            gone = models.pop(data.draw(st.integers(0, len(models) - 1)))
            if gone.base is None and gone.views:
                models.append(gone)  # a dropped base is another test
    for number, model in enumerate(models):
        np.testing.assert_array_equal(model.tensor.numpy(), model.value, err_msg=f"tensor {number}")


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
