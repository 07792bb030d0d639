"""Kernel graphs give what numpy gives, whatever the kinds of their loops."""

import numpy as np
import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import EvaluationError, OutOfRangeError
from tg_ir.graph.evaluate import run_kernel_graph
from tg_ir.graph.ops import (
    AddrSpace,
    AxisType,
    Combine,
    DefineArg,
    KernelInfo,
    Ops,
    ParamArg,
    ReduceArg,
    StageArg,
    VarArg,
)
from tg_ir.graph.uop import UOp

F32 = dtypes.float32


def param(slot, size, dtype=F32, writable=False):
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, writable))


def loop(bound, axis, kind=AxisType.GLOBAL):
    return UOp.range(bound, axis, kind)


def sink(*effects):
    return UOp.sink(*effects, arg=KernelInfo())


def data(*arrays):
    return [array.data.cast("B") for array in arrays]


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("kind", list(AxisType))
def test_loops_of_every_kind_run_all_their_iterations(kind):
    i = loop(5, 0, kind)
    x = param(1, 5).index(i).load()
    kernel = sink(param(0, 5, writable=True).index(i).store(x + x).end(i))
    source, result = random(5), np.zeros(5, np.float32)
    run_kernel_graph(kernel, data(result, source))
    assert np.array_equal(result, source + source)


def matmul(rows, columns, inner):
    i, j = loop(rows, 0), loop(columns, 1)
    k = loop(inner, 2, AxisType.REDUCE)
    a = param(1, rows * inner).index(i * inner + k).load()
    b = param(2, inner * columns).index(k * columns + j).load()
    product = (a * b).reduce(Ops.ADD, k)
    out = param(0, rows * columns, writable=True).index(i * columns + j)
    return sink(out.store(product).end(i, j))


def test_matmul_by_reduction():
    a, b, result = random(4, 6), random(6, 3), np.zeros((4, 3), np.float32)
    run_kernel_graph(matmul(4, 3, 6), data(result, a, b))
    np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-6)


def test_reduction_over_no_element_gives_the_identity():
    result = np.ones(2, np.float32)
    i, k = loop(2, 0), loop(UOp.variable("v0", 0, 4), 1, AxisType.REDUCE)
    x = param(1, 0).index(0).load() + k.cast(F32)
    kernel = sink(param(0, 2, writable=True).index(i).store(x.reduce(Ops.ADD, k)).end(i))
    run_kernel_graph(kernel, [*data(result), b""], [0])
    assert np.array_equal(result, [0, 0])


def test_value_that_a_loop_does_not_change_is_computed_outside_of_it():
    # softmax denominator: the maximum is needed by each iteration of the sum, but read once
    k, m, i = loop(8, 0, AxisType.REDUCE), loop(8, 1, AxisType.REDUCE), loop(8, 2)
    x = param(1, 8)
    largest = x.index(m).load().reduce(Ops.MAX, m)
    shifted = (x.index(k).load() - largest).alu(Ops.EXP2).reduce(Ops.ADD, k)
    value = (x.index(i).load() - largest).alu(Ops.EXP2) / shifted
    kernel = sink(param(0, 8, writable=True).index(i).store(value).end(i))
    source, result = random(8), np.zeros(8, np.float32)
    run_kernel_graph(kernel, data(result, source))
    expected = np.exp2(source - source.max())
    np.testing.assert_allclose(result, expected / expected.sum(), rtol=1e-6)


def argmax_combine():
    old_value, new_value = (UOp(Ops.STATE, F32, (), (side, 0)) for side in (0, 1))
    old_place, new_place = (UOp(Ops.STATE, dtypes.int32, (), (side, 1)) for side in (0, 1))
    better = old_value.alu(Ops.CMPLT, new_value)
    body = (better.where(new_value, old_value), better.where(new_place, old_place))
    return Combine("argmax", (float("-inf"), 0), body)


def test_reduction_of_a_tuple_of_states():
    i, k = loop(3, 0), loop(7, 1, AxisType.REDUCE)
    x = param(1, 21).index(i * 7 + k).load()
    both = UOp(Ops.REDUCE, F32, (x, k.cast(dtypes.int32), k), ReduceArg(argmax_combine()))
    place = both.get_tuple(1, dtypes.int32)
    value = both.get_tuple(0, F32)
    out = param(0, 3, dtypes.int32, True).index(i).store(place).end(i)
    out2 = param(2, 3, F32, True).index(i).store(value).end(i)
    source = random(3, 7)
    places, values = np.zeros(3, np.int32), np.zeros(3, np.float32)
    run_kernel_graph(sink(out, out2), data(places, source, values))
    assert np.array_equal(places, source.argmax(1))
    assert np.array_equal(values, source.max(1))


@pytest.mark.parametrize("scanned_first", [True, False])
def test_scan_keeps_one_prefix_for_each_value_of_the_other_loops(scanned_first):
    i, r = loop(3, 0), loop(4, 1, AxisType.LOOP)
    x = param(1, 12).index(i * 4 + r).load()
    prefix = UOp(Ops.SCAN, F32, (x, r), ReduceArg(Combine.of(Ops.ADD, F32)))
    out = param(0, 12, writable=True).index(i * 4 + r).store(prefix)
    kernel = sink(out.end(r, i) if scanned_first else out.end(i, r))
    source, result = random(3, 4), np.zeros((3, 4), np.float32)
    run_kernel_graph(kernel, data(result, source))
    np.testing.assert_allclose(result, source.cumsum(1, dtype=np.float32), rtol=1e-5)


def test_staged_tile_is_read_in_its_permuted_and_padded_order():
    i, j, p, q = loop(3, 0), loop(4, 1), loop(3, 2), loop(4, 3)
    arg = StageArg(AddrSpace.LOCAL, (3, 4), (1, 0), 2)
    tile = UOp(Ops.STAGE, F32, (param(1, 12).index(p * 4 + q).load(), p, q), arg)
    value = tile.index(j * 5 + i).load()
    kernel = sink(param(0, 12, writable=True).index(i * 4 + j).store(value).end(i, j))
    source, result = random(3, 4), np.zeros((3, 4), np.float32)
    run_kernel_graph(kernel, data(result, source))
    assert np.array_equal(result, source)


def test_masked_load_gives_other_and_masked_store_leaves_memory():
    i = loop(6, 0)
    inside = i < 4
    value = param(1, 4).index(i, inside).load(UOp.const(F32, -1.0))
    kernel = sink(
        param(0, 6, writable=True).index(i).store(value).end(i),
        param(2, 4, F32, True).index(i, inside).store(value).end(i),
    )
    source, result, short = random(4), np.zeros(6, np.float32), np.zeros(4, np.float32)
    run_kernel_graph(kernel, data(result, source, short))
    assert np.array_equal(result, [*source, -1, -1])
    assert np.array_equal(short, source)


@pytest.mark.parametrize("shift", [-1, 1])
def test_touching_an_element_outside_a_buffer_is_an_error_that_names_the_node(shift):
    i = loop(4, 0)
    value = param(1, 4).index(i + shift).load()
    kernel = sink(param(0, 4, writable=True).index(i).store(value).end(i))
    with pytest.raises(OutOfRangeError, match=r"buffer of 4 elements(.|\n)*LOAD"):
        run_kernel_graph(kernel, data(np.zeros(4, np.float32), random(4)))


def test_accumulator_in_registers_is_initialised_once_for_each_outer_iteration():
    i, k = loop(2, 0), loop(3, 1, AxisType.REDUCE)
    register = UOp(Ops.DEFINE_REG, F32, (), DefineArg(0, 1))
    zeroed = register.after(i).index(0).store(UOp.const(F32, 0.0))
    ready = register.after(zeroed)
    total = ready.after(k).index(0).load() + param(1, 6).index(i * 3 + k).load()
    summed = register.after(ready.index(0).store(total).end(k))
    out = param(0, 2, writable=True).index(i).store(summed.index(0).load())
    source, result = random(2, 3), np.zeros(2, np.float32)
    run_kernel_graph(sink(out.end(i)), data(result, source))
    np.testing.assert_allclose(result, source.sum(1), rtol=1e-6)


def test_symbolic_bound_takes_its_value_from_vals():
    n = UOp(Ops.DEFINE_VAR, dtypes.index, (), VarArg("v0", 1, 8))
    i = loop(n, 0)
    x = param(1, 8).index(i).load()
    kernel = sink(param(0, 8, writable=True).index(i).store(x).end(i))
    source, result = random(8), np.zeros(8, np.float32)
    run_kernel_graph(kernel, data(result, source), [3])
    assert np.array_equal(result, [*source[:3], 0, 0, 0, 0, 0])


def test_missing_and_small_buffers_are_refused():
    kernel = matmul(2, 2, 2)
    with pytest.raises(EvaluationError, match="takes a buffer"):
        run_kernel_graph(kernel, data(random(2, 2)))
    with pytest.raises(EvaluationError, match="buffer 2 holds 2 elements"):
        run_kernel_graph(kernel, data(random(2, 2), random(2, 2), random(2)))


def test_loop_that_nothing_closes_is_refused():
    i = loop(4, 0)
    with pytest.raises(EvaluationError, match="used outside of the END"):
        run_kernel_graph(
            sink(param(0, 4, writable=True).index(i).store(UOp.const(F32, 0.0))),
            data(random(4)),
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint64", "bool"])
def test_buffers_of_every_width_are_read_and_written(dtype):
    kind = dtypes.from_name(dtype)
    i = loop(6, 0)
    x = param(1, 6, kind).index(i).load()
    kernel = sink(param(0, 6, kind, True).index(i).store(x).end(i))
    patterns = np.array([0, 1, 0, 1, 1, 0], np.uint8)
    source = (patterns.repeat(kind.itemsize) * (1 if dtype == "bool" else 0x3C)).astype(np.uint8)
    result = np.zeros_like(source)
    run_kernel_graph(kernel, data(result, source))
    assert np.array_equal(result, source)


def test_thirty_nested_loops():
    loops = [loop(1 if axis < 28 else 3, axis) for axis in range(30)]
    position = loops[28] * 3 + loops[29] + sum(loops[:28], UOp.const(dtypes.index, 0))
    x = param(1, 9).index(position).load()
    k = loop(2, 99, AxisType.REDUCE)
    value = (x * k.cast(F32)).reduce(Ops.ADD, k)
    kernel = sink(param(0, 9, writable=True).index(position).store(value).end(*loops))
    source, result = random(9), np.zeros(9, np.float32)
    run_kernel_graph(kernel, data(result, source))
    assert np.array_equal(result, source)


def test_loop_in_order_reads_what_its_earlier_iterations_wrote():
    # scatter with addition: every iteration adds to the same element
    i = loop(5, 0, AxisType.LOOP)
    place = param(0, 2, writable=True).index(1)
    kernel = sink(place.store(place.load() + param(1, 5).index(i).load()).end(i))
    source, result = random(5), np.ones(2, np.float32)
    run_kernel_graph(kernel, data(result, source))
    assert result[0] == 1
    np.testing.assert_allclose(result[1], 1 + source.sum(), rtol=1e-6)


def test_several_stores_under_one_end():
    i = loop(4, 0)
    x = param(2, 4).index(i).load()
    stores = UOp(
        Ops.TUPLE,
        dtypes.void,
        (param(0, 4, F32, True).index(i).store(x), param(1, 4, F32, True).index(i).store(x + x)),
    )
    source, one, two = random(4), np.zeros(4, np.float32), np.zeros(4, np.float32)
    run_kernel_graph(sink(stores.end(i)), data(one, two, source))
    assert np.array_equal(one, source)
    assert np.array_equal(two, source + source)


def test_memory_first_used_in_an_inner_loop_is_the_same_outside_of_it():
    i, j, k = loop(2, 0), loop(3, 1, AxisType.LOOP), loop(3, 2, AxisType.REDUCE)
    tiles = [UOp(Ops.DEFINE_LOCAL, F32, (), DefineArg(slot, 3)) for slot in (0, 1)]
    x = param(1, 6).index(i * 3 + j).load()
    fills = (tiles[0].index(j).store(x), tiles[1].index(j).store(x + x))
    filled = UOp(Ops.TUPLE, dtypes.void, fills).end(j)
    one, two = (tile.after(filled).index(k).load() for tile in tiles)
    kernel = sink(param(0, 2, writable=True).index(i).store((one * two).reduce(Ops.ADD, k)).end(i))
    source, result = random(2, 3), np.zeros(2, np.float32)
    run_kernel_graph(kernel, data(result, source))
    np.testing.assert_allclose(result, 2 * (source * source).sum(1), rtol=1e-6)
