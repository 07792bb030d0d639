"""Functions of one value and of two, over every float dtype; integers; special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tg_frontend import Tensor

from .compare import FLOATS, INTS, TOLERANCES, check, tensor_of, torch_tensor

ANY = (-3.0, 3.0)
POSITIVE = (0.05, 4.0)
ABOVE_ONE = (1.1, 4.0)
UNIT = (-0.95, 0.95)
PROBABILITY = (0.05, 0.95)

# name: (ours, torch's; None where the methods have one name, domain)
ONE_VALUE: dict[str, tuple[Any, Any, tuple[float, float]]] = {
    "abs": (None, None, ANY),
    "acos": (None, None, UNIT),
    "acosh": (None, None, ABOVE_ONE),
    "asin": (None, None, UNIT),
    "asinh": (None, None, ANY),
    "atan": (None, None, ANY),
    "atanh": (None, None, UNIT),
    "ceil": (None, None, ANY),
    "celu": (None, F.celu, ANY),
    "cos": (None, None, ANY),
    "cosh": (None, None, ANY),
    "elu": (None, F.elu, ANY),
    "erf": (None, None, ANY),
    "exp": (None, None, ANY),
    "exp2": (None, None, ANY),
    "floor": (None, None, ANY),
    "gelu": (None, lambda x: F.gelu(x, approximate="tanh"), ANY),
    "gelu_exact": (lambda x: x.gelu(approximate="none"), F.gelu, ANY),
    "hardsigmoid": (None, F.hardsigmoid, (-5, 5)),
    "hardswish": (None, F.hardswish, (-5, 5)),
    "hardtanh": (None, F.hardtanh, ANY),
    "leaky_relu": (None, F.leaky_relu, ANY),
    "log": (None, None, POSITIVE),
    "log10": (None, None, POSITIVE),
    "log2": (None, None, POSITIVE),
    "logsigmoid": (None, F.logsigmoid, ANY),
    "mish": (None, F.mish, ANY),
    "neg": (None, None, ANY),
    "quick_gelu": (None, lambda x: x * torch.sigmoid(1.702 * x), ANY),
    "reciprocal": (None, None, POSITIVE),
    "relu": (None, None, ANY),
    "relu6": (None, F.relu6, (-3, 9)),
    "round": (None, None, ANY),
    "rsqrt": (None, None, POSITIVE),
    "selu": (None, F.selu, ANY),
    "sigmoid": (None, None, ANY),
    "sign": (None, None, ANY),
    "silu": (None, F.silu, ANY),
    "sin": (None, None, ANY),
    "sinh": (None, None, ANY),
    "softplus": (None, F.softplus, ANY),
    "softsign": (None, F.softsign, ANY),
    "sqrt": (None, None, POSITIVE),
    "square": (None, None, ANY),
    "swish": (None, F.silu, ANY),
    "tan": (None, None, (-1.2, 1.2)),
    "tanh": (None, None, ANY),
    "trunc": (None, None, ANY),
    "isnan": (None, None, ANY),
    "isinf": (None, None, ANY),
    "isfinite": (None, None, ANY),
    "logical_not": (None, None, ANY),
    "leaky_relu_slope": (lambda x: x.leaky_relu(0.3), lambda x: F.leaky_relu(x, 0.3), ANY),
    "elu_alpha": (lambda x: x.elu(0.7), lambda x: F.elu(x, 0.7), ANY),
    "celu_alpha": (lambda x: x.celu(0.7), lambda x: F.celu(x, 0.7), ANY),
    "softplus_beta": (lambda x: x.softplus(2.0), lambda x: F.softplus(x, 2.0), ANY),
    "hardtanh_bounds": (
        lambda x: x.hardtanh(-0.5, 2.0), lambda x: F.hardtanh(x, -0.5, 2.0), ANY,
    ),
    "clamp": (lambda x: x.clamp(-1, 1.5), lambda x: x.clamp(-1, 1.5), ANY),
    "clamp_min": (lambda x: x.clamp(min=0.2), lambda x: x.clamp(min=0.2), ANY),
    "clip": (lambda x: x.clip(max=0.2), lambda x: x.clip(max=0.2), ANY),
    "power_2": (lambda x: x**2, lambda x: x**2, ANY),
    "power_3": (lambda x: x**3, lambda x: x**3, ANY),
    "power_half": (lambda x: x**0.5, lambda x: x**0.5, POSITIVE),
    "power_minus_2": (lambda x: x**-2, lambda x: x**-2, POSITIVE),
    "power_2.7": (lambda x: x**2.7, lambda x: x**2.7, POSITIVE),
    "power_0": (lambda x: x**0, lambda x: x**0, ANY),
    "power_of_2": (lambda x: 2**x, lambda x: 2**x, ANY),
    "number_minus": (lambda x: 3 - x, lambda x: 3 - x, ANY),
    "number_over": (lambda x: 3 / x, lambda x: 3 / x, POSITIVE),
    "number_modulo": (lambda x: 3 % x, lambda x: 3 % x, POSITIVE),
    "logit": (
        lambda x: (x / (1 - x)).log(), torch.logit, PROBABILITY,
    ),
    "masked_fill": (
        lambda x: x.masked_fill(x > 0, 7.0), lambda x: x.masked_fill(x > 0, 7.0), ANY,
    ),
}


def pair(name: str, ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Both functions; a method of the name where one is not given."""
    return (
        ours or (lambda *xs: getattr(xs[0], name)(*xs[1:])),
        theirs or (lambda *xs: getattr(xs[0], name)(*xs[1:])),
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ONE_VALUE)
def test_function_of_one_value(name: str, dtype: str, rng: np.random.Generator) -> None:
    ours, theirs, domain = ONE_VALUE[name]
    ours, theirs = pair(name, ours, theirs)
    x = rng.uniform(*domain, (3, 7))
    tolerance = wider(dtype)
    if dtype == "float64" and name in FLOAT32_CONSTANTS_IN_TORCH:
        tolerance = (1e-7, 1e-9)
    check(ours, theirs, x, dtype=dtype, tolerance=tolerance, gradient=name != "number_modulo")


FLOAT32_CONSTANTS_IN_TORCH = ("hardsigmoid", "celu_alpha")


def wider(dtype: str) -> tuple[float, float] | None:
    """16-bit floats: torch rounds inside composed functions once, we at each step."""
    relative, absolute = TOLERANCES[dtype]
    return (2 * relative, 2 * absolute) if dtype in ("float16", "bfloat16") else None


@pytest.mark.parametrize("name", [name for name in ONE_VALUE if ONE_VALUE[name][0] is None])
def test_function_of_bytes_is_computed_in_the_float(name: str) -> None:
    ours, theirs = pair(name, *ONE_VALUE[name][:2])
    x = np.array([0, 1, 2, 3, 4, 100, 200, 255], np.uint8)

    def reference(values: torch.Tensor) -> torch.Tensor:
        if name in INT_TO_INT:
            return theirs(values)
        return theirs(values.float())

    check(ours, reference, x, same_dtype=name not in ("leaky_relu", "elu"))


INT_TO_INT = {
    "abs", "ceil", "floor", "neg", "relu", "relu6", "round", "sign", "square", "trunc",
}


SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan,
    1e-40, -1e-40, 1e-30, 1e30, -1e30, 3.4e38, 88.0, 89.0, -88.0, -104.0, 1e-3, 20.0, 100.0, -100.0,
]
NOT_AT_SPECIAL = {
    "sign": "NaN stays NaN, as in numpy; torch gives 0",
    "quick_gelu": "no function of torch",
    "gelu": "torch gives NaN at infinity",
    "gelu_exact": "torch gives NaN at infinity",
    "number_modulo": "torch gives NaN where the divisor underflows",
}


@pytest.mark.parametrize("name", [n for n in ONE_VALUE if n not in NOT_AT_SPECIAL])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_function_of_special_values(name: str, dtype: str) -> None:
    ours, theirs = pair(name, *ONE_VALUE[name][:2])
    check(ours, theirs, np.array(SPECIAL), dtype=dtype, gradient=False,
          tolerance=(1e-5, 1e-7) if dtype == "float32" else None)


TWO_VALUES: dict[str, tuple[Any, Any, tuple[float, float]]] = {
    "add": (None, None, ANY),
    "sub": (None, None, ANY),
    "mul": (None, None, ANY),
    "div": (None, None, POSITIVE),
    "pow": (None, None, POSITIVE),
    "maximum": (None, None, ANY),
    "minimum": (None, None, ANY),
    "lt": (None, None, ANY),
    "le": (None, None, ANY),
    "gt": (None, None, ANY),
    "ge": (None, None, ANY),
    "eq": (None, None, ANY),
    "ne": (None, None, ANY),
    "isclose": (None, None, ANY),
    "mod": (None, lambda x, y: x.remainder(y), POSITIVE),
    "cmod": (None, lambda x, y: x.fmod(y), POSITIVE),
    "fmod": (None, None, POSITIVE),
    "floordiv": (None, lambda x, y: x.floor_divide(y), POSITIVE),
    "cdiv": (None, lambda x, y: x.div(y, rounding_mode="trunc"), POSITIVE),
    "div_floor": (
        lambda x, y: x.div(y, rounding_mode="floor"),
        lambda x, y: x.div(y, rounding_mode="floor"), ANY,
    ),
    "div_trunc": (
        lambda x, y: x.div(y, rounding_mode="trunc"),
        lambda x, y: x.div(y, rounding_mode="trunc"), ANY,
    ),
    "lerp": (lambda x, y: x.lerp(y, 0.3), lambda x, y: x.lerp(y, 0.3), ANY),
    "where": (lambda x, y: (x > y).where(x * 2, y), lambda x, y: (x * 2).where(x > y, y), ANY),
    "logaddexp": (None, None, ANY),
    "copysign": (None, None, ANY),
    "mse_loss": (None, F.mse_loss, ANY),
}
BROADCASTS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 4), (3, 1)), ((), (2, 3)), ((0, 3), (1, 3))]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TWO_VALUES)
def test_function_of_two_values(name: str, dtype: str, rng: np.random.Generator) -> None:
    ours, theirs, domain = TWO_VALUES[name]
    ours, theirs = pair(name, ours, theirs)
    if name in ("floordiv", "cdiv", "div_floor", "div_trunc"):
        # torch has no gradient of floor_divide; ours is the zero of a function that is flat
        check(ours, theirs, rng.uniform(*domain, (3, 4)), rng.uniform(*POSITIVE, (3, 4)),
              dtype=dtype, gradient=False)
        return
    for left, right in BROADCASTS if dtype == "float32" else BROADCASTS[1:2]:
        if name == "mse_loss" and left != right:
            continue
        x, y = rng.uniform(*domain, left), rng.uniform(*domain, right)
        check(ours, theirs, x, y, dtype=dtype, tolerance=wider(dtype))


@pytest.mark.parametrize(
    "name",
    ["add", "mul", "div", "maximum", "minimum", "lt", "le", "eq", "ne", "pow", "mod", "cmod",
     "logaddexp", "copysign"],
)
def test_function_of_two_special_values(name: str) -> None:
    ours, theirs = pair(name, *TWO_VALUES[name][:2])
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, math.inf, -math.inf, math.nan]
    # a remainder is only as exact as the quotient, which these leave far behind
    values += [] if name in ("mod", "cmod") else [1e-40, 3e38]
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    check(ours, theirs, x, y, gradient=False)


def test_allclose(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, 5).astype(np.float32)
    for y in (x + 1e-7, x * 1.01, np.where(x > 0, x, np.nan).astype(np.float32)):
        for options in ({}, {"rtol": 0.1}, {"equal_nan": True}):
            mine = Tensor(x).allclose(Tensor(y), **options)
            assert mine == torch.from_numpy(x).allclose(torch.from_numpy(y), **options)


INTEGER_FUNCTIONS = {
    "add": (lambda x, y: x + y, None),
    "sub": (lambda x, y: x - y, None),
    "mul": (lambda x, y: x * y, None),
    "div": (lambda x, y: x / (y * 0 + 3), None),
    "floordiv": (lambda x, y: x // (y | 1), None),
    "mod": (lambda x, y: x % (y | 1), None),
    "cdiv": (lambda x, y: x.cdiv(y | 1), lambda x, y: x.div(y | 1, rounding_mode="trunc")),
    "idiv": (lambda x, y: x.idiv(y | 1), lambda x, y: x.div(y | 1, rounding_mode="trunc")),
    "cmod": (lambda x, y: x.cmod(y | 1), lambda x, y: x.fmod(y | 1)),
    "maximum": (lambda x, y: x.maximum(y), None),
    "minimum": (lambda x, y: x.minimum(y), None),
    "and": (lambda x, y: x & y, None),
    "or": (lambda x, y: x | y, None),
    "xor": (lambda x, y: x ^ y, None),
    "bitwise_and": (lambda x, y: x.bitwise_and(y), None),
    "bitwise_or": (lambda x, y: x.bitwise_or(y), None),
    "bitwise_xor": (lambda x, y: x.bitwise_xor(y), None),
    "lshift": (lambda x, y: x << 2, None),
    "rshift": (lambda x, y: x >> 2, None),
    "not": (lambda x, y: ~x, None),
    "bitwise_not": (lambda x, y: x.bitwise_not(), None),
    "neg": (lambda x, y: -x, None),
    "abs": (lambda x, y: x.abs(), None),
    "sign": (lambda x, y: x.sign(), None),
    "square": (lambda x, y: x.square(), None),
    "power": (lambda x, y: x**3, None),
    "lt": (lambda x, y: x < y, None),
    "le": (lambda x, y: x <= y, None),
    "eq": (lambda x, y: x.eq(y), None),
    "clamp": (lambda x, y: x.clamp(3, 60), None),
    "relu": (lambda x, y: x.relu(), None),
    "where": (lambda x, y: (x > y).where(x, y), lambda x, y: x.where(x > y, y)),
    "exp": (lambda x, y: (x % 8).exp(), None),
    "sqrt": (lambda x, y: (x & 63).sqrt(), None),
    "sigmoid": (lambda x, y: x.sigmoid(), None),
}


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_function_of_integers(name: str, dtype: str, rng: np.random.Generator) -> None:
    ours, theirs = INTEGER_FUNCTIONS[name]
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (4, 6), dtype=dtype, endpoint=True)
    y = rng.integers(limits.min, limits.max, (4, 6), dtype=dtype, endpoint=True)
    x.flat[:2] = limits.min, limits.max
    check(ours, theirs or ours, x, y, tolerance=(2e-5, 1e-6))


def test_each_pair_of_dtypes_is_promoted_as_torch_does_where_a_float_meets_an_int() -> None:
    for real in ("float64", "float32", "float16"):
        for whole in INTS:
            x = np.ones(2, real)
            y = np.ones(2, whole)
            check(lambda a, b: a + b, lambda a, b: a + b, x, y, dtype=None, gradient=False)


CASTS = ("float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
         "bool")


@pytest.mark.parametrize("target", CASTS)
@pytest.mark.parametrize("source", CASTS)
def test_cast_of_values_in_range(source: str, target: str) -> None:
    values = torch_tensor(np.array([0.0, 1.0, 2.0, 3.0, 100.0, 120.0]))
    values = values.to(getattr(torch, source))
    ours = tensor_of(values).cast(target)
    assert np.array_equal(
        ours.cast("float64").numpy(), values.to(getattr(torch, target)).double().numpy()
    )


@pytest.mark.parametrize("name", ["half", "bfloat16", "float", "double", "int", "long", "short",
                                  "bool"])
def test_cast_by_name(name: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-50, 50, (50,)).astype(np.float32)
    theirs = getattr(torch.from_numpy(x), name)()
    ours = getattr(Tensor(x), name)()
    assert np.array_equal(ours.cast("float64").numpy(), theirs.double().numpy())


def test_bitcast_reads_the_same_bits(rng: np.random.Generator) -> None:
    x = rng.standard_normal(20).astype(np.float32)
    check(lambda t: t.bitcast("int32"), lambda t: t.view(torch.int32), x, gradient=False)
