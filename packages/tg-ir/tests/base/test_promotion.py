"""The promotion lattice against the table that JAX publishes, and weak Python numbers."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.dtype import DType, Scalar, dtypes, least_upper_dtype, result_type, sum_accumulator
from tg_ir.errors import DTypeError

CODES = {
    "b1": dtypes.bool,
    "u1": dtypes.uint8,
    "u2": dtypes.uint16,
    "u4": dtypes.uint32,
    "u8": dtypes.uint64,
    "i1": dtypes.int8,
    "i2": dtypes.int16,
    "i4": dtypes.int32,
    "i8": dtypes.int64,
    "bf": dtypes.bfloat16,
    "f2": dtypes.float16,
    "f4": dtypes.float32,
    "f8": dtypes.float64,
    "i*": dtypes.int32,
    "f*": dtypes.float32,
}
PYTHON_NUMBERS = {"i*": 1, "f*": 1.0}

# From JAX's page "Type promotion semantics": i* and f* are Python's int and float.
JAX_TABLE = """
    b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 i* f*
b1  b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 i* f*
u1  u1 u1 u2 u4 u8 i2 i2 i4 i8 bf f2 f4 f8 u1 f*
u2  u2 u2 u2 u4 u8 i4 i4 i4 i8 bf f2 f4 f8 u2 f*
u4  u4 u4 u4 u4 u8 i8 i8 i8 i8 bf f2 f4 f8 u4 f*
u8  u8 u8 u8 u8 u8 f* f* f* f* bf f2 f4 f8 u8 f*
i1  i1 i2 i4 i8 f* i1 i2 i4 i8 bf f2 f4 f8 i1 f*
i2  i2 i2 i4 i8 f* i2 i2 i4 i8 bf f2 f4 f8 i2 f*
i4  i4 i4 i4 i8 f* i4 i4 i4 i8 bf f2 f4 f8 i4 f*
i8  i8 i8 i8 i8 f* i8 i8 i8 i8 bf f2 f4 f8 i8 f*
bf  bf bf bf bf bf bf bf bf bf bf f4 f4 f8 bf bf
f2  f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 f8 f2 f2
f4  f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 f4 f4
f8  f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8
i*  i* u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 i* f*
f*  f* f* f* f* f* f* f* f* f* bf f2 f4 f8 f* f*
"""


def table_entries() -> Iterator[tuple[str, str, str]]:
    header, *rows = JAX_TABLE.strip("\n").splitlines()
    for row in rows:
        left, *results = row.split()
        for right, result in zip(header.split(), results, strict=True):
            yield left, right, result


@pytest.mark.parametrize(("left", "right", "result"), list(table_entries()))
def test_promotion_is_the_jax_table(left: str, right: str, result: str) -> None:
    tensors = [CODES[code] for code in (left, right) if code not in PYTHON_NUMBERS]
    numbers: list[Scalar] = [PYTHON_NUMBERS[code] for code in (left, right) if "*" in code]
    assert result_type(tensors, numbers) is CODES[result]
    if not numbers:
        assert least_upper_dtype(*tensors) is CODES[result]


@given(st.lists(st.sampled_from(dtypes.all), min_size=1), st.randoms())
def test_promotion_ignores_order_and_repetition(operands: list[DType], random: object) -> None:
    shuffled = [*operands, operands[0]]
    random.shuffle(shuffled)  # type: ignore[attr-defined] # hypothesis gives a random.Random
    assert least_upper_dtype(*shuffled) is least_upper_dtype(*operands)


@pytest.mark.parametrize("dtype", dtypes.all, ids=repr)
def test_a_python_bool_changes_nothing(dtype: DType) -> None:
    assert result_type([dtype], [True]) is dtype


def test_three_operands_join_once() -> None:
    # Two steps would give float32 first; the join of all three is float16.
    assert least_upper_dtype(dtypes.uint64, dtypes.int64, dtypes.float16) is dtypes.float16
    assert least_upper_dtype(dtypes.uint8, dtypes.int8, dtypes.bool) is dtypes.int16


def test_weak_numbers_follow_the_default_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "default_float", dtypes.bfloat16)
    monkeypatch.setattr(dtypes, "default_int", dtypes.int64)
    assert result_type([dtypes.int8], [1.0]) is dtypes.bfloat16
    assert result_type([dtypes.bool], [1]) is dtypes.int64
    assert least_upper_dtype(dtypes.uint64, dtypes.int8) is dtypes.bfloat16


def test_index_takes_in_integers_and_gives_way_to_floats() -> None:
    assert least_upper_dtype(dtypes.index, dtypes.uint64, dtypes.int64) is dtypes.index
    assert least_upper_dtype(dtypes.index, dtypes.bool) is dtypes.index
    assert least_upper_dtype(dtypes.index, dtypes.float16) is dtypes.float16
    assert result_type([dtypes.index], [1]) is dtypes.index
    assert result_type([dtypes.index], [1.0]) is dtypes.float32


def test_vectors_keep_their_lanes() -> None:
    joined = least_upper_dtype(dtypes.int8.vec(4), dtypes.float16.vec(4))
    assert joined is dtypes.float16.vec(4)


def test_different_numbers_of_lanes_do_not_join() -> None:
    with pytest.raises(DTypeError, match=r"equal numbers of lanes, got dtypes\.int8\.vec\(4\)"):
        least_upper_dtype(dtypes.int8.vec(4), dtypes.int8)


def test_void_does_not_join() -> None:
    with pytest.raises(DTypeError, match=r"got dtypes\.void"):
        least_upper_dtype(dtypes.void, dtypes.int8)
    with pytest.raises(DTypeError, match="result_type takes scalar dtypes with values"):
        result_type([dtypes.void], [1])


def test_nothing_has_no_type() -> None:
    with pytest.raises(DTypeError, match="got nothing"):
        least_upper_dtype()
    with pytest.raises(DTypeError, match=r"got \[\]"):
        result_type([])


def test_only_numbers_are_weak() -> None:
    with pytest.raises(DTypeError, match="expected a bool, int or float, got str"):
        result_type([dtypes.int8], ["1"])  # type: ignore[list-item] # the point of the test


@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [
        (dtypes.bool, dtypes.int32),
        (dtypes.int8, dtypes.int32),
        (dtypes.int16, dtypes.int32),
        (dtypes.int32, dtypes.int32),
        (dtypes.int64, dtypes.int64),
        (dtypes.uint8, dtypes.uint32),
        (dtypes.uint16, dtypes.uint32),
        (dtypes.uint32, dtypes.uint32),
        (dtypes.uint64, dtypes.uint64),
        (dtypes.float16, dtypes.float32),
        (dtypes.bfloat16, dtypes.float32),
        (dtypes.float32, dtypes.float32),
        (dtypes.float64, dtypes.float64),
        (dtypes.index, dtypes.index),
        (dtypes.float16.vec(4), dtypes.float32.vec(4)),
    ],
    ids=repr,
)
def test_sums_accumulate_without_early_overflow(dtype: DType, accumulator: DType) -> None:
    assert sum_accumulator(dtype) is accumulator
