"""Promise 9: `//`, `%` round down, `cdiv`, `cmod` towards zero; by zero gives 0; nothing traps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes

from .programs import Run, assert_same_floats

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]


def quotients(x: int, y: int) -> tuple[int, int, int, int]:
    """Floor quotient and remainder, truncating quotient and remainder, before wrapping."""
    if y == 0:
        return 0, 0, 0, 0
    towards_zero = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return x // y, x % y, towards_zero, x - towards_zero * y


def expected_of(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """`quotients` of arrays, wrapped at their width."""
    info = np.iinfo(x.dtype)
    columns = zip(*(quotients(int(a), int(b)) for a, b in zip(x, y, strict=True)), strict=True)
    size = 1 << info.bits
    least = int(info.min)
    return [np.array([(v - least) % size + least for v in c], x.dtype) for c in columns]


def four_operators(x: Tensor, y: Tensor | int) -> tuple[Tensor, ...]:
    """Both quotients and both remainders."""
    return x // y, x % y, x.cdiv(y), x.cmod(y)


def numbers(dtype: type) -> np.ndarray:
    """Zero, the ends of the range, and small numbers of both signs."""
    info = np.iinfo(dtype)
    chosen = [0, 1, 2, 3, 5, 8, 100, info.max, info.max - 1, info.min, info.min + 1]
    negative = [-1, -2, -3, -7, -8, -100] if info.min < 0 else [4, 6, 64]
    return np.array([int(number) for number in chosen + negative], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_pairs_of_integers(dtype: type, run: Run) -> None:
    chosen = numbers(dtype)
    x, y = np.repeat(chosen, len(chosen)), np.tile(chosen, len(chosen))
    for actual, expected in zip(run(four_operators, x, y), expected_of(x, y), strict=True):
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, expected)


@settings(max_examples=20)
@given(dtype=st.sampled_from(INTEGERS), data=st.data())
def test_any_integers(run: Run, dtype: type, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    integers = st.integers(int(info.min), int(info.max)) | st.integers(0, 12)
    x = np.array(data.draw(st.lists(integers, min_size=8, max_size=8)), dtype)
    y = np.array(data.draw(st.lists(integers, min_size=8, max_size=8)), dtype)
    for actual, expected in zip(run(four_operators, x, y), expected_of(x, y), strict=True):
        np.testing.assert_array_equal(actual, expected)


@settings(max_examples=40)
@given(dtype=st.sampled_from(INTEGERS), data=st.data())
def test_any_python_number_as_divisor(run: Run, dtype: type, data: st.DataObject) -> None:
    info = np.iinfo(dtype)
    powers = [sign * (1 << k) for k in range(info.bits) for sign in (1, -1)]
    fitting = [power for power in powers if info.min <= power <= info.max]
    divisor = data.draw(
        st.sampled_from([0, *fitting])
        | st.integers(int(info.min), int(info.max))
        | st.integers(max(-20, int(info.min)), 20)
    )
    x = numbers(dtype)
    expected = expected_of(x, np.full_like(x, divisor))
    for actual, wanted in zip(run(lambda x: four_operators(x, divisor), x), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_python_number_divided_by_a_tensor(dtype: type, run: Run) -> None:
    y = numbers(dtype)
    floor, remainder = run(lambda y: (100 // y, 100 % y), y)
    expected = expected_of(np.full_like(y, 100), y)
    np.testing.assert_array_equal(floor, expected[0])
    np.testing.assert_array_equal(remainder, expected[1])


def test_chains_of_divisions(run: Run) -> None:
    x = np.arange(-60, 60, dtype=np.int32)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return (
            x // 3 // 4,
            x % 12 % 4,
            x // 4 * 4 + x % 4,
            (x * 6 + 3) // 6,
            (x * 6 + 3) % 6,
            x.cdiv(3).cdiv(4),
            (x // -5) % -3,
        )

    expected = (
        x // 12,
        x % 4,
        x,
        x,
        np.full_like(x, 3),
        np.trunc(x / 12).astype(np.int32),
        (x // -5) % -3,
    )
    for actual, wanted in zip(run(program, x), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_constants_divide_as_tensors_do(dtype: type) -> None:
    target = getattr(dtypes, np.dtype(dtype).name)
    least = int(np.iinfo(dtype).min)
    for x, y in [(7, 0), (-7, 2), (7, -2), (least, -1), (least, 3), (-1, least)]:
        left, right = Tensor(x, dtype=target), Tensor(y, dtype=target)
        actual = [int(result.item()) for result in four_operators(left, right)]
        expected = expected_of(np.array([x], dtype), np.array([y], dtype))
        assert actual == [int(value[0]) for value in expected]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_division_of_floats_is_that_of_numpy(dtype: type, run: Run) -> None:
    chosen = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 7.5, -7.5, 3.0, np.inf, -np.inf, np.nan], dtype)
    x, y = np.repeat(chosen, len(chosen)), np.tile(chosen, len(chosen))
    with np.errstate(all="ignore"):
        expected = x // y, x % y
    floor, remainder = run(lambda x, y: (x // y, x % y), x, y)
    assert_same_floats(floor, expected[0])
    assert_same_floats(remainder, expected[1])


def test_true_division_of_integers_gives_floats(run: Run) -> None:
    x = np.int32([7, -7, 0, 1])
    result = run(lambda x: x / 2, x)[0]
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, np.float32([3.5, -3.5, 0, 0.5]))
