"""Brackets, gather, scatter, setitem, sorting: values exactly, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tg_frontend import Tensor

from .compare import FLOATS, INTS, check, tensor_of

SHAPE = (4, 5, 6)

KEYS: dict[str, Any] = {
    "int": 1,
    "negative_int": -1,
    "ints": (1, -2),
    "slice": slice(1, 3),
    "open_slice": (slice(None), slice(2, None)),
    "beyond": slice(1, 100),
    "step": (slice(None, None, 2), slice(1, None, 3)),
    "none": (None, 1, slice(None), None),
    "ellipsis": (..., 2),
    "ellipsis_middle": (1, ..., slice(0, 3)),
    "empty_slice": slice(3, 1),
    "list": [0, 2, 2],
    "list_axis_1": (slice(None), [4, -5, 1]),
    "two_lists": ([0, 1, 3], [2, -1, 0]),
    "list_and_int": ([0, 1], 2),
    "apart": ([0, 1], slice(None), [3, 5]),
    "together": (slice(None), [0, 1], [3, 5]),
    "broadcast_lists": ([[0], [1]], [[1, 2, 4]]),
    "list_none": ([0, 1], None, slice(1, 3)),
    "int_apart_from_list": (0, slice(None), [1, 1, 2]),
    "list_after_ellipsis": (..., [0, 5]),
}


@pytest.mark.parametrize("name", KEYS)
def test_read(name: str, rng: np.random.Generator) -> None:
    key = KEYS[name]
    check(lambda x: x[key], lambda x: x[key], rng.uniform(-2, 2, SHAPE), tolerance=(1e-6, 0))


@pytest.mark.parametrize("index_dtype", INTS)
def test_read_by_index_tensors_of_each_width(index_dtype: str, rng: np.random.Generator) -> None:
    index = rng.integers(0, 4, (3, 2)).astype(index_dtype)
    check(lambda x, i: x[i], lambda x, i: x[i.long()], rng.uniform(-2, 2, SHAPE), index)


def test_read_by_mask(rng: np.random.Generator) -> None:
    mask = rng.random(SHAPE) > 0.5
    rows = np.array([True, False, True, True])
    check(lambda x, m: x[m], lambda x, m: x[m], rng.uniform(-2, 2, SHAPE), mask)
    check(lambda x, m: x[m], lambda x, m: x[m], rng.uniform(-2, 2, SHAPE), rows)
    check(lambda x, m: x[m, 1:3], lambda x, m: x[m, 1:3], rng.uniform(-2, 2, SHAPE), rows)
    check(lambda x, m: x.masked_select(m), lambda x, m: x.masked_select(m),
          rng.uniform(-2, 2, SHAPE), mask)


def test_nonzero(rng: np.random.Generator) -> None:
    for shape in ((6,), (3, 4), (2, 3, 2)):
        check(lambda x: x.nonzero(), lambda x: x.nonzero(),
              rng.integers(0, 2, shape).astype(np.int32), same_dtype=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather(dim: int, dtype: str, rng: np.random.Generator) -> None:
    index = rng.integers(0, 4, (3, 4, 2))
    check(lambda x, i: x.gather(dim, i), lambda x, i: x.gather(dim, i),
          rng.uniform(-2, 2, SHAPE), index, dtype=dtype)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter(dim: int, rng: np.random.Generator) -> None:
    shape = (3, 4, 2)
    # no doubles: which of them wins is not fixed in torch
    index = np.argsort(rng.random(shape), axis=dim)
    x, source = rng.uniform(-2, 2, SHAPE), rng.uniform(-2, 2, shape)
    check(lambda x, i, s: x.scatter(dim, i, s), lambda x, i, s: x.scatter(dim, i, s),
          x, index, source)
    check(lambda x, i: x.scatter(dim, i, 3.0), lambda x, i: x.scatter(dim, i, 3.0), x, index)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scatter_that_adds(dim: int, dtype: str, rng: np.random.Generator) -> None:
    index = rng.integers(0, 3, (3, 4, 2))
    check(lambda x, i, s: x.scatter(dim, i, s, reduce="add"),
          lambda x, i, s: x.scatter_add(dim, i, s),
          rng.uniform(-2, 2, SHAPE), index, rng.uniform(-2, 2, (3, 4, 2)), dtype=dtype)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_scatter_reduce(reduce: str, include_self: bool, rng: np.random.Generator) -> None:
    index = rng.integers(0, 4, (3, 5, 2))
    for dim in (0, 2):
        check(
            lambda x, i, s, d=dim: x.scatter_reduce(d, i, s, reduce, include_self=include_self),
            lambda x, i, s, d=dim: x.scatter_reduce(d, i, s, reduce, include_self=include_self),
            rng.uniform(0.5, 2, SHAPE), index, rng.uniform(0.5, 2, (3, 5, 2)),
            gradient=reduce != "prod",
        )


def test_one_hot(rng: np.random.Generator) -> None:
    check(lambda x: x.one_hot(6), lambda x: torch.nn.functional.one_hot(x, 6),
          rng.integers(0, 6, (3, 4)), same_dtype=False)


WRITES: dict[str, Any] = {name: KEYS[name] for name in KEYS if name not in ("list",)}


@pytest.mark.parametrize("name", WRITES)
def test_write(name: str, rng: np.random.Generator) -> None:
    key = WRITES[name]
    x = rng.uniform(-2, 2, SHAPE).astype(np.float32)
    theirs = torch.from_numpy(x.copy())
    value = rng.uniform(-2, 2, tuple(theirs[key].shape)).astype(np.float32)
    ours = Tensor(x.copy())
    ours[key] = Tensor(value)
    theirs[key] = torch.from_numpy(value)
    assert np.array_equal(ours.numpy(), theirs.numpy())
    ours[key] = 7
    theirs[key] = 7
    assert np.array_equal(ours.numpy(), theirs.numpy())
    ours[key] += 1
    theirs[key] += 1
    assert np.array_equal(ours.numpy(), theirs.numpy())


def test_write_by_mask(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, SHAPE).astype(np.float32)
    ours, theirs = Tensor(x.copy()), torch.from_numpy(x.copy())
    ours[ours > 0.5] = 0
    theirs[theirs > 0.5] = 0
    assert np.array_equal(ours.numpy(), theirs.numpy())
    rows = np.array([True, False, False, True])
    ours[Tensor(rows)] = 3
    theirs[torch.from_numpy(rows)] = 3
    assert np.array_equal(ours.numpy(), theirs.numpy())


def test_gradient_through_a_write(rng: np.random.Generator) -> None:
    def ours(x: Tensor, y: Tensor) -> Tensor:
        z = x * 2
        z[1:3, ::2] = y
        return z * z

    def theirs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x * 2
        z[1:3, ::2] = y
        return z * z

    check(ours, theirs, rng.uniform(-2, 2, (4, 6)), rng.uniform(-2, 2, (2, 3)))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTS])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 16])
def test_sort(size: int, descending: bool, dtype: str, rng: np.random.Generator) -> None:
    whole = dtype in INTS
    x = rng.integers(0, 100, (2, size)).astype(dtype) if whole else rng.permutation(
        2 * size).reshape(2, size) * 0.25
    for dim in (0, 1):
        check(lambda t, d=dim: t.sort(d, descending),
              lambda t, d=dim: t.sort(dim=d, descending=descending, stable=True),
              x, dtype=dtype if not whole else None, same_dtype=False)


def test_argsort_of_equal_elements_keeps_their_order(rng: np.random.Generator) -> None:
    x = rng.integers(0, 3, (3, 20)).astype(np.float32)
    for descending in (False, True):
        check(lambda t, d=descending: t.argsort(1, descending=d),
              lambda t, d=descending: t.argsort(dim=1, descending=d, stable=True),
              x, same_dtype=False, gradient=False)


def test_sort_of_special_values() -> None:
    x = np.array([[1.0, np.nan, -np.inf, 0.0, np.inf, np.nan, -1.0]])
    for descending in (False, True):
        check(lambda t, d=descending: t.sort(1, descending=d)[0],
              lambda t, d=descending: t.sort(dim=1, descending=d, stable=True).values,
              x, gradient=False)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_topk(k: int, largest: bool, rng: np.random.Generator) -> None:
    x = rng.permutation(27).reshape(3, 9) * 0.5
    check(lambda t: t.topk(k, 1, largest), lambda t: t.topk(k, 1, largest), x, same_dtype=False)


def test_a_view_writes_to_its_base_as_in_torch(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, (4, 6)).astype(np.float32)
    theirs = torch.from_numpy(x.copy())
    ours = tensor_of(theirs)
    for base in (ours, theirs):
        view = base[1:3]
        view[:, 2] = 9
        base.transpose(0, 1)[0] = 4
        base.reshape(3, 8)[1] = 5
    assert np.array_equal(ours.numpy(), theirs.numpy())
