"""Axes and indices out of range, or of a type that indexes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor, Variable

from .refusals import Case, case, each, message_of

ones = Tensor.ones


def written(tensor: Tensor, key: object, value: object) -> None:
    tensor[key] = value


INDICES = [
    case(
        "past_the_end",
        lambda: ones(2, 3)[5],
        IndexError,
        "index 5 is out of range for axis 0 of shape (2, 3); expected -2..1",
    ),
    case("before_the_start", lambda: ones(2, 3)[-3], IndexError, "index -3", "-2..1"),
    case("second_axis", lambda: ones(2, 3)[0, 5], IndexError, "axis 1 of shape (2, 3)", "-3..2"),
    case("too_many", lambda: ones(2, 3)[0, 0, 0], IndexError, "3 indices for a tensor of 2 axes"),
    case("of_a_scalar", lambda: Tensor(1.0)[0], IndexError, "1 indices for a tensor of 0 axes"),
    case("of_nothing", lambda: ones(0, 3)[0], IndexError, "axis 0 of shape (0, 3)"),
    case("enormous", lambda: ones(2)[10**30], IndexError, "out of range for axis 0"),
    case("in_a_list", lambda: ones(2)[[0, 5]], IndexError, "index 5", "axis 0"),
    case("in_an_array", lambda: ones(2)[np.array([-9])], IndexError, "index -9"),
    case("text", lambda: ones(2)["a"], TypeError, "cannot index with str 'a'; expected ints"),
    case("float", lambda: ones(2)[1.0], TypeError, "cannot index with float 1.0"),
    case("nan", lambda: ones(2)[float("nan")], TypeError, "cannot index with float nan"),
    case("bool", lambda: ones(2)[True], TypeError, "cannot index with bool True"),
    case("numpy_bool", lambda: ones(2)[np.True_], TypeError, "with a single bool"),
    case("bool_tensor", lambda: ones(2)[Tensor(True)], TypeError, "with a single bool"),
    case("numpy_float", lambda: ones(2)[np.float32(1)], TypeError, "type float32"),
    case("float_array", lambda: ones(2)[np.array([0.5])], TypeError, "type float64"),
    case("float_tensor", lambda: ones(2)[Tensor([0.5])], TypeError, "got float32; cast it"),
    case("texts", lambda: ones(2)[["a"]], TypeError, "cannot index with"),
    case("ragged", lambda: ones(2)[[[0, 1], [1]]], ValueError, "in lists of one length"),
    case("two_ellipses", lambda: ones(2, 3)[..., ...], IndexError, "at most one Ellipsis, got 2"),
    case("no_step", lambda: ones(2)[::0], ValueError, "step other than 0"),
    case("text_in_slice", lambda: ones(2)["a":], TypeError, "a slice is of ints, got str 'a'"),
    case("float_in_slice", lambda: ones(2)[1.5:], TypeError, "a slice is of ints, got float 1.5"),
    case("mask", lambda: ones(2)[Tensor([True])], ValueError, "mask of shape (1,)", "(2,)"),
    case(
        "indices_apart",
        lambda: ones(2, 3)[Tensor([0, 1]), Tensor([0, 1, 2])],
        ValueError,
        "shapes (2,) and (3,) do not broadcast",
    ),
    case(
        "symbolic_slice",
        lambda: ones(3)[: Variable("n", 1, 5).bind(2)],
        IndexError,
        "may reach 0..5, outside an axis of 3",
    ),
    case("set_past_the_end", lambda: written(ones(2), 5, 1), IndexError, "index 5", "-2..1"),
    case("set_text", lambda: written(ones(2), "a", 1), TypeError, "cannot index with str 'a'"),
    case("set_shape", lambda: written(ones(2, 3), 0, ones(4)), ValueError, "(4,)", "(3,)"),
    case("set_to_text", lambda: written(ones(2), 0, "a"), ValueError, "str 'a'"),
    case("set_to_none", lambda: written(ones(2), 0, None), TypeError, "None is no operand"),
    case("set_mask", lambda: written(ones(2), Tensor([True]), 1), ValueError, "(1,)", "(2,)"),
    case(
        "set_expanded",
        lambda: written(ones(1, 2).expand(3, 2), 0, 5),
        ValueError,
        "expanded view",
        "write to a clone()",
    ),
    case("gather_index", lambda: ones(2, 3).gather(0, Tensor([0])), ValueError, "(1,)", "(2, 3)"),
    case("gather_number", lambda: ones(2, 3).gather(0, 5), TypeError, "gather: expected a tensor"),
    case("gather_float", lambda: ones(2).gather(0, Tensor([0.5])), TypeError, "got float32"),
    case(
        "scatter_source",
        lambda: ones(2, 3).scatter(0, Tensor([[0, 1]]), ones(1)),
        ValueError,
        "source (1,) is smaller than index (1, 2)",
    ),
    case("one_hot", lambda: Tensor([1]).one_hot(-5), ValueError, "classes: expected 1 or more"),
    case("one_hot_of_floats", lambda: ones(2).one_hot(5), TypeError, "got float32; cast it"),
    case("masked_select", lambda: ones(2, 3).masked_select(ones(4)), ValueError, "(2, 3)"),
]


@each(INDICES)
def test_index_that_chooses_nothing(wrong: Case) -> None:
    message_of(wrong)


OUT_OF_RANGE = "axis 5 is out of range for a tensor of 2 axes; expected -2..1"

AXES = [
    case("sum", lambda: ones(2, 3).sum(5), IndexError, OUT_OF_RANGE),
    case("max", lambda: ones(2, 3).max(-3), IndexError, "axis -3"),
    case("mean", lambda: ones(2, 3).mean(5), IndexError, OUT_OF_RANGE),
    case("var", lambda: ones(2, 3).var(5), IndexError, OUT_OF_RANGE),
    case("argmax", lambda: ones(2, 3).argmax(5), IndexError, OUT_OF_RANGE),
    case("softmax", lambda: ones(2, 3).softmax(5), IndexError, OUT_OF_RANGE),
    case("cumsum", lambda: ones(2, 3).cumsum(5), IndexError, OUT_OF_RANGE),
    case("transpose", lambda: ones(2, 3).transpose(0, 5), IndexError, OUT_OF_RANGE),
    case("permute", lambda: ones(2, 3).permute(0, 5), IndexError, OUT_OF_RANGE),
    case("flip", lambda: ones(2, 3).flip(5), IndexError, OUT_OF_RANGE),
    case("squeeze", lambda: ones(2, 3).squeeze(5), IndexError, OUT_OF_RANGE),
    case("unsqueeze", lambda: ones(2, 3).unsqueeze(5), IndexError, "expected -3..2"),
    case("flatten", lambda: ones(2, 3).flatten(5), IndexError, OUT_OF_RANGE),
    case("roll", lambda: ones(2, 3).roll(1, 5), IndexError, OUT_OF_RANGE),
    case("cat", lambda: ones(2, 3).cat(ones(2, 3), dim=5), IndexError, OUT_OF_RANGE),
    case("stack", lambda: ones(2, 3).stack(ones(2, 3), dim=5), IndexError, "expected -3..2"),
    case("gather", lambda: ones(2, 3).gather(5, Tensor([[0]])), IndexError, OUT_OF_RANGE),
    case("size", lambda: ones(2, 3).size(5), IndexError, OUT_OF_RANGE),
    case("doubled", lambda: ones(2, 3).sum((0, 0)), IndexError, "(0, 0) name one axis"),
    case("text", lambda: ones(2, 3).sum("a"), TypeError, "axis: expected an int, got str 'a'"),
    case("float", lambda: ones(2, 3).sum(1.0), TypeError, "axis: expected an int, got float"),
    case("bool", lambda: ones(2, 3).sum(True), TypeError, "axis: expected an int, got bool"),
    case("max_of_nothing", lambda: ones(0, 3).max(0), ValueError, "max over axis 0", "(0, 3)"),
    case("min_of_nothing", lambda: ones(0, 3).min(0), ValueError, "min over axis 0", "empty"),
    case("argmax_of_nothing", lambda: ones(0, 3).argmax(0), ValueError, "argmax over axis 0"),
]


@each(AXES)
def test_axis_that_does_not_exist(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_write_changes_nothing() -> None:
    tensor = ones(2, 3)
    for key, value in ((5, 1), ("a", 1), (0, ones(4)), (Tensor([True]), 1), ((0, 0, 0), 1)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            tensor[key] = value
    assert tensor.tolist() == [[1.0] * 3] * 2


def test_tensors_that_point_outside_read_zero() -> None:
    assert ones(2)[Tensor([5, -5, 1, 2**31 - 1, -(2**31)])].tolist() == [0, 0, 1, 0, 0]
