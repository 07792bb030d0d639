"""STAGE: a tile in registers, scratch or a workspace, in any order of its axes, rows padded."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest
from tg_codegen.errors import LoweringError
from tg_codegen.kernel.pipeline import lower_kernel
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AddrSpace, AxisType, Ops, StageArg
from tg_ir.graph.spec import kernel_graph, verify
from tg_runtime_cpu.thread_pool import split_evenly

from .kernels import floats, param
from .stages import Checked, capabilities, check_kernel, renderer, run_machine_code

GLOBAL, LOOP, UNROLL = AxisType.GLOBAL, AxisType.LOOP, AxisType.UNROLL
LOCAL, REG, WORKSPACE = AddrSpace.LOCAL, AddrSpace.REG, AddrSpace.GLOBAL
SHAPE = (3, 4, 5)


def transposed_blocks(
    blocks: int,
    order: tuple[int, ...] = (0, 1, 2),
    pad: int = 0,
    space: AddrSpace = LOCAL,
    kind: AxisType = LOOP,
) -> UOp:
    """Each block of 3x4x5 elements is staged and stored with its axes reversed."""
    block = UOp.range(blocks, 0, GLOBAL)
    i, j, k = (UOp.range(extent, 1 + n, kind) for n, extent in enumerate(SHAPE))
    out_kind = UNROLL if kind is UNROLL else GLOBAL
    a, b, c = (UOp.range(extent, 4 + n, out_kind) for n, extent in enumerate(reversed(SHAPE)))
    size = int(np.prod(SHAPE))
    value = param(1, blocks * size).index(block * size + (i * 4 + j) * 5 + k).load()
    tile = UOp(Ops.STAGE, dtypes.float32, (value, i, j, k), StageArg(space, SHAPE, order, pad))
    strides = _strides(order, pad)
    read = tile.index(c * strides[0] + b * strides[1] + a * strides[2]).load()
    store = param(0, blocks * size).index(block * size + (a * 4 + b) * 3 + c).store(read)
    return UOp.sink(store.end(block, a, b, c))


def _strides(order: tuple[int, ...], pad: int) -> list[int]:
    """Row-major in `order`, the innermost rows `pad` elements longer."""
    extents = [SHAPE[axis] for axis in order]
    extents[-1] += pad
    strides = [0] * len(order)
    for place, axis in enumerate(order):
        strides[axis] = int(np.prod(extents[place + 1 :]))
    return strides


def run(blocks: int, sink: UOp, opts: list[Opt] | None = None) -> Checked:
    x = floats(blocks, *SHAPE)
    expected = x.transpose(0, 3, 2, 1)
    out = np.zeros(expected.shape, np.float32)
    return check_kernel(sink, [out, x], {0: expected}, opts or [])


@pytest.mark.parametrize("pad", [0, 3])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=str)
@pytest.mark.parametrize("space", [LOCAL, WORKSPACE, REG], ids=lambda space: space.name)
def test_a_tile_is_read_as_it_was_laid_out(
    order: tuple[int, ...], pad: int, space: AddrSpace
) -> None:
    run(2, transposed_blocks(2, order, pad, space))


@pytest.mark.parametrize(
    "opts",
    [
        [Opt(OptOps.VECTOR, (0,), 2)],
        [Opt(OptOps.UPCAST, (0,), 2)],
        [Opt(OptOps.VECTOR, (6,), 4)],
        [Opt(OptOps.UPCAST, (5,), 2), Opt(OptOps.THREAD, (0,))],
    ],
    ids=str,
)
def test_moves_on_the_loops_around_a_tile(opts: list[Opt]) -> None:
    run(4, transposed_blocks(4, (2, 0, 1), 1), opts)


def test_a_tile_in_registers_is_neither_stored_nor_loaded() -> None:
    checked = run(2, transposed_blocks(2, (1, 0, 2), 0, REG, UNROLL))
    assert "alloca" not in checked.text
    assert checked.text.count("load float") == int(np.prod(SHAPE))


def test_a_tile_of_a_worker_is_scratch() -> None:
    checked = run(2, transposed_blocks(2))
    assert checked.lowered.workspaces == ()
    assert checked.text.count("alloca") == 1


@pytest.mark.parametrize("space", [LOCAL, WORKSPACE], ids=["too large for scratch", "asked for"])
def test_a_workspace_has_a_part_for_each_iteration_of_the_workers(space: AddrSpace) -> None:
    blocks, size = 8, int(np.prod(SHAPE))
    small = dataclasses.replace(capabilities(), local_bytes=100)
    sink = transposed_blocks(blocks, (2, 1, 0), space=space)
    lowered = lower_kernel(sink, small, [Opt(OptOps.THREAD, (0,))])
    (workspace,) = lowered.workspaces
    assert workspace.nbytes == blocks * size * 4
    assert lowered.thread_extent == blocks
    x = floats(blocks, *SHAPE)
    out = np.zeros((blocks, *reversed(SHAPE)), np.float32)
    scratch = np.full(blocks * size, np.nan, np.float32)
    views = [memoryview(a.reshape(-1)).cast("B") for a in (out, x, scratch)]
    text = renderer().render(lowered.linear, "kernel")
    assert "alloca" not in text
    workers = [
        threading.Thread(target=run_machine_code, args=(text, views, (), [part]))
        for part in split_evenly(blocks, 4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(out, x.transpose(0, 3, 2, 1))


def test_a_workspace_beyond_all_measure_is_refused() -> None:
    i, row = UOp.range(1 << 24, 1, LOOP), UOp.range(64, 0, GLOBAL)
    value = param(1, 1 << 24).index(i).load() + row.cast(dtypes.float32)
    arg = StageArg(WORKSPACE, (1 << 24,), (0,))
    tile = UOp(Ops.STAGE, dtypes.float32, (value, i), arg)
    sink = UOp.sink(param(0, 64).index(row).store(tile.index(row).load()).end(row))
    with pytest.raises(LoweringError, match="for each of 64 THREAD iterations takes"):
        lower_kernel(sink, capabilities(), [Opt(OptOps.THREAD, (0,))])


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        (StageArg(LOCAL, (3,), (0,)), "has 3 places for a RANGE up to 4"),
        (StageArg(LOCAL, (4,), (1,)), "its shape and order are for its 1 RANGEs"),
        (StageArg(LOCAL, (4,), (0,), -1), "pads by at least 0, got -1"),
    ],
    ids=["too small", "no such axis", "negative pad"],
)
def test_a_tile_that_does_not_fit_its_loops_is_refused(arg: StageArg, message: str) -> None:
    i, out = UOp.range(4, 1, LOOP), UOp.range(4, 0, GLOBAL)
    tile = UOp(Ops.STAGE, dtypes.float32, (param(1, 4).index(i).load(), i), arg)
    sink = UOp.sink(param(0, 4).index(out).store(tile.index(out).load()).end(out))
    with pytest.raises(VerificationError, match=message):
        verify(sink, kernel_graph)
