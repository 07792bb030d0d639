"""Python data and numpy arrays that no tensor can be made of, and odd ones that can."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor

from .refusals import Case, case, each, message_of


def list_in_itself() -> list[object]:
    items: list[object] = []
    items.append(items)
    return items


EXPECTED = "expected numbers, lists of numbers, bytes or a numeric numpy array"
FIELDS = np.zeros(2, dtype=[("a", "f4")])
DATES = np.array(["2020-01-01"], dtype="datetime64[D]")

DATA = [
    case("ragged", lambda: Tensor([[1, 2], [3]]), ValueError, "different lengths at depth 1"),
    case("mixed", lambda: Tensor([1, [2]]), ValueError, "mixed at depth 1"),
    case("holds_itself", lambda: Tensor(list_in_itself()), ValueError, "more than 64 deep"),
    case("text", lambda: Tensor("abc"), ValueError, "made of str 'abc'", EXPECTED),
    case("texts", lambda: Tensor(["a", "b"]), ValueError, "made of list ['a', 'b']", EXPECTED),
    case("none_in_list", lambda: Tensor([1, None]), ValueError, "[1, None]", EXPECTED),
    case("object", lambda: Tensor(object()), ValueError, "object", EXPECTED),
    case("set", lambda: Tensor({1, 2}), ValueError, "made of set {1, 2}", EXPECTED),
    case("dict", lambda: Tensor({1: 2}), ValueError, "made of dict", EXPECTED),
    case("generator", lambda: Tensor(x for x in [1]), ValueError, "generator", EXPECTED),
    case("complex", lambda: Tensor(1j), ValueError, "complex 1j", EXPECTED),
    case("class", lambda: Tensor(Tensor), ValueError, "type object", EXPECTED),
    case("array_of_objects", lambda: Tensor(np.array([1, {}])), ValueError, "type object"),
    case("array_of_texts", lambda: Tensor(np.array(["a"])), ValueError, "ndarray", EXPECTED),
    case("array_of_complex", lambda: Tensor(np.array([1j])), ValueError, "complex128", EXPECTED),
    case("array_of_dates", lambda: Tensor(DATES), ValueError, "datetime64[D]", EXPECTED),
    case("array_of_fields", lambda: Tensor(FIELDS), ValueError, "void32", EXPECTED),
    case("long_double", lambda: Tensor(np.zeros(2, np.longdouble)), ValueError, "float128"),
    case(
        "arrays_of_two_lengths",
        lambda: Tensor([np.ones(2), np.ones(3)]),
        ValueError,
        EXPECTED,
        "inhomogeneous",
    ),
    case("tensors_in_list", lambda: Tensor([Tensor(1), Tensor(2)]), ValueError, "Tensor.stack"),
    case("odd_bytes", lambda: Tensor(b"abc", dtype="float32"), ValueError, "3 bytes", "float32"),
    case(
        "number_too_large",
        lambda: Tensor(10**10),
        ValueError,
        "int32 cannot hold 10000000000",
        "dtype='int64'",
    ),
    case("numbers_too_large", lambda: Tensor([10**10]), ValueError, "dtype='int64'"),
    case("range_too_large", lambda: Tensor(range(10**12)), ValueError, "dtype='int64'"),
    case("float_too_large", lambda: Tensor([1e300]), ValueError, "float32 cannot", "'float64'"),
    case("given_dtype", lambda: Tensor([300], dtype="uint8"), ValueError, "uint8 cannot hold 300"),
    case("fraction", lambda: Tensor([1.5], dtype="int32"), ValueError, "not a whole number"),
    case("nan", lambda: Tensor(float("nan"), dtype="int32"), ValueError, "int32 cannot hold nan"),
    case("requires_grad", lambda: Tensor([1.0], requires_grad="yes"), TypeError, "got 'yes'"),
]


@each(DATA)
def test_data_of_which_no_tensor_can_be_made(wrong: Case) -> None:
    message_of(wrong)


ARRAYS = {
    "transposed": np.arange(6).reshape(2, 3).T,
    "backwards": np.arange(6.0)[::-1],
    "every_other": np.arange(6, dtype=np.int16)[::2],
    "big_endian": np.arange(3, dtype=">i4"),
    "big_endian_backwards": np.arange(3, dtype=">f2")[::-1],
    "big_endian_scalar": np.array(5, dtype=">i8"),
    "without_axes": np.array(5.0),
    "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
    "empty": np.zeros((0, 3), dtype=np.float32),
    "bools": np.array([True, False])[::-1],
    "unaligned": np.frombuffer(b"x" + np.arange(4.0).tobytes(), offset=1, count=4),
    "scalar": np.float32(3),
    "masked": np.ma.array([1, 2], mask=[0, 0]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_every_numeric_array_arrives_as_numpy_sees_it(name: str) -> None:
    array = ARRAYS[name]
    tensor = Tensor(array)
    assert tensor.shape == np.shape(array)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(array))


def test_read_only_array_is_copied_and_never_written() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = Tensor(array)
    tensor[0] = 9
    assert tensor.tolist() == [9.0, 1.0, 2.0]
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_later_writes_to_an_array_do_not_show() -> None:
    array = np.arange(3.0)
    tensor = Tensor(array)
    array[0] = 9
    assert tensor.tolist() == [0.0, 1.0, 2.0]


def test_bytes_with_strides_are_taken_in_order() -> None:
    assert Tensor(memoryview(b"abcdef")[::2]).tolist() == [97, 99, 101]


def test_result_of_numpy_may_be_written_without_reaching_the_tensor() -> None:
    tensor = Tensor([1.0, 2.0])
    array = tensor.numpy()
    array[0] = 9
    assert tensor.tolist() == [1.0, 2.0]


def test_an_array_on_the_left_gives_a_tensor_that_keeps_the_gradient() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (np.array([3.0, 4.0], dtype=np.float32) * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 4.0]
    assert (np.ones((2, 2), dtype=np.float32) @ Tensor.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
    assert (np.arange(2) - Tensor([1, 1])).tolist() == [-1, 0]


def test_an_array_on_the_left_that_does_not_fit_is_told_as_a_tensor_would_be() -> None:
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2,\) do not broadcast"):
        np.ones(2) * Tensor.ones(3)
