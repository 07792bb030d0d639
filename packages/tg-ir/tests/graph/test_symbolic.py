"""Simplification keeps values (both sides are run over all inputs) and reaches known forms."""

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.symbolic import simplify, simplify_given, split_affine
from tg_ir.graph.uop import UOp

I = UOp.range(6, 0, AxisType.LOOP)  # noqa: E741 - as the formulas name it
J = UOp.range(4, 1, AxisType.LOOP)
K = UOp.variable("k", -3, 5)
N = UOp.variable("n", 1, 3)
M = UOp.range(N, 2, AxisType.LOOP)
LEAVES = (I, J, K, N, M)


def assignments():
    """Every value of the leaves; M runs below N."""
    grid = itertools.product(range(6), range(4), range(-3, 6), range(1, 4))
    for i, j, k, n in grid:
        for m in range(n):
            yield {I: i, J: j, K: k, N: n, M: m}


def c_quotient(x, y):
    return int(math.trunc(x / y)) if y else 0


PYTHON = {
    Ops.ADD: lambda x, y: x + y,
    Ops.SUB: lambda x, y: x - y,
    Ops.MUL: lambda x, y: x * y,
    Ops.NEG: lambda x: -x,
    Ops.FLOORDIV: lambda x, y: x // y if y else 0,
    Ops.FLOORMOD: lambda x, y: x % y if y else 0,
    Ops.CDIV: c_quotient,
    Ops.CMOD: lambda x, y: x - y * c_quotient(x, y) if y else 0,
    Ops.MAX: max,
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPNE: lambda x, y: x != y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.AND: lambda x, y: x and y,
    Ops.OR: lambda x, y: x or y,
    Ops.XOR: lambda x, y: x != y,
    Ops.WHERE: lambda c, x, y: x if c else y,
}


def run(node, values):
    """The value of an index or bool expression, by Python's own arithmetic."""
    results = dict(values)
    for part in node.toposort():
        if part in results:
            continue
        if part.op is Ops.CONST:
            results[part] = part.arg
        elif part.op is Ops.RANGE:
            raise AssertionError("a loop counter without a value")
        else:
            results[part] = PYTHON[part.op](*[results[s] for s in part.src])
    return results[node]


SOME = list(assignments())[::7]
CONSTANT = st.integers(-9, 9).map(lambda value: UOp.const(dtypes.index, value))
DIVISOR = st.sampled_from([1, 2, 3, 4, 6, 8, -2, 0]).map(lambda v: UOp.const(dtypes.index, v))


def raw(op, *src):
    return UOp(op, dtypes.index, src)


def grow(children):
    arithmetic = st.builds(
        raw, st.sampled_from([Ops.ADD, Ops.ADD, Ops.SUB, Ops.MAX]), children, children
    )
    scale = CONSTANT | st.sampled_from([N, J])
    product = st.builds(lambda x, y: raw(Ops.MUL, x, y), children, scale)
    division = st.builds(
        raw,
        st.sampled_from([Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD]),
        children,
        DIVISOR | st.just(N),
    )
    condition = comparisons(children)
    choice = st.builds(lambda c, x, y: raw(Ops.WHERE, c, x, y), condition, children, children)
    negation = st.builds(lambda x: raw(Ops.NEG, x), children)
    return arithmetic | product | division | division | choice | negation


def comparisons(children):
    op = st.sampled_from([Ops.CMPLT, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE])
    return st.builds(lambda o, x, y: UOp(o, dtypes.bool, (x, y)), op, children, children)


EXPRESSION = st.recursive(st.sampled_from(LEAVES) | CONSTANT, grow, max_leaves=8)


def logic(children):
    op = st.sampled_from([Ops.AND, Ops.OR, Ops.XOR])
    pairs = st.builds(lambda o, x, y: UOp(o, dtypes.bool, (x, y)), op, children, children)
    return pairs | st.builds(lambda x: x.logical_not(), children)


CONDITION = st.recursive(comparisons(EXPRESSION), logic, max_leaves=4)


@settings(max_examples=400, deadline=None)
@given(EXPRESSION)
def test_index_arithmetic_keeps_its_value(expression):
    result = simplify(expression)
    for values in SOME:
        assert run(result, values) == run(expression, values)
        assert result.vmin <= run(result, values) <= result.vmax


@settings(max_examples=300, deadline=None)
@given(CONDITION)
def test_conditions_keep_their_value(condition):
    result = simplify(condition)
    for values in SOME:
        assert bool(run(result, values)) == bool(run(condition, values))


@settings(max_examples=300, deadline=None)
@given(EXPRESSION)
def test_simplifying_twice_changes_nothing(expression):
    result = simplify(expression)
    rebuilt = {node: None for node in result.toposort()}
    for node in rebuilt:
        node._simple = None
    assert simplify(result) is result


@settings(max_examples=300, deadline=None)
@given(EXPRESSION, CONDITION)
def test_given_a_condition_the_value_is_kept_where_it_holds(expression, condition):
    result = simplify_given(expression, condition)
    for values in SOME:
        if run(condition, values):
            assert run(result, values) == run(expression, values)


@settings(max_examples=300, deadline=None)
@given(EXPRESSION, st.sampled_from([I, J, M]))
def test_affine_parts_add_up_and_do_not_depend_on_the_counter(expression, counter):
    parts = split_affine(expression, counter)
    if parts is None:
        return
    coefficient, rest = parts
    assert counter not in coefficient.toposort()
    assert counter not in rest.toposort()
    for values in SOME:
        expected = run(coefficient, values) * values[counter] + run(rest, values)
        assert run(expression, values) == expected


X = UOp.range(8, 10, AxisType.LOOP) * 12 + UOp.range(4, 11, AxisType.LOOP) * 3
X = X + UOp.range(3, 12, AxisType.LOOP)
A, B, C = (UOp.range(bound, 10 + axis, AxisType.LOOP) for axis, bound in enumerate((8, 4, 3)))
W = UOp.range(32, 13, AxisType.LOOP)
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)

KNOWN_FORMS = [
    ("quotient of a tile", (A * 4 + B) // 4, A),
    ("remainder of a tile", (A * 4 + B) % 4, B),
    ("common factor", X // 6, A * 2 + B // 2),
    ("quotient and remainder join", X // 6 * 6 + X % 6, X),
    ("three digits join", X // 12 * 12 + X // 3 % 4 * 3 + X % 3, X),
    ("offset quotient and remainder join", (W - 3) // 4 * 4 + (W - 3) % 4, W - 3),
    ("nested quotient", W // 2 // 4, W // 8),
    ("nested remainder", W % 8 % 4, W % 4),
    ("quotient of a remainder", W % 8 // 2, W // 2 % 4),
    ("symbolic tile quotient", (A * N + M) // N, A),
    ("symbolic tile remainder", (A * N + M) % N, M),
    ("symbolic tile of tiles", (A * N * 4 + M * 4 + B) // (N * 4), A),
    ("symbolic bound", M < N, TRUE),
    ("bound of a tile", A * 4 + B < 32, TRUE),
    ("whole tiles compare", A * 4 + B < 20, A < 5),
    ("common factor of a comparison", A * 4 < 9, A < 3),
    ("quotient compare", W // 4 < 3, W < 12),
    ("not less", (W < 5).logical_not(), UOp.const(dtypes.index, 4) < W),
    ("implied condition", (W < 5) & (W < 9), W < 5),
    ("contradiction", (W < 5) & (UOp.const(dtypes.index, 6) < W), FALSE),
    ("either side", (W < 5) | (W < 5).logical_not(), TRUE),
    ("impossible remainder", (A * 4 + 1).eq(2), FALSE),
    ("terms cancel", A + B - A, B),
    ("nested choice", (W < 5).where((W < 5).where(A, B), C), (W < 5).where(A, C)),
]


@pytest.mark.parametrize(("what", "before", "after"), KNOWN_FORMS, ids=lambda p: str(p)[:30])
def test_known_forms(what, before, after):
    assert simplify(before) is simplify(after)
    assert simplify(after) is after


def test_order_of_terms_does_not_matter():
    assert simplify(B + A * 2 + K) is simplify(K + B + A + A)


def test_mask_makes_padding_index_plain():
    inside = (W - 2 >= 0) & (W - 2 < 28)
    assert simplify_given((W - 2) // 28, inside).arg == 0
    tile = (A + B - 1) // 4
    inside = (UOp.const(dtypes.index, 0) < A + B) & (A + B < 5)
    assert simplify_given(tile, inside).arg == 0


def variable(dtype, name="x"):
    return UOp(Ops.LOAD, dtype, (), name)


F, G = variable(dtypes.float32, "f"), variable(dtypes.float32, "g")
U = variable(dtypes.uint8, "u")


def const(value, dtype=dtypes.float32):
    return UOp.const(dtype, value)


def test_float_rules_that_would_lose_nan_or_zero_signs_are_off():
    for kept in (F * const(0.0), F - F, F + const(0.0), F / F, (F + const(1.0)) + const(2.0)):
        assert simplify(kept) is kept
    assert simplify(F.ne(F)) is F.ne(F)
    assert simplify((F < G).logical_not()).op is Ops.XOR


def test_fast_math_turns_them_on():
    assert simplify(F - F, fast_math=True).arg == 0.0
    assert simplify(F + const(0.0), fast_math=True) is F
    assert simplify((F + const(1.0)) + const(2.0), fast_math=True) is F + const(3.0)


def test_exact_float_rules():
    assert simplify(F * const(1.0)) is F
    assert simplify(F + const(-0.0)) is F
    assert simplify(F - const(0.0)) is F
    assert simplify(F / const(8.0)) is F * const(0.125)
    assert simplify(F / const(3.0)) is F / const(3.0)
    assert simplify(const(2.0**-149) / const(2.0)).arg == 0.0
    assert simplify(F / const(2.0**127)) is F / const(2.0**127)


def test_machine_integers_wrap():
    assert simplify((U + const(200, dtypes.uint8)) + const(100, dtypes.uint8)).src[1].arg == 44
    kept = (U + const(1, dtypes.uint8)) < U
    assert simplify(kept) is kept
    assert simplify(U & const(255, dtypes.uint8)) is U
    assert simplify(U * const(0, dtypes.uint8)).arg == 0


def test_constants_of_every_dtype_fold():
    for dtype in dtypes.all:
        if dtype is not dtypes.bool:
            assert simplify(const(3, dtype).alu(Ops.MUL, const(5, dtype))) is const(15, dtype)
    assert simplify(const(0.1).alu(Ops.EXP2)).op is Ops.CONST


def test_casts_through_a_wider_type_go_only_where_they_change_nothing():
    half = variable(dtypes.float16)
    assert simplify(half.cast(dtypes.float32).cast(dtypes.float16)) is half
    rounding = F.cast(dtypes.float16).cast(dtypes.float32)
    assert simplify(rounding) is rounding
    signed = variable(dtypes.int8)
    assert simplify(signed.cast(dtypes.int64).cast(dtypes.int32)) is signed.cast(dtypes.int32)
    # a negative float saturates to 0 as uint32, a negative int wraps
    through_float = signed.cast(dtypes.float32).cast(dtypes.uint32)
    assert simplify(through_float) is through_float


def test_equal_lanes_are_one_scalar():
    four = F.broadcast(4)
    assert simplify(four.alu(Ops.ADD, G.broadcast(4))) is (F + G).broadcast(4)
    assert simplify(UOp(Ops.VECTORIZE, F.dtype.vec(4), (F, F, F, F))) is four
    assert simplify(four.gep(2)) is F


def test_true_mask_goes():
    buffer = UOp(Ops.BUFFER, dtypes.float32, (), "b")
    assert simplify(buffer.index(A, A < 9)) is buffer.index(A)


def test_long_sums_are_simplified_in_linear_time():
    def chain(length):
        node = I
        for axis in range(length):
            node = node + UOp.range(3, 1000 + axis, AxisType.LOOP)
        begin = time.perf_counter()
        simplify(node)
        return time.perf_counter() - begin

    assert chain(4000) < 2


def test_a_simplified_expression_costs_nothing_again():
    simplify(X // 6)
    begin = time.perf_counter()
    for _ in range(1000):
        simplify(X // 6)
    assert (time.perf_counter() - begin) / 1000 < 50e-6


def test_a_squared_counter_is_not_bounded_by_its_last_value():
    square = raw(Ops.MUL, J, J)
    assert simplify(square < 4).op is not Ops.CONST
    assert simplify(square < 10).arg is True
