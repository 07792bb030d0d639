"""Reductions, positions and scans, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tg_frontend import Tensor, dtypes

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var"])
def test_reductions_match_numpy(name, axis, keepdim):
    result = getattr(Tensor(X), name)(axis, keepdim=keepdim)
    options = {"ddof": 1} if name in ("std", "var") else {}
    expected = getattr(X.astype(np.float64), name)(axis=axis, keepdims=keepdim, **options)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_match_numpy_with_equal_elements_and_nan(name, axis):
    a = RNG.integers(-2, 3, (4, 6)).astype(np.float32)
    for array in (a, np.where(a == 2, np.nan, a).astype(np.float32), a.astype(np.int32), a > 0):
        result = getattr(Tensor(array), name)(axis)
        assert result.dtype is dtypes.int32
        np.testing.assert_array_equal(result.numpy(), getattr(array, name)(axis=axis))


def test_position_of_the_extreme_of_extremes():
    for array in (np.full(3, -np.inf, np.float32), np.full(3, np.iinfo(np.int32).min, np.int32)):
        assert Tensor(array).argmax().item() == 0
    assert Tensor([np.inf, np.inf]).argmin().item() == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans_match_numpy(axis):
    a = RNG.integers(-5, 6, (5, 7)).astype(np.float32)
    np.testing.assert_array_equal(Tensor(a).cumsum(axis).numpy(), a.cumsum(axis))
    np.testing.assert_array_equal(Tensor(a).cumprod(axis).numpy(), a.cumprod(axis))
    np.testing.assert_array_equal(
        Tensor(a).cummax(axis).numpy(), np.maximum.accumulate(a, axis)
    )
    np.testing.assert_array_equal(
        Tensor(a).cummin(axis).numpy(), np.minimum.accumulate(a, axis)
    )


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32])
def test_sums_of_narrow_ints_are_wide(kind):
    a = np.full(1000, 100, np.int64).astype(kind)
    total = Tensor(a).sum()
    assert total.dtype in (dtypes.int32, dtypes.uint32)
    assert total.item() == int(a.astype(np.int64).sum())


def test_sum_of_halves_is_rounded_once():
    a = np.full(4096, 1.0, np.float16)
    assert Tensor(a).sum().item() == 4096
    assert Tensor(a).sum().dtype is dtypes.half
    assert Tensor(np.full(5000, 0.1, np.float16)).mean().item() == pytest.approx(0.1, rel=1e-3)


def test_dtype_chooses_the_accumulator():
    total = Tensor([200, 100], dtype=dtypes.uint8).sum(dtype=dtypes.uint8)
    assert total.dtype is dtypes.uint8
    assert total.item() == 300 - 256
    assert Tensor([0.5, 1.5]).sum(dtype=dtypes.float64).dtype is dtypes.float64


@pytest.mark.parametrize(("name", "identity"), [("sum", 0), ("prod", 1), ("any", 0), ("all", 1)])
def test_reduction_over_an_empty_axis_gives_the_identity(name, identity):
    result = getattr(Tensor.zeros(3, 0), name)(1)
    np.testing.assert_array_equal(result.numpy(), np.full(3, identity))


def test_variance_does_not_cancel():
    a = (RNG.standard_normal(1000) + 1e4).astype(np.float32)
    expected = a.astype(np.float64).var(ddof=1)
    assert Tensor(a).var().item() == pytest.approx(expected, rel=1e-3)


def test_softmax_and_logsumexp_do_not_overflow():
    a = np.float32([[1000, 1001, 999], [-1000, -1000, -1e30]])
    wide = a.astype(np.float64)
    shifted = wide - wide.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    np.testing.assert_allclose(Tensor(a).softmax().numpy(), np.exp(shifted) / total, rtol=1e-6)
    np.testing.assert_allclose(
        Tensor(a).log_softmax().numpy(), shifted - np.log(total), rtol=1e-5, atol=1e-6
    )
    expected = (np.log(total) + wide.max(1, keepdims=True))[:, 0]
    np.testing.assert_allclose(Tensor(a).logsumexp(1).numpy(), expected, rtol=1e-6)


def test_norm_does_not_overflow():
    assert Tensor([3e30, 4e30]).norm().item() == pytest.approx(5e30, rel=1e-6)
    assert Tensor([3e-30, 4e-30]).norm().item() == pytest.approx(5e-30, rel=1e-6)
    assert Tensor([0.0, 0.0]).norm().item() == 0


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
        elements=st.floats(-4, 4, width=32) | st.just(np.nan) | st.just(np.inf),
    )
)
@settings(max_examples=40)
def test_extremes_propagate_nan(a):
    np.testing.assert_array_equal(Tensor(a).max(-1).numpy(), a.max(-1))
    np.testing.assert_array_equal(Tensor(a).min(0).numpy(), a.min(0))
    np.testing.assert_array_equal(Tensor(a).argmax(0).numpy(), a.argmax(0))


def test_scalars_reduce_to_themselves():
    x = Tensor(2.5)
    for name in ("sum", "prod", "max", "min", "mean"):
        assert getattr(x, name)().item() == 2.5
    assert x.argmax().item() == 0
    assert x.cumsum().item() == 2.5
    assert x.softmax().item() == 1.0


@pytest.mark.parametrize("size", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable_and_matches_numpy(size, descending):
    a = RNG.integers(-3, 4, (3, size)).astype(np.float32)
    values, places = Tensor(a).sort(descending=descending)
    expected = np.argsort(-a if descending else a, axis=-1, kind="stable")
    np.testing.assert_array_equal(places.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, expected, -1))
    np.testing.assert_array_equal(Tensor(a.T).argsort(0, descending).numpy(), expected.T)


def test_nan_sorts_last_and_topk_takes_the_largest():
    a = np.float32([2, np.nan, -1, np.inf, 0])
    np.testing.assert_array_equal(Tensor(a).sort()[0].numpy(), np.sort(a))
    values, places = Tensor([3, 9, 1, 9]).topk(3)
    assert (values.tolist(), places.tolist()) == ([9, 9, 3], [1, 3, 0])
    assert Tensor([3, 9, 1]).topk(2, largest=False)[0].tolist() == [1, 3]
