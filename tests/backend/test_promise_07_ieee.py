"""Promise 7: floats as IEEE 754 says; nothing is folded or reassociated that changes a result."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

from .programs import Run, assert_same_floats

Binary = Callable[[Any, Any], Any]


def special_values(dtype: type) -> list[float]:
    """Zeros, infinities, NaN, the largest and least numbers of the format, and some others."""
    info = np.finfo(dtype)
    tiny, smallest = float(info.smallest_normal), float(info.smallest_subnormal)
    large = float(info.max)
    plain = [0.0, -0.0, 1.0, -1.0, 3.0, 0.1, -7.5, 1 + float(info.eps)]
    return [*plain, np.inf, -np.inf, np.nan, large, -large, tiny, smallest, -smallest]


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Every special value with every other."""
    both = np.array(list(itertools.product(special_values(dtype), repeat=2)), dtype)
    return both[:, 0].copy(), both[:, 1].copy()


FLOATS = [np.float16, np.float32, np.float64]

# The same text for tensors and arrays. Those of one operand read only `x`.
IDENTITIES: dict[str, Binary] = {
    "x / x": lambda x, y: x / x,
    "x * 0": lambda x, y: x * 0.0,
    "x - x": lambda x, y: x - x,
    "x + 0.0": lambda x, y: x + 0.0,
    "x - 0.0": lambda x, y: x - 0.0,
    "x + -0.0": lambda x, y: x + -0.0,
    "0.0 - x": lambda x, y: 0.0 - x,
    "0.0 + x": lambda x, y: 0.0 + x,
    "-x": lambda x, y: -x,
    "-(-x)": lambda x, y: -(-x),  # noqa: B002 - twice is the point
    "x * 1": lambda x, y: x * 1.0,
    "x * -1": lambda x, y: x * -1.0,
    "x / 1": lambda x, y: x / 1.0,
    "x * 2 / 2": lambda x, y: x * 2.0 / 2.0,
    "x / 3": lambda x, y: x / 3.0,
    "x / 3 * 3": lambda x, y: x / 3.0 * 3.0,
    "x / 10 - x * 0.1": lambda x, y: x / 10.0 - x * 0.1,
    "x + x": lambda x, y: x + x,
    "x + x - x": lambda x, y: x + x - x,
    "x + y - y": lambda x, y: x + y - y,
    "x * y / y": lambda x, y: x * y / y,
    "x + 1 + 1": lambda x, y: (x + 1.0) + 1.0,
    "x * 3 * 5": lambda x, y: (x * 3.0) * 5.0,
    "x * y + x": lambda x, y: x * y + x,
    "x * y - x * y": lambda x, y: x * y - x * y,
    "x * x - y * y": lambda x, y: x * x - y * y,
    "x * y + x * 2": lambda x, y: x * y + x * 2.0,
    "-(x - y)": lambda x, y: -(x - y),
    "x - -y": lambda x, y: x - -y,
}
COMPARISONS: dict[str, Binary] = {
    "a < b": lambda a, b: a < b,
    "a <= b": lambda a, b: a <= b,
    "a > b": lambda a, b: a > b,
    "a >= b": lambda a, b: a >= b,
    "a == b": lambda a, b: a == b,
    "a != b": lambda a, b: a != b,
    "not a < b": lambda a, b: ~(a < b),
    "not a >= b": lambda a, b: ~(a >= b),
    "not a == b": lambda a, b: ~(a == b),
    "a == a": lambda a, b: a == a,
    "a != a": lambda a, b: a != a,
    "a < a": lambda a, b: a < a,
    "a <= a": lambda a, b: a <= a,
    "a + 1 == b + 1": lambda a, b: a + 1 == b + 1,
    "a - b < 0": lambda a, b: a - b < 0,
    "a < b or a >= b": lambda a, b: (a < b) | (a >= b),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", IDENTITIES)
def test_arithmetic_on_special_values(name: str, dtype: type, run: Run) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = IDENTITIES[name](x, y)
    assert_same_floats(run(IDENTITIES[name], x, y)[0], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_of_special_values(name: str, dtype: type, run: Run) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = COMPARISONS[name](x, y)
    np.testing.assert_array_equal(run(COMPARISONS[name], x, y)[0], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_and_minimum_propagate_nan(name: str, dtype: type, run: Run) -> None:
    x, y = pairs(dtype)
    result = run(lambda a, b: getattr(a, name)(b), x, y)[0]
    np.testing.assert_array_equal(result, getattr(np, name)(x, y))


def test_maximum_takes_plus_zero_and_minimum_minus_zero(run: Run) -> None:
    x, y = np.float32([0.0, -0.0]), np.float32([-0.0, 0.0])
    largest, least = run(lambda a, b: (a.maximum(b), a.minimum(b)), x, y)
    np.testing.assert_array_equal(np.signbit(largest), [False, False])
    np.testing.assert_array_equal(np.signbit(least), [True, True])


@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_propagate_nan(dtype: type, run: Run) -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6], [-np.inf, np.nan, np.nan]], dtype)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x.max(1), x.min(1), x.sum(1), x.argmax(1), x.argmin(1)

    largest, least, total, last, first = run(program, x)
    np.testing.assert_array_equal(largest, x.max(1))
    np.testing.assert_array_equal(least, x.min(1))
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(last, x.argmax(1))
    np.testing.assert_array_equal(first, x.argmin(1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_minus_zero_survives(dtype: type, run: Run) -> None:
    x = np.array([-0.0, 0.0, -1.0], dtype)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        moved = x.reshape(3, 1).expand(3, 2).permute(1, 0)[::-1]
        return moved, x.cat(x), (x > 9).where(1.0, x), x * 1, x.sqrt(), x.abs(), x.float()

    moved, joined, chosen, same, root, absolute, cast = run(program, x)
    assert_same_floats(moved, np.stack([x, x]))
    assert_same_floats(joined, np.concatenate([x, x]))
    for result in (chosen, same):
        assert_same_floats(result, x)
    with np.errstate(invalid="ignore"):
        assert_same_floats(root, np.sqrt(x))
    assert_same_floats(absolute, np.abs(x))
    assert_same_floats(cast, x.astype(np.float32))


# ---- no contraction, no reassociation: any expression of +, -, *, / is what numpy computes


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Binary:
    """A function of two tensors or arrays."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        leaf = draw(st.sampled_from(["x", "y", "number"]))
        if leaf == "number":
            number = draw(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.1, 3.0]))
            return lambda x, y: x * number
        return (lambda x, y: x) if leaf == "x" else (lambda x, y: y)
    left = draw(expressions(depth - 1))
    right = draw(expressions(depth - 1))
    kind = draw(st.sampled_from(["+", "-", "*", "/", "neg", "where", "shared"]))
    table: dict[str, Binary] = {
        "+": lambda x, y: left(x, y) + right(x, y),
        "-": lambda x, y: left(x, y) - right(x, y),
        "*": lambda x, y: left(x, y) * right(x, y),
        "/": lambda x, y: left(x, y) / right(x, y),
        "neg": lambda x, y: -left(x, y),
        "where": lambda x, y: _where(left(x, y) < right(x, y), left(x, y), right(x, y)),
        "shared": lambda x, y: _twice(left(x, y), right(x, y)),
    }
    return table[kind]


def _where(condition: Any, x: Any, y: Any) -> Any:
    return condition.where(x, y) if isinstance(condition, Tensor) else np.where(condition, x, y)


def _twice(x: Any, y: Any) -> Any:
    product = x * y
    return (product + x) - (product + y)


ODD = np.array([0.1, -3.7, 1e-30, 7.25, -1e20, 3e38, 1.17e-38, 1e-42, np.inf, np.nan, -0.0, 1e10])


@settings(max_examples=40)
@given(expression=expressions(), dtype=st.sampled_from(FLOATS))
def test_any_expression_is_rounded_at_every_step(
    run: Run, expression: Binary, dtype: type
) -> None:
    with np.errstate(all="ignore"):
        x, y = ODD.astype(dtype), np.roll(ODD, 5).astype(dtype)
        expected = expression(x, y)
    assert_same_floats(run(expression, x, y)[0], expected)


def test_product_and_sum_are_not_contracted(run: Run) -> None:
    rng = np.random.default_rng(7)
    x, y, z = (rng.standard_normal(64, np.float32) for _ in range(3))
    assert_same_floats(run(lambda x, y, z: x * y + z, x, y, z)[0], x * y + z)
    assert_same_floats(run(lambda x, y, z: z - x * y, x, y, z)[0], z - x * y)


def test_sum_of_products_of_a_few_is_close_to_the_exact_one(run: Run) -> None:
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal((3, 37), np.float32) for _ in range(2))
    exact = (x.astype(np.float64) * y).sum(1)
    bound = 37 * np.finfo(np.float32).eps * np.abs(x * y).sum(1)
    assert (np.abs(run(lambda x, y: (x * y).sum(1), x, y)[0] - exact) <= bound).all()


def test_half_and_bfloat16_are_rounded_at_every_step(run: Run) -> None:
    x = np.linspace(-3, 3, 40, dtype=np.float32)

    def program(x: Tensor) -> tuple[Tensor, ...]:
        small, brief = x.half(), x.bfloat16()
        return (small * 3 + 1).float(), ((brief * 3).float(), (brief * 3 + 1).float())[1]

    half, brief = run(program, x)
    expected = x.astype(np.float16) * np.float16(3) + np.float16(1)
    np.testing.assert_array_equal(half, expected.astype(np.float32))
    product = _as_bfloat16(_as_bfloat16(x) * np.float32(3))
    np.testing.assert_array_equal(brief, _as_bfloat16(product + np.float32(1)))


def _as_bfloat16(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
