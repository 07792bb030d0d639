"""GATHER and SCATTER: positions that are read from memory, with no loop over the indexed axis."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import OutOfRangeError, VerificationError
from tg_ir.graph.evaluate import run_kernel_graph
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.spec import kernel_graph, tensor_graph, verify
from tg_ir.graph.uop import as_index

from .kernels import floats, param
from .stages import check_kernel
from .tensors import check_tensors, holding

GLOBAL, LOOP = AxisType.GLOBAL, AxisType.LOOP
F32, I32 = dtypes.float32, dtypes.int32
ROWS, WIDTH = 7, 18
V, UPCAST, THREAD = OptOps.VECTOR, OptOps.UPCAST, OptOps.THREAD
MOVES = {
    "plain": [],
    "lanes of a row": [Opt(V, (1,), 16)],
    "lanes of indices": [Opt(V, (0,), 4)],
    "copies and threads": [Opt(UPCAST, (1,), 3), Opt(THREAD, (0,))],
}
moves = pytest.mark.parametrize("opts", MOVES.values(), ids=MOVES)


def rows_by_index(tokens: int, index_dtype: DType = I32) -> UOp:
    token, column = UOp.range(tokens, 0, GLOBAL), UOp.range(WIDTH, 1, GLOBAL)
    which = param(1, tokens, index_dtype).index(token).load().cast(dtypes.index)
    wrapped = (which < 0).where(which + ROWS, which)
    inside = (as_index(-1) < wrapped) & (wrapped < ROWS)
    value = param(2, ROWS * WIDTH).index(wrapped * WIDTH + column, inside).load()
    store = param(0, tokens * WIDTH).index(token * WIDTH + column).store(value)
    return UOp.sink(store.end(token, column))


@moves
def test_rows_are_gathered_wrapped_once_and_zero_outside(opts: list[Opt]) -> None:
    at = np.array([0, 6, -1, -7, 3, 3, 7, -8, 1000], np.int32)
    table = floats(ROWS, WIDTH)
    valid = (at >= -ROWS) & (at < ROWS)
    expected = np.where(valid[:, None], table[np.where(valid, at, 0)], 0).astype(np.float32)
    out = np.zeros((9, WIDTH), np.float32)
    checked = check_kernel(rows_by_index(9), [out, at, table], {0: expected}, opts)
    loops = [n for n in checked.lowered.linear if n.op is Ops.RANGE]
    assert all(int(loop.src[0].arg) in (3, 6, 9, WIDTH, 2) for loop in loops)


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8, dtypes.int64, dtypes.uint64])
def test_indices_of_any_int_dtype_are_widened(dtype: DType) -> None:
    kind = np.dtype(dtype.name)
    at = np.array([0, 6, 5, 2, kind.type(-1) if kind.kind == "i" else 200], kind)
    table = floats(ROWS, WIDTH)
    expected = np.zeros((5, WIDTH), np.float32)
    for row, index in enumerate(at):
        if -ROWS <= int(index) < ROWS:
            expected[row] = table[int(index)]
    out = np.zeros((5, WIDTH), np.float32)
    check_kernel(rows_by_index(5, dtype), [out, at, table], {0: expected})


def scattered(count: int, slots: int, *, add: bool) -> UOp:
    """In the order of a LOOP; positions outside are dropped."""
    i = UOp.range(count, 0, LOOP)
    which = param(1, count, I32).index(i).load().cast(dtypes.index)
    inside = (as_index(-1) < which) & (which < slots)
    place = param(0, slots).index(which, inside)
    value = param(2, count).index(i).load()
    return UOp.sink(place.store(place.load() + value if add else value).end(i))


def test_of_duplicates_the_last_write_wins() -> None:
    at = np.array([3, 1, 3, 9, -1, 1, 0, 3], np.int32)
    x = floats(8)
    expected = np.full(4, 7, np.float32)
    for place, value in zip(at, x, strict=True):
        if 0 <= place < 4:
            expected[place] = value
    check_kernel(scattered(8, 4, add=False), [np.full(4, 7, np.float32), at, x], {0: expected})


def test_a_scatter_that_adds_counts_every_duplicate() -> None:
    at = np.array([3, 1, 3, 9, -1, 1, 0, 3], np.int32)
    x = floats(8)
    expected = np.full(4, 7, np.float32)
    valid = (at >= 0) & (at < 4)
    np.add.at(expected, at[valid], x[valid])
    check_kernel(scattered(8, 4, add=True), [np.full(4, 7, np.float32), at, x], {0: expected})


def test_a_scatter_by_independent_iterations_that_reads_what_it_writes_is_refused() -> None:
    i = UOp.range(8, 0, GLOBAL)
    out = param(0, 8)
    shifted = out.index((i + 1) % 8).load()
    with pytest.raises(VerificationError, match="another iteration of the same independent loops"):
        verify(UOp.sink(out.index(i).store(shifted).end(i)), kernel_graph)


def test_the_evaluator_reports_an_index_that_no_mask_guards() -> None:
    i = UOp.range(4, 0, GLOBAL)
    which = param(1, 4, I32).index(i).load().cast(dtypes.index)
    sink = UOp.sink(param(0, 4).index(i).store(param(2, 4).index(which).load()).end(i))
    arrays = (np.zeros(4, np.float32), np.array([0, 1, 4, 2], np.int32), floats(4))
    with pytest.raises(OutOfRangeError, match="touches element 4 of a buffer of 4 elements"):
        run_kernel_graph(sink, [memoryview(a).cast("B") for a in arrays])


# ---- as tensors


def test_a_gather_by_two_indices_of_a_tensor() -> None:
    x, rows, columns = floats(5, 3, 4), np.array([0, -1, 9, 2]), np.array([3, 0, 0, -4])
    table, i, j = holding(x), holding(rows.astype(np.int32)), holding(columns.astype(np.int64))
    node = UOp(Ops.GATHER, F32, (table, i, j), (0, 2))
    valid = (rows >= -5) & (rows < 5) & (columns >= -4) & (columns < 4)
    expected = np.where(valid[:, None], x[np.where(valid, rows, 0), :, columns % 4], 0)
    check_tensors([node], [expected.astype(np.float32)])


@pytest.mark.parametrize("add", [False, True], ids=["last wins", "adds"])
def test_a_write_through_a_gather_of_a_tensor(add: bool) -> None:
    x, at = floats(6), np.array([4, 0, 4, -1, 77], np.int32)
    values = floats(5, seed=3)
    version = holding(x)
    target = UOp(Ops.GATHER, F32, (version, holding(at)), (0,))
    after = version.after(target.store(holding(values), Ops.ADD if add else None))
    expected = x.copy()
    for place, value in zip(at, values, strict=True):
        if -6 <= place < 6:
            expected[place] = expected[place] + value if add else value
    check_tensors([after], [expected])


def test_indices_are_ints() -> None:
    node = UOp(Ops.GATHER, F32, (holding(floats(4)), holding(floats(2))), (0,))
    with pytest.raises(VerificationError, match="GATHER: its indices are ints"):
        verify(UOp.sink(node), tensor_graph)
