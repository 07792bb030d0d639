"""Reductions and what is built on them, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor

from .modes import Evaluate

Function = Callable[..., Tensor]
Reference = Callable[..., np.ndarray]

REDUCTIONS: dict[str, tuple[Function, Reference]] = {
    "max": (lambda x, axis: x.max(axis), lambda x, axis: x.max(axis)),
    "mean": (lambda x, axis: x.mean(axis), lambda x, axis: x.mean(axis, dtype=np.float64)),
    "min": (lambda x, axis: x.min(axis), lambda x, axis: x.min(axis)),
    "prod": (lambda x, axis: x.prod(axis), lambda x, axis: x.prod(axis, dtype=np.float64)),
    "sum": (lambda x, axis: x.sum(axis), lambda x, axis: x.sum(axis, dtype=np.float64)),
    "var": (lambda x, axis: x.var(axis), lambda x, axis: x.var(axis, ddof=1, dtype=np.float64)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)], ids=str)
def test_reduction(
    name: str, axis: int | tuple[int, ...] | None, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    function, reference = REDUCTIONS[name]
    x = rng.standard_normal((3, 4, 5), np.float32)
    result = evaluate(lambda a: function(a, axis), x)
    np.testing.assert_allclose(result, reference(x, axis), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, None], ids=str)
def test_argmax_takes_the_first_of_equals(axis: int | None, evaluate: Evaluate) -> None:
    x = np.array([[1, 3, 3], [4, 0, 4]], np.float32)
    np.testing.assert_array_equal(evaluate(lambda a: a.argmax(axis), x), x.argmax(axis))


def test_reduction_propagates_nan(evaluate: Evaluate) -> None:
    x = np.array([1.0, np.nan, 3.0], np.float32)
    assert np.isnan(evaluate(lambda a: a.max(), x))
    assert np.isnan(evaluate(lambda a: a.sum(), x))


def test_sum_over_an_empty_axis_is_zero(evaluate: Evaluate) -> None:
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(evaluate(lambda a: a[:, 3:].sum(1), x), [0, 0])


def test_half_sum_accumulates_in_float(evaluate: Evaluate) -> None:
    x = np.full(3000, 1.0, np.float16)
    assert evaluate(lambda a: a.sum(), x) == 3000


def test_bool_sum_counts(evaluate: Evaluate) -> None:
    x = np.array([True, False, True])
    assert evaluate(lambda a: a.sum(), x) == 2


def test_cumulative_sum(evaluate: Evaluate, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (3, 7)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(lambda a: a.cumsum(1), x), x.cumsum(1))


def test_softmax_of_large_numbers(evaluate: Evaluate) -> None:
    x = np.array([[1000.0, 1001.0, 999.0], [-1000.0, 0.0, 1.0]], np.float32)
    shifted = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = shifted / shifted.sum(1, keepdims=True)
    np.testing.assert_allclose(evaluate(lambda a: a.softmax(1), x), expected, rtol=1e-5, atol=1e-9)


def test_cross_entropy(evaluate: Evaluate, rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 5), np.float32)
    labels = np.array([1, 0, 4, 2], np.int32)
    log_softmax = x - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True))
    expected = -log_softmax[np.arange(4), labels].mean()
    result = evaluate(lambda a, b: a.sparse_categorical_crossentropy(b), x, labels)
    np.testing.assert_allclose(result, expected, rtol=1e-5)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 2))], ids=str)
def test_matmul(
    shapes: tuple[tuple[int, ...], ...], evaluate: Evaluate, rng: np.random.Generator
) -> None:
    x, y = (rng.standard_normal(shape, np.float32) for shape in shapes)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(evaluate(lambda a, b: a @ b, x, y), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_conv2d(
    stride: int, padding: int, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((2, 3, 6, 5), np.float32)
    w = rng.standard_normal((4, 3, 3, 3), np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w)
    result = evaluate(lambda a, b: a.conv2d(b, stride=stride, padding=padding), x, w)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_pools(evaluate: Evaluate, rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 2, 4, 6), np.float32)
    blocks = x.reshape(1, 2, 2, 2, 3, 2)
    np.testing.assert_array_equal(evaluate(lambda a: a.max_pool2d(2), x), blocks.max((3, 5)))
    result = evaluate(lambda a: a.avg_pool2d(2), x)
    np.testing.assert_allclose(result, blocks.mean((3, 5)), rtol=1e-5, atol=1e-6)
