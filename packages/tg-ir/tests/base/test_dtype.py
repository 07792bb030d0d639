"""DType: interning, order, vectors, and what `dtypes` answers about a type."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from tg_ir.dtype import DType, dtypes, struct_code, to_dtype
from tg_ir.errors import DTypeError

EVERY = (dtypes.void, *dtypes.all, dtypes.index)
WITH_NUMPY = tuple(dtype for dtype in dtypes.all if dtype is not dtypes.bfloat16)


def numpy_dtype(dtype: DType) -> np.dtype:
    return np.dtype(dtype.name)


def test_equal_types_are_one_object() -> None:
    assert dtypes.from_name("float32") is dtypes.float32
    assert dtypes.float32.vec(4) is dtypes.float32.vec(4)
    assert dtypes.float32.vec(4) is not dtypes.float32.vec(8)


@pytest.mark.parametrize("dtype", [*EVERY, dtypes.int8.vec(16)], ids=repr)
def test_pickle_and_copies_keep_the_identity(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is dtype
    assert copy.deepcopy([dtype])[0] is dtype


def test_a_vector_has_lanes_and_their_total_size() -> None:
    vector = dtypes.float16.vec(8)
    assert (vector.count, vector.itemsize, vector.bits) == (8, 16, 16)
    assert vector.scalar() is dtypes.float16
    assert vector.kind == "float"
    assert dtypes.float16.vec(1) is dtypes.float16


@pytest.mark.parametrize("count", [0, -1])
def test_a_vector_needs_lanes(count: int) -> None:
    with pytest.raises(DTypeError, match="vec makes a scalar type into 1 or more lanes"):
        dtypes.int32.vec(count)


def test_a_vector_of_vectors_is_refused() -> None:
    with pytest.raises(DTypeError, match=r"use \.scalar\(\) first"):
        dtypes.int32.vec(4).vec(4)


def test_void_has_no_vectors() -> None:
    with pytest.raises(DTypeError, match=r"dtypes\.void\.vec\(2\)"):
        dtypes.void.vec(2)


def test_a_type_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        dtypes.int32.bits = 64  # type: ignore[misc] # the point of the test


def test_repr_is_how_users_write_it() -> None:
    assert repr(dtypes.half) == "dtypes.float16"
    assert repr(dtypes.half.vec(4)) == "dtypes.float16.vec(4)"


def test_order_is_total_and_stable() -> None:
    mixed = [dtypes.float32, dtypes.bool, dtypes.int8.vec(4), dtypes.int8, dtypes.void]
    expected = [dtypes.void, dtypes.bool, dtypes.int8, dtypes.int8.vec(4), dtypes.float32]
    assert sorted(mixed) == expected
    assert all(first < second and second > first for first, second in pairwise(expected))
    assert all(first <= second and second >= first for first, second in pairwise(expected))
    assert len({dtype.priority for dtype in EVERY}) == len(EVERY)


@pytest.mark.parametrize("dtype", WITH_NUMPY, ids=repr)
def test_sizes_and_kinds_are_numpys(dtype: DType) -> None:
    kinds = {"b": "bool", "i": "int", "u": "uint", "f": "float"}
    assert dtype.itemsize == numpy_dtype(dtype).itemsize
    assert dtype.kind == kinds[numpy_dtype(dtype).kind]
    assert struct_code(dtype) is not None
    assert np.dtype(struct_code(dtype)) == numpy_dtype(dtype)


def test_bool_has_one_bit_and_takes_one_byte() -> None:
    assert (dtypes.bool.bits, dtypes.bool.itemsize) == (1, 1)


def test_types_without_a_python_format_have_no_struct_code() -> None:
    assert [struct_code(dtype) for dtype in (dtypes.bfloat16, dtypes.void, dtypes.index)] == [
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("dtype", dtypes.ints, ids=repr)
def test_int_bounds_are_numpys(dtype: DType) -> None:
    info = np.iinfo(numpy_dtype(dtype))
    assert (dtypes.min(dtype), dtypes.max(dtype)) == (info.min, info.max)


def test_bounds_of_the_other_kinds() -> None:
    assert (dtypes.min(dtypes.bool), dtypes.max(dtypes.bool)) == (False, True)
    assert (dtypes.min(dtypes.half), dtypes.max(dtypes.half)) == (-np.inf, np.inf)
    assert (dtypes.min(dtypes.index), dtypes.max(dtypes.index)) == (-(2**63), 2**63 - 1)


def test_void_has_no_bounds() -> None:
    with pytest.raises(DTypeError, match="void has no values, so no minimum"):
        dtypes.min(dtypes.void)
    with pytest.raises(DTypeError, match="void has no values, so no maximum"):
        dtypes.max(dtypes.void)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=repr)
def test_float_formats_are_numpys(dtype: DType) -> None:
    info = np.finfo(numpy_dtype(dtype))
    ours = dtypes.finfo(dtype)
    assert tuple(ours) == (info.nexp, info.nmant)
    assert ours.eps == float(info.eps)
    assert ours.largest == float(info.max)
    assert ours.smallest_normal == float(info.smallest_normal)
    assert ours.smallest_subnormal == float(info.smallest_subnormal)


def test_bfloat16_is_float32_with_a_short_mantissa() -> None:
    ours = dtypes.finfo(dtypes.bfloat16)
    assert ours == (8, 7)
    assert ours.largest == 3.3895313892515355e38
    assert ours.smallest_normal == dtypes.finfo(dtypes.float32).smallest_normal


def test_finfo_of_an_int_is_refused() -> None:
    with pytest.raises(DTypeError, match="finfo takes a float dtype such as float32, not int8"):
        dtypes.finfo(dtypes.int8)


def test_questions_about_kinds() -> None:
    assert [dtype.name for dtype in EVERY if dtypes.is_float(dtype)] == [
        "float16",
        "bfloat16",
        "float32",
        "float64",
    ]
    assert {dtype for dtype in EVERY if dtypes.is_int(dtype)} == {*dtypes.ints, dtypes.index}
    assert {dtype for dtype in EVERY if dtypes.is_unsigned(dtype)} == set(dtypes.uints)
    assert [dtype for dtype in EVERY if dtypes.is_bool(dtype)] == [dtypes.bool]
    assert dtypes.is_float(dtypes.half.vec(4))


def test_aliases_are_cs_names() -> None:
    assert (dtypes.half, dtypes.float, dtypes.double) == dtypes.floats[:1] + dtypes.floats[2:]
    assert (dtypes.char, dtypes.short, dtypes.int, dtypes.long) == dtypes.sints
    assert (dtypes.uchar, dtypes.ushort, dtypes.uint, dtypes.ulong) == dtypes.uints
    assert (dtypes.default_float, dtypes.default_int) == (dtypes.float32, dtypes.int32)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float32", dtypes.float32),
        ("half", dtypes.float16),
        ("INT", dtypes.int32),
        ("dtypes.uint8", dtypes.uint8),
        ("bool", dtypes.bool),
    ],
)
def test_names_and_aliases_are_found(name: str, dtype: DType) -> None:
    assert dtypes.from_name(name) is dtype
    assert to_dtype(name) is dtype
    assert to_dtype(dtype) is dtype


def test_an_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(DTypeError, match=r"no dtype is called 'flaot32'; did you mean 'float32'"):
        dtypes.from_name("flaot32")


def test_python_numbers_have_a_dtype() -> None:
    assert dtypes.from_py(True) is dtypes.bool
    assert dtypes.from_py(3) is dtypes.int32
    assert dtypes.from_py(3.0) is dtypes.float32


def test_other_objects_have_no_dtype() -> None:
    with pytest.raises(DTypeError, match="a bool, int or float has a dtype; str has none"):
        dtypes.from_py("3")  # type: ignore[arg-type] # the point of the test
