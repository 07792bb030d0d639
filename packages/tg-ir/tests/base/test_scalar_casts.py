"""Casts of Python numbers against exact rational arithmetic and numpy; literals that must fit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tg_ir.dtype import (
    DType,
    Scalar,
    bitcast_scalar,
    cast_scalar,
    check_literal,
    dtypes,
    fits,
    wrap_int,
)
from tg_ir.errors import DTypeError, LiteralError

ROUNDED = st.sampled_from([dtypes.float16, dtypes.bfloat16, dtypes.float32])
INTS = st.sampled_from(dtypes.ints)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def exactly_rounded(value: Scalar, dtype: DType) -> float:
    """Round the rational `value` to the format, ties to even, as IEEE 754 defines it."""
    layout = dtypes.finfo(dtype)
    exact = abs(Fraction(value))
    exponent = layout.min_exponent
    while exact >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - layout.mantissa_bits)
    rounded = round(exact / unit) * unit
    magnitude = float(rounded) if rounded <= Fraction(layout.largest) else math.inf
    return math.copysign(magnitude, value)


def same_float(left: Scalar, right: float) -> bool:
    """Whether both are the same float, signed zeros told apart."""
    return (
        isinstance(left, float)
        and left == right
        and math.copysign(1, left) == math.copysign(1, right)
    )


@given(DOUBLES, ROUNDED)
@example(65520.0, dtypes.float16)
@example(65519.99, dtypes.float16)
@example(2.0**-25, dtypes.float16)
@example(2.0**-25 * 1.0000001, dtypes.float16)
@example(-0.0, dtypes.bfloat16)
@example(5e-324, dtypes.bfloat16)
@example(2.0**-134, dtypes.bfloat16)
@example(2.0**-133 * 1.5, dtypes.bfloat16)
@example(3.3961e38, dtypes.bfloat16)
@example(1.7e308, dtypes.float32)
# Rounding through float32 first would lose the bit that decides here.
@example(1.0 + 2.0**-11 + 2.0**-30, dtypes.float16)
@example(1.0 + 2.0**-8 + 2.0**-40, dtypes.bfloat16)
def test_a_double_is_rounded_once_to_nearest_even(value: float, dtype: DType) -> None:
    assert same_float(cast_scalar(value, dtype), exactly_rounded(value, dtype))


@given(st.floats(width=16, allow_nan=False) | st.floats(-1e5, 1e5), ROUNDED)
def test_small_numbers_are_rounded_once(value: float, dtype: DType) -> None:
    expected = value if math.isinf(value) else exactly_rounded(value, dtype)
    assert same_float(cast_scalar(value, dtype), expected)


@given(st.integers(-(2**64), 2**64), ROUNDED)
@example(2**60 + 2**36 + 1, dtypes.float32)
@example(2**63 + 2**39 + 1, dtypes.float32)
@example(2**62 + 2**54 + 1, dtypes.bfloat16)
def test_an_int_is_rounded_once(value: int, dtype: DType) -> None:
    assert same_float(cast_scalar(value, dtype), exactly_rounded(value, dtype))


def test_an_int_beyond_every_float_is_infinity() -> None:
    for dtype in dtypes.floats:
        assert cast_scalar(10**400, dtype) == math.inf
        assert cast_scalar(-(10**400), dtype) == -math.inf


@pytest.mark.parametrize("dtype", dtypes.floats, ids=repr)
def test_special_floats_stay(dtype: DType) -> None:
    assert math.isnan(cast_scalar(math.nan, dtype))
    assert cast_scalar(math.inf, dtype) == math.inf
    assert cast_scalar(-math.inf, dtype) == -math.inf
    assert math.copysign(1, cast_scalar(-0.0, dtype)) == -1


@given(DOUBLES)
def test_float64_keeps_doubles(value: float) -> None:
    assert same_float(cast_scalar(value, dtypes.float64), value)


@given(st.integers(-(2**70), 2**70), INTS)
def test_an_int_wraps_at_its_width(value: int, dtype: DType) -> None:
    low64 = np.array([value % 2**64], np.uint64)
    assert cast_scalar(value, dtype) == int(low64.astype(dtype.name)[0])
    assert wrap_int(value, dtype) == int(low64.astype(dtype.name)[0])


@given(st.integers(-(2**200), 2**200))
def test_index_never_wraps(value: int) -> None:
    assert cast_scalar(value, dtypes.index) == value


@given(st.floats(-1e12, 1e12) | DOUBLES, st.sampled_from([*dtypes.ints[2:4], *dtypes.ints[6:8]]))
def test_a_float_saturates_at_32_and_64_bits(value: float, dtype: DType) -> None:
    info = np.iinfo(dtype.name)
    assert cast_scalar(value, dtype) == min(max(int(value), info.min), info.max)


@given(st.floats(-1e12, 1e12), st.sampled_from([*dtypes.ints[:2], *dtypes.ints[4:6]]))
def test_a_float_goes_through_int32_to_8_and_16_bits(value: float, dtype: DType) -> None:
    through = min(max(int(value), -(2**31)), 2**31 - 1)
    assert cast_scalar(value, dtype) == int(np.array([through], np.int32).astype(dtype.name)[0])


@pytest.mark.parametrize("dtype", [*dtypes.ints, dtypes.index], ids=repr)
def test_nan_becomes_0(dtype: DType) -> None:
    assert cast_scalar(math.nan, dtype) == 0


def test_infinity_saturates() -> None:
    assert cast_scalar(math.inf, dtypes.int32) == 2**31 - 1
    assert cast_scalar(-math.inf, dtypes.uint64) == 0
    assert cast_scalar(math.inf, dtypes.uint8) == 255  # the low byte of the largest int32
    assert cast_scalar(-math.inf, dtypes.int16) == 0


def test_to_bool_is_being_not_zero() -> None:
    values = [0, 0.0, -0.0, 2, -0.5, math.nan, 256]
    assert [cast_scalar(value, dtypes.bool) for value in values] == [False] * 3 + [True] * 4


def test_the_kind_of_the_result_is_the_dtypes() -> None:
    assert type(cast_scalar(True, dtypes.int8)) is int
    assert type(cast_scalar(1, dtypes.float32)) is float
    assert type(cast_scalar(1, dtypes.bool)) is bool


def test_a_vector_dtype_casts_like_its_lanes() -> None:
    assert cast_scalar(300, dtypes.uint8.vec(4)) == 44


def test_void_holds_nothing() -> None:
    with pytest.raises(DTypeError, match="cannot cast 1 to void; void has no values"):
        cast_scalar(1, dtypes.void)


def test_only_numbers_are_cast() -> None:
    with pytest.raises(DTypeError, match="cast_scalar takes a bool, int or float, got str"):
        cast_scalar("1", dtypes.int8)  # type: ignore[arg-type] # the point of the test


@given(st.integers(-(2**65), 2**65), INTS)
def test_an_int_fits_an_int_dtype_in_range(value: int, dtype: DType) -> None:
    info = np.iinfo(dtype.name)
    assert fits(value, dtype) == (info.min <= value <= info.max)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, dtypes.int8, True),
        (1, dtypes.bool, True),
        (2, dtypes.bool, False),
        (2.0, dtypes.int8, True),
        (2.5, dtypes.int8, False),
        (math.nan, dtypes.int8, False),
        (math.inf, dtypes.int64, False),
        (0.1, dtypes.float16, True),
        (math.inf, dtypes.float16, True),
        (math.nan, dtypes.bfloat16, True),
        (65504, dtypes.float16, True),
        (65519, dtypes.float16, True),
        (65520, dtypes.float16, False),
        (1e39, dtypes.float32, False),
        (10**400, dtypes.float64, False),
        (2**80, dtypes.index, True),
        (0, dtypes.void, False),
    ],
)
def test_which_literals_fit(value: Scalar, dtype: DType, expected: bool) -> None:
    assert fits(value, dtype) is expected


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (300, dtypes.uint8, r"uint8 cannot hold 300 \(0\.\.255\); cast the tensor to a wider"),
        (-129, dtypes.int8, r"int8 cannot hold -129 \(-128\.\.127\)"),
        (2, dtypes.bool, r"bool cannot hold 2 \(0\.\.1\)"),
        (2.5, dtypes.int32, "int32 cannot hold 2.5, which is not a whole number"),
        (math.nan, dtypes.int32, "int32 cannot hold nan, which is not a whole number"),
        (1e6, dtypes.float16, r"float16 cannot hold 1000000.0 \(largest finite value 65504.0\)"),
        (0, dtypes.void, "void cannot hold 0; void has no values"),
    ],
)
def test_a_literal_that_does_not_fit_is_refused(value: Scalar, dtype: DType, message: str) -> None:
    with pytest.raises(LiteralError, match=message):
        check_literal(value, dtype)


def test_a_literal_that_fits_passes() -> None:
    check_literal(255, dtypes.uint8)
    check_literal(255, dtypes.uint8.vec(4))


@given(st.integers(0, 2**32 - 1))
def test_bits_of_floats_are_numpys(bits: int) -> None:
    expected = np.array([bits], np.uint32).view(np.float32)[0]
    result = bitcast_scalar(bits, dtypes.uint32, dtypes.float32)
    assert np.float32(result) == expected or (math.isnan(result) and np.isnan(expected))
    if not math.isnan(result):
        assert bitcast_scalar(result, dtypes.float32, dtypes.uint32) == bits


def test_bits_of_the_other_formats() -> None:
    assert bitcast_scalar(-1, dtypes.int8, dtypes.uint8) == 255
    assert bitcast_scalar(1.0, dtypes.bfloat16, dtypes.uint16) == 0x3F80
    assert bitcast_scalar(0x3C00, dtypes.int16, dtypes.half) == 1.0
    assert bitcast_scalar(True, dtypes.bool, dtypes.int8) == 1
    assert bitcast_scalar(-1.0, dtypes.float64, dtypes.int64) == -(2**62) - 2**52


def test_bits_keep_their_number() -> None:
    with pytest.raises(DTypeError, match="float32 has 4 bytes, int64 8; use a cast"):
        bitcast_scalar(1.0, dtypes.float32, dtypes.int64)


def test_index_has_no_bits() -> None:
    with pytest.raises(DTypeError, match="bitcast takes dtypes with a machine format, not index"):
        bitcast_scalar(1, dtypes.index, dtypes.int64)
