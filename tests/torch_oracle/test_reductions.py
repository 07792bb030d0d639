"""Reductions along one axis, several and all, kept or not, with NaN, infinities, empty and 0-d."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tg_frontend import Tensor

from .compare import FLOATS, INTS, Function, assert_same, check, tensor_of, torch_tensor

AXES: list[Any] = [None, 0, 1, -1, (0, 2), (0, 1, 2)]


def over(name: str, axis: Any, keepdim: bool, **options: Any) -> tuple[Function, Function]:
    """A reduction in both libraries; torch's has another form where all axes are meant."""

    def ours(x: Tensor) -> Any:
        return getattr(x, name)(axis, keepdim, **options)

    def theirs(x: torch.Tensor) -> Any:
        dims = tuple(range(x.ndim)) if axis is None else axis
        if name == "logsumexp" and not x.ndim:
            return x.clone()
        return getattr(x, name)(dim=dims, keepdim=keepdim, **options)

    return ours, theirs


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "logsumexp", "amax", "amin"])
def test_reduction(name: str, axis: Any, keepdim: bool, rng: np.random.Generator) -> None:
    ours, theirs = over(name, axis, keepdim)
    if name in ("amax", "amin"):
        ours = over(name[1:], axis, keepdim)[0]
    check(ours, theirs, rng.uniform(-2, 2, (3, 4, 5)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "logsumexp", "prod", "amax", "amin"])
def test_reduction_of_each_float(name: str, dtype: str, rng: np.random.Generator) -> None:
    ours, theirs = over(name, 1, False)
    if name in ("amax", "amin"):
        ours = over(name[1:], 1, False)[0]
    check(ours, theirs, rng.uniform(-2, 2, (4, 7)), dtype=dtype)


@pytest.mark.parametrize("correction", [0, 1, 2])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_statistics_with_a_correction(
    name: str, correction: int, rng: np.random.Generator
) -> None:
    def theirs(x: torch.Tensor) -> Any:
        function = getattr(torch, name)
        return function(x, dim=1, correction=correction)

    check(lambda x: getattr(x, name)(1, correction=correction), theirs, rng.uniform(-2, 2, (3, 6)))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_product_with_and_without_zeros(
    axis: Any, keepdim: bool, rng: np.random.Generator
) -> None:
    for zeros in (0, 1, 2):
        x = rng.uniform(0.5, 2, (3, 4))
        x.flat[: zeros * 5 : 5] = 0
        if axis is None:
            check(lambda t: t.prod(), lambda t: t.prod(), x)
        else:
            check(lambda t: t.prod(axis, keepdim), lambda t: t.prod(axis, keepdim), x)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_of_an_extreme(name: str, axis: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-3, 3, (4, 6)).astype(np.float32)  # with ties: the first counts
    for keepdim in (False, True):
        if axis is None and keepdim:
            continue
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdim)
        ours = getattr(Tensor(x), name)(axis, keepdim)
        assert np.array_equal(ours.numpy(), expected)
        check(
            lambda t, k=keepdim: getattr(t, name)(axis, k),
            lambda t, k=keepdim: getattr(t, name)(axis, k),
            rng.permutation(24).reshape(4, 6).astype(np.float32), gradient=False, same_dtype=False,
        )


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "any", "all", "argmax"])
def test_reduction_of_integers(name: str, dtype: str, rng: np.random.Generator) -> None:
    x = rng.integers(0, 2 if dtype == "bool" else 4, (3, 5)).astype(dtype)
    if name == "mean":
        check(lambda t: t.mean(1), lambda t: t.float().mean(1), x)
        return
    if name == "argmax":
        assert np.array_equal(Tensor(x).argmax(1).numpy(), x.argmax(1))
        return
    ours = (lambda t: getattr(t, name.removeprefix("a"))(1)) if name[0] == "a" and name[1] == "m" \
        else (lambda t: getattr(t, name)(1))
    # sums of narrow ints are int32 here and int64 in torch
    keeps = name in ("amax", "amin")
    check(ours, lambda t: getattr(t, name)(1), x, same_dtype=keeps)


SPECIAL_ROWS = [
    [1.0, math.nan, 2.0], [math.inf, 1.0, -math.inf], [math.inf, math.inf, 1.0],
    [-math.inf, -math.inf, -math.inf], [3e38, 3e38, 1.0], [0.0, -0.0, 0.0], [math.nan] * 3,
    [math.inf, math.nan, 0.0],
]


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "amin", "logsumexp", "any", "all", "argmax", "argmin"]
)
def test_reduction_of_special_values(name: str) -> None:
    x = np.array(SPECIAL_ROWS)
    ours = name.removeprefix("a") if name in ("amax", "amin") else name
    check(lambda t: getattr(t, ours)(1), lambda t: getattr(t, name)(1), x, gradient=False,
          same_dtype=False)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_special_values(name: str) -> None:
    check(lambda t: getattr(t, name)(1), lambda t: getattr(t, name)(1), np.array(SPECIAL_ROWS),
          gradient=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax(name: str, axis: int, dtype: str, rng: np.random.Generator) -> None:
    theirs = torch.nn.functional.softmin if name == "softmin" else getattr(torch, name)
    check(lambda t: getattr(t, name)(axis), lambda t: theirs(t, dim=axis),
          rng.uniform(-4, 4, (3, 4, 5)), dtype=dtype)


def test_softmax_of_large_values(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (3, 5)) * 1e4
    for name in ("softmax", "log_softmax", "logsumexp"):
        check(lambda t, n=name: getattr(t, n)(1), lambda t, n=name: getattr(t, n)(1), x)


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all", "logsumexp"])
def test_reduction_of_an_empty_tensor(name: str, axis: Any) -> None:
    if (name in ("prod", "logsumexp") and isinstance(axis, tuple)) or (
        name == "logsumexp" and axis is None
    ):
        return
    x = np.zeros((0, 3), np.float32)

    def theirs(t: torch.Tensor) -> Any:
        return getattr(t, name)() if axis is None else getattr(t, name)(axis)

    check(lambda t: getattr(t, name)(axis), theirs, x)


@pytest.mark.parametrize(
    "name",
    ["sum", "prod", "mean", "max", "min", "any", "all", "argmax", "argmin", "logsumexp", "softmax",
     "log_softmax", "cumsum", "cumprod", "var", "std"],
)
def test_reduction_of_a_scalar(name: str) -> None:
    takes_axis = name in ("logsumexp", "softmax", "log_softmax", "cumsum", "cumprod")
    arguments = (0,) if takes_axis else ()
    if name in ("var", "std"):  # torch warns of too few degrees of freedom
        assert np.isnan(getattr(Tensor(2.5), name)().item())
        assert getattr(Tensor(2.5), name)(correction=0).item() == 0
        return
    check(lambda t: getattr(t, name)(*arguments), lambda t: getattr(t, name)(*arguments),
          np.array(2.5), same_dtype=False)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5, math.inf])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)], ids=str)
def test_norm(p: float, axis: Any, rng: np.random.Generator) -> None:
    x = rng.uniform(0.1, 2, (3, 4)) * rng.choice([-1, 1], (3, 4))
    for keepdim in (False, True):
        check(lambda t, k=keepdim: t.norm(p, axis, k),
              lambda t, k=keepdim: torch.linalg.vector_norm(t, p, axis, k), x)


def test_norm_of_values_whose_squares_overflow_or_vanish() -> None:
    for scale in (1e30, 1e-30):
        x = np.array([3.0, 4.0], np.float32) * np.float32(scale)
        assert np.isclose(Tensor(x).norm().item(), 5 * scale, rtol=1e-6)


def test_gradient_of_roots_at_zero_is_zero() -> None:
    x = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 2.0]])
    check(lambda t: t.std(1), lambda t: t.std(1), x)
    for p in (1.0, 2.0, 3.0):
        check(lambda t, q=p: t.norm(q, 1), lambda t, q=p: torch.linalg.vector_norm(t, q, 1), x)
    check(lambda t: t.normalize(dim=1), lambda t: torch.nn.functional.normalize(t, dim=1), x)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_normalize(p: float, rng: np.random.Generator) -> None:
    x = rng.uniform(0.1, 2, (3, 4, 2))
    check(lambda t: t.normalize(p, 1), lambda t: torch.nn.functional.normalize(t, p, 1), x)


def test_sum_and_product_with_a_dtype(rng: np.random.Generator) -> None:
    x = rng.integers(0, 100, (4, 50)).astype(np.uint8)
    check(lambda t: t.sum(1, dtype="int64"), lambda t: t.sum(1, dtype=torch.int64), x)
    check(lambda t: t.sum(1, dtype="float32"), lambda t: t.sum(1, dtype=torch.float32), x)
    check(lambda t: t.sum(1, dtype="uint8"), lambda t: t.sum(1, dtype=torch.uint8), x)


def test_sums_of_halves_are_accumulated_in_float32() -> None:
    x = torch_tensor(np.full((1, 4096), 1.0), "float16")
    x[0, 0] = 2048
    assert tensor_of(x).sum(1).item() == x.float().sum(1).half().item()


def test_equal_elements_share_the_gradient_of_an_extreme(rng: np.random.Generator) -> None:
    x = rng.integers(0, 3, (4, 9)).astype(np.float32)
    for name in ("amax", "amin"):
        check(lambda t, n=name: getattr(t, n[1:])(1), lambda t, n=name: getattr(t, n)(1), x)
        check(lambda t, n=name: getattr(t, n[1:])(), lambda t, n=name: getattr(t, n)(), x)


def test_mean_of_large_values_does_not_overflow_in_half() -> None:
    x = torch_tensor(np.full((8,), 6e4), "float16")
    assert_same(tensor_of(x).mean(), x.mean())


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scan(name: str, axis: int, rng: np.random.Generator) -> None:
    def theirs(t: torch.Tensor) -> torch.Tensor:
        result = getattr(t, name)(axis)
        return result.values if name in ("cummax", "cummin") else result

    check(lambda t: getattr(t, name)(axis), theirs, rng.uniform(-2, 2, (3, 4, 5)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "logcumsumexp"])
def test_scan_of_each_float(name: str, dtype: str, rng: np.random.Generator) -> None:
    if name == "logcumsumexp" and dtype in ("float16", "bfloat16"):
        dtype = "float32"

    def theirs(t: torch.Tensor) -> torch.Tensor:
        result = getattr(t, name)(1)
        return result.values if name == "cummax" else result

    check(lambda t: getattr(t, name)(1), theirs, rng.uniform(-1.5, 1.5, (3, 9)), dtype=dtype)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_scan_of_special_values(name: str) -> None:
    def theirs(t: torch.Tensor) -> torch.Tensor:
        result = getattr(t, name)(1)
        return result.values if name in ("cummax", "cummin") else result

    rows = np.array([*SPECIAL_ROWS, [0.0, 1000.0, -5.0], [-1000.0, 0.0, 1000.0]])
    check(lambda t: getattr(t, name)(1), theirs, rows, gradient=False)


def test_gradient_of_logcumsumexp_over_a_wide_range() -> None:
    x = np.array([[0.0, 50.0, -40.0, 120.0, 119.0, 300.0]])
    check(lambda t: t.logcumsumexp(1), lambda t: t.logcumsumexp(1), x)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_gradient_of_a_running_product_with_zeros(
    zeros: int, rng: np.random.Generator
) -> None:
    x = rng.uniform(0.5, 2, (2, 6))
    x[:, 1 : 1 + 2 * zeros : 2] = 0
    check(lambda t: t.cumprod(1), lambda t: t.cumprod(1), x)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scan_of_integers(name: str, dtype: str, rng: np.random.Generator) -> None:
    def theirs(t: torch.Tensor) -> torch.Tensor:
        result = getattr(t, name)(1)
        return result.values if name in ("cummax", "cummin") else result

    x = rng.integers(0, 3, (3, 7)).astype(dtype)
    check(lambda t: getattr(t, name)(1), theirs, x, same_dtype=False)


def test_scan_of_an_empty_axis() -> None:
    for name in ("cumsum", "cumprod"):
        check(lambda t, n=name: getattr(t, n)(1), lambda t, n=name: getattr(t, n)(1),
              np.zeros((2, 0), np.float32))
