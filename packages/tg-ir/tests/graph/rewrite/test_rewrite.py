"""Patterns, rules and the rewriting engine."""

import gc
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.rewrite import (
    Assumption,
    PatternError,
    PatternMatcher,
    RewriteLoopError,
    UPat,
    assumes_no_nan,
    assumes_no_overflow,
    exact,
    graph_rewrite,
    map_nodes,
    rule,
)
from tg_ir.graph.rewrite.compiled import compile_pattern
from tg_ir.graph.uop import UOp

INT = dtypes.int32


def param(slot, dtype=INT):
    return UOp(Ops.DEFINE_VAR, dtype, (), f"p{slot}")


A, B, C = param(0), param(1), param(2)
ZERO, ONE, TWO = (UOp.const(INT, value) for value in (0, 1, 2))


def add(*nodes):
    result = nodes[0]
    for node in nodes[1:]:
        result = result.alu(Ops.ADD, node)
    return result


def test_algebra_matches_commutative_operands_in_any_order():
    matcher = PatternMatcher([(UPat.var("x") + 0, lambda x: x)])
    assert matcher.rewrite(A.alu(Ops.ADD, ZERO)) is A
    assert matcher.rewrite(ZERO.alu(Ops.ADD, A)) is A
    assert matcher.rewrite(A.alu(Ops.ADD, ONE)) is None


def test_a_name_used_twice_matches_one_node():
    matcher = PatternMatcher([(UPat.var("x") - UPat.var("x"), lambda x: x.const_like(0))])
    assert matcher.rewrite(A.alu(Ops.SUB, A)) is ZERO
    assert matcher.rewrite(A.alu(Ops.SUB, B)) is None


def test_every_order_is_tried_until_the_function_accepts_one():
    seen = []

    def accept_constant_second(x, y):
        seen.append((x, y))
        return x if y.op is Ops.CONST else None

    matcher = PatternMatcher([(UPat.var("x") + UPat.var("y"), accept_constant_second)])
    assert matcher.rewrite(ONE.alu(Ops.ADD, A)) is A
    assert seen == [(ONE, A), (A, ONE)]


def test_sources_in_any_order_may_be_more_than_two():
    pattern = UPat(Ops.SINK, src=[UPat.var("x"), UPat.cvar("c"), UPat(Ops.ADD, name="s")])
    matcher = PatternMatcher([(pattern, lambda x, c, s: UOp.sink(x, c, s, arg="sorted"))])
    total = A.alu(Ops.ADD, B)
    assert matcher.rewrite(UOp.sink(total, C, ONE)).src == (C, ONE, total)


def test_one_pattern_as_src_matches_every_source():
    matcher = PatternMatcher([(UPat(Ops.SINK, src=UPat(Ops.CONST), name="s"), lambda s: s.src[0])])
    assert matcher.rewrite(UOp.sink(ONE, TWO, ZERO)) is ONE
    assert matcher.rewrite(UOp.sink(ONE, A)) is None


def test_a_name_in_a_repeated_source_needs_one_node():
    matcher = PatternMatcher([(UPat(Ops.SINK, src=UPat.var("x")), lambda x: x)])
    assert matcher.rewrite(UOp.sink(A, A, A)) is A
    assert matcher.rewrite(UOp.sink(A, B)) is None


def test_allow_any_len_takes_more_sources():
    pattern = UPat(Ops.SINK, src=(UPat.cvar("c"),), allow_any_len=True)
    matcher = PatternMatcher([(pattern, lambda c: c)])
    assert matcher.rewrite(UOp.sink(ONE, A, B)) is ONE
    assert matcher.rewrite(UOp.sink(A, ONE)) is None


def test_any_tries_choices_in_order():
    pattern = UPat.any(UPat.var("x") + 0, UPat.var("x") * 1)
    matcher = PatternMatcher([(pattern, lambda x: x)])
    assert matcher.rewrite(A.alu(Ops.ADD, ZERO)) is A
    assert matcher.rewrite(A.alu(Ops.MUL, ONE)) is A
    assert matcher.rewrite(A.alu(Ops.MAX, ONE)) is None


def test_or_casted_matches_with_and_without_cast():
    pattern = UPat(Ops.SINK, src=(UPat.cvar("c").or_casted(),))
    matcher = PatternMatcher([(pattern, lambda c: c)])
    cast = UOp(Ops.CAST, dtypes.int64, (ONE,))
    assert matcher.rewrite(UOp.sink(ONE)) is ONE
    assert matcher.rewrite(UOp.sink(cast)) is ONE


def test_float_literal_tells_signed_zeros_apart():
    x = param(3, dtypes.float32)
    matcher = PatternMatcher([(UPat.var("x") + -0.0, lambda x: x)])
    assert matcher.rewrite(x.alu(Ops.ADD, UOp.const(dtypes.float32, -0.0))) is x
    assert matcher.rewrite(x.alu(Ops.ADD, UOp.const(dtypes.float32, 0.0))) is None


def test_dtype_matches_vectors_of_it():
    matcher = PatternMatcher([(UPat.var("x", dtypes.float32) * 1, lambda x: x)])
    vector = param(3, dtypes.float32).broadcast(4)
    one = UOp.const(dtypes.float32, 1.0)
    assert matcher.rewrite(vector.alu(Ops.MUL, one)) is vector
    assert matcher.rewrite(A.alu(Ops.MUL, ONE)) is None


def test_context_is_passed_to_functions_that_ask():
    matcher = PatternMatcher([(UPat.cvar("c"), lambda ctx, c: c.const_like(ctx[c.arg]))])
    assert matcher.rewrite(ONE, ctx=[5, 7]).arg == 7


def test_function_that_asks_for_an_unknown_name_is_refused():
    with pytest.raises(PatternError, match="asks for 'y'"):
        PatternMatcher([(UPat.var("x"), lambda y: y)])


def test_matchers_concatenate_first_rule_first():
    first = PatternMatcher([(UPat.cvar("c"), lambda c: TWO if c.arg == 1 else None)])
    second = PatternMatcher([(UPat.cvar("c"), lambda c: ZERO)])
    both = first + second
    assert both.rewrite(ONE) is TWO
    assert both.rewrite(UOp.const(INT, 5)) is ZERO


def test_rule_in_algebra_builds_its_right_side():
    x, y = UPat.var("x"), UPat.var("y")
    distribute = rule("distribute", (x + y) * 2, x * 2 + y * 2, exact=True)
    result = PatternMatcher([distribute]).rewrite(add(A, B).alu(Ops.MUL, TWO))
    assert result is add(A.alu(Ops.MUL, TWO), B.alu(Ops.MUL, TWO))
    cancel = rule("cancel", x - x, UPat.const(None, 0), exact=True)
    assert PatternMatcher([cancel]).rewrite(A.alu(Ops.SUB, A)) is ZERO


def test_rule_needs_one_declaration_and_captured_names():
    x = UPat.var("x")
    with pytest.raises(PatternError, match="say either exact"):
        rule("nothing", x + 0, x)
    with pytest.raises(PatternError, match="not captured"):
        rule("unbound", x + 0, UPat.var("z"), exact=True)


def test_rules_that_assume_need_fast_math_or_their_guard():
    @assumes_no_nan
    def cancel(x):
        return x.const_like(0)

    @assumes_no_overflow(guard=lambda x: x is B)
    def drop(x):
        return x

    x = UPat.var("x")
    matcher = PatternMatcher([(x - x, cancel), (x * 1, drop)])
    assert matcher.rules[0].assumption is Assumption.NO_NAN
    difference = A.alu(Ops.SUB, A)
    assert graph_rewrite(difference, matcher) is difference
    assert graph_rewrite(difference, matcher, fast_math=True) is ZERO
    assert graph_rewrite(B.alu(Ops.MUL, ONE), matcher) is B
    product = A.alu(Ops.MUL, ONE)
    assert graph_rewrite(product, matcher) is product
    assert graph_rewrite(product, matcher, fast_math=True) is A


def test_graph_rewrite_reaches_a_fixed_point():
    matcher = PatternMatcher([(UPat.var("x") + 0, lambda x: x)])
    graph = UOp.sink(add(ZERO, add(A, ZERO), ZERO), B)
    assert graph_rewrite(graph, matcher) is UOp.sink(A, B)
    assert graph_rewrite(graph, matcher, bottom_up=True) is UOp.sink(A, B)


def test_results_are_rewritten_in_turn():
    names = {1: 2, 2: 3, 3: 4}
    matcher = PatternMatcher([(UPat.cvar("c"), lambda ctx, c: c.const_like(ctx.get(c.arg, c.arg)))])
    for bottom_up in (False, True):
        result = graph_rewrite(add(ONE, A), matcher, ctx=names, bottom_up=bottom_up)
        assert result is add(UOp.const(INT, 4), A)


def test_bottom_up_sees_a_node_before_its_sources():
    fuse = PatternMatcher(
        [
            (UPat.var("x") * UPat.var("y") + UPat.var("z"), lambda x, y, z: x.alu(Ops.MULACC, y,
            z)), (UPat(Ops.MUL, name="m"), lambda m: ZERO),
        ]
    )
    graph = A.alu(Ops.MUL, B).alu(Ops.ADD, C)
    assert graph_rewrite(graph, fuse, bottom_up=True).op is Ops.MULACC
    assert graph_rewrite(graph, fuse).op is Ops.ADD


@pytest.mark.parametrize("bottom_up", [False, True])
def test_chain_of_20000_nodes_is_rewritten_in_linear_time(bottom_up):
    matcher = PatternMatcher([(UPat.var("x") + 1, lambda x: x.alu(Ops.XOR, ONE))])
    node = A
    for _ in range(20000):
        node = node.alu(Ops.ADD, ONE)
    begin = time.perf_counter()
    result = graph_rewrite(node, matcher, bottom_up=bottom_up)
    assert time.perf_counter() - begin < 4
    order = list(result.toposort())
    assert len(order) == 20002
    assert all(each.op is Ops.XOR for each in order if each.src)


def test_a_rewrite_pushed_down_a_long_chain_is_no_loop():
    matcher = PatternMatcher([(-(UPat.var("x") + UPat.var("y")), lambda x, y: x.alu(Ops.NEG) + -y)])
    node = A
    for _ in range(9000):
        node = node.alu(Ops.ADD, B)
    result = graph_rewrite(node.alu(Ops.NEG), matcher)
    assert len(result.toposort()) == 9004


def flip(name, before, after):
    def function(x):
        return x.replace(op=after)

    function.__name__ = name
    return (UPat(before, name="x"), function)


@pytest.mark.parametrize("bottom_up", [False, True])
def test_rules_that_undo_each_other_are_named(bottom_up):
    rules = [flip("to_sub", Ops.ADD, Ops.SUB), flip("to_add", Ops.SUB, Ops.ADD)]
    with pytest.raises(RewriteLoopError, match="my pass.*'to_sub'.*'to_add'|'to_add'.*'to_sub'"):
        graph_rewrite(add(A, B), PatternMatcher(rules), name="my pass", bottom_up=bottom_up)


@pytest.mark.parametrize("bottom_up", [False, True])
def test_a_rule_that_never_stops_is_named(bottom_up):
    def count_up(c):
        return c.const_like(c.arg + 1)

    with pytest.raises(RewriteLoopError, match="'count_up'"):
        graph_rewrite(add(A, ONE), PatternMatcher([(UPat.cvar("c"), count_up)]),
        bottom_up=bottom_up)


@pytest.mark.parametrize("bottom_up", [False, True])
def test_a_rule_that_wraps_its_own_node_is_named(bottom_up):
    def wrap(c):
        return add(c, A)

    with pytest.raises(RewriteLoopError, match="'wrap'"):
        graph_rewrite(UOp.sink(ONE), PatternMatcher([(UPat.cvar("c"), wrap)]), bottom_up=bottom_up)


def test_shared_nodes_are_rewritten_once():
    calls = []

    def note(c):
        calls.append(c)

    node = ONE
    for _ in range(60):
        node = add(node, node)
    graph_rewrite(node, PatternMatcher([(UPat(Ops.ADD, name="c"), note)]))
    assert len(calls) == 60


def test_observer_gets_rule_before_and_after():
    matcher = PatternMatcher([rule("drop_zero", UPat.var("x") + 0, UPat.var("x"), exact=True)])
    seen = []
    graph = add(A, ZERO)
    graph_rewrite(graph, matcher, observer=lambda *event: seen.append(event))
    assert seen == [(matcher.rules[0], graph, A)]


def test_collector_is_paused_and_back_on():
    states = []
    matcher = PatternMatcher([(UPat.cvar("c"), lambda c: states.append(gc.isenabled()))])
    graph_rewrite(ONE, matcher)
    assert states == [False]
    assert gc.isenabled()


def test_map_nodes_visits_each_node_once_over_new_sources():
    result = map_nodes(add(ONE, A), lambda node: TWO if node is ONE else None)
    assert result is add(TWO, A)


LEAF = st.sampled_from([A, B, ZERO, ONE])


def grow(children):
    ops = st.sampled_from([Ops.ADD, Ops.SUB, Ops.MUL])
    return st.builds(lambda op, x, y: x.alu(op, y), ops, children, children)


PATTERN_LEAF = st.sampled_from([UPat.var("x"), UPat.var("y"), UPat.cvar("c"), UPat.const(None, 0)])


def grow_pattern(children):
    binary = st.builds(
        lambda op, x, y: x.alu(op, y), st.sampled_from([Ops.ADD, Ops.SUB, Ops.MUL]), children,
        children
    )
    return binary | st.builds(UPat.any, children, children)


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(PATTERN_LEAF, grow_pattern, max_leaves=5), st.recursive(LEAF, grow, max_leaves=8)
)
def test_compiled_pattern_accepts_what_match_accepts(pattern, node):
    names = tuple(sorted(pattern.names()))
    compiled_matches = []

    def collect(*nodes):
        compiled_matches.append(dict(zip(names, nodes, strict=True)))

    if pattern.op is None or node.op in pattern.op:
        compile_pattern(pattern, names, collect)(node, None)
    plain = [{name: way.get(name) for name in names} for way in pattern.match(node)]

    def key(way):
        return sorted((name, id(found)) for name, found in way.items())

    assert sorted(map(key, compiled_matches)) == sorted(map(key, plain))


def test_decorators_keep_the_function():
    @exact
    def keep(x):
        return x

    assert keep(A) is A


def test_reused_matcher_is_fast():
    matcher = PatternMatcher([(UPat.var("x") + 0, lambda x: x)])
    graph = add(*[A, B] * 50)
    graph_rewrite(graph, matcher)
    begin = time.perf_counter()
    for _ in range(20):
        graph_rewrite(graph, matcher)
    assert (time.perf_counter() - begin) / 20 < 0.01
