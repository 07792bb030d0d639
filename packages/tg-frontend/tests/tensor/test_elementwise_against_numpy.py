"""Elementwise operators on random shapes, dtypes and values, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tg_frontend import Tensor, dtypes

INTS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def broadcasting_pairs(draw, dtypes_of):
    """Two arrays whose shapes broadcast."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    kinds = [draw(st.sampled_from(dtypes_of)) for _ in range(2)]
    return [
        draw(hnp.arrays(kind, shape, elements=elements_of(kind)))
        for kind, shape in zip(kinds, shapes.input_shapes, strict=True)
    ]


def elements_of(kind):
    if kind is np.bool_:
        return st.booleans()
    if np.issubdtype(kind, np.integer):
        info = np.iinfo(kind)
        return st.integers(int(info.min), int(info.max))
    return st.floats(-8, 8, width=np.dtype(kind).itemsize * 8)


OPERATORS = {
    "add": (lambda a, b: a + b, np.add),
    "subtract": (lambda a, b: a - b, np.subtract),
    "multiply": (lambda a, b: a * b, np.multiply),
    "maximum": (lambda a, b: a.maximum(b), np.maximum),
    "minimum": (lambda a, b: a.minimum(b), np.minimum),
}
COMPARISONS = {
    "less": (lambda a, b: a < b, np.less),
    "less_equal": (lambda a, b: a <= b, np.less_equal),
    "greater": (lambda a, b: a > b, np.greater),
    "greater_equal": (lambda a, b: a >= b, np.greater_equal),
    "equal": (lambda a, b: a == b, np.equal),
    "not_equal": (lambda a, b: a != b, np.not_equal),
}


@pytest.mark.parametrize("name", [*OPERATORS, *COMPARISONS])
@given(data=st.data())
@settings(max_examples=20)
def test_operators_of_one_dtype_match_numpy(name, data):
    function, reference = {**OPERATORS, **COMPARISONS}[name]
    kind = data.draw(st.sampled_from([*INTS, np.float32, np.float64]))
    a, b = data.draw(broadcasting_pairs([kind]))
    result = function(Tensor(a), Tensor(b)).numpy()
    expected = reference(a, b)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@given(data=st.data())
@settings(max_examples=40)
def test_sums_of_mixed_dtypes_are_exact_in_the_promoted_dtype(data):
    a, b = data.draw(broadcasting_pairs([np.bool_, *INTS, *FLOATS]))
    result = (Tensor(a) + Tensor(b)).numpy()
    if a.dtype == np.bool_ and b.dtype == np.bool_:
        expected = a | b
    else:
        expected = a.astype(result.dtype) + b.astype(result.dtype)
    np.testing.assert_array_equal(result, expected)


@given(data=st.data())
@settings(max_examples=40)
def test_floor_division_and_remainder_of_ints_match_numpy(data):
    kind = data.draw(st.sampled_from(INTS))
    a, b = data.draw(broadcasting_pairs([kind]))
    quotient, remainder = (Tensor(a) // Tensor(b)).numpy(), (Tensor(a) % Tensor(b)).numpy()
    with np.errstate(all="ignore"):
        nonzero = np.broadcast_to(b != 0, quotient.shape)
        expected_q = np.where(nonzero, np.floor_divide(a, b), 0)
        expected_r = np.where(nonzero, np.remainder(a, b), 0)
    np.testing.assert_array_equal(quotient, expected_q)
    np.testing.assert_array_equal(remainder, expected_r)


@given(data=st.data())
@settings(max_examples=40)
def test_floor_division_and_remainder_of_floats_match_numpy(data):
    finite = st.floats(-100, 100, width=32)
    shape = (4,)
    a = data.draw(hnp.arrays(np.float32, shape, elements=finite))
    divisors = st.floats(0.015625, 100, width=32)
    sign = data.draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([-1.0, 1.0])))
    b = data.draw(hnp.arrays(np.float32, shape, elements=divisors)) * sign
    np.testing.assert_array_equal((Tensor(a) // Tensor(b)).numpy(), np.floor_divide(a, b))
    expected = np.remainder(a, b)
    np.testing.assert_allclose((Tensor(a) % Tensor(b)).numpy(), expected, rtol=1e-5, atol=2e-6)


def test_division_of_ints_is_a_float():
    result = Tensor([1, 2, 7]) / 2
    assert result.dtype is dtypes.float32
    np.testing.assert_array_equal(result.numpy(), np.float32([0.5, 1.0, 3.5]))


@pytest.mark.parametrize("kind", INTS)
def test_truncating_division_is_that_of_c(kind):
    a = np.array([7, 100, 3], kind)
    np.testing.assert_array_equal(Tensor(a).idiv(2).numpy(), [3, 50, 1])
    if np.issubdtype(kind, np.signedinteger):
        np.testing.assert_array_equal(Tensor(-a).idiv(2).numpy(), [-3, -50, -1])
        np.testing.assert_array_equal(Tensor(-a).cmod(2).numpy(), [-1, 0, -1])


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (lambda x: x.exp(), np.exp),
        (lambda x: x.exp2(), np.exp2),
        (lambda x: x.log(), np.log),
        (lambda x: x.log2(), np.log2),
        (lambda x: x.sqrt(), np.sqrt),
        (lambda x: x.reciprocal(), np.reciprocal),
        (lambda x: x.abs(), np.abs),
        (lambda x: x.sign(), np.sign),
        (lambda x: x.floor(), np.floor),
        (lambda x: x.ceil(), np.ceil),
        (lambda x: x.trunc(), np.trunc),
        (lambda x: x.round(), np.rint),
        (lambda x: x.tanh(), np.tanh),
        (lambda x: x.sin(), np.sin),
        (lambda x: x.cos(), np.cos),
        (lambda x: x.isnan(), np.isnan),
        (lambda x: x.isinf(), np.isinf),
        (lambda x: x.isfinite(), np.isfinite),
        (lambda x: x.relu(), lambda x: np.maximum(x, 0)),
        (lambda x: -x, np.negative),
        (lambda x: x.square(), np.square),
    ],
)
def test_functions_of_special_values_match_numpy(function, reference):
    with np.errstate(all="ignore"):
        expected = reference(SPECIAL)
    np.testing.assert_allclose(function(Tensor(SPECIAL)).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "reference", "low", "high"),
    [
        (lambda x: x.exp(), np.exp, -80, 80),
        (lambda x: x.exp2(), np.exp2, -100, 100),
        (lambda x: x.log(), np.log, 1e-30, 1e30),
        (lambda x: x.tanh(), np.tanh, -9, 9),
        (lambda x: x.tanh(), np.tanh, -1e-3, 1e-3),
        (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x)), -80, 80),
        (lambda x: x.sin(), np.sin, -30, 30),
        (lambda x: x.cos(), np.cos, -30, 30),
        (lambda x: x.softplus(), lambda x: np.logaddexp(x, 0), -10, 80),
        (lambda x: x.silu(), lambda x: x / (1 + np.exp(-x)), -80, 80),
        (lambda x: x.elu(), lambda x: np.where(x > 0, x, np.exp(x) - 1), 0, 3),
        (lambda x: x**3, lambda x: x**3, -30, 30),
        (lambda x: x**-2, lambda x: x**-2.0, 0.1, 30),
        (lambda x: x**0.5, np.sqrt, 0.1, 30),
    ],
)
def test_functions_are_accurate_over_their_range(function, reference, low, high):
    rng = np.random.default_rng(7)
    x = rng.uniform(low, high, 2000).astype(np.float32)
    expected = reference(x.astype(np.float64))
    error = np.abs(function(Tensor(x)).numpy() - expected)
    spacing = np.spacing(np.abs(expected).astype(np.float32))
    assert (error <= 8 * spacing + 1e-38).all(), f"{(error / spacing).max()} ulp"


@given(st.floats(-3, 3, width=32), st.integers(-4, 6))
@settings(max_examples=30)
def test_powers_of_floats_match_python(base, exponent):
    assume(base != 0 or exponent >= 0)
    expected = float(np.float64(base) ** exponent)
    assume(abs(expected) < 1e30)
    for result in (
        Tensor([base]) ** exponent,
        Tensor([base]) ** Tensor([float(exponent)]),
    ):
        assert math.isclose(result.item(), expected, rel_tol=2e-5, abs_tol=1e-30)


def test_powers_of_ints_are_exact_and_wrap():
    a = np.array([3, -2, 0, 1, 7], np.int32)
    b = np.array([4, 31, 0, 100, 13], np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((Tensor(a) ** Tensor(b)).numpy(), a**b)
        np.testing.assert_array_equal((Tensor(a) ** 5).numpy(), a**5)


def test_python_numbers_do_not_widen_a_dtype():
    assert (Tensor([1], dtype=dtypes.int8) + 1).dtype is dtypes.int8
    assert (Tensor([1.0], dtype=dtypes.half) * 2.5).dtype is dtypes.half
    assert (2 - Tensor([1], dtype=dtypes.uint8)).dtype is dtypes.uint8
    assert (Tensor([True]) + 1).dtype is dtypes.int32
    assert (Tensor([1]) * 1.5).dtype is dtypes.float32


@pytest.mark.parametrize("shift", [0, 1, 7, 31, 32, 40])
def test_shifts_by_the_width_or_more_give_zero_or_the_sign(shift):
    a = np.array([1, -8, 123456], np.int32)
    left = [(int(v) << shift) & 0xFFFFFFFF if shift < 32 else 0 for v in a]
    np.testing.assert_array_equal(
        (Tensor(a) << shift).numpy(), np.array(left, np.uint32).astype(np.int32)
    )
    np.testing.assert_array_equal((Tensor(a) >> shift).numpy(), [int(v) >> shift for v in a])


def test_where_clamp_and_lerp_match_numpy():
    x = np.linspace(-3, 3, 13, dtype=np.float32)
    np.testing.assert_array_equal(Tensor(x).clamp(-1, 2).numpy(), np.clip(x, -1, 2))
    np.testing.assert_array_equal(Tensor(x).clip(min=0).numpy(), np.maximum(x, 0))
    np.testing.assert_allclose(
        Tensor(x).lerp(Tensor(-x), 0.25).numpy(), x + 0.25 * (-x - x), rtol=1e-6
    )
    mixed = (Tensor(x) > 0).where(Tensor(x), 5)
    np.testing.assert_array_equal(mixed.numpy(), np.where(x > 0, x, 5))
    assert Tensor([True, False]).where(1, 2).dtype is dtypes.int32


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int32, np.uint8, np.int64])
def test_casts_between_dtypes_match_numpy_in_range(kind):
    values = np.array([0, 1, 2.75, 100.5, 127], np.float32)
    expected = values.astype(kind)
    np.testing.assert_array_equal(Tensor(values).cast(_name(kind)).numpy(), expected)


def _name(kind) -> str:
    return np.dtype(kind).name


def test_bitcast_keeps_the_bits():
    x = np.array([1.0, -2.5], np.float32)
    np.testing.assert_array_equal(
        Tensor(x).bitcast(dtypes.uint32).numpy(), x.view(np.uint32)
    )


@given(hnp.arrays(np.float32, SHAPES, elements=st.floats(-5, 5, width=32)))
@settings(max_examples=30)
def test_fused_expressions_match_numpy(x):
    t = Tensor(x)
    result = ((t * 2 + 1).maximum(t) - (t < 0).where(t, 0.5)).sum(axis=()) if x.ndim == 0 else (
        (t * 2 + 1).maximum(t) - (t < 0).where(t, 0.5)
    ).sum(axis=-1)
    value = np.maximum(x * 2 + 1, x) - np.where(x < 0, x, np.float32(0.5))
    expected = value if x.ndim == 0 else value.sum(-1)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)
