"""Dtypes that do not exist, that do not fit, or that an operator does not take."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor, dtypes

from .refusals import Case, case, each, message_of


def ints(*numbers: int, dtype: str = "int32") -> Tensor:
    return Tensor(list(numbers), dtype=dtype)


def in_place(tensor: Tensor, operator: str, value: object) -> object:
    return getattr(tensor, operator)(value)


DTYPES = [
    case("close", lambda: ints(1).cast("int33"), TypeError, "'int33'; did you mean 'int32'"),
    case("unknown", lambda: ints(1).cast("string"), TypeError, "no dtype is called 'string'"),
    case("number", lambda: ints(1).cast(5), TypeError, "such as dtypes.float32", "got 5"),
    case("array", lambda: ints(1).cast(np.ones(2)), TypeError, "such as dtypes.float32"),
    case("none", lambda: ints(1).cast(None), TypeError, "such as dtypes.float32", "got None"),
    case("of_python", lambda: Tensor([1], dtype=float), TypeError, "got <class 'float'>"),
    case("of_numpy", lambda: Tensor([1], dtype=np.complex64), TypeError, "called 'complex64'"),
    case("of_sum", lambda: ints(1).sum(dtype="foo"), TypeError, "no dtype is called 'foo'"),
    case("index", lambda: Tensor([1], dtype=dtypes.index), TypeError, "cast to int64"),
    case("void", lambda: Tensor([1], dtype=dtypes.void), ValueError, "void has no values"),
    case("bitcast", lambda: ints(1).bitcast("int8"), TypeError, "int32 has 4 bytes, int8 1"),
    case("literal", lambda: ints(1, dtype="uint8") + 300, ValueError, "uint8 cannot hold 300"),
    case("literal_sign", lambda: ints(1, dtype="uint8") + -1, ValueError, "hold -1 (0..255)"),
    case("literal_compared", lambda: ints(1, dtype="int8") < 1000, ValueError, "int8 cannot"),
    case("literal_full", lambda: Tensor.full((2,), 1.5, dtype="int32"), ValueError, "1.5"),
    case("bits_of_float", lambda: Tensor([1.0]) & 1, TypeError, "ints or bools, got float32"),
    case("not_of_float", lambda: ~Tensor([1.0]), TypeError, "ints or bools, got float32"),
    case("shift_of_float", lambda: Tensor([1.0]) << 1, TypeError, "ints or bools, got float32"),
    case("shift_by_float", lambda: ints(1) << 1.5, TypeError, "ints or bools, got float32"),
    case("minus_of_bools", lambda: Tensor([True]) - Tensor([True]), TypeError, "use ^"),
    case("negative_power", lambda: ints(2) ** -1, TypeError, "cast to a float first"),
    case("add_text", lambda: ints(1) + "a", ValueError, "no tensor can be made of str 'a'"),
    case("add_none", lambda: ints(1) + None, TypeError, "None is no operand"),
    case("none_times", lambda: None * ints(1), TypeError, "None is no operand"),
    case("equals_none", lambda: ints(1).__eq__(None), TypeError, "`is None`"),
    case("add_complex", lambda: ints(1) + 1j, ValueError, "complex 1j"),
    case("add_ragged", lambda: ints(1) + [[1, 2], [3]], ValueError, "different lengths"),
    case(
        "assign",
        lambda: Tensor([1.0, 2.0]).assign(ints(1, 2)),
        TypeError,
        "the value is int32, the tensor float32; cast the value to float32 first",
    ),
    case("add_in_place", lambda: in_place(ints(1), "__iadd__", 1.5), TypeError, "float32"),
    case("divide_in_place", lambda: in_place(ints(1), "__itruediv__", 2), TypeError, "float32"),
    case("gradient_of_ints", lambda: ints(1).requires_grad_(True), TypeError, "cast it to a float"),
    case("bfloat16_data", lambda: Tensor([1.0], dtype="bfloat16").data(), TypeError, "cast to"),
]


@each(DTYPES)
def test_dtype_that_does_not_fit(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_write_in_place_changes_nothing() -> None:
    tensor = ints(1, 2)
    for operator, value in (("__iadd__", 1.5), ("__itruediv__", 2), ("__imul__", 10**10)):
        with pytest.raises((TypeError, ValueError)):
            in_place(tensor, operator, value)
    assert tensor.dtype is dtypes.int32
    assert tensor.tolist() == [1, 2]
