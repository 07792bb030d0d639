"""Sorting against numpy's stable sort, for every kind of key and layout of the network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

_FORMATS = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "float32", "float64")


def _places(values: np.ndarray, descending: bool) -> np.ndarray:
    """Positions by (NaN last, value, place), reversed but for the place if descending."""
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    return np.argsort(-ranks if descending else ranks, axis=-1, kind="stable")


def _check(values: np.ndarray) -> None:
    for descending in (False, True):
        found, places = Tensor(values).sort(descending=descending)
        wanted = _places(values, descending)
        np.testing.assert_array_equal(places.numpy(), wanted)
        np.testing.assert_array_equal(found.numpy(), np.take_along_axis(values, wanted, -1))


@pytest.mark.parametrize("name", _FORMATS)
def test_integers_of_every_size_sort_up_to_their_limits(name: str) -> None:
    if name == "bool":
        _check(np.array([True, False, True, False, False]))
        return
    limits = np.iinfo(name)
    _check(np.array([5, limits.max, limits.min, 0, 5, limits.max, 1], dtype=name))


@pytest.mark.parametrize("name", _FLOATS)
def test_floats_sort_with_nan_last_and_the_two_zeros_equal(name: str) -> None:
    inf = np.inf
    values = [0.0, -0.0, 3.0, np.nan, -inf, inf, -2.5, 0.0, -np.nan, -0.0, 3.0]
    _check(np.array(values, dtype=name))


@pytest.mark.parametrize("shape", [(1,), (2,), (33,), (300,), (5, 37), (2, 3, 9), (70, 6)])
def test_rows_of_every_layout_sort(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(0, 40, shape).astype(np.float32)
    _check(values)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=70))
@settings(max_examples=25, deadline=None)
def test_equal_elements_keep_their_order(values: list[int]) -> None:
    places = Tensor(values).argsort().numpy()
    np.testing.assert_array_equal(places, np.argsort(values, kind="stable"))


def test_the_largest_are_the_first_of_a_descending_sort() -> None:
    values = np.random.default_rng(1).normal(size=(4, 50)).astype(np.float32)
    found, places = Tensor(values).topk(3)
    wanted = _places(values, True)[:, :3]
    np.testing.assert_array_equal(places.numpy(), wanted)
    np.testing.assert_array_equal(found.numpy(), np.take_along_axis(values, wanted, -1))
