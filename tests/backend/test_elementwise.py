"""Elementwise operators, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor, dtypes

from .modes import Evaluate

Function = Callable[..., Tensor]
Reference = Callable[..., np.ndarray]

UNARY: dict[str, tuple[Function, Reference]] = {
    "abs": (lambda x: x.abs(), np.abs),
    "ceil": (lambda x: x.ceil(), np.ceil),
    "cos": (lambda x: x.cos(), np.cos),
    "exp": (lambda x: x.exp(), np.exp),
    "exp2": (lambda x: x.exp2(), np.exp2),
    "floor": (lambda x: x.floor(), np.floor),
    "neg": (lambda x: -x, np.negative),
    "relu": (lambda x: x.relu(), lambda x: np.maximum(x, 0)),
    "round": (lambda x: x.round(), np.round),
    "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x.astype(np.float64)))),
    "sign": (lambda x: x.sign(), np.sign),
    "sin": (lambda x: x.sin(), np.sin),
    "square": (lambda x: x.square(), np.square),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "trunc": (lambda x: x.trunc(), np.trunc),
}

POSITIVE: dict[str, tuple[Function, Reference]] = {
    "log": (lambda x: x.log(), np.log),
    "log2": (lambda x: x.log2(), np.log2),
    "reciprocal": (lambda x: x.reciprocal(), np.reciprocal),
    "rsqrt": (lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x)),
    "sqrt": (lambda x: x.sqrt(), np.sqrt),
}

BINARY: dict[str, tuple[Function, Reference]] = {
    "add": (lambda x, y: x + y, np.add),
    "divide": (lambda x, y: x / y, np.divide),
    "equal": (lambda x, y: x == y, np.equal),
    "floor_divide": (lambda x, y: x // y, np.floor_divide),
    "less": (lambda x, y: x < y, np.less),
    "less_equal": (lambda x, y: x <= y, np.less_equal),
    "maximum": (lambda x, y: x.maximum(y), np.maximum),
    "minimum": (lambda x, y: x.minimum(y), np.minimum),
    "multiply": (lambda x, y: x * y, np.multiply),
    "not_equal": (lambda x, y: x != y, np.not_equal),
    "remainder": (lambda x, y: x % y, np.remainder),
    "subtract": (lambda x, y: x - y, np.subtract),
}

BITWISE: dict[str, tuple[Function, Reference]] = {
    "and": (lambda x, y: x & y, np.bitwise_and),
    "or": (lambda x, y: x | y, np.bitwise_or),
    "xor": (lambda x, y: x ^ y, np.bitwise_xor),
}

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("name", UNARY)
def test_unary_operator(name: str, evaluate: Evaluate, rng: np.random.Generator) -> None:
    function, reference = UNARY[name]
    x = rng.uniform(-3, 3, (3, 5)).astype(np.float32)
    np.testing.assert_allclose(evaluate(function, x), reference(x), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_operator_on_positive_numbers(
    name: str, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    function, reference = POSITIVE[name]
    x = rng.uniform(0.1, 9, (3, 5)).astype(np.float32)
    np.testing.assert_allclose(evaluate(function, x), reference(x), rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operator_on_floats(
    name: str, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    function, reference = BINARY[name]
    x = rng.integers(-9, 9, (4, 3)).astype(np.float32)
    y = rng.choice([-2.5, -1.0, 0.5, 3.0], (4, 3)).astype(np.float32)
    np.testing.assert_allclose(evaluate(function, x, y), reference(x, y), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps_at_its_own_width(
    name: str, dtype: type, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    function, reference = BINARY[name]
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 9, dtype=dtype, endpoint=True)
    y = rng.integers(1, info.max, 9, dtype=dtype, endpoint=True)
    x[0], y[0] = info.max, info.max
    x[1] = info.min
    result = evaluate(function, x, y)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, reference(x, y))


@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint32, np.int64])
def test_bitwise_operator(
    name: str, dtype: type, evaluate: Evaluate, rng: np.random.Generator
) -> None:
    function, reference = BITWISE[name]
    x = rng.integers(0, 100, 12).astype(dtype)
    y = rng.integers(0, 100, 12).astype(dtype)
    np.testing.assert_array_equal(evaluate(function, x, y), reference(x, y))


def test_integer_division_by_zero_gives_zero(evaluate: Evaluate) -> None:
    x = np.array([5, -5, 0], np.int32)
    zero = np.zeros(3, np.int32)
    np.testing.assert_array_equal(evaluate(lambda a, b: a // b, x, zero), zero)
    np.testing.assert_array_equal(evaluate(lambda a, b: a % b, x, zero), zero)


def test_least_integer_divided_by_minus_one_wraps(evaluate: Evaluate) -> None:
    x = np.array([np.iinfo(np.int32).min], np.int32)
    y = np.array([-1], np.int32)
    np.testing.assert_array_equal(evaluate(lambda a, b: a // b, x, y), x)


def test_shapes_broadcast(evaluate: Evaluate, rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 1, 3), np.float32)
    y = rng.standard_normal((2, 1), np.float32)
    np.testing.assert_array_equal(evaluate(lambda a, b: a + b, x, y), x + y)


def test_where_chooses_by_condition(evaluate: Evaluate, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4), np.float32)
    result = evaluate(lambda a: (a > 0).where(a, 0.0), x)
    np.testing.assert_array_equal(result, np.where(x > 0, x, 0))


def test_nan_compares_as_ieee_says(evaluate: Evaluate) -> None:
    x = np.array([np.nan, 1.0, np.nan], np.float32)
    y = np.array([np.nan, np.nan, 0.0], np.float32)
    for function in (lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a == b):
        assert not evaluate(function, x, y).any()
    assert evaluate(lambda a, b: a != b, x, y).all()


def test_maximum_propagates_nan(evaluate: Evaluate) -> None:
    x = np.array([np.nan, 1.0], np.float32)
    y = np.array([1.0, np.nan], np.float32)
    assert np.isnan(evaluate(lambda a, b: a.maximum(b), x, y)).all()


def test_float_identities_are_not_assumed(evaluate: Evaluate) -> None:
    x = np.array([0.0, np.inf, np.nan, -0.0], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(evaluate(lambda a: a * 0.0, x), x * 0.0)
        np.testing.assert_array_equal(evaluate(lambda a: a - a, x), x - x)
        np.testing.assert_array_equal(evaluate(lambda a: a / a, x), x / x)
    signs = np.signbit(evaluate(lambda a: a + 0.0, x))
    np.testing.assert_array_equal(signs[[0, 1, 3]], [False, False, False])


def test_minus_zero_survives_movement_and_multiplication(evaluate: Evaluate) -> None:
    x = np.array([-0.0, 0.0], np.float32)
    np.testing.assert_array_equal(np.signbit(evaluate(lambda a: a * 1.0, x)), [True, False])


@pytest.mark.parametrize("target", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_float_to_int_truncates(target: type, evaluate: Evaluate) -> None:
    x = np.array([-3.7, -0.5, 0.5, 3.7, 100.9], np.float32)
    if np.dtype(target).kind == "u":
        x = np.abs(x)
    name = np.dtype(target).name
    result = evaluate(lambda a: a.cast(getattr(dtypes, name)), x)
    assert result.dtype == target
    np.testing.assert_array_equal(result, x.astype(target))


def test_float_to_int32_saturates_and_nan_gives_zero(evaluate: Evaluate) -> None:
    x = np.array([1e20, -1e20, np.inf, -np.inf, np.nan], np.float32)
    info = np.iinfo(np.int32)
    result = evaluate(lambda a: a.cast(dtypes.int32), x)
    np.testing.assert_array_equal(result, [info.max, info.min, info.max, info.min, 0])


def test_half_rounds_to_nearest_even(evaluate: Evaluate, rng: np.random.Generator) -> None:
    large, tiny = rng.uniform(-7e4, 7e4, 30), rng.uniform(-1e-7, 1e-7, 10)
    x = np.concatenate([large, tiny]).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(evaluate(lambda a: a.half().float(), x), expected)


def test_bfloat16_keeps_the_upper_half_rounded(evaluate: Evaluate) -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, -3.14159], np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    result = evaluate(lambda a: a.cast(dtypes.bfloat16).float(), x)
    np.testing.assert_array_equal(result, rounded.view(np.float32))
