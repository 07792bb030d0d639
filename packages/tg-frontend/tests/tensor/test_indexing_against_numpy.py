"""Reading and writing parts of tensors, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tg_frontend import Tensor, dtypes

SHAPE = (4, 3, 5)


def numbers() -> np.ndarray:
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


BASIC = hnp.basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True, max_dims=5)


@given(key=BASIC)
@settings(max_examples=80)
def test_reading_by_ints_and_slices_matches_numpy(key):
    expected = numbers()[key]
    result = Tensor(numbers())[key]
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.numpy(), expected)


@given(key=BASIC, data=st.data())
@settings(max_examples=80)
def test_writing_by_ints_and_slices_matches_numpy(key, data):
    expected = numbers()
    tensor = Tensor(numbers())
    chosen = expected[key]
    if data.draw(st.booleans()):
        value = np.float32(-1)
        tensor[key] = -1
    else:
        value = -np.arange(chosen.size, dtype=np.float32).reshape(np.shape(chosen))
        tensor[key] = Tensor(value)
    expected[key] = value
    np.testing.assert_array_equal(tensor.numpy(), expected)


ADVANCED = {
    "list": [2, 0, 2],
    "negative_list": [-1, 1],
    "array": np.array([[0, 1], [3, 2]]),
    "two_arrays": (np.array([0, 3]), np.array([2, 1])),
    "broadcast_arrays": (np.array([[0], [3]]), np.array([2, 1])),
    "array_after_slice": (slice(None), [2, 0]),
    "arrays_after_slice": (slice(1, 3), [2, 0], [1, 4]),
    "arrays_apart": ([0, 1], slice(None), [1, 4]),
    "array_and_steps": (slice(None, None, -1), slice(None), [4, 0, 1]),
    "array_after_none": (None, [1, 2]),
    "array_after_ellipsis": (Ellipsis, [1, 2]),
    "three_arrays": ([0, 1], [2, 1], [3, 4]),
}


@pytest.mark.parametrize("name", ADVANCED)
def test_reading_by_index_tensors_matches_numpy(name):
    key = ADVANCED[name]
    expected = numbers()[key]
    result = Tensor(numbers())[key]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("name", ADVANCED)
def test_writing_by_index_tensors_matches_numpy(name):
    key = ADVANCED[name]
    expected, tensor = numbers(), Tensor(numbers())
    value = -np.arange(expected[key].size, dtype=np.float32).reshape(expected[key].shape)
    expected[key] = value
    tensor[key] = Tensor(value)
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_index_tensors_of_any_int_dtype(kind):
    big = np.arange(300, dtype=np.float32)
    index = np.array([0, 3, 120], kind)
    np.testing.assert_array_equal(Tensor(big)[Tensor(index)].numpy(), big[index])


def test_an_index_tensor_out_of_range_reads_zero_and_writes_nothing():
    x = Tensor(np.arange(1, 5, dtype=np.float32))
    index = Tensor([0, 4, -5, -1, 100000])
    np.testing.assert_array_equal(x[index].numpy(), [1, 0, 0, 4, 0])
    x[index] = 9
    np.testing.assert_array_equal(x.numpy(), [9, 2, 3, 9])


def test_of_doubles_the_last_write_wins():
    x = Tensor.zeros(3)
    x[Tensor([1, 1, 0, 1])] = Tensor([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(x.numpy(), [3, 4, 0])


def test_reading_by_masks_matches_numpy():
    a = numbers()
    for mask in (a > 30, a[:, :, 0] > 20, np.array([True, False, True, False])):
        np.testing.assert_array_equal(Tensor(a)[Tensor(mask)].numpy(), a[mask])
    columns = np.array([True, False, True, True, False])
    np.testing.assert_array_equal(Tensor(a)[..., Tensor(columns)].numpy(), a[..., columns])
    np.testing.assert_array_equal(Tensor(a).masked_select(Tensor(a > 50)).numpy(), a[a > 50])
    np.testing.assert_array_equal(Tensor(a > 57).nonzero().numpy(), np.argwhere(a > 57))


def test_writing_by_masks_matches_numpy():
    a = numbers()
    for mask in (a > 30, a[:, :, 0] > 20, np.array([True, False, True, False])):
        for value in (np.float32(-1), None):
            expected, tensor = a.copy(), Tensor(a)
            written = value
            if written is None:
                written = -np.arange(a[mask].size, dtype=np.float32).reshape(a[mask].shape)
            expected[mask] = written
            tensor[Tensor(mask)] = -1 if value is not None else Tensor(written)
            np.testing.assert_array_equal(tensor.numpy(), expected)


def test_mask_with_slices_writes_where_it_is_true():
    a, tensor = numbers(), Tensor(numbers())
    mask = np.array([True, False, True, True, False])
    a[1:3, :, mask] = 7
    tensor[1:3, :, Tensor(mask)] = 7
    np.testing.assert_array_equal(tensor.numpy(), a)


def test_in_place_operators_on_parts_match_numpy():
    a, tensor = numbers(), Tensor(numbers())
    a[1:, 0] += 10
    tensor[1:, 0] += 10
    a[:, [0, 2]] *= 2
    tensor[:, [0, 2]] *= 2
    a[0][1][2] = -5
    tensor[0][1][2] = -5
    a.T[0] -= 1
    t = tensor.T
    t[0] -= 1
    # numpy's T of three axes reverses all of them, ours exchanges the first two
    expected = numbers()
    expected[1:, 0] += 10
    expected[:, [0, 2]] *= 2
    expected[0][1][2] = -5
    expected.swapaxes(0, 1)[0] -= 1
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_shifting_a_tensor_onto_itself_reads_before_it_writes():
    a = np.arange(8, dtype=np.float32)
    x = Tensor(a)
    x[1:] = x[:-1]
    np.testing.assert_array_equal(x.numpy(), [0, 0, 1, 2, 3, 4, 5, 6])
    x[:-1] = x[1:]
    np.testing.assert_array_equal(x.numpy(), [0, 1, 2, 3, 4, 5, 6, 6])
    x[::-1] = x
    np.testing.assert_array_equal(x.numpy(), [6, 6, 5, 4, 3, 2, 1, 0])


def test_gather_and_scatter_match_numpy():
    a = numbers()[0]
    index = np.array([[4, 0], [1, 1], [-1, 2]])
    wrapped = index % 5
    np.testing.assert_array_equal(
        Tensor(a).gather(1, Tensor(index)).numpy(), np.take_along_axis(a, wrapped, 1)
    )
    source = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    expected = a.copy()
    added = a.copy()
    for i in range(3):
        for j in range(2):
            expected[i, wrapped[i, j]] = source[i, j]
            added[i, wrapped[i, j]] += source[i, j]
    x = Tensor(a)
    np.testing.assert_array_equal(x.scatter(1, Tensor(index), Tensor(source)).numpy(), expected)
    np.testing.assert_array_equal(
        x.scatter(1, Tensor(index), Tensor(source), reduce="add").numpy(), added
    )
    np.testing.assert_array_equal(x.numpy(), a)


def test_one_hot_has_a_one_at_each_class():
    classes = np.array([[0, 2], [1, 3]])
    result = Tensor(classes).one_hot(4)
    assert result.dtype is dtypes.int32
    np.testing.assert_array_equal(result.numpy(), np.eye(4, dtype=np.int32)[classes])


def test_empty_selections_have_a_shape():
    x = Tensor(numbers())
    assert x[2:2].shape == (0, 3, 5)
    assert x[2:2].numpy().shape == (0, 3, 5)
    assert x[[]].shape == (0, 3, 5)
    x[2:2] = 1
    np.testing.assert_array_equal(x.numpy(), numbers())
