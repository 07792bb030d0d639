"""Promise 12: indices wrap once, outside they read 0 and write nothing; no index costs a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, nn
from tg_frontend.errors import IndexOutOfRangeError
from tg_ir.graph import Ops, UOp

from .programs import Run

X = np.arange(24, dtype=np.float32).reshape(6, 4) + 1
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def indices(dtype: type, extent: int) -> st.SearchStrategy[int]:
    """Indices of a dtype: near the axis, at the ends of the dtype, and of every size between."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    near = st.integers(max(low, -extent - 2), extent + 2)
    powers = [sign * (1 << k) + d for k in range(64) for sign in (1, -1) for d in (-1, 0, 1, 2)]
    return near | near | st.sampled_from([p for p in powers if low <= p <= high])


def taken(array: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`array[index]` with zeros where the index is outside."""
    extent = len(array)
    rows = [
        array[int(i)] if -extent <= int(i) < extent else np.zeros_like(array[0])
        for i in index.ravel()
    ]
    return np.array(rows).reshape(index.shape + array.shape[1:])


# ---- reading


@settings(max_examples=40)
@given(dtype=st.sampled_from(INTEGERS), data=st.data())
def test_index_of_any_dtype_wraps_once_and_reads_zero_outside(
    run: Run, dtype: type, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(indices(dtype, 6), min_size=8, max_size=8))
    index = np.array(chosen, dtype)

    def program(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return x[i], x[1:4][i], x.T[:, i]

    rows, part, columns = run(program, X, index)
    np.testing.assert_array_equal(rows, taken(X, index))
    np.testing.assert_array_equal(part, taken(X[1:4], index))
    np.testing.assert_array_equal(columns, taken(X, index).T)


@settings(max_examples=25)
@given(dtype=st.sampled_from(INTEGERS), data=st.data())
def test_gather_along_an_axis(run: Run, dtype: type, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(indices(dtype, 4), min_size=12, max_size=12))
    index = np.array(chosen, dtype).reshape(6, 2)
    expected = np.stack([taken(row, i) for row, i in zip(X, index, strict=True)])
    np.testing.assert_array_equal(run(lambda x, i: x.gather(1, i), X, index)[0], expected)


KEYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "rows": lambda x, i, j: x[i],
    "columns": lambda x, i, j: x[:, j],
    "both": lambda x, i, j: x[i, j],
    "outer": lambda x, i, j: x[i[:, None], j[None]],
    "with slice": lambda x, i, j: x[i, 1:3],
    "with negative step": lambda x, i, j: x[::-1, j],
    "new axis": lambda x, i, j: x[None, i],
    "apart": lambda x, i, j: x.reshape(6, 2, 2)[i, :, j % 2],
    "after ellipsis": lambda x, i, j: x[..., j],
    "twice": lambda x, i, j: x[i][j],
}


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(KEYS)),
    rows=st.lists(st.integers(-4, 3), min_size=5, max_size=5),
    columns=st.lists(st.integers(-4, 3), min_size=5, max_size=5),
)
def test_index_arrays_choose_what_numpy_chooses(
    run: Run, name: str, rows: list[int], columns: list[int]
) -> None:
    i, j = np.int32(rows), np.int64(columns)
    np.testing.assert_array_equal(run(KEYS[name], X, i, j)[0], KEYS[name](X, i, j))


def test_bool_array_chooses_what_numpy_chooses() -> None:
    mask = X % 3 == 0
    np.testing.assert_array_equal(Tensor(X)[Tensor(mask)].numpy(), X[mask])
    np.testing.assert_array_equal(Tensor(X)[Tensor(mask[:, 0])].numpy(), X[mask[:, 0]])


# ---- writing


@settings(max_examples=25)
@given(dtype=st.sampled_from(INTEGERS), data=st.data())
def test_write_outside_is_dropped(run: Run, dtype: type, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(indices(dtype, 3), min_size=5, max_size=5))
    index = np.array(chosen, dtype)
    values = 100 + np.arange(20, dtype=np.float32).reshape(5, 4)
    expected = X.copy()
    for i, value in zip(chosen, values, strict=True):
        if -3 <= i < 3:
            expected[1:4][i] = value

    def program(x: Tensor, i: Tensor, value: Tensor) -> Tensor:
        x[1:4][i] = value
        return x

    np.testing.assert_array_equal(run(program, X, index, values)[0], expected)


@pytest.mark.parametrize("reduce", [None, "add"])
def test_scatter_drops_what_is_outside(reduce: str | None, run: Run) -> None:
    index = np.int32([[0, 5, -1, -7], [6, 2, 5, 5]])
    values = np.arange(8, dtype=np.float32).reshape(2, 4) + 100
    expected = X.copy()
    for (row, column), place in np.ndenumerate(index):
        if -6 <= place < 6:
            old = expected[place, column] if reduce else 0
            expected[place, column] = old + values[row, column]

    def program(x: Tensor, i: Tensor, value: Tensor) -> Tensor:
        return x.scatter(0, i, value, reduce=reduce)

    np.testing.assert_array_equal(run(program, X, index, values)[0], expected)


# ---- Python ints


@pytest.mark.parametrize(
    "key",
    [6, -7, (0, 4), (0, -5), (slice(None), 4), [0, 6], np.int64(6), np.array([-7]), (0, 0, 0)],
    ids=str,
)
def test_number_outside_raises_at_once(key: Any) -> None:
    x = Tensor(X)
    with pytest.raises(IndexOutOfRangeError, match=r"out of range|indices for"):
        x[key]
    with pytest.raises(IndexOutOfRangeError, match=r"out of range|indices for"):
        x[key] = 1.0
    np.testing.assert_array_equal(x.numpy(), X)


# ---- large


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint32, np.int64])
def test_tensor_of_more_than_2_to_the_31_elements(dtype: type, run: Run) -> None:
    i, j = np.array([0, 40000, 65535], dtype), np.array([5, 65535, 65535], dtype)

    def program(i: Tensor, j: Tensor) -> tuple[Tensor, ...]:
        table = Tensor.arange(2**32, dtype="int64").reshape(2**16, 2**16)
        return table[i, j], table.reshape(-1)[2**32 - 3 :], table[65535, -2:]

    gathered, end, corner = run(program, i, j)
    np.testing.assert_array_equal(gathered, i.astype(np.int64) * 65536 + j.astype(np.int64))
    np.testing.assert_array_equal(end, 2**32 - np.array([3, 2, 1]))
    np.testing.assert_array_equal(corner, 2**32 - np.array([2, 1]))


# ---- no loop over the indexed axis

VOCABULARY = 1009


def loop_bounds(*tensors: Tensor) -> set[int]:
    """The bounds of all loops in the kernels that would compute these."""
    linear = tensors[0].schedule(*tensors[1:])
    nodes = [node for call in linear.src for node in call.src[0].toposort()]
    return {int(node.src[0].arg) for node in nodes if _is_loop(node)}


def _is_loop(node: UOp) -> bool:
    return node.op is Ops.RANGE and node.src[0].op is Ops.CONST


def _write_rows(table: Tensor, index: Tensor) -> Tensor:
    table[index] = Tensor.ones(3, 8)
    return table


def _write_computed_places(table: Tensor, index: Tensor) -> Tensor:
    table[index * 2, index % 8] += 5.0
    return table


def _embedded(table: Tensor, index: Tensor) -> Tensor:
    layer = nn.Embedding(VOCABULARY, 8)
    layer.weight = table
    return layer(index)


INDEXED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "rows": lambda table, i: table[i],
    "computed": lambda table, i: table[i * 2 + 1] * 2 + 1,
    "both axes": lambda table, i: table[i, i % 8],
    "columns": lambda table, i: table.T[:, i],
    "gather": lambda table, i: table.gather(0, i.reshape(3, 1).expand(3, 8)),
    "sum of rows": lambda table, i: table[i].sum(0),
    "embedding": _embedded,
    "write": _write_rows,
    "update": _write_computed_places,
}


@pytest.mark.parametrize("name", INDEXED)
def test_indexing_has_no_loop_over_the_indexed_axis(name: str) -> None:
    table = Tensor.ones(VOCABULARY, 8).realize()
    index = Tensor(np.int32([5, 1000, 3]))
    result = INDEXED[name](table, index)
    bounds = loop_bounds(result)
    assert bounds
    assert max(bounds) <= 24
