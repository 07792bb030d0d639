"""Promise 10: casts round once, to nearest even; out of range they do what is written here.

The expected values are exact: fractions, rounded to the format by integer arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes
from tg_ir.graph import UOp

from .programs import Run

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
# bits of the mantissa with the leading one, least exponent of a normal number, largest exponent
FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}
ALL = ["bool", *INTEGERS, *FORMATS]
Number = bool | int | float


def rounded(value: Number, name: str) -> float:
    """The number of the format nearest to `value`, the even one of two."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return value
    bits, least, largest = FORMATS[name]
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length(), least)
    while Fraction(2) ** exponent > magnitude and exponent > least:
        exponent -= 1
    unit = Fraction(2) ** (exponent - bits + 1)
    nearest = round(magnitude / unit) * unit  # Fraction rounds half to even
    too_large = nearest >= Fraction(2) ** (largest + 1)
    result = math.inf if too_large else float(nearest)
    return math.copysign(result, -1.0 if exact < 0 else 1.0)


def wrapped(value: int, name: str) -> int:
    """`value` in two's complement of the width."""
    info = np.iinfo(name)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


def as_integer(value: Number, name: str) -> int:
    """A number cast to an int dtype."""
    if isinstance(value, int):
        return wrapped(int(value), name)
    if math.isnan(value):
        return 0
    through = "int32" if np.iinfo(name).bits < 32 else name
    info = np.iinfo(through)
    low, high = int(info.min), int(info.max)
    if math.isinf(value):
        return wrapped(high if value > 0 else low, name)
    return wrapped(min(max(int(value), low), high), name)


def cast(value: Number, name: str) -> Number:
    """What casting `value` to a dtype gives."""
    if name == "bool":
        return bool(value != 0)
    return rounded(value, name) if name in FORMATS else as_integer(value, name)


def samples(name: str) -> list[Number]:
    """Numbers of a dtype, the awkward ones among them."""
    if name == "bool":
        return [False, True]
    if name in INTEGERS:
        info = np.iinfo(name)
        edges = [0, 1, 2, 127, 128, 255, 2049, 2051, 4097, 65535, 65519, 65520]
        edges += [1 << 24, (1 << 24) + 1]
        edges += [(1 << 31) - 1, 1 << 31, (1 << 53) + 1, (1 << 62) + 1, (1 << 63) + 1025]
        edges += [-edge for edge in edges] + [int(info.min), int(info.max)]
        return [edge for edge in edges if int(info.min) <= edge <= int(info.max)]
    small = [0.0, -0.0, 0.1, 0.5, 0.99, 1.5, 2.5, 3.7, 127.9, 128.5, 255.5, 300.0, 32768.0, 65504.0]
    large = [65519.9, 65520.0, 70000.0, 2.0**31 - 1, 2.0**31, 2.0**32, 2.0**53, 2.0**63, 2.0**64]
    tiny = [2.0**-24, 2.0**-25, 3 * 2.0**-26, 6e-8, 1e-5, 2.0**-133, 2.0**-134, 1e-40, 2.0**-149]
    double = [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-30, 1e300, 3.4028235677973366e38]
    positive = [*small, *large, *tiny, *double, 1e30]
    numbers = positive + [-number for number in positive] + [math.inf, -math.inf, math.nan]
    return [rounded(number, name) for number in numbers]


def as_array(numbers: list[Number], name: str) -> np.ndarray:
    """An array of the dtype; of float32 for bfloat16, which numpy has not."""
    with np.errstate(over="ignore"):
        return np.array(numbers, "float32" if name == "bfloat16" else name)


def source_tensor(tensor: Tensor, source: str) -> Tensor:
    """The tensor in its dtype: bfloat16 comes as float32 of the same value."""
    return tensor.cast("bfloat16") if source == "bfloat16" else tensor


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal with equal signs of zero."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", ALL)
def test_cast_of_awkward_numbers(source: str, target: str, run: Run) -> None:
    numbers = samples(source)
    expected = as_array([cast(number, target) for number in numbers], target)
    actual = run(lambda x: source_tensor(x, source).cast(target), as_array(numbers, source))[0]
    assert_same(actual, expected)


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", ALL)
def test_cast_of_a_constant_gives_what_a_cast_at_run_time_gives(source: str, target: str) -> None:
    dtype = getattr(dtypes, source)
    numbers = samples(source)
    folded = [UOp.const(dtype, number).cast(getattr(dtypes, target)) for number in numbers]
    stacked = Tensor(folded[0].reshape((1,)))
    stacked = stacked.cat(*[Tensor(node.reshape((1,))) for node in folded[1:]])
    expected = as_array([cast(number, target) for number in numbers], target)
    assert_same(stacked.numpy(), expected)


@settings(max_examples=25)
@given(source=st.sampled_from(ALL), target=st.sampled_from(ALL), data=st.data())
def test_cast_of_any_number(run: Run, source: str, target: str, data: st.DataObject) -> None:
    if source in FORMATS:
        number = st.floats(allow_subnormal=True).map(lambda value: rounded(value, source))
    elif source == "bool":
        number = st.booleans()
    else:
        number = st.integers(int(np.iinfo(source).min), int(np.iinfo(source).max))
    numbers = data.draw(st.lists(number, min_size=8, max_size=8))
    expected = as_array([cast(value, target) for value in numbers], target)
    actual = run(lambda x: source_tensor(x, source).cast(target), as_array(numbers, source))[0]
    assert_same(actual, expected)


@settings(max_examples=25)
@given(
    chain=st.lists(st.sampled_from(ALL), min_size=2, max_size=4), source=st.sampled_from(ALL)
)
def test_chain_of_casts_does_each_of_them(run: Run, chain: list[str], source: str) -> None:
    numbers = samples(source)
    expected = numbers
    for name in chain:
        expected = [cast(number, name) for number in expected]

    def program(x: Tensor) -> Tensor:
        x = source_tensor(x, source)
        for name in chain:
            x = x.cast(name)
        return x

    actual = run(program, as_array(numbers, source))[0]
    assert_same(actual, as_array(expected, chain[-1]))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_there_and_back_is_not_nothing(name: str, run: Run) -> None:
    numbers = samples("float32")
    expected = as_array([rounded(number, name) for number in numbers], "float32")
    actual = run(lambda x: x.cast(name).float(), as_array(numbers, "float32"))[0]
    assert_same(actual, expected)
    stored = run(lambda x: x.cast(name).contiguous().float(), as_array(numbers, "float32"))[0]
    assert_same(stored, expected)


def test_float64_to_float16_is_rounded_once(run: Run) -> None:
    # halfway between two float16 and a little above: by way of float32 the little is lost
    numbers = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40, 2.0**-25 + 2.0**-60])
    expected = np.array([1 + 2.0**-10, 1 + 2.0**-10, 2.0**-24], np.float16)
    np.testing.assert_array_equal(run(lambda x: x.half(), numbers)[0], expected)


@pytest.mark.parametrize("name", [name for name in ALL if name != "bfloat16"])
def test_oracle_agrees_with_numpy_where_numpy_is_defined(name: str) -> None:
    numbers = [0.0, 1.0, 2.0, 3.5, 100.25] if name in FORMATS else [0, 1]
    expected = np.array(numbers, np.float64).astype(name)
    np.testing.assert_array_equal(as_array([cast(n, name) for n in numbers], name), expected)
    if name in FORMATS:
        rng = np.random.default_rng(3)
        wide = np.ldexp(rng.standard_normal(300), rng.integers(-30, 18, 300))
        with np.errstate(over="ignore"):
            expected = as_array([rounded(n, name) for n in wide.tolist()], name)
            assert_same(expected, wide.astype(name))
