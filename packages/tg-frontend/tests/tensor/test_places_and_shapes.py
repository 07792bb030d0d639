"""Diagonals, padding to a shape, places of a pool: against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tg_frontend import Tensor
from tg_ir.errors import ShapeError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2, 0), (-1, -2)])
@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 3, 9])
def test_diagonal(axes: tuple[int, int], offset: int) -> None:
    expected = np.diagonal(X, offset, *axes)
    actual = Tensor(X).diagonal(offset, *axes).numpy()
    assert actual.shape == expected.shape
    assert np.array_equal(actual, expected)


def test_diagonal_of_one_axis_twice_is_refused() -> None:
    with pytest.raises(ShapeError, match="axes 1 and -2"):
        Tensor(X).diagonal(0, 1, -2)


def test_gradient_of_a_diagonal() -> None:
    x = Tensor(X)
    (gradient,) = x.diagonal(1, 1, 2).sum().gradient(x)
    assert np.array_equal(gradient.numpy(), np.broadcast_to(np.eye(3, 4, 1), X.shape))


def test_pad_to_adds_at_the_end_and_shrink_to_takes_from_there() -> None:
    padded = Tensor(X).pad_to(None, 5, 4, value=-1).numpy()
    assert np.array_equal(padded, np.pad(X, ((0, 0), (0, 2), (0, 0)), constant_values=-1))
    assert np.array_equal(Tensor(X).shrink_to(1, None, 2).numpy(), X[:1, :, :2])


def test_pad_to_a_smaller_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"pad_to: \(2, 2, 4\) is no larger shape"):
        Tensor(X).pad_to(2, 2, 4)


def test_fmod_has_the_sign_of_the_dividend() -> None:
    x = np.array([5.5, -5.5, 3.0, -3.0, 1.0, -0.0, 2.0], np.float32)
    y = np.array([2.0, 2.0, -2.0, -1.0, math.inf, 3.0, 0.0], np.float32)
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    actual = Tensor(x).fmod(Tensor(y)).numpy()
    np.testing.assert_array_equal(actual, expected)
    assert np.array_equal(np.signbit(actual[:-1]), np.signbit(expected[:-1]))


def test_exact_gelu_is_by_the_error_function() -> None:
    x = np.linspace(-4, 4, 33)
    expected = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x]
    np.testing.assert_allclose(Tensor(x).gelu(approximate="none").numpy(), expected, atol=1e-14)
    with pytest.raises(ValueError, match="'tanh' or 'none'"):
        Tensor(x).gelu(approximate="exact")


def test_places_of_a_pool_lead_back_to_its_elements() -> None:
    x = np.random.default_rng(3).permutation(2 * 6 * 8).reshape(1, 2, 6, 8).astype(np.float32)
    values, places = Tensor(x).max_pool2d((2, 4), return_indices=True)
    taken = np.take_along_axis(x.reshape(1, 2, -1), places.numpy().reshape(1, 2, -1), 2)
    assert np.array_equal(taken.reshape(values.shape), values.numpy())
    back = values.max_unpool2d(places, (2, 4)).numpy()
    assert np.array_equal(back, np.where(np.isin(x, values.numpy()), x, 0))


@pytest.mark.parametrize("zero", [0, 1000])
def test_running_log_sum_exp_keeps_small_beginnings(zero: float) -> None:
    x = np.array([0.0, 1.0, -3.0, 800.0, 801.0, -5.0]) + zero
    expected = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(Tensor(x).logcumsumexp().numpy(), expected, rtol=1e-14)


def test_log_sum_exp_of_nothing_is_minus_infinity() -> None:
    assert Tensor(np.zeros((0, 2), np.float32)).logsumexp(0).tolist() == [-math.inf, -math.inf]
    assert Tensor(np.zeros((2, 0), np.float32)).softmax(1).shape == (2, 0)


def test_cross_entropy_ignores_classes_that_are_ruled_out() -> None:
    logits = np.array([[1.0, -math.inf, 0.5]])
    x = Tensor(logits)
    loss = x.cross_entropy(Tensor([2]))
    np.testing.assert_allclose(loss.item(), math.log(1 + math.exp(0.5)), rtol=1e-12)
    assert np.isfinite(loss.gradient(x)[0].numpy()).all()
