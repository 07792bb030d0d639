"""Every expression that the evaluator writes inline computes what `alu` computes, bit for bit."""

import math
import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tg_ir.dtype import cast_scalar, dtypes
from tg_ir.errors import DTypeError
from tg_ir.graph.evaluate.expressions import FUNCTIONS, scalar_expression
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.scalar import alu

INTERESTING_FLOATS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, 5e-324]


def values_of(dtype):
    if dtypes.is_bool(dtype):
        return st.booleans()
    if dtypes.is_float(dtype):
        any_float = st.floats() | st.sampled_from(INTERESTING_FLOATS)
        return any_float.map(lambda value: cast_scalar(value, dtype))
    if dtype is dtypes.index:
        return st.integers(-2000, 2000)  # a shift of an unbounded integer by 2**60 fills the memory
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    ends = st.sampled_from([low, high, 0, 1, max(low, -1)])
    return st.integers(low, high) | ends | st.integers(max(low, -70), 70)


def bits(value):
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)
    return (type(value), value)


def run(expression, values):
    names = [f"a{k}" for k in range(len(values))]
    text = expression.of(*names)
    found = eval(text, dict(FUNCTIONS), dict(zip(names, values, strict=True)))
    return FUNCTIONS["as_float32"](found) if expression.through_float32 else found


def operand_dtypes(op, dtype):
    if op is Ops.WHERE:
        return [dtypes.bool, dtype, dtype]
    count = 3 if op in GroupOp.Ternary else 2 if op in GroupOp.Binary else 1
    return [dtype] * count


def is_defined(op, dtype):
    zeros = [cast_scalar(0, operand) for operand in operand_dtypes(op, dtype)]
    try:
        alu(op, dtype, zeros)
    except DTypeError:
        return False
    return True


ALU_CASES = [
    pytest.param(op, dtype, id=f"{op.name}-{dtype.name}")
    for op in sorted(GroupOp.ALU)
    for dtype in (*dtypes.all, dtypes.index)
    if is_defined(op, dtype)
]


@pytest.mark.parametrize(("op", "dtype"), ALU_CASES)
def test_expression_computes_what_alu_computes(op, dtype):
    result = dtypes.bool if op in GroupOp.Comparison else dtype
    expression = scalar_expression(op, result, dtype)

    @settings(max_examples=25, deadline=None, database=None)
    @given(st.tuples(*[values_of(operand) for operand in operand_dtypes(op, dtype)]))
    def check(values):
        assert bits(run(expression, values)) == bits(alu(op, result, values, dtype))

    check()


@pytest.mark.parametrize("target", (*dtypes.all, dtypes.index))
@pytest.mark.parametrize("source", (*dtypes.all, dtypes.index))
def test_cast_expression_computes_what_alu_computes(source, target):
    expression = scalar_expression(Ops.CAST, target, source)

    @settings(max_examples=10, deadline=None, database=None)
    @given(values_of(source))
    def check(value):
        assert bits(run(expression, [value])) == bits(alu(Ops.CAST, target, [value], source))

    check()


def as_float32(value):
    return cast_scalar(value, dtypes.float32)


SMALL = st.integers(-(2**24), 2**24).map(float)


@settings(max_examples=150, deadline=None)
@given(SMALL, SMALL, st.integers(-60, 60), st.integers(-60, 60))
@example(2.0**12 + 1, 2.0**12 - 1, 0, -60)
def test_fused_multiply_add_rounds_once(a, b, scale, small):
    x, y = as_float32(a), as_float32(math.ldexp(b, scale))
    z = as_float32(math.ldexp(3.0, small))
    found = FUNCTIONS["fused_float32"](x, y, z)
    assert bits(found) == bits(alu(Ops.MULACC, dtypes.float32, (x, y, z)))


def test_fused_multiply_add_where_rounding_twice_is_wrong():
    # 1 + 2^-24 is half way between two float32; the tiny product decides
    x, y = 2.0**-40, 2.0**-40
    near_tie = as_float32(1.0 + 2.0**-23)
    expected = alu(Ops.MULACC, dtypes.float32, (2.0**-12 + 2.0**-35, 2.0**-12, near_tie))
    found = FUNCTIONS["fused_float32"](2.0**-12 + 2.0**-35, 2.0**-12, near_tie)
    assert found == expected
    assert FUNCTIONS["fused_float32"](x, y, 1.0) == 1.0


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*[values_of(dtypes.float32)] * 3), min_size=1, max_size=4))
@example([(2.0**-12 + 2.0**-35, 2.0**-12, 1.0 + 2.0**-23), (1.0, 1.0, 1.0)])
@example([(3.4e38, 1.0, 2.0**103), (1e-30, 1e-15, 2.0**-149), (0.0, -0.0, -0.0)])
def test_fused_lanes_round_like_single_values(lanes):
    found = FUNCTIONS["fused_float32_lanes"](*zip(*lanes, strict=True))
    expected = [alu(Ops.MULACC, dtypes.float32, lane) for lane in lanes]
    assert [bits(value) for value in found] == [bits(value) for value in expected]
