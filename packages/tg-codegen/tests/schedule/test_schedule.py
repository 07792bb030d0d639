"""What surrounds fusion:

The cache, functions, copies between devices, symbolic sizes, long reductions, time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from tg_codegen.schedule import ScheduleError, clear_schedule_cache, create_schedule
from tg_codegen.schedule.facts import MAX_BUFFERS
from tg_ir.config import Context
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Combine, FunctionArg, Ops, ParamArg, ReduceArg
from tg_ir.graph.uop import UOp


def floats(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def base_of(view: UOp) -> UOp:
    while view.op is not Ops.BUFFER:
        view = view.src[0]
    return view


# ---- cache


def test_a_second_graph_of_the_same_form_gets_the_same_kernels_on_its_own_buffers(world):
    x, y = world.tensor(floats(4, 6)), world.tensor(floats(4, 6))
    first = world.schedule(x * y + x)
    second = world.schedule(y * x + y)
    assert first.linear.src[0].src[0] is second.linear.src[0].src[0]
    assert [s.arg.id for s in second.linear.src[0].src[2:]] == [
        base_of(y).arg.id,
        base_of(x).arg.id,
    ]
    world.check(y * x + y)


def test_temporaries_of_a_cached_schedule_are_fresh(world):
    x = world.tensor(floats(4, 6))

    def made():
        return create_schedule(UOp.sink((x + x).contiguous() * x)).linear.src[0].src[1].arg.id

    assert made() != made()


def test_cached_writes_follow_the_versions_of_the_graph_at_hand(world):
    buffer = base_of(world.tensor(floats(4)))
    for expected in (1, 2, 3):
        new = buffer.after(buffer.store(buffer + buffer))
        buffer = world.schedule(new).becomes[new]
        assert buffer.arg.version == expected


def test_graphs_that_differ_in_a_signed_zero_are_told_apart(world):
    x = world.tensor(floats(3))
    for zero in (0.0, -0.0):
        constant = UOp.const(dtypes.float32, zero).reshape((1,)).expand((3,))
        kernel = world.schedule(x + constant).linear.src[0].src[0]
        (found,) = [
            n.arg for n in kernel.toposort() if n.op is Ops.CONST and n.dtype is dtypes.float32
        ]
        assert np.signbit(found) == np.signbit(zero)


def test_cleared_cache_schedules_anew(world):
    x = world.tensor(floats(4))
    before = world.schedule(x + x).linear.src[0].src[0]
    clear_schedule_cache()
    assert world.schedule(x + x).linear.src[0].src[0] is before


# ---- functions


def parameter(slot: int, *shape: int) -> UOp:
    return UOp(Ops.PARAM, dtypes.float32, (), ParamArg(slot, shape=shape))


def called(body: tuple[UOp, ...], *args: UOp) -> UOp:
    group = UOp(Ops.TUPLE, dtypes.void, body)
    return UOp(Ops.FUNCTION, dtypes.void, (group, *args), FunctionArg("f"))


def test_functions_are_inlined_nested_ones_too(world):
    x, y = world.tensor(floats(3)), world.tensor(floats(3))
    inner = called((parameter(0, 3) - parameter(1, 3),), parameter(1, 3), parameter(0, 3))
    body = (inner.get_tuple(0, dtypes.float32) * parameter(0, 3), parameter(1, 3))
    outer = called(body, x, y)
    product = outer.get_tuple(0, dtypes.float32)
    second = outer.get_tuple(1, dtypes.float32) + x
    found = world.run(product, second)
    a, b = world.read(x), world.read(y)
    np.testing.assert_allclose(found[0], (b - a) * a)
    np.testing.assert_allclose(found[1], b + a)
    assert len(world.last.linear.src) <= 2


def test_function_with_too_few_arguments_is_refused(world):
    x = world.tensor(floats(3))
    outer = called((parameter(1, 3),), x)
    with (
        Context(SPEC=0),
        pytest.raises(ScheduleError, match="takes PARAM 1 and was given 1 arguments"),
    ):
        create_schedule(UOp.sink(outer.get_tuple(0, dtypes.float32) + x))


# ---- devices


def test_copy_between_devices_is_a_call_of_kind_copy(world):
    x = world.tensor(floats(4, 3))
    copied = x.copy_to_device("OTHER")
    (found,) = world.run(copied + copied)
    np.testing.assert_array_equal(found, 2 * world.read(x))
    kinds = [call.arg.kind for call in world.last.linear.src]
    assert kinds == ["copy", "kernel"]
    assert base_of(world.last.becomes[copied + copied]).arg.device == "OTHER"


def test_a_run_of_a_buffer_is_copied_without_a_kernel(world):
    x = world.tensor(floats(6, 3))
    part = x.shrink(((2, 4), (0, 3))).reshape((6,)).shrink(((3, 6),))
    copied = part.copy_to_device("OTHER")
    (found,) = world.run(copied)
    np.testing.assert_array_equal(found, world.read(x)[3])
    assert [call.arg.kind for call in world.last.linear.src] == ["copy"]


def test_what_is_no_run_of_a_buffer_is_made_one_first(world):
    x = world.tensor(floats(4, 3))
    copied = x.permute((1, 0)).copy_to_device("OTHER")
    (found,) = world.run(copied)
    np.testing.assert_array_equal(found, world.read(x).T)
    assert [call.arg.kind for call in world.last.linear.src] == ["kernel", "copy"]


def test_copy_of_constants_is_computed_where_it_goes(world):
    value = UOp.const(dtypes.float32, 3.0).reshape((1,)).expand((4,)).copy_to_device("OTHER")
    (found,) = world.run(value)
    np.testing.assert_array_equal(found, np.full(4, 3.0, np.float32))
    assert base_of(world.last.becomes[value]).arg.device == "OTHER"


def test_a_value_without_a_device_is_refused():
    value = UOp.const(dtypes.float32, 3.0).reshape((1,)).expand((4,)).contiguous()
    with pytest.raises(ScheduleError, match=r"no device is named; wrap it in COPY"):
        create_schedule(UOp.sink(value))


# ---- the same kernels in every process

PROGRAM = """
from tg_codegen.schedule import create_schedule
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops, SkewArg
from tg_ir.graph.uop import UOp

junk = [UOp.new_buffer("CPU", n + 1, dtypes.int8) for n in range({junk})]
x, w = (UOp.new_buffer("CPU", 64, dtypes.float32).reshape((8, 8)) for _ in range(2))
index = UOp.new_buffer("CPU", 6, dtypes.int32).reshape((2, 3))
rows = UOp(Ops.GATHER, x.dtype, (x, index), (0,)).reshape((6, 8))
wide = rows.reshape((6, 1, 8)).expand((6, 8, 8)) * w.reshape((1, 8, 8)).expand((6, 8, 8))
product = wide.reduce_axis(Ops.ADD, (2,)).reshape((6, 8)) + rows
powers = (product - product.reduce_axis(Ops.MAX, (1,)).expand((6, 8))).alu(Ops.EXP2)
scaled = powers / powers.reduce_axis(Ops.ADD, (1,)).expand((6, 8))
n = UOp.variable("n", 1, 6).bind(4)
part = scaled.shrink(((0, n), (0, 8))).pad(((0, 0), (1, 1)))
new = x.src[0].after(x.src[0].store(x.reshape((64,)) + w.reshape((64,))))
schedule = create_schedule(UOp.sink(part.contiguous(), new, scaled + rows, w + x))
for call in schedule.linear.src:
    print(call.src[0].key.hex(), len(call.src))
"""


def test_kernels_are_the_same_in_every_process():
    def kernels(seed: int) -> str:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM.replace("{junk}", str(seed * 37))],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout

    first = kernels(1)
    assert len(first.splitlines()) >= 4
    assert kernels(2) == first


# ---- what cannot be scheduled


def test_a_stored_value_of_dtype_index_is_refused():
    value = UOp.variable("n", 1, 4).bind(3).copy_to_device("CPU")
    with Context(SPEC=0), pytest.raises(ScheduleError, match="cast it to an int dtype"):
        create_schedule(UOp.sink(value))


def test_an_op_that_no_kernel_computes_is_refused():
    value = UOp(Ops.BARRIER, dtypes.float32, (UOp.new_buffer("CPU", 4, dtypes.float32),))
    with Context(SPEC=0), pytest.raises(ScheduleError, match="cannot compute BARRIER"):
        create_schedule(UOp.sink(value))


# ---- symbolic sizes


def test_symbolic_sizes_are_arguments_of_the_kernel(world):
    x = world.tensor(floats(8, 3))
    for size in (2, 5):
        rows = UOp.variable("n", 1, 8).bind(size)
        part = x.shrink(((0, rows), (0, 3)))
        total = (part * part).reduce_axis(Ops.ADD, (0,))
        world.check(total, kernels=1)
        world.check((part + part).contiguous(), kernels=1)
        world.check(part.permute((1, 0)).reshape((3 * rows,)).contiguous(), kernels=1)
    call = world.last.linear.src[0]
    names = [n.arg.name for n in call.src[0].toposort() if n.op is Ops.DEFINE_VAR]
    assert names == ["v0"]
    assert call.src[-1].unbind()[1] == 5


def test_one_kernel_serves_all_values_of_a_variable(world):
    x = world.tensor(floats(8))
    sinks = set()
    for size in (3, 7):
        rows = UOp.variable("n", 1, 8).bind(size)
        sinks.add(world.schedule(x.shrink(((0, rows),)).contiguous()).linear.src[0].src[0])
    assert len(sinks) == 1


# ---- reductions


def argmax(x: UOp, axis: int) -> UOp:
    shape = tuple(e if a == axis else 1 for a, e in enumerate(x.shape))
    position = UOp(Ops.IOTA, dtypes.int32, (), x.shape[axis]).reshape(shape).expand(x.shape)
    best, new = (UOp(Ops.STATE, dtypes.float32, (), (side, 0)) for side in (0, 1))
    at, new_at = (UOp(Ops.STATE, dtypes.int32, (), (side, 1)) for side in (0, 1))
    better = best < new
    body = (better.where(new, best), better.where(new_at, at))
    combine = Combine("argmax", (float("-inf"), 0), body)
    reduced = UOp(Ops.REDUCE_AXIS, x.dtype, (x, position), ReduceArg(combine, (axis,)))
    return reduced.get_tuple(1, dtypes.int32)


def test_reduction_over_a_tuple_of_states(world):
    x = world.tensor(floats(4, 7))
    for axis in (0, 1):
        (found,) = world.run(argmax(x, axis))
        np.testing.assert_array_equal(found, world.read(x).argmax(axis, keepdims=True))
        assert len(world.last.linear.src) == 1


def test_a_long_reduction_is_split_in_two(world):
    x = world.tensor((np.arange(1 << 16) % 7).astype(np.int32))
    total = x.reduce_axis(Ops.ADD, (0,))
    world.check(total, kernels=2)
    first = world.last.linear.src[0].src[0]
    outer = [n.src[0].arg for n in first.toposort() if n.op is Ops.RANGE]
    assert sorted(outer) == [256, 256]


def test_a_long_reduction_inside_a_graph_is_split(world):
    x = world.tensor((np.arange(1 << 16) % 7).reshape(2, 1 << 15).astype(np.int32))
    total = (x * x).reduce_axis(Ops.ADD, (0, 1))
    kept = x.contiguous()
    world.check((x - total.expand(x.shape)).reduce_axis(Ops.MAX, (1,)), kept)


# ---- limits


def test_a_kernel_reads_a_bounded_number_of_buffers(world):
    tensors = [world.tensor(floats(3)) for _ in range(70)]
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    world.check(total, rtol=1e-4)
    for call in world.last.linear.src:
        assert len(call.src) - 1 <= MAX_BUFFERS + 1
    assert len(world.last.linear.src) <= 4


def test_diamonds_through_movement_do_not_blow_up(world):
    x = world.tensor((np.arange(8) % 3).astype(np.int32))
    for _ in range(60):
        x = x ^ x.flip((True,))
        x = x + x.shrink(((1, 8),)).pad(((0, 1),))
    world.check(x)
    sizes = [len(call.src[0].toposort()) for call in world.last.linear.src]
    assert max(sizes) < 1000


def chain(length: int, kind: str) -> UOp:
    x, y = (UOp.new_buffer("CPU", 64, dtypes.float32) for _ in range(2))
    for _ in range(length):
        if kind == "add":
            x = x + y
        elif kind == "diamond":
            x = x + x * x
        else:
            x = x.reshape((8, 8)).permute((1, 0)).reshape((64,)) * y
    return x


@pytest.mark.parametrize("kind", ["add", "diamond", "movement"])
def test_time_for_each_op_does_not_grow(kind):
    def seconds_per_op(length: int) -> float:
        best = float("inf")
        for _ in range(3):
            sink = UOp.sink(chain(length, kind))
            clear_schedule_cache()
            begin = time.perf_counter()
            create_schedule(sink)
            best = min(best, time.perf_counter() - begin)
        return best / length

    short, long = (200, 2000) if kind == "movement" else (1000, 10_000)
    assert seconds_per_op(long) < 1.5 * seconds_per_op(short) + 10e-6
