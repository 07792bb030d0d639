"""Integer division, THREEFRY, casts and small ops out of what a target has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_codegen.kernel.decompose import decompose
from tg_codegen.kernel.decompose_cast import clamp_float_to_int
from tg_ir.dtype import cast_scalar, dtypes
from tg_ir.graph.ops import AxisType, Combine, GroupOp, Ops, ReduceArg
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.scalar import alu, threefry
from tg_ir.graph.uop import UOp

from .graph_in_numpy import TYPES, run_graph

FEW = frozenset(
    {
        *(Ops.ADD, Ops.MUL, Ops.XOR, Ops.AND, Ops.OR, Ops.SHL, Ops.SHR, Ops.CDIV, Ops.WHERE),
        *(Ops.CMPLT, Ops.CMPNE, Ops.CAST, Ops.BITCAST, Ops.FDIV),
    }
)
SMALL_TARGET = TargetCapabilities(FEW, frozenset(dtypes.all))
LLVM_LIKE = TargetCapabilities(
    FEW | {Ops.CMOD, Ops.SUB, Ops.CMPEQ, Ops.MAX, Ops.NEG, Ops.MULACC}, frozenset(dtypes.all)
)
TARGETS = pytest.mark.parametrize("target", [SMALL_TARGET, LLVM_LIKE], ids=["small", "usual"])


def leaf(dtype, name):
    return UOp(Ops.LOAD, dtype, (), name)


def every_pair(kind):
    """All values of 8 bits, and for wider types the interesting ones."""
    info = np.iinfo(kind)
    if info.bits == 8:
        values = np.arange(info.min, info.max + 1)
    else:
        few = [-7, -1, 0, 1, 2, 3, 8, 100]
        values = np.array([info.min, info.min + 1, *few, info.max - 1, info.max])
    values = values[values >= info.min].astype(kind)
    left, right = np.meshgrid(values, values)
    return left.ravel(), right.ravel()


def expected_of(op, left, right, dtype):
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([alu(op, dtype, pair) for pair in pairs], TYPES[dtype])


INT_OPS = [Ops.FLOORDIV, Ops.FLOORMOD, Ops.CMOD, Ops.MAX]


@TARGETS
@pytest.mark.parametrize("op", INT_OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int32], ids=lambda d: d.name)
def test_run_time_division_is_safe_and_right(dtype, op, target):
    x, y = leaf(dtype, "x"), leaf(dtype, "y")
    graph = decompose(x.alu(op, y), target)
    assert {node.op for node in graph.toposort() if node.src} <= target.ops
    left, right = every_pair(TYPES[dtype])
    result = run_graph(graph, {x: left, y: right})
    np.testing.assert_array_equal(result, expected_of(op, left, right, dtype))


@TARGETS
@pytest.mark.parametrize("divisor", [1, 2, 8, 3, -3, 7, -1, -128, 0])
@pytest.mark.parametrize("op", [Ops.FLOORDIV, Ops.FLOORMOD], ids=lambda op: op.name)
def test_division_by_a_constant(op, divisor, target):
    x = leaf(dtypes.int8, "x")
    graph = decompose(x.alu(op, x.const_like(divisor)), target)
    values = np.arange(-128, 128).astype(np.int8)
    expected = expected_of(op, values, np.full_like(values, divisor), dtypes.int8)
    np.testing.assert_array_equal(run_graph(graph, {x: values}), expected)


def test_division_of_a_counter_costs_one_op():
    counter = UOp.range(100, 0, AxisType.LOOP)
    assert decompose(counter // 8, LLVM_LIKE).op is Ops.SHR
    assert decompose(counter % 8, LLVM_LIKE).op is Ops.AND
    assert decompose(counter // 7, LLVM_LIKE).op is Ops.CDIV
    assert decompose(counter % 7, LLVM_LIKE).op is Ops.CMOD


def test_division_of_lanes_by_a_power_of_two_is_a_shift():
    lanes = UOp(Ops.LANES, dtypes.index.vec(8))
    assert decompose(lanes.alu(Ops.FLOORDIV, lanes.const_like(4)), LLVM_LIKE).op is Ops.SHR


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_threefry_in_small_ops_is_the_same_function(counter, key):
    x, y = leaf(dtypes.uint64, "x"), leaf(dtypes.uint64, "y")
    graph = decompose(x.alu(Ops.THREEFRY, y), SMALL_TARGET)
    inputs = {x: np.array([counter], np.uint64), y: np.array([key], np.uint64)}
    assert int(run_graph(graph, inputs)[0]) == threefry(counter, key)


EDGES = np.array(
    [0.0, -0.0, 0.9, -0.9, 127.0, 128.0, 255.5, -1.0, 65536.5, 2.0**31, -(2.0**31), 2.0**31 - 128]
    + [2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf, -np.inf, np.nan]
)


@pytest.mark.parametrize("source", [dtypes.float16, dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("target", dtypes.ints, ids=lambda dtype: dtype.name)
def test_clamped_casts_saturate_wrap_and_send_nan_to_zero(source, target):
    no_cast = TargetCapabilities(LLVM_LIKE.ops - {Ops.CAST}, LLVM_LIKE.dtypes)
    x = leaf(source, "x")
    graph = decompose(x.cast(target), no_cast)
    with np.errstate(over="ignore"):
        values = EDGES.astype(TYPES[source])
    expected = [cast_scalar(float(value), target) for value in values]
    np.testing.assert_array_equal(run_graph(graph, {x: values}), np.array(expected, TYPES[target]))


def test_casts_that_are_safe_are_left():
    assert clamp_float_to_int(leaf(dtypes.int32, "x").cast(dtypes.float32)) is None


def test_reciprocal_becomes_a_division():
    x = leaf(dtypes.float32, "x")
    assert decompose(x.alu(Ops.RECIPROCAL), SMALL_TARGET) is x.const_like(1.0) / x


def test_negation_and_subtraction_keep_the_sign_of_zero():
    x, y = leaf(dtypes.float32, "x"), leaf(dtypes.float32, "y")
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    others = np.array([0.0, 0.0, -0.0, -0.0], np.float32)
    negated = run_graph(decompose(x.alu(Ops.NEG), SMALL_TARGET), {x: zeros})
    np.testing.assert_array_equal(np.signbit(negated), np.signbit(-zeros))
    difference = run_graph(decompose(x - y, SMALL_TARGET), {x: zeros, y: others})
    np.testing.assert_array_equal(np.signbit(difference), np.signbit(zeros - others))


def test_bodies_of_reductions_are_decomposed():
    old = UOp(Ops.STATE, dtypes.float32, (), (0, 0))
    new = UOp(Ops.STATE, dtypes.float32, (), (1, 0))
    combine = Combine("logaddexp2", (float("-inf"),), (old + new.alu(Ops.EXP2),))
    counter = UOp.range(8, 0, AxisType.REDUCE)
    value = UOp(Ops.LOAD, dtypes.float32, (), "x")
    reduce = UOp(Ops.REDUCE, dtypes.float32, (value, counter), ReduceArg(combine))
    target = TargetCapabilities(GroupOp.Elementwise - {Ops.EXP2}, frozenset(dtypes.all))
    (body,) = decompose(reduce, target).arg.combine.body
    assert Ops.EXP2 not in {node.op for node in body.toposort()}


def test_a_target_that_has_everything_changes_nothing():
    everything = TargetCapabilities(GroupOp.Elementwise, frozenset(dtypes.all))
    graph = leaf(dtypes.float32, "x").alu(Ops.SIN)
    assert decompose(graph, everything) is graph
