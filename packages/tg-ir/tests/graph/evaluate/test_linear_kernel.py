"""Linear kernels give what numpy gives; faults name the node."""

import numpy as np
import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import EvaluationError, OutOfRangeError
from tg_ir.graph.evaluate import clear_kernels, python_source_of, run_linear_kernel
from tg_ir.graph.ops import AxisType, DefineArg, Ops, ParamArg, RangeArg, VarArg
from tg_ir.graph.spec import linear_kernel, verify
from tg_ir.graph.text import dump, parse
from tg_ir.graph.uop import UOp

F32, I32, I64, BOOL, VOID = (
    dtypes.float32,
    dtypes.int32,
    dtypes.int64,
    dtypes.bool,
    dtypes.void,
)


class Kernel(list):
    """A list of nodes; each is added with its sources before it."""

    def add(self, node):
        for part in node.toposort():
            if part in self:
                continue
            if part.op is Ops.CONST:
                self.insert(0, part)  # known in every loop
            else:
                self.append(part)
        return node

    def const(self, value, dtype=I64):
        return self.add(UOp(Ops.CONST, dtype, (), value))

    def param(self, slot, size, dtype=F32, writable=False):
        return self.add(UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, writable)))

    def loop(self, axis, bound, kind=AxisType.LOOP):
        size = bound if isinstance(bound, UOp) else self.const(bound)
        return self.add(UOp(Ops.RANGE, I64, (size,), RangeArg((axis,), kind)))

    def end(self, loop):
        return self.add(UOp(Ops.END, VOID, (loop,)))

    def run(self, *arrays, vals=(), begin=0, end=1):
        verify(self, linear_kernel)
        # as DEV=PYTHON gets it
        kernel = parse(dump(self))
        views = [array.data.cast("B") if array.size else b"" for array in arrays]
        run_linear_kernel(kernel, views, vals, begin, end)


def at(buffer, position, *mask):
    return UOp(Ops.INDEX, buffer.dtype, (buffer, position, *mask))


def load(access, dtype=F32, *other):
    return UOp(Ops.LOAD, dtype, (access, *other))


def op(op, dtype, *src, arg=None):
    return UOp(op, dtype, src, arg)


def random(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_thread_range_runs_over_its_part():
    k = Kernel()
    out, x = k.param(0, 8, writable=True), k.param(1, 8)
    i = k.loop(0, 8, AxisType.THREAD)
    k.add(at(out, i).store(load(at(x, i))))
    k.end(i)
    source, result = random(8), np.zeros(8, np.float32)
    k.run(result, source, begin=2, end=5)
    assert np.array_equal(result, [0, 0, *source[2:5], 0, 0, 0])


def matmul(rows, columns, inner):
    """One row of the result is a vector in a register."""
    k = Kernel()
    out = k.param(0, rows * columns, writable=True)
    a, b = k.param(1, rows * inner), k.param(2, inner * columns)
    wide = F32.vec(columns)
    zero = k.const(0)
    i = k.loop(0, rows)
    register = k.add(op(Ops.DEFINE_REG, wide, arg=DefineArg(0, 1)))
    zeros = op(Ops.BROADCAST, wide, k.const(0.0, F32))
    k.add(at(register, zero).store(zeros))
    r = k.loop(1, inner)
    inside = register.after(r)
    left = op(Ops.BROADCAST, wide, load(at(a, i * k.const(inner) + r)))
    right = load(at(b, r * k.const(columns)), wide)
    joined = op(Ops.MULACC, wide, left, right, load(at(inside, zero), wide))
    k.add(at(inside, zero).store(joined))
    done = register.after(k.end(r))
    k.add(at(out, i * k.const(columns)).store(load(at(done, zero), wide)))
    k.end(i)
    return k


def test_vectors_in_registers():
    a, b, result = random(3, 5), random(5, 4), np.zeros((3, 4), np.float32)
    matmul(3, 4, 5).run(result, a, b)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-6)


def test_node_count_does_not_grow_with_the_width():
    assert len(matmul(3, 4, 5)) == len(matmul(3, 16, 5))
    lines = [len(python_source_of(matmul(3, width, 5)).splitlines()) for width in (4, 16)]
    assert lines[0] == lines[1]


def test_gather_scatter_and_masks_by_lane():
    k = Kernel()
    out, x, places = k.param(0, 4, writable=True), k.param(1, 4), k.param(2, 4, I64)
    lanes = op(Ops.LANES, I64.vec(4))
    position = load(at(places, k.const(0)), I64.vec(4))
    limit = op(Ops.BROADCAST, I64.vec(4), k.const(4))
    inside = op(Ops.CMPLT, BOOL.vec(4), position, limit)
    other = op(Ops.BROADCAST, F32.vec(4), k.const(-1.0, F32))
    value = load(at(x, position, inside), F32.vec(4), other)
    three = op(Ops.BROADCAST, I64.vec(4), k.const(3))
    k.add(at(out, lanes, op(Ops.CMPLT, BOOL.vec(4), lanes, three)).store(value))
    source, result = random(4), np.zeros(4, np.float32)
    k.run(result, source, np.int64([2, 9, 0, 1]))
    assert np.array_equal(result, [source[2], -1, source[0], 0])


def test_row_under_a_mask_by_lane():
    k = Kernel()
    out, x = k.param(0, 4, writable=True), k.param(1, 3)
    lanes = op(Ops.LANES, I64.vec(4))
    inside = op(Ops.CMPLT, BOOL.vec(4), lanes, op(Ops.BROADCAST, I64.vec(4), k.const(3)))
    k.add(at(out, k.const(0)).store(load(at(x, k.const(0), inside), F32.vec(4))))
    source, result = random(3), np.ones(4, np.float32)
    k.run(result, source)
    assert np.array_equal(result, [*source, 0])


def test_row_under_one_mask_and_default():
    k = Kernel()
    out, x = k.param(0, 8, writable=True), k.param(1, 4)
    i = k.loop(0, 2)
    inside = op(Ops.CMPLT, BOOL, i, k.const(1))
    row = load(at(x, i * k.const(4), inside), F32.vec(4))
    k.add(at(out, i * k.const(4)).store(row))
    k.end(i)
    source, result = random(4), np.ones(8, np.float32)
    k.run(result, source)
    assert np.array_equal(result, [*source, 0, 0, 0, 0])


def test_one_value_to_several_positions():
    k = Kernel()
    out = k.param(0, 8, writable=True)
    lanes = op(Ops.LANES, I64.vec(3))
    twice = op(Ops.ADD, I64.vec(3), lanes, lanes)
    k.add(at(out, twice).store(k.const(7.0, F32)))
    result = np.zeros(8, np.float32)
    k.run(result)
    assert np.array_equal(result, [7, 0, 7, 0, 7, 0, 0, 0])


@pytest.mark.parametrize(
    ("joining", "expected"), [(Ops.ADD, np.sum), (Ops.MUL, np.prod), (Ops.MAX, np.max)]
)
def test_lanes_are_joined_taken_and_put_together(joining, expected):
    k = Kernel()
    out, x = k.param(0, 2, writable=True), k.param(1, 4)
    row = load(at(x, k.const(0)), F32.vec(4))
    joined = op(Ops.REDUCE_LANES, F32, row, arg=joining)
    k.add(at(out, k.const(0)).store(op(Ops.VECTORIZE, F32.vec(2), row.gep(3), joined)))
    source, result = random(4), np.zeros(2, np.float32)
    k.run(result, source)
    np.testing.assert_allclose(result, [source[3], expected(source)], rtol=1e-6)


def test_condition_guards_its_effects():
    k = Kernel()
    out = k.param(0, 4, writable=True)
    i = k.loop(0, 6)
    guard = k.add(op(Ops.IF, VOID, op(Ops.CMPLT, BOOL, i, k.const(4))))
    k.add(at(out, i).store(k.const(1.0, F32)))
    k.add(op(Ops.ENDIF, VOID, guard))
    k.end(i)
    result = np.zeros(4, np.float32)
    k.run(result)
    assert np.array_equal(result, [1, 1, 1, 1])


def reversing_group(local_size):
    """Each item of a group puts its element to local memory and takes that of its opposite."""
    k = Kernel()
    out, x = k.param(0, 8, writable=True), k.param(1, 8)
    size = k.const(4)
    group = k.add(op(Ops.SPECIAL, I64, k.const(2), arg="g0"))
    item = k.add(op(Ops.SPECIAL, I64, size, arg="l0"))
    local = k.add(op(Ops.DEFINE_LOCAL, F32, arg=DefineArg(0, local_size)))
    place = group * size + item
    put = k.add(at(local, item).store(load(at(x, place))))
    ready = k.add(op(Ops.BARRIER, VOID, put))
    opposite = op(Ops.SUB, I64, k.const(3), item)
    k.add(at(out, place).store(load(at(local.after(ready), opposite))))
    return k


def test_items_of_a_group_meet_at_the_barrier():
    source, result = random(2, 4), np.zeros((2, 4), np.float32)
    reversing_group(4).run(result, source)
    assert np.array_equal(result, source[:, ::-1])


def test_local_memory_is_not_kept_between_groups():
    k = Kernel()
    out = k.param(0, 2, writable=True)
    group = k.add(op(Ops.SPECIAL, I64, k.const(2), arg="g0"))
    item = k.add(op(Ops.SPECIAL, I64, k.const(1), arg="l0"))
    local = k.add(op(Ops.DEFINE_LOCAL, F32, arg=DefineArg(0, 1)))
    k.add(at(local, k.const(0)))
    first = op(Ops.CMPLT, BOOL, group + item, k.const(1))
    guard = k.add(op(Ops.IF, VOID, first))
    k.add(at(local, k.const(0)).store(k.const(1.0, F32)))
    k.add(op(Ops.ENDIF, VOID, guard))
    k.add(at(out, group).store(op(Ops.NEG, F32, load(at(local, k.const(0))))))
    with pytest.raises(EvaluationError, match="that was never written"):
        k.run(np.zeros(2, np.float32))


def test_barrier_that_some_items_never_reach_is_an_error():
    k = Kernel()
    item = k.add(op(Ops.SPECIAL, I64, k.const(2), arg="l0"))
    guard = k.add(op(Ops.IF, VOID, op(Ops.CMPLT, BOOL, item, k.const(1))))
    k.add(op(Ops.BARRIER, VOID))
    k.add(op(Ops.ENDIF, VOID, guard))
    with pytest.raises(EvaluationError, match="1 work-items wait at a barrier that 1 items"):
        k.run()


def test_grid_may_depend_on_variables():
    k = Kernel()
    out = k.param(0, 8, I64, writable=True)
    n = k.add(UOp(Ops.DEFINE_VAR, I64, (), VarArg("v0", 1, 4)))
    group = k.add(op(Ops.SPECIAL, I64, n + n, arg="g1"))
    k.add(at(out, group).store(n))
    result = np.zeros(8, np.int64)
    k.run(result, vals=[3])
    assert result.tolist() == [3, 3, 3, 3, 3, 3, 0, 0]


def test_variables_stand_where_their_names_say():
    k = Kernel()
    out = k.param(0, 2, I64, writable=True)
    second, first = (UOp(Ops.DEFINE_VAR, I64, (), VarArg(name, 0, 9)) for name in ("v1", "v0"))
    k.add(at(out, k.const(0)).store(second))
    k.add(at(out, k.const(1)).store(first))
    result = np.zeros(2, np.int64)
    k.run(result, vals=[5, 6])
    assert result.tolist() == [6, 5]


def test_ints_wrap_even_where_bounds_look_small():
    k = Kernel()
    out, x = k.param(0, 1, I32, writable=True), k.param(1, 1, I32)
    value = load(at(x, k.const(0)), I32)
    k.add(at(out, k.const(0)).store(value + value))
    result = np.zeros(1, np.int32)
    k.run(result, np.int32([2**31 - 1]))
    assert result.tolist() == [-2]


@pytest.mark.parametrize("position", [-1, 4])
@pytest.mark.parametrize("lanes", [1, 4])
def test_access_outside_of_a_buffer_names_the_node(position, lanes):
    k = Kernel()
    x = k.param(0, 4)
    where = load(at(k.param(1, 1, I64), k.const(0)), I64)
    k.add(load(at(x, where), F32 if lanes == 1 else F32.vec(lanes)))
    with pytest.raises(OutOfRangeError, match=r"linear kernel: touches .* of a buffer of 4 elem"):
        k.run(random(4), np.int64([position]))


def test_store_outside_of_a_buffer_changes_nothing():
    k = Kernel()
    x = k.param(0, 4, writable=True)
    where = load(at(k.param(1, 1, I64), k.const(0)), I64)
    k.add(at(x, where).store(k.const(1.0, F32)))
    result = np.zeros(4, np.float32)
    with pytest.raises(OutOfRangeError, match="STORE"):
        k.run(result, np.int64([-1]))
    assert not result.any()


def test_read_only_buffers_are_not_written():
    k = Kernel()
    k.add(at(k.param(0, 4, writable=True), k.const(0)).store(k.const(1.0, F32)))
    with pytest.raises(EvaluationError, match="cannot modify read-only memory"):
        run_linear_kernel(k, [bytes(16)])


def test_broken_lists_are_refused():
    k = Kernel()
    i = k.loop(0, 3)
    with pytest.raises(EvaluationError, match="never ends"):
        run_linear_kernel(k, [])
    with pytest.raises(EvaluationError, match="where nothing is open"):
        run_linear_kernel([UOp(Ops.END, VOID, (i,))], [])
    with pytest.raises(EvaluationError, match="used before it is computed"):
        run_linear_kernel([i], [])
    with pytest.raises(EvaluationError, match="FLIP has no place in a kernel"):
        run_linear_kernel([*k, UOp(Ops.FLIP, F32, (i,), (True,))], [])


def test_kernels_are_translated_once_and_forgotten_on_demand():
    kernel = matmul(2, 2, 2)
    assert python_source_of(kernel) is not None
    first = python_source_of(kernel)
    clear_kernels()
    assert python_source_of(kernel) == first
