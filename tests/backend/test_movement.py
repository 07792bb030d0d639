"""Shapes and indexing: nothing is computed, everything is somewhere else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor

from .modes import Evaluate

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

MOVEMENTS: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray]] = {
    "cat": (lambda x: x.cat(x, dim=1), np.concatenate([X, X], 1)),
    "expand": (lambda x: x[:, :1].expand(2, 5, 4), np.broadcast_to(X[:, :1], (2, 5, 4))),
    "flip": (lambda x: x.flip((0, 2)), X[::-1, :, ::-1]),
    "pad": (lambda x: x.pad(((0, 1), (2, 0), (0, 0))), np.pad(X, ((0, 1), (2, 0), (0, 0)))),
    "permute": (lambda x: x.permute(2, 0, 1), X.transpose(2, 0, 1)),
    "repeat": (lambda x: x.repeat(2, 1, 3), np.tile(X, (2, 1, 3))),
    "reshape": (lambda x: x.reshape(4, -1), X.reshape(4, -1)),
    "shrink": (lambda x: x.shrink(((0, 2), (1, 3), (0, 1))), X[0:2, 1:3, 0:1]),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1), X),
    "stack": (lambda x: Tensor.stack(x, x, dim=0), np.stack([X, X])),
    "transpose": (lambda x: x.transpose(0, 2), X.swapaxes(0, 2)),
    "after_each_other": (
        lambda x: x.permute(1, 0, 2).reshape(3, 8).flip(1)[1:, ::2],
        X.transpose(1, 0, 2).reshape(3, 8)[:, ::-1][1:, ::2],
    ),
}

INDICES = [
    1,
    -1,
    slice(None, None, -1),
    slice(1, None),
    (0, slice(None), slice(3, 0, -2)),
    (Ellipsis, 2),
    (None, 1),
    (slice(None), None, Ellipsis, slice(0, 3, 2)),
    (slice(None), slice(2, 2)),
]


@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name: str, evaluate: Evaluate) -> None:
    function, expected = MOVEMENTS[name]
    np.testing.assert_array_equal(evaluate(function, X), expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_basic_index(index: object, evaluate: Evaluate) -> None:
    np.testing.assert_array_equal(evaluate(lambda x: x[index], X), X[index])


def test_integer_tensor_index(evaluate: Evaluate) -> None:
    i = np.array([[1, 0], [-1, 1]], np.int32)
    np.testing.assert_array_equal(evaluate(lambda x, i: x[i], X, i), X[i])
    np.testing.assert_array_equal(evaluate(lambda x, i: x[:, i], X, i), X[:, i])


def test_integer_tensor_indices_broadcast(evaluate: Evaluate) -> None:
    i = np.array([[0], [1]], np.int32)
    j = np.array([2, 0, 1], np.int64)
    np.testing.assert_array_equal(evaluate(lambda x, i, j: x[i, j], X, i, j), X[i, j])


def test_bool_tensor_index_of_eager_tensor() -> None:
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(Tensor(X)[:, Tensor(mask)].numpy(), X[:, mask])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_index_of_any_width(dtype: type, evaluate: Evaluate) -> None:
    i = np.array([2, 0, 1], dtype)
    np.testing.assert_array_equal(evaluate(lambda x, i: x[:, i], X, i), X[:, i])


def test_index_tensor_out_of_range_reads_zero(evaluate: Evaluate) -> None:
    i = np.array([0, 5, -9], np.int32)
    expected = np.stack([X[0], np.zeros((3, 4)), np.zeros((3, 4))])
    np.testing.assert_array_equal(evaluate(lambda x, i: x[i], X, i), expected)


def test_gather_along_an_axis(evaluate: Evaluate, rng: np.random.Generator) -> None:
    i = rng.integers(0, 4, (2, 3, 2)).astype(np.int32)
    result = evaluate(lambda x, i: x.gather(2, i), X, i)
    np.testing.assert_array_equal(result, np.take_along_axis(X, i, 2))


@pytest.mark.parametrize("index", INDICES[:-1], ids=str)
def test_setitem_writes_what_numpy_writes(index: object) -> None:
    tensor = Tensor(X).contiguous().realize()
    expected = X.copy()
    tensor[index] = 7.0
    expected[index] = 7.0
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_setitem_with_integer_tensor() -> None:
    tensor = Tensor(X).contiguous().realize()
    expected = X.copy()
    i = np.array([1, 0], np.int32)
    tensor[:, Tensor(i)] = Tensor(np.float32([[1.0], [2.0]]))
    expected[:, i] = np.float32([[1.0], [2.0]])
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_shifted_copy_onto_itself_reads_before_it_writes() -> None:
    tensor = Tensor(np.arange(6, dtype=np.float32)).contiguous().realize()
    tensor[1:] = tensor[:-1]
    np.testing.assert_array_equal(tensor.numpy(), [0, 0, 1, 2, 3, 4])


def test_view_keeps_its_value_when_the_base_is_written() -> None:
    tensor = Tensor(X).contiguous().realize()
    view = tensor[0]
    tensor[0] = 5.0
    np.testing.assert_array_equal(view.numpy(), X[0])
    np.testing.assert_array_equal(tensor.numpy()[0], np.full((3, 4), 5.0))


def test_swap_through_temporaries() -> None:
    a = Tensor(np.float32([1, 2])).contiguous().realize()
    b = Tensor(np.float32([3, 4])).contiguous().realize()
    old_a, old_b = a + 0, b + 0
    a.assign(old_b)
    b.assign(old_a)
    np.testing.assert_array_equal(a.numpy(), [3, 4])
    np.testing.assert_array_equal(b.numpy(), [1, 2])
