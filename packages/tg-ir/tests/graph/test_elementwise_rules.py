"""Every exact rule on machine integers, bools and floats keeps each bit, and is reached."""

import math
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_ir.dtype import cast_scalar, dtypes
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.rewrite import Assumption, graph_rewrite
from tg_ir.graph.scalar import alu
from tg_ir.graph.symbolic import elementwise_rules, simplify
from tg_ir.graph.uop import UOp

DTYPES = (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.float16, dtypes.float32, dtypes.float64)
INT_OPS = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR)
INT_OPS += (Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD)
FLOAT_OPS = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX)
INTS = (0, 1, -1, 2, 3, 7, 100, 127, -128, 255)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 8.0, 3.0, 1e-7, 6e4, math.inf, -math.inf, math.nan, 2.0**-14)


def leaf(dtype, number):
    return UOp(Ops.LOAD, dtype, (), (dtype.name, number))


LEAVES = [leaf(dtype, number) for dtype in (*DTYPES, dtypes.bool) for number in (0, 1)]


def grow(random_, depth, dtype):
    """A random expression of `dtype`; many of the constants and repeats that rules look for."""
    if depth == 0 or random_.random() < 0.1:
        if random_.random() < 0.45:
            return UOp.const(dtype, random_.choice(FLOATS if dtype.kind == "float" else INTS))
        return leaf(dtype, random_.randrange(2))
    kind = random_.random()
    if dtype is dtypes.bool:
        inner = random_.choice(DTYPES)
        left = grow(random_, depth - 1, inner)
        right = left if kind < 0.1 else grow(random_, depth - 1, inner)
        node = left.alu(random_.choice(tuple(GroupOp.Comparison)), right)
        return node.logical_not() if random_.random() < 0.3 else node
    if kind < 0.15:
        return grow(random_, depth - 1, random_.choice(DTYPES)).cast(dtype)
    if kind < 0.3:
        condition = grow(random_, depth - 1, dtypes.bool)
        yes, no = (grow(random_, depth - 1, dtype) for _ in range(2))
        return condition.where(yes, condition.where(no, yes) if kind < 0.2 else no)
    operand = grow(random_, depth - 1, dtype)
    if kind < 0.4:
        once = operand.alu(Ops.NEG)
        return once.alu(Ops.NEG) if kind < 0.36 else operand.alu(Ops.TRUNC).alu(Ops.TRUNC)
    op = random_.choice(FLOAT_OPS if dtype.kind == "float" else INT_OPS)
    other = operand if kind < 0.47 else grow(random_, depth - 1, dtype)
    return operand.alu(op, other) if random_.random() < 0.7 else other.alu(op, operand)


def evaluate(root, values):
    results = dict(values)
    for node in root.toposort():
        if node.op is Ops.CONST:
            results[node] = node.arg
        elif node not in results:
            operands = [results[s] for s in node.src]
            results[node] = alu(node.op, node.dtype, operands, node.src[0].dtype)
    return results[root]


def bits(value):
    if not isinstance(value, float):
        return int(value)
    return "nan" if math.isnan(value) else struct.pack("<d", value)


def some_values(random_):
    values = {}
    for node in LEAVES:
        choice = random_.choice(FLOATS if node.dtype.kind == "float" else INTS)
        values[node] = cast_scalar(choice, node.dtype)
    return values


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([*DTYPES, dtypes.bool]))
def test_simplified_expressions_compute_the_same_bits(seed, dtype):
    random_ = random.Random(seed)
    expression = grow(random_, 4, dtype)
    result = simplify(expression)
    assert result.dtype is dtype
    for _ in range(12):
        values = some_values(random_)
        assert bits(evaluate(result, values)) == bits(evaluate(expression, values))


VECTOR_AND_MEMORY = {"lift_broadcast", "join_equal_lanes", "take_lane", "drop_true_mask"}


@pytest.fixture(scope="module")
def rewrites():
    """Each rewrite that happened on many random expressions: rule name -> (before, after) pairs."""
    seen = {}

    def note(rule, before, after):
        seen.setdefault(rule.name, []).append((before, after))

    for seed in range(6000):
        random_ = random.Random(seed)
        expression = grow(random_, 3, DTYPES[seed % len(DTYPES)])
        graph_rewrite(expression, elementwise_rules, observer=note)
    return seen


EXACT = sorted(
    {rule.name for rule in elementwise_rules.rules if rule.assumption is Assumption.EXACT}
    - VECTOR_AND_MEMORY
)


@pytest.mark.parametrize("name", EXACT)
def test_rule_keeps_values(rewrites, name):
    random_ = random.Random(name)
    assert rewrites.get(name), f"no random expression reaches '{name}'"
    for before, after in rewrites[name][:40]:
        for _ in range(20):
            values = some_values(random_)
            assert bits(evaluate(before, values)) == bits(evaluate(after, values)), (before, after)
