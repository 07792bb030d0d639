"""Promise 8: integers wrap as two's complement at their own width, at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes

from .programs import Run

Function = Callable[..., Any]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
SIGNED = INTEGERS[::2]


def extremes(dtype: type) -> np.ndarray:
    """The least and largest numbers, those around zero and half, and some others."""
    info = np.iinfo(dtype)
    half = int(info.max) // 2
    chosen = [info.min, info.min + 1, 0, 1, 2, 3, 7, half, half + 1, info.max - 1, info.max]
    below = [-1, -2, -3, -half] if info.min < 0 else [half + 2, 100]
    return np.array([int(number) for number in chosen + below], dtype)


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Every extreme with every other."""
    numbers = extremes(dtype)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


# one text for tensors and arrays
STEPS: dict[str, Function] = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "-x": lambda x, y: -x,
    "~x": lambda x, y: ~x,
    "x & y": lambda x, y: x & y,
    "x | y": lambda x, y: x | y,
    "x ^ y": lambda x, y: x ^ y,
    "x + 1": lambda x, y: x + 1,
    "x * 3 - 100": lambda x, y: x * 3 - 100,
    "100 - x": lambda x, y: 100 - x,
    "(x + y) * x - y": lambda x, y: (x + y) * x - y,
    "x + 1 - 1": lambda x, y: (x + 1) - 1,
    "x + 100 + 100": lambda x, y: (x + 100) + 100,
    "x * 16 * 16": lambda x, y: (x * 16) * 16,
    "x + 1 < x": lambda x, y: x + 1 < x,
    "x + 1 > y": lambda x, y: x + 1 > y,
    "x - 1 > x": lambda x, y: x - 1 > x,
    "x + 100 < y + 100": lambda x, y: x + 100 < y + 100,
    "x * 2 == y * 2": lambda x, y: x * 2 == y * 2,
    "x + y == x": lambda x, y: x + y == x,
    "x - y < 0": lambda x, y: x - y < 0,
    "-x < 0": lambda x, y: -x < 0,
    "x * x >= 0": lambda x, y: x * x >= 0,
    "(x + y) // 2": lambda x, y: (x + y) // 2,
    "(x * 2) // 2": lambda x, y: (x * 2) // 2,
    "(x * 6) % 3": lambda x, y: (x * 6) % 3,
    "(x + 8) // 8": lambda x, y: (x + 8) // 8,
    "(x + y) >> 1": lambda x, y: (x + y) >> 1,
    "(x << 1) >> 1": lambda x, y: (x << 1) >> 1,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", STEPS)
def test_step_wraps_at_the_width_of_the_dtype(name: str, dtype: type, run: Run) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = STEPS[name](x, y)
    result = run(STEPS[name], x, y)[0]
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shift_by_the_width_or_more_leaves_zero_or_the_sign(dtype: type, run: Run) -> None:
    width = np.iinfo(dtype).bits
    x = np.repeat(extremes(dtype), 5)
    count = np.resize(np.array([0, 1, width - 1, width, width + 5], dtype), len(x))
    left, right = run(lambda x, n: (x << n, x >> n), x, count)
    shifts = [(int(value), int(n)) for value, n in zip(x, count, strict=True)]
    expected = [wrapped(value << n, dtype) if n < width else 0 for value, n in shifts]
    np.testing.assert_array_equal(left, np.array(expected, dtype))
    np.testing.assert_array_equal(right, np.array([value >> n for value, n in shifts], dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shift_by_a_python_number_of_the_width_or_more(dtype: type, run: Run) -> None:
    width = np.iinfo(dtype).bits
    x = extremes(dtype)
    left, right, last = run(lambda x: (x << width, x >> (width + 3), x >> (width - 1)), x)
    sign = np.array([-1 if value < 0 else 0 for value in x], dtype)
    np.testing.assert_array_equal(left, np.zeros_like(x))
    np.testing.assert_array_equal(right, sign)
    np.testing.assert_array_equal(last, [int(value) >> (width - 1) for value in x])


def wrapped(value: int, dtype: type) -> int:
    """`value` modulo the range of the dtype."""
    info = np.iinfo(dtype)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


@pytest.mark.parametrize("dtype", SIGNED)
def test_absolute_value_of_the_least_number_is_itself(dtype: type, run: Run) -> None:
    x = extremes(dtype)
    np.testing.assert_array_equal(run(lambda x: x.abs(), x)[0], np.abs(x))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_in_place_steps_wrap(dtype: type, run: Run) -> None:
    def program(x: Tensor) -> Tensor:
        x += 100
        x *= 3
        x -= 50
        return x

    x = extremes(dtype)
    expected = ((x + dtype(100)) * dtype(3) - dtype(50)).astype(dtype)
    np.testing.assert_array_equal(run(program, x)[0], expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_in_the_dtype_wrap(dtype: type, run: Run) -> None:
    x = extremes(dtype)
    target = getattr(dtypes, np.dtype(dtype).name)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(dtype=target), x.prod(), x.max()

    total, product, largest = run(program, x)
    assert total == wrapped(sum(map(int, x)), dtype)
    assert product == wrapped(int(np.prod(x.astype(object))), dtype)
    assert largest == x.max()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_scalar_tensors_made_of_numbers_wrap_too(dtype: type) -> None:
    info = np.iinfo(dtype)
    target = getattr(dtypes, np.dtype(dtype).name)
    largest = Tensor(int(info.max), dtype=target)
    least = Tensor(int(info.min), dtype=target)
    assert (largest + 1).item() == info.min
    assert (least - 1).item() == info.max
    assert (largest + 1 < largest).item()
    assert (largest * 2).item() == wrapped(2 * int(info.max), dtype)
    assert (-least).item() == info.min


# ---- any expression


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Function:
    """A function of two tensors or arrays of one int dtype."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        number = draw(st.integers(0, 100))
        return draw(st.sampled_from([lambda x, y: x, lambda x, y: y, lambda x, y: x * 0 + number]))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    number = draw(st.integers(1, 100))
    choices: list[Function] = [
        lambda x, y: left(x, y) + right(x, y),
        lambda x, y: left(x, y) - right(x, y),
        lambda x, y: left(x, y) * right(x, y),
        lambda x, y: left(x, y) ^ right(x, y),
        lambda x, y: left(x, y) & right(x, y),
        lambda x, y: left(x, y) // number,
        lambda x, y: left(x, y) % number,
        lambda x, y: left(x, y) + number,
        lambda x, y: left(x, y) * number,
        lambda x, y: left(x, y) >> (number % 8),
        lambda x, y: -left(x, y),
        lambda x, y: _less(left(x, y), right(x, y)),
    ]
    return draw(st.sampled_from(choices))


def _less(x: Any, y: Any) -> Any:
    return (x < y).where(x, y) if isinstance(x, Tensor) else np.where(x < y, x, y)


@settings(max_examples=40)
@given(expression=expressions(), dtype=st.sampled_from(INTEGERS), data=st.data())
def test_any_expression_wraps_at_every_step(
    run: Run, expression: Function, dtype: type, data: st.DataObject
) -> None:
    info = np.iinfo(dtype)
    numbers = st.integers(int(info.min), int(info.max))
    chosen = data.draw(st.lists(numbers, min_size=3, max_size=3))
    x = np.concatenate([extremes(dtype), np.array(chosen, dtype)])
    y = np.roll(x, 4)
    with np.errstate(all="ignore"):
        expected = expression(x, y)
    np.testing.assert_array_equal(run(expression, x, y)[0], expected)
