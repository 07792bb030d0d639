"""Promise 14: a Python number that the dtype of the tensor cannot hold is an error that says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes
from tg_ir.errors import LiteralError

from .programs import Run

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]

USES: dict[str, Callable[[Tensor, int], object]] = {
    "add": lambda x, n: x + n,
    "add on the right": lambda x, n: n + x,
    "subtract": lambda x, n: x - n,
    "subtract on the right": lambda x, n: n - x,
    "multiply": lambda x, n: x * n,
    "divide": lambda x, n: x // n,
    "remainder": lambda x, n: x % n,
    "and": lambda x, n: x & n,
    "xor on the right": lambda x, n: n ^ x,
    "less": lambda x, n: x < n,
    "equal": lambda x, n: x == n,
    "maximum": lambda x, n: x.maximum(n),
    "where": lambda x, n: (x == x).where(x, n),
    "clamp": lambda x, n: x.clamp(n, n),
    "masked_fill": lambda x, n: x.masked_fill(x == x, n),
    "assign": lambda x, n: x.assign(n),
    "setitem": lambda x, n: x.__setitem__(0, n),
    "setitem by mask": lambda x, n: x.__setitem__(x == x, n),
    "in place": lambda x, n: x.__iadd__(n),
    "full_like": lambda x, n: x.full_like(n),
    "full": lambda x, n: Tensor.full((2,), n, dtype=x.dtype),
    "number": lambda x, n: Tensor(n, dtype=x.dtype),
    "list": lambda x, n: Tensor([0, n], dtype=x.dtype),
    "arange": lambda x, n: Tensor.arange(n, n + 1, dtype=x.dtype),
}


def ones(dtype: type) -> Tensor:
    """Two ones of a dtype."""
    return Tensor(np.ones(2, dtype))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_number_beyond_the_dtype_is_refused_with_its_range(use: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    name = np.dtype(dtype).name
    for number in (int(info.max) + 1, int(info.min) - 1):
        with pytest.raises(LiteralError, match=f"{name} cannot hold {number}") as raised:
            USES[use](ones(dtype), number)
        assert f"{info.min}..{info.max}" in str(raised.value)


@pytest.mark.parametrize("use", sorted(set(USES) - {"arange"}))
@pytest.mark.parametrize("dtype", INTEGERS)
def test_ends_of_the_range_are_accepted(use: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    for number in (int(info.max), int(info.min)):
        USES[use](ones(dtype), number)


@settings(max_examples=25)
@given(
    dtype=st.sampled_from(INTEGERS),
    number=st.integers(-(2**65), 2**65) | st.integers(-70000, 70000),
)
def test_number_is_added_if_it_fits_and_refused_if_not(
    run: Run, dtype: type, number: int
) -> None:
    info = np.iinfo(dtype)
    x = np.array([0, 1, 100], dtype)
    if int(info.min) <= number <= int(info.max):
        with np.errstate(over="ignore"):
            expected = x + np.array(number, dtype)
        np.testing.assert_array_equal(run(lambda x: x + number, x)[0], expected)
    else:
        with pytest.raises(LiteralError, match="cannot hold"):
            run(lambda x: x + number, x)


def test_uint8_and_300(run: Run) -> None:
    with pytest.raises(LiteralError, match=r"uint8 cannot hold 300 \(0\.\.255\)"):
        run(lambda x: x + 300, np.ones(2, np.uint8))


@pytest.mark.parametrize(
    ("name", "number"), [("float16", 70000), ("float16", 1e6), ("float32", 1e39)]
)
def test_number_beyond_a_float_is_refused(name: str, number: float) -> None:
    with pytest.raises(LiteralError, match=f"{name} cannot hold"):
        Tensor([1.0], dtype=getattr(dtypes, name)) + number


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 1e-50, 0.1, 10])
def test_float_may_lose_digits_and_be_infinite(number: float) -> None:
    result = (Tensor([0.0]) + number).numpy()
    np.testing.assert_array_equal(result, np.float32([number]))


@pytest.mark.parametrize("use", [lambda x: x.assign(1.5), lambda x: x.__setitem__(0, 1.5)])
def test_fraction_does_not_fit_an_int_tensor_that_is_written_to(
    use: Callable[[Tensor], object],
) -> None:
    with pytest.raises(LiteralError, match=r"int32 cannot hold 1\.5.*not a whole number"):
        use(ones(np.int32))


def test_fraction_makes_a_float_of_an_int_tensor(run: Run) -> None:
    result = run(lambda x: x + 1.5, np.int32([1, 2]))[0]
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [2.5, 3.5])
