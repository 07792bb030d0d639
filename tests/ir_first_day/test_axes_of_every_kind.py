"""Axis kinds: what the iterations of a RANGE mean, and that lowering keeps it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tg_codegen.kernel.pipeline import lower_kernel
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.evaluate import run_kernel_graph, run_linear_kernel
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.spec import kernel_graph, linear_kernel, verify
from tg_runtime_cpu.thread_pool import split_evenly

from .kernels import floats, param
from .stages import capabilities, check_kernel, renderer, run_machine_code

EXTENT, INNER = 12, 8
F32 = dtypes.float32


def scaled(outer: AxisType, inner: AxisType) -> UOp:
    """out[i, j] = x[i, j] * (i + 1)."""
    i, j = UOp.range(EXTENT, 0, outer), UOp.range(INNER, 1, inner)
    place = i * INNER + j
    value = param(1, EXTENT * INNER).index(place).load() * (i + 1).cast(F32)
    return UOp.sink(param(0, EXTENT * INNER).index(place).store(value).end(i, j))


OUTER = [AxisType.GLOBAL, AxisType.THREAD, AxisType.LOOP, AxisType.UNROLL, AxisType.LOCAL]
INNERS = [AxisType.GLOBAL, AxisType.LOCAL, AxisType.LOOP, AxisType.VECTOR, AxisType.UNROLL]


@pytest.mark.parametrize("inner", INNERS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("outer", OUTER, ids=lambda kind: kind.name)
def test_independent_iterations_may_be_of_any_kind(outer: AxisType, inner: AxisType) -> None:
    x = floats(EXTENT, INNER)
    expected = x * np.arange(1, EXTENT + 1, dtype=np.float32)[:, None]
    checked = check_kernel(scaled(outer, inner), [np.zeros_like(x), x], {0: expected})
    kinds = {node.arg.kind for node in checked.lowered.linear if node.op is Ops.RANGE}
    assert not kinds & {AxisType.VECTOR, AxisType.UNROLL}


@pytest.mark.parametrize("kind", [AxisType.REDUCE, AxisType.VECTOR, AxisType.UNROLL, AxisType.LOOP])
def test_a_sum_may_run_in_a_loop_in_lanes_or_in_copies(kind: AxisType) -> None:
    i, k = UOp.range(EXTENT, 0, AxisType.GLOBAL), UOp.range(INNER, 1, kind)
    total = param(1, EXTENT * INNER).index(i * INNER + k).load().reduce(Ops.ADD, k)
    x = floats(EXTENT, INNER)
    sink = UOp.sink(param(0, EXTENT).index(i).store(total).end(i))
    check_kernel(sink, [np.zeros(EXTENT, np.float32), x], {0: x.sum(1)})


def test_a_loop_runs_in_order() -> None:
    """Each element is made of the one before, which the same loop wrote."""
    i = UOp.range(EXTENT, 0, AxisType.LOOP)
    out = param(0, EXTENT + 1)
    product = out.index(i).load() * param(1, EXTENT).index(i).load()
    sink = UOp.sink(out.index(i + 1).store(product).end(i))
    x = floats(EXTENT)
    start = np.zeros(EXTENT + 1, np.float32)
    start[0] = 3
    expected = 3 * np.concatenate([[1], np.cumprod(x.astype(np.float64))])
    check_kernel(sink, [start, x], {0: expected})


def test_the_iterations_of_a_thread_axis_are_shared_among_workers() -> None:
    lowered = lower_kernel(scaled(AxisType.THREAD, AxisType.VECTOR), capabilities(), [])
    assert lowered.thread_extent == EXTENT
    x = floats(EXTENT, INNER)
    expected = x * np.arange(1, EXTENT + 1, dtype=np.float32)[:, None]
    text = renderer().render(lowered.linear, "kernel")
    out = np.zeros_like(x)
    views = [memoryview(a.reshape(-1)).cast("B") for a in (out, x)]
    workers = [
        threading.Thread(target=run_machine_code, args=(text, views, (), [part]))
        for part in split_evenly(EXTENT, 5)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("parts", [[(0, 4)], [(4, 12)], [(3, 3)], [(8, 12), (0, 1)]], ids=str)
def test_a_worker_runs_its_part_only(parts: list[tuple[int, int]]) -> None:
    linear = lower_kernel(scaled(AxisType.THREAD, AxisType.GLOBAL), capabilities(), []).linear
    x = floats(EXTENT, INNER)
    wanted = np.full_like(x, -1)
    for begin, end in parts:
        rows = np.arange(begin, end, dtype=np.float32)[:, None] + 1
        wanted[begin:end] = x[begin:end] * rows
    for run in ("evaluated", "machine code"):
        out = np.full_like(x, -1)
        views = [memoryview(a.reshape(-1)).cast("B") for a in (out, x)]
        if run == "machine code":
            run_machine_code(renderer().render(linear, "kernel"), views, (), parts)
        else:
            for begin, end in parts:
                run_linear_kernel(linear, views, (), begin, end)
        np.testing.assert_array_equal(out, wanted, run)


def test_each_device_of_a_device_axis_does_its_part() -> None:
    """No runtime runs this kind yet: the spec takes it, and the evaluator says what it means."""
    device, i = UOp.range(3, 0, AxisType.DEVICE), UOp.range(4, 1, AxisType.GLOBAL)
    place = device * 4 + i
    value = param(1, 12).index(place).load() * (device + 1).cast(F32)
    sink = UOp.sink(param(0, 12).index(place).store(value).end(device, i))
    verify(sink, kernel_graph)
    x, out = floats(3, 4), np.zeros((3, 4), np.float32)
    run_kernel_graph(sink, [memoryview(a.reshape(-1)).cast("B") for a in (out, x)])
    np.testing.assert_array_equal(out, x * np.array([[1], [2], [3]], np.float32))


@pytest.mark.parametrize(
    "kind", [AxisType.VECTOR, AxisType.UNROLL, AxisType.LOCAL, AxisType.DEVICE]
)
def test_lanes_copies_items_and_devices_are_counted_when_compiled(kind: AxisType) -> None:
    i = UOp.range(UOp.variable("v0", 1, 8), 0, kind)
    sink = UOp.sink(param(0, 8).index(i).store(UOp.const(F32, 1)).end(i))
    with pytest.raises(VerificationError, match=f"kind {kind.name} has a constant bound above 0"):
        verify(sink, kernel_graph)


def test_two_loops_of_one_name_are_refused() -> None:
    i, j = UOp.range(4, 0, AxisType.GLOBAL), UOp.range(5, 0, AxisType.GLOBAL)
    store = param(0, 20).index(i * 5 + j).store(UOp.const(F32, 1))
    with pytest.raises(VerificationError, match=r"another RANGE is also called axis \(0,\)"):
        verify(UOp.sink(store.end(i, j)), kernel_graph)


def test_lanes_are_no_loop_in_a_linear_kernel() -> None:
    bound = UOp.const(dtypes.int64, 4)
    loop = UOp.range(bound, 0, AxisType.VECTOR).replace(dtype=dtypes.int64)
    end = UOp(Ops.END, dtypes.void, (loop,))
    with pytest.raises(VerificationError, match="kind VECTOR are lanes or copies by now"):
        verify([bound, loop, end], linear_kernel)


def test_a_thread_axis_inside_of_a_loop_is_refused() -> None:
    bound = UOp.const(dtypes.int64, 4)
    loops = [
        UOp.range(bound, axis, kind).replace(dtype=dtypes.int64)
        for axis, kind in ((0, AxisType.LOOP), (1, AxisType.THREAD))
    ]
    ends = [UOp(Ops.END, dtypes.void, (loop,)) for loop in reversed(loops)]
    with pytest.raises(VerificationError, match="THREAD range inside another loop"):
        verify([bound, *loops, *ends], linear_kernel)
