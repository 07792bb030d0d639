"""State dicts: which tensors are found under which names, and loading them."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest
from tg_frontend import Tensor, dtypes, nn
from tg_frontend.nn.state import StateError, get_parameters, get_state_dict, load_state_dict


class Model:
    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 3), nn.Linear(3, 1, bias=False)]
        self.extra = {"scale": Tensor([1.0]), "none": None, "number": 3}
        self.pair = (Tensor([1.0]), Tensor([2.0]))


def test_names_follow_attributes_items_and_positions() -> None:
    assert list(get_state_dict(Model())) == [
        *("layers.0.weight", "layers.0.bias", "layers.1.weight"),
        *("extra.scale", "pair.0", "pair.1"),
    ]


def test_named_tuples_and_ordered_dicts_are_followed() -> None:
    point = namedtuple("point", "x y")(Tensor([1.0]), Tensor([2.0]))
    state = get_state_dict(OrderedDict(p=point))
    assert list(state) == ["p.x", "p.y"]


def test_prefix_is_put_before() -> None:
    assert list(get_state_dict(nn.Linear(2, 2), "head")) == ["head.weight", "head.bias"]


def test_cycle_is_entered_once() -> None:
    model = Model()
    model.myself = model
    assert len(get_state_dict(model)) == 6


def test_shared_tensor_has_both_names() -> None:
    model = Model()
    model.tied = model.layers[0].weight
    state = get_state_dict(model)
    assert state["tied"] is state["layers.0.weight"]
    assert len(get_parameters(model)) == 7


def test_load_copies_values_in_place() -> None:
    source, target = nn.Linear(2, 3), nn.Linear(2, 3)
    weight = target.weight
    load_state_dict(target, get_state_dict(source))
    assert target.weight is weight
    assert target.weight.tolist() == source.weight.tolist()
    source.weight.assign(source.weight * 0).realize()
    assert target.weight.abs().sum().item() > 0


def test_missing_key_is_named() -> None:
    state = get_state_dict(nn.Linear(2, 3))
    del state["bias"]
    with pytest.raises(StateError, match="lacks 'bias'.*strict=False"):
        load_state_dict(nn.Linear(2, 3), state)
    load_state_dict(nn.Linear(2, 3), state, strict=False)


def test_unknown_key_is_named() -> None:
    state = {**get_state_dict(nn.Linear(2, 3)), "other": Tensor([1.0])}
    with pytest.raises(StateError, match="has 'other', which the model lacks"):
        load_state_dict(nn.Linear(2, 3), state)
    load_state_dict(nn.Linear(2, 3), state, strict=False)


def test_other_shape_is_named_and_nothing_is_loaded() -> None:
    model = nn.Linear(2, 3)
    before = model.weight.tolist()
    state = {"weight": Tensor.zeros(3, 2), "bias": Tensor.zeros(4)}
    with pytest.raises(StateError, match=r"bias: the model has shape \(3,\), .*dict \(4,\)"):
        load_state_dict(model, state)
    assert model.weight.tolist() == before


def test_other_dtype_is_named() -> None:
    state = {"weight": Tensor.zeros(3, 2), "bias": Tensor.zeros(3, dtype=dtypes.float16)}
    with pytest.raises(StateError, match="bias: the model has dtype float32, .* float16; cast"):
        load_state_dict(nn.Linear(2, 3), state)


def test_consume_empties_the_dict() -> None:
    state = get_state_dict(nn.Linear(2, 3))
    load_state_dict(nn.Linear(2, 3), state, consume=True)
    assert not state
