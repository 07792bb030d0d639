"""Several outputs of one kernel: over one loop nest, over different ones, and one after another."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.spec import kernel_graph, verify

from .kernels import floats, param
from .stages import check_kernel
from .tensors import check_tensors, holding

GLOBAL, REDUCE = AxisType.GLOBAL, AxisType.REDUCE
ROWS, COLUMNS = 6, 40
V, UPCAST, UNROLL = OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL


def sums_and_maxima() -> UOp:
    """Row sums, column maxima and a scaled copy: three loop nests over one input."""
    x = param(3, ROWS * COLUMNS)
    row, column = UOp.range(ROWS, 0, GLOBAL), UOp.range(COLUMNS, 1, REDUCE)
    other_column, other_row = UOp.range(COLUMNS, 2, GLOBAL), UOp.range(ROWS, 3, REDUCE)
    flat = UOp.range(ROWS * COLUMNS, 4, GLOBAL)
    total = x.index(row * COLUMNS + column).load().reduce(Ops.ADD, column)
    largest = x.index(other_row * COLUMNS + other_column).load().reduce(Ops.MAX, other_row)
    doubled = x.index(flat).load() * UOp.const(dtypes.float32, 2)
    return UOp.sink(
        param(0, ROWS).index(row).store(total).end(row),
        param(1, COLUMNS, writable=True).index(other_column).store(largest).end(other_column),
        param(2, ROWS * COLUMNS, writable=True).index(flat).store(doubled).end(flat),
    )


@pytest.mark.parametrize(
    "opts",
    [
        [],
        [Opt(V, (1,), 8), Opt(V, (2,), 16), Opt(V, (4,), 16)],
        [Opt(UNROLL, (1,), 4), Opt(UPCAST, (4,), 3), Opt(UPCAST, (0,), 2)],
    ],
    ids=["plain", "lanes in each", "copies in each"],
)
def test_loop_nests_of_their_own(opts: list[Opt]) -> None:
    x = floats(ROWS, COLUMNS)
    outputs = [np.zeros(ROWS, np.float32), np.zeros(COLUMNS, np.float32), np.zeros_like(x)]
    expected = {0: x.sum(1), 1: x.max(0), 2: x * 2}
    check_kernel(sums_and_maxima(), [*outputs, x], expected, opts)


@pytest.mark.parametrize("opts", [[], [Opt(V, (0,), 8), Opt(OptOps.THREAD, (0, 0))]], ids=str)
def test_one_loop_nest_for_all(opts: list[Opt]) -> None:
    i = UOp.range(64, 0, GLOBAL)
    value = param(2, 64).index(i).load()
    sink = UOp.sink(
        param(0, 64).index(i).store(value + value).end(i),
        param(1, 64, dtypes.bool, writable=True).index(i).store(value < value * value).end(i),
    )
    x = floats(64)
    arrays = [np.zeros(64, np.float32), np.zeros(64, bool), x]
    checked = check_kernel(sink, arrays, {0: x + x, 1: x < x * x}, opts)
    assert checked.count(Ops.RANGE) == 1


def test_an_output_that_is_read_again_by_a_later_nest() -> None:
    """Powers are stored, summed from where they were stored, and the sum scales a second output."""
    i, j = UOp.range(COLUMNS, 0, GLOBAL), UOp.range(COLUMNS, 1, REDUCE)
    k = UOp.range(COLUMNS, 2, GLOBAL)
    powers = param(0, COLUMNS)
    stored = powers.index(i).store(param(2, COLUMNS).index(i).load().alu(Ops.EXP2)).end(i)
    done = powers.after(stored)
    total = done.index(j).load().reduce(Ops.ADD, j)
    share = done.index(k).load() / total
    sink = UOp.sink(param(1, COLUMNS, writable=True).index(k).store(share).end(k))
    x = floats(COLUMNS)
    power = np.exp2(x.astype(np.float64))
    zeros = np.zeros(COLUMNS, np.float32)
    check_kernel(sink, [zeros, zeros, x], {0: power, 1: power / power.sum()}, [Opt(V, (2,), 8)])


def test_reading_an_output_without_saying_when_is_refused() -> None:
    i, j = UOp.range(4, 0, GLOBAL), UOp.range(4, 1, GLOBAL)
    out = param(0, 4)
    sink = UOp.sink(
        out.index(i).store(UOp.const(dtypes.float32, 1)).end(i),
        param(1, 4, writable=True).index(j).store(out.index(j).load()).end(j),
    )
    with pytest.raises(VerificationError, match="neither feeds the STORE nor comes AFTER it"):
        verify(sink, kernel_graph)


def test_a_loop_that_nothing_ends_is_refused() -> None:
    i = UOp.range(4, 0, GLOBAL)
    sink = UOp.sink(param(0, 4).index(i).store(UOp.const(dtypes.float32, 1)))
    with pytest.raises(VerificationError, match=r"RANGE of axis \(0,\) is never closed by an END"):
        verify(sink, kernel_graph)


def test_tensors_over_one_input_share_a_kernel_with_an_output_each() -> None:
    x = floats(ROWS, COLUMNS)
    source = holding(x)
    doubled = source + source
    check_tensors([doubled, doubled * source], [x + x, (x + x) * x], kernels=1)
