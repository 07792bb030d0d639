"""Powers, the error function, hyperbolic and inverse functions: ulp by ulp, and their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tg_frontend import Tensor

DTYPES = [np.float32, np.float64]


def ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance from the exact results in units of the last place, where they are normal."""
    limits = np.finfo(actual.dtype)
    normal = (np.abs(exact) > limits.tiny) & (np.abs(exact) < limits.max)
    exact = np.where(normal, exact, 1)
    spacing = np.spacing(np.abs(exact).astype(actual.dtype)).astype(np.longdouble)
    return np.where(normal, np.abs(actual.astype(np.longdouble) - exact) / spacing, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_are_exact_to_two_ulp_however_large_the_exponent(dtype: type) -> None:
    rng = np.random.default_rng(1)
    base = np.concatenate([rng.uniform(0.01, 50, 500), rng.uniform(0.9, 1.1, 500)]).astype(dtype)
    exponent = np.concatenate([rng.uniform(-20, 20, 500), rng.uniform(-400, 400, 500)])
    exponent = exponent.astype(dtype)
    actual = Tensor(base).pow(Tensor(exponent)).numpy()
    with np.errstate(over="ignore"):
        exact = base.astype(np.longdouble) ** exponent.astype(np.longdouble)
    assert ulps(actual, exact).max() <= 2


def test_powers_of_special_values_are_those_of_c() -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, math.inf, -math.inf, math.nan, 1e-40, 3e38]
    base, exponent = (grid.ravel() for grid in np.meshgrid(values, values))
    base, exponent = base.astype(np.float32), exponent.astype(np.float32)
    actual = Tensor(base).pow(Tensor(exponent)).numpy()
    with np.errstate(all="ignore"):
        expected = np.power(base, exponent)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    has_sign = ~np.isnan(expected)
    assert np.array_equal(np.signbit(actual)[has_sign], np.signbit(expected)[has_sign])


@pytest.mark.parametrize(
    ("base", "exponent", "by_base", "by_exponent"),
    [
        (0.0, 2.7, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 0.3, math.inf, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 3.5, 3.5, 0.0),
        (2.0, 0.0, 0.0, math.log(2)),
        (2.0, 3.0, 12.0, 8 * math.log(2)),
        (-2.0, 3.0, 12.0, -8 * math.log(2)),
    ],
)
def test_gradient_of_a_power_where_its_formula_has_no_value(
    base: float, exponent: float, by_base: float, by_exponent: float
) -> None:
    x, y = Tensor([base]), Tensor([exponent])
    dx, dy = (x**y).sum().gradient(x, y)
    np.testing.assert_allclose([dx.item(), dy.item()], [by_base, by_exponent], rtol=1e-5)
    (alone,) = (x**exponent).sum().gradient(x, materialize_grads=True)
    np.testing.assert_allclose(alone.item(), by_base, rtol=1e-5)


RANGES = {
    "sinh": (np.sinh, -80, 80),
    "cosh": (np.cosh, -80, 80),
    "asinh": (np.arcsinh, -100, 100),
    "acosh": (np.arccosh, 1, 50),
    "atanh": (np.arctanh, -1, 1),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -20, 20),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", RANGES)
def test_function_is_exact_to_four_ulp(name: str, dtype: type) -> None:
    reference, low, high = RANGES[name]
    rng = np.random.default_rng(2)
    near = rng.uniform(max(low, -1e-3), min(high, 1.001), 500)
    x = np.concatenate([rng.uniform(low, high, 500), near]).astype(dtype)
    actual = getattr(Tensor(x), name)().numpy()
    assert ulps(actual, reference(x.astype(np.longdouble))).max() <= 4


@pytest.mark.parametrize("name", RANGES)
def test_function_of_special_values(name: str) -> None:
    reference = RANGES[name][0]
    x = np.array([0.0, -0.0, 1, -1, 2, 89, 1e30, math.inf, -math.inf, math.nan], np.float32)
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64)).astype(np.float32)
    actual = getattr(Tensor(x), name)().numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    assert np.signbit(actual[1]) == np.signbit(expected[1]) or np.isnan(expected[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_error_function_is_exact_to_three_ulp(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-7, 7, 500), rng.uniform(-1e-3, 1e-3, 100)]).astype(dtype)
    expected = np.array([math.erf(value) for value in x.astype(np.float64)])
    assert ulps(Tensor(x).erf().numpy(), expected).max() <= 3


def test_gradient_of_the_error_function() -> None:
    values = [0.0, -0.0, 0.5, 1.0, -1.5, 3.0, 9.0, math.inf]
    x = Tensor(np.array(values))
    (gradient,) = x.erf().sum().gradient(x)
    expected = [2 / math.sqrt(math.pi) * math.exp(-v * v) for v in values]
    np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-13)


@pytest.mark.parametrize(
    "name", ["sigmoid", "silu", "gelu", "erf", "softplus", "logsigmoid", "softsign", "hardswish",
             "sinh", "mish"]
)
def test_activation_of_bytes_is_that_of_floats(name: str) -> None:
    x = np.array([0, 1, 3, 80, 254], np.uint8)
    actual = getattr(Tensor(x), name)()
    expected = getattr(Tensor(x.astype(np.float32)), name)()
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_gradient_of_a_root_at_zero_is_zero() -> None:
    x = Tensor([[0.0, 0.0], [2.0, 2.0]])
    for function in (lambda t: t.std(1), lambda t: (t - t.mean(1, keepdim=True)).norm(2.0, 1)):
        assert function(x).sum().gradient(x)[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_softmin_of_bytes_is_that_of_floats() -> None:
    x = np.array([0, 1, 2], np.uint8)
    expected = Tensor(x.astype(np.float32)).softmin()
    np.testing.assert_array_equal(Tensor(x).softmin().numpy(), expected.numpy())
