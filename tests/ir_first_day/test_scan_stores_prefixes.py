"""SCAN: every prefix of a loop is a value, with any combine and any number of states."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, Combine, Ops, ReduceArg
from tg_ir.graph.spec import kernel_graph, verify

from .kernels import floats, param
from .stages import check_kernel
from .tensors import check_tensors, holding

GLOBAL, LOOP = AxisType.GLOBAL, AxisType.LOOP
F32, I32 = dtypes.float32, dtypes.int32


def scanned(combine: Combine, values: list[UOp], loop: UOp) -> UOp:
    return UOp(Ops.SCAN, values[0].dtype, (*values, loop), ReduceArg(combine))


def prefixes(rows: int, columns: int, op: Ops, dtype: DType = F32) -> UOp:
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, LOOP)
    place = row * columns + column
    value = param(1, rows * columns, dtype).index(place).load()
    prefix = scanned(Combine.of(op, dtype), [value], column)
    return UOp.sink(param(0, rows * columns, dtype).index(place).store(prefix).end(row, column))


MOVES = {
    "plain": [],
    "lanes": [Opt(OptOps.VECTOR, (0,), 4)],
    "copies": [Opt(OptOps.UPCAST, (0,), 3)],
    "threads": [Opt(OptOps.THREAD, (0,))],
}
moves = pytest.mark.parametrize("opts", MOVES.values(), ids=MOVES)


@moves
def test_running_sum_along_rows(opts: list[Opt]) -> None:
    x = floats(6, 21)
    check_kernel(prefixes(6, 21, Ops.ADD), [np.zeros_like(x), x], {0: x.cumsum(1)}, opts)


def test_running_maximum_of_ints() -> None:
    x = np.array([[3, 1, 4, 1, 5, 9, 2, 6], [-7, -9, -2, -8, -1, 0, -3, 5]], np.int32)
    expected = np.maximum.accumulate(x, 1)
    check_kernel(prefixes(2, 8, Ops.MAX, I32), [np.zeros_like(x), x], {0: expected})


@moves
def test_the_scanned_loop_may_be_outside_of_others(opts: list[Opt]) -> None:
    """A running sum down the columns, the columns innermost: one state for each of them."""
    rows, columns = 5, 6
    row, column = UOp.range(rows, 1, LOOP), UOp.range(columns, 0, GLOBAL)
    place = row * columns + column
    value = param(1, rows * columns).index(place).load()
    prefix = scanned(Combine.of(Ops.ADD, F32), [value], row)
    sink = UOp.sink(param(0, rows * columns).index(place).store(prefix).end(row, column))
    x = floats(rows, columns)
    check_kernel(sink, [np.zeros_like(x), x], {0: x.cumsum(0)}, opts)


@moves
def test_a_scan_over_two_states(opts: list[Opt]) -> None:
    """A linear recurrence y = a*y + b: the states of a prefix are its factor and its offset."""
    rows, steps = 6, 17
    (factor, offset), (a, b) = (
        [UOp(Ops.STATE, F32, (), (side, k)) for k in range(2)] for side in range(2)
    )
    combine = Combine("affine", (1.0, 0.0), (factor * a, a * offset + b))
    row, step = UOp.range(rows, 0, GLOBAL), UOp.range(steps, 1, LOOP)
    place = row * steps + step
    loads = [param(slot, rows * steps).index(place).load() for slot in (1, 2)]
    y = scanned(combine, loads, step).get_tuple(1, F32)
    sink = UOp.sink(param(0, rows * steps).index(place).store(y).end(row, step))
    factors, offsets = floats(rows, steps), floats(rows, steps, seed=1)
    expected = np.zeros((rows, steps))
    state = np.zeros(rows)
    for k in range(steps):
        state = factors[:, k] * state + offsets[:, k]
        expected[:, k] = state
    out = np.zeros((rows, steps), np.float32)
    check_kernel(sink, [out, factors, offsets], {0: expected}, opts, rtol=1e-4)


def test_a_reduction_may_go_on_from_a_prefix() -> None:
    """Largest running sum of each row: a REDUCE may not use the loop of a SCAN, only another."""
    x = floats(3, 12)
    row, column = UOp.range(3, 0, GLOBAL), UOp.range(12, 1, LOOP)
    value = param(1, 36).index(row * 12 + column).load()
    prefix = scanned(Combine.of(Ops.ADD, F32), [value], column)
    again = UOp.range(12, 2, AxisType.REDUCE)
    written = param(0, 36).after(
        param(0, 36).index(row * 12 + column).store(prefix).end(row, column)
    )
    best_row = UOp.range(3, 3, GLOBAL)
    best = written.index(best_row * 12 + again).load().reduce(Ops.MAX, again)
    sink = UOp.sink(param(2, 3, writable=True).index(best_row).store(best).end(best_row))
    sums = x.cumsum(1)
    check_kernel(sink, [np.zeros_like(x), x, np.zeros(3, np.float32)], {0: sums, 2: sums.max(1)})


def test_a_scan_runs_along_one_loop() -> None:
    row, column = UOp.range(3, 0, LOOP), UOp.range(4, 1, LOOP)
    value = param(1, 12).index(row * 4 + column).load()
    arg = ReduceArg(Combine.of(Ops.ADD, F32))
    prefix = UOp(Ops.SCAN, F32, (value, row, column), arg)
    sink = UOp.sink(param(0, 12).index(row * 4 + column).store(prefix).end(row, column))
    with pytest.raises(VerificationError, match="SCAN: runs along one RANGE, got 2"):
        verify(sink, kernel_graph)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_scan_along_any_axis_of_a_tensor(axis: int) -> None:
    x = floats(3, 4, 5)
    source = holding(x)
    arg = ReduceArg(Combine.of(Ops.ADD, F32), (axis,))
    prefix = UOp(Ops.SCAN_AXIS, F32, (source + source,), arg)
    check_tensors([prefix * source], [(2 * x).cumsum(axis) * x])


def test_a_scan_of_a_scan_of_a_tensor() -> None:
    """The sums over all rectangles from a corner."""
    x = floats(5, 6)
    node = holding(x)
    for axis in (1, 0):
        arg = ReduceArg(Combine.of(Ops.ADD, F32), (axis,))
        node = UOp(Ops.SCAN_AXIS, F32, (node,), arg)
    check_tensors([node], [x.cumsum(1).cumsum(0)])
