"""One scalar of each op, against numpy, published vectors and exact fractions."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError
from tg_ir.graph.ops import Ops
from tg_ir.graph.scalar import alu, fused_multiply_add, threefry

FLOAT32 = st.floats(width=32)
INT8 = st.integers(-128, 127)


def bits(value):
    return "nan" if math.isnan(value) else struct.pack("<d", value)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (Ops.ADD, np.add),
        (Ops.SUB, np.subtract),
        (Ops.MUL, np.multiply),
        (Ops.FDIV, np.divide),
    ],
)
@given(FLOAT32, FLOAT32)
def test_float32_arithmetic_is_numpy_s(op, function, x, y):
    with np.errstate(all="ignore"):
        expected = float(function(np.float32(x), np.float32(y)))
    assert bits(alu(op, dtypes.float32, (x, y))) == bits(expected)


@given(st.floats(width=16), st.floats(width=16))
def test_float16_product_is_numpy_s(x, y):
    with np.errstate(all="ignore"):
        expected = float(np.float16(x) * np.float16(y))
    assert bits(alu(Ops.MUL, dtypes.float16, (x, y))) == bits(expected)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.SUB, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.MAX])
@given(INT8, INT8)
def test_int8_arithmetic_wraps_like_numpy(op, x, y):
    functions = {
        Ops.ADD: np.add,
        Ops.SUB: np.subtract,
        Ops.MUL: np.multiply,
        Ops.AND: np.bitwise_and,
        Ops.OR: np.bitwise_or,
        Ops.XOR: np.bitwise_xor,
        Ops.MAX: np.maximum,
    }
    expected = functions[op](np.array([x], np.int8), np.array([y], np.int8))[0]
    assert alu(op, dtypes.int8, (x, y)) == expected


@given(INT8, INT8)
def test_division_floors_or_truncates_and_by_zero_gives_zero(x, y):
    if y == 0:
        expected = [0, 0, 0, 0]
    else:
        whole = math.trunc(Fraction(x, y))
        expected = [math.floor(Fraction(x, y)), x % y, whole, x - y * whole]
    expected = [-128 if value == 128 else value for value in expected]
    ops = (Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD)
    assert [alu(op, dtypes.int8, (x, y)) for op in ops] == expected


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 70))
def test_shift_by_the_width_or_more_gives_zero_or_the_sign(value, amount):
    left = (value * 2**amount) % 2**32
    left -= 2**32 if left >= 2**31 else 0
    assert alu(Ops.SHL, dtypes.int32, (value, amount)) == left
    assert alu(Ops.SHR, dtypes.int32, (value, amount)) == math.floor(Fraction(value, 2**amount))
    assert alu(Ops.SHR, dtypes.uint32, (value % 2**32, amount)) == value % 2**32 // 2**amount


def test_maximum_propagates_nan_and_puts_plus_zero_above_minus_zero():
    assert math.isnan(alu(Ops.MAX, dtypes.float32, (math.nan, 1.0)))
    assert math.isnan(alu(Ops.MAX, dtypes.float32, (1.0, math.nan)))
    for pair in ((0.0, -0.0), (-0.0, 0.0)):
        assert math.copysign(1.0, alu(Ops.MAX, dtypes.float32, pair)) == 1.0


def test_comparisons_with_nan_are_false_but_not_equal_is_true():
    results = [alu(op, dtypes.bool, (math.nan, math.nan)) for op in (Ops.CMPLT, Ops.CMPEQ)]
    assert results == [False, False]
    assert alu(Ops.CMPNE, dtypes.bool, (math.nan, math.nan)) is True


SPECIAL_VALUES = [
    (Ops.EXP2, math.inf, math.inf),
    (Ops.EXP2, -math.inf, 0.0),
    (Ops.EXP2, 128.0, math.inf),
    (Ops.LOG2, 0.0, -math.inf),
    (Ops.LOG2, -0.0, -math.inf),
    (Ops.LOG2, -1.0, math.nan),
    (Ops.LOG2, math.inf, math.inf),
    (Ops.SIN, math.inf, math.nan),
    (Ops.SIN, -0.0, -0.0),
    (Ops.SQRT, -0.0, -0.0),
    (Ops.SQRT, -1.0, math.nan),
    (Ops.RECIPROCAL, -0.0, -math.inf),
    (Ops.TRUNC, -0.5, -0.0),
    (Ops.TRUNC, math.inf, math.inf),
]


@pytest.mark.parametrize(("op", "value", "expected"), SPECIAL_VALUES)
def test_special_values_are_those_of_annex_f(op, value, expected):
    assert bits(alu(op, dtypes.float32, (value,))) == bits(expected)


@given(FLOAT32, FLOAT32, FLOAT32)
def test_float32_fused_multiply_add_rounds_once(x, y, z):
    result = fused_multiply_add(x, y, z, dtypes.float32)
    if not all(map(math.isfinite, (x, y, z))) or not math.isfinite(result):
        return
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    single = np.float32(result)
    error = abs(Fraction(float(single)) - exact)
    for limit in (np.float32(np.inf), -np.float32(np.inf)):
        neighbour = np.nextafter(single, limit)
        if np.isfinite(neighbour):
            assert error <= abs(Fraction(float(neighbour)) - exact)


def test_fused_multiply_add_avoids_double_rounding():
    # just above a tie of float32, and closer to it than a double can tell
    x, z = 2.0**-40, 1.0 + 0.0
    tie = fused_multiply_add(1.0, 2.0**-24, 1.0, dtypes.float32)
    assert tie == 1.0
    above = fused_multiply_add(x * (1 + 2.0**-23), 2.0**16, z, dtypes.float32)
    assert above == 1.0 + 2.0**-23
    assert fused_multiply_add(2.0**600, 2.0**600, -math.inf, dtypes.float64) == -math.inf
    assert bits(fused_multiply_add(-1.0, 0.0, 0.0, dtypes.float32)) == bits(0.0)
    assert bits(fused_multiply_add(-1.0, 0.0, -0.0, dtypes.float32)) == bits(-0.0)


# from the test vectors of the Random123 library: counter, key, result as (low, high) words
THREEFRY_VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "expected"), THREEFRY_VECTORS)
def test_threefry_gives_the_published_vectors(counter, key, expected):
    packed = [high << 32 | low for low, high in (counter, key, expected)]
    assert threefry(packed[0], packed[1]) == packed[2]


def test_casts_and_bitcasts_follow_the_dtype_module():
    assert alu(Ops.CAST, dtypes.int32, (math.nan,)) == 0
    assert alu(Ops.CAST, dtypes.uint8, (-1.0,)) == 255
    assert alu(Ops.BITCAST, dtypes.int32, (1.0,), dtypes.float32) == 0x3F800000


def test_bool_results_are_bools():
    assert alu(Ops.ADD, dtypes.bool, (True, True)) is True
    assert alu(Ops.XOR, dtypes.bool, (True, True)) is False


def test_an_op_that_a_dtype_lacks_is_refused():
    with pytest.raises(DTypeError, match="EXP2 is not defined on int32"):
        alu(Ops.EXP2, dtypes.int32, (1,))
    with pytest.raises(DTypeError, match="XOR is not defined on float32"):
        alu(Ops.XOR, dtypes.float32, (1.0, 2.0))
