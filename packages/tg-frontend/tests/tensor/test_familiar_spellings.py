"""What people type from habit: other keywords, lists to join, Python's own functions, numpy's
dtypes.
"""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor, dtypes
from tg_frontend.errors import ArgumentError
from tg_ir.errors import DTypeError

DATA = [[1.0, -2.0], [3.5, 4.5]]


@pytest.mark.parametrize(
    "name",
    [
        *("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "norm"),
        *("argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "softmax", "log_softmax"),
        *("logsumexp", "softmin", "logcumsumexp"),
    ],
)
def test_dim_is_another_name_of_axis(name: str) -> None:
    x = Tensor(DATA)
    assert getattr(x, name)(dim=1).tolist() == getattr(x, name)(axis=1).tolist()


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_axis_is_another_name_of_dim(name: str) -> None:
    x = Tensor(DATA)
    assert getattr(x, name)(x, axis=1).tolist() == getattr(x, name)(x, dim=1).tolist()


def test_both_names_are_refused() -> None:
    with pytest.raises(ArgumentError, match="sum: dim= is another name of axis=; give one"):
        Tensor(DATA).sum(axis=0, dim=1)


def test_an_unknown_keyword_is_told_of_the_tensor() -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.sum\(\) got an unexpected keyword"):
        Tensor(DATA).sum(axes=0)
    with pytest.raises(TypeError, match=r"^Tensor\.zeros\(\) got an unexpected keyword"):
        Tensor.zeros(2, tint="blue")


@pytest.mark.parametrize("join", [list, tuple])
def test_lists_are_joined(join: type) -> None:
    parts = join([Tensor([1, 2]), Tensor([3, 4])])
    assert Tensor.stack(parts).tolist() == [[1, 2], [3, 4]]
    assert Tensor.cat(parts, dim=0).tolist() == [1, 2, 3, 4]


def test_joining_an_empty_list_is_refused() -> None:
    with pytest.raises(ArgumentError, match="stack: expected at least one tensor, got an empty"):
        Tensor.stack([])


def test_python_numbers_of_one_element() -> None:
    assert float(Tensor([2.5])) == 2.5
    assert int(Tensor([[7]])) == 7
    assert int(Tensor(-2.9)) == -2


def test_abs_and_round_of_python() -> None:
    x = Tensor(DATA)
    assert abs(x).tolist() == np.abs(DATA).tolist()
    assert round(x).tolist() == np.round(DATA).tolist()


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "int64", "uint16", "bool"])
def test_dtypes_of_numpy(name: str) -> None:
    for given in (np.dtype(name), np.dtype(name).type):
        assert Tensor([1], dtype=given).dtype is getattr(dtypes, name)
        assert Tensor([1]).cast(given).dtype is getattr(dtypes, name)


def test_numpy_types_without_a_counterpart_are_refused() -> None:
    with pytest.raises(DTypeError, match="no dtype is called 'complex64'"):
        Tensor([1], dtype=np.complex64)
    with pytest.raises(DTypeError, match="expected a dtype such as"):
        Tensor([1], dtype=object)


@pytest.mark.parametrize("loss", ["cross_entropy", "sparse_categorical_crossentropy", "nll_loss"])
def test_class_numbers_are_ints(loss: str) -> None:
    message = r"expected class numbers, which are ints, got float32 of shape \(2,\)"
    with pytest.raises(DTypeError, match=f"{loss}: {message}"):
        getattr(Tensor(DATA), loss)(Tensor([0.0, 1.0]))


def test_backward_without_a_wish_for_gradients_names_the_optimiser() -> None:
    with pytest.raises(RuntimeError, match="an optimiser sets it on the parameters of a model"):
        (Tensor([1.0]) * 2).sum().backward()


def test_reading_from_a_device_that_stores_nothing_warns() -> None:
    with pytest.warns(RuntimeWarning, match=r"tolist\(\): NULL stores no values"):
        assert (Tensor([1.0], device="NULL") + 1).tolist() == [0.0]
