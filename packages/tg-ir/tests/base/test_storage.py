"""Bytes of buffers against numpy; bfloat16 against the upper half of a float32."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.dtype import DType, cast_scalar, dtypes, from_bytes, to_bytes
from tg_ir.errors import DTypeError, LiteralError


@pytest.mark.parametrize("dtype", dtypes.ints, ids=repr)
def test_ints_are_stored_as_numpy_does(dtype: DType) -> None:
    info = np.iinfo(dtype.name)
    values = [info.min, info.max, 0, 1, 77]
    expected = np.array(values, np.dtype(dtype.name).newbyteorder("<")).tobytes()
    assert to_bytes(values, dtype) == expected
    assert from_bytes(expected, dtype) == values


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=repr)
@given(values=st.lists(st.floats(allow_nan=False)))
def test_floats_are_stored_as_numpy_does(dtype: DType, values: list[float]) -> None:
    with np.errstate(over="ignore"):
        expected = np.array(values, np.float64).astype(dtype.name)
    assert to_bytes(values, dtype) == expected.tobytes()
    assert from_bytes(expected.tobytes(), dtype) == expected.tolist()


@given(st.lists(st.floats(allow_nan=False)))
def test_bfloat16_is_stored_as_the_rounded_value(values: list[float]) -> None:
    rounded = [cast_scalar(value, dtypes.bfloat16) for value in values]
    upper_halves = np.array(rounded, "<f4").view("<u2")[1::2]
    assert to_bytes(values, dtypes.bfloat16) == upper_halves.tobytes()
    assert from_bytes(upper_halves.tobytes(), dtypes.bfloat16) == rounded


@pytest.mark.parametrize("dtype", dtypes.floats, ids=repr)
def test_nan_and_negative_zero_survive(dtype: DType) -> None:
    nan, zero = from_bytes(to_bytes([math.nan, -0.0], dtype), dtype)
    assert math.isnan(nan)
    assert math.copysign(1, zero) == -1


def test_bools_take_a_byte_and_any_bit_means_true() -> None:
    assert to_bytes([True, False, 7], dtypes.bool) == b"\1\0\1"
    assert from_bytes(b"\0\2\xff", dtypes.bool) == [False, True, True]


def test_lanes_are_stored_in_a_row() -> None:
    assert to_bytes([1, 2], dtypes.int16.vec(2)) == b"\1\0\2\0"


def test_empty_buffers_hold_nothing() -> None:
    for dtype in dtypes.all:
        assert to_bytes([], dtype) == b""
        assert from_bytes(b"", dtype) == []


def test_an_int_out_of_range_is_refused() -> None:
    with pytest.raises(LiteralError, match=r"out of range for uint8 \(0\.\.255\)"):
        to_bytes([256], dtypes.uint8)


def test_a_float_is_no_int() -> None:
    with pytest.raises(DTypeError, match=r"a value is no int32: .*; cast the values first"):
        to_bytes([1.5], dtypes.int32)


@pytest.mark.parametrize("dtype", [dtypes.void, dtypes.index], ids=repr)
def test_types_without_a_machine_format_are_not_stored(dtype: DType) -> None:
    with pytest.raises(DTypeError, match=f"{dtype.name} has no machine format; cast to int64"):
        to_bytes([1], dtype)


def test_a_partial_value_is_refused() -> None:
    with pytest.raises(DTypeError, match=r"5 bytes hold no whole number of int32 \(4 bytes each\)"):
        from_bytes(b"12345", dtypes.int32)
