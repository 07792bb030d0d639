"""Inverse functions, resizing, rearranging, drawing by weight, scatter with reductions."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor

RNG = np.random.default_rng(17)


@pytest.mark.parametrize(
    ("name", "reference", "low", "high"),
    [
        ("atan", np.arctan, -50, 50),
        ("atan", np.arctan, -1e-3, 1e-3),
        ("asin", np.arcsin, -1, 1),
        ("acos", np.arccos, -1, 1),
        ("asinh", np.arcsinh, -1e6, 1e6),
        ("asinh", np.arcsinh, -1e-3, 1e-3),
        ("acosh", np.arccosh, 1.01, 1e6),
        ("atanh", np.arctanh, -0.999, 0.999),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_inverse_functions_match_numpy(name, reference, low, high, kind):
    x = RNG.uniform(low, high, 500).astype(kind)
    expected = reference(x.astype(np.float64))
    tolerance = 2e-6 if kind is np.float32 else 1e-12
    result = getattr(Tensor(x), name)().numpy()
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance / 100)


def test_inverse_functions_at_their_ends():
    ends = np.float32([-1, 0, 1])
    np.testing.assert_allclose(Tensor(ends).asin().numpy(), np.arcsin(ends), rtol=1e-6)
    far = np.float32([np.inf, -np.inf])
    np.testing.assert_allclose(Tensor(far).atan().numpy(), np.arctan(far), rtol=1e-6)
    assert np.isnan(Tensor([2.0]).asin().item())


def test_logaddexp_and_copysign_match_numpy():
    a, b = np.float32([1000, -1000, 2]), np.float32([999, -1001, -np.inf])
    result = Tensor(a).logaddexp(Tensor(b)).numpy()
    np.testing.assert_allclose(result, np.logaddexp(a, b), rtol=1e-6)
    sign = np.float32([-0.0, 0.0, -3])
    np.testing.assert_array_equal(Tensor(a).copysign(Tensor(sign)).numpy(), np.copysign(a, sign))


def test_interpolation_matches_numpy():
    x = RNG.standard_normal((2, 5)).astype(np.float32)
    grid = np.linspace(0, 4, 9)
    expected = np.stack([np.interp(grid, np.arange(5), row) for row in x])
    result = Tensor(x).interpolate((9,), align_corners=True)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
    grid = np.clip((np.arange(10) + 0.5) * 0.5 - 0.5, 0, 4)
    expected = np.stack([np.interp(grid, np.arange(5), row) for row in x])
    result = Tensor(x).interpolate((10,)).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    nearest = Tensor(x).interpolate((10,), mode="nearest").numpy()
    np.testing.assert_array_equal(nearest, x.repeat(2, 1))
    assert Tensor(x).interpolate((4, 10)).shape == (4, 10)


def test_rearrange_matches_numpy():
    x = np.arange(24, dtype=np.float32).reshape(2, 12)
    expected = x.reshape(2, 3, 4).transpose(2, 0, 1).reshape(8, 3)
    result = Tensor(x).rearrange("b (h w) -> (w b) h", h=3).numpy()
    np.testing.assert_array_equal(result, expected)


def test_drawing_by_weight_follows_the_weights():
    Tensor.manual_seed(5)
    weights = Tensor([1.0, 0.0, 3.0])
    drawn = weights.multinomial(4000, replacement=True).numpy()
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    assert counts[2] / 4000 == pytest.approx(0.75, abs=0.03)
    assert sorted(Tensor([1.0, 2.0, 3.0]).multinomial(3).tolist()) == [0, 1, 2]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_scatter_with_a_reduction_matches_a_loop(reduce, include_self):
    x = RNG.integers(-4, 5, (3, 5)).astype(np.float32)
    index = RNG.integers(0, 5, (2, 4))
    source = RNG.integers(-4, 5, (3, 4)).astype(np.float32)
    lists = [[[] for _ in range(5)] for _ in range(3)]
    for i in range(2):
        for j in range(4):
            lists[i][index[i, j]].append(source[i, j])
    join = {"sum": np.sum, "mean": np.mean}[reduce]
    expected = x.copy()
    for i in range(3):
        for j in range(5):
            if lists[i][j]:
                expected[i, j] = join([x[i, j]] * include_self + lists[i][j])
    result = Tensor(x).scatter_reduce(1, Tensor(index), Tensor(source), reduce, include_self)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_scatter_that_would_loop_over_the_indexed_axis_is_refused(reduce):
    x, index = Tensor.zeros(3), Tensor([0, 1])
    with pytest.raises(NotImplementedError, match=f"'{reduce}' is not built yet"):
        x.scatter_reduce(0, index, Tensor([1.0, 2.0]), reduce)


def test_sequential_and_allclose():
    x = Tensor([1.0, -2.0])
    assert x.sequential([Tensor.relu, lambda t: t * 3]).tolist() == [3, 0]
    assert x.allclose(x + 1e-9)
    assert not x.allclose(x + 1)
