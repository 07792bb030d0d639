"""A graph comes back from its text as the same nodes; other texts are refused with a caret."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import TextError
from tg_ir.graph.ops import (
    AddrSpace,
    AxisType,
    BufferArg,
    CallArg,
    Combine,
    CustomArg,
    DefineArg,
    FunctionArg,
    KernelInfo,
    Ops,
    ParamArg,
    RangeArg,
    ReduceArg,
    SkewArg,
    StageArg,
    VarArg,
)
from tg_ir.graph.text import dump, neighbourhood, parse, print_graph, show
from tg_ir.graph.uop import Symbol, UOp

F32 = dtypes.float32


def leaf(op, arg, dtype=F32):
    return UOp(op, dtype, (), arg)


def state(side, position, dtype=F32):
    return leaf(Ops.STATE, (side, position), dtype)


BETTER = state(0, 0).alu(Ops.CMPLT, state(1, 0))
ARGMAX = Combine(
    "argmax",
    (-math.inf, 0),
    (
        BETTER.where(state(1, 0), state(0, 0)),
        BETTER.where(state(1, 1, dtypes.int32), state(0, 1, dtypes.int32)),
    ),
)
ARGUMENTS = [
    BufferArg(3, 12, "CPU"),
    BufferArg(4, 12, ("CPU", "CPU:1"), 2),
    VarArg("it's", -3, 7),
    SkewArg(0, 1, 2, 3, 4),
    ParamArg(0, 4, True, (2, 2), "CPU"),
    RangeArg((1, 0), AxisType.VECTOR),
    ReduceArg(Combine.of(Ops.MAX, F32), (0, 2)),
    ReduceArg(ARGMAX, (1,)),
    StageArg(AddrSpace.LOCAL, (3, 4), (1, 0), 2),
    DefineArg(1, 16),
    FunctionArg("f", "df"),
    CustomArg("c", "C", 'void f() {\n\t"\\"; }', (((2, 3), dtypes.int8.vec(4)),), "e"),
    KernelInfo("k", ("vector 1 16",)),
    CallArg("copy", "copy"),
    (),
    (1,),
    (True, False),
    ((0, Symbol(1)), (Symbol(2), 3)),
    "g0",
    b"\x00'\xff",
    Ops.ADD,
    3,
    -(10**30),
    None,
]


@pytest.mark.parametrize("arg", ARGUMENTS, ids=lambda arg: type(arg).__name__)
def test_every_argument_comes_back(arg):
    node = leaf(Ops.CUSTOM, arg)
    assert parse(dump(node)) == [node]


@settings(max_examples=200)
@given(st.floats(), st.booleans())
def test_floats_come_back_bit_for_bit(value, negative):
    number = -value if negative else value
    node = leaf(Ops.CONST, number)
    (back,) = parse(dump(node))
    assert back is node
    assert repr(back.arg) == repr(node.arg)


def test_numbers_of_unlike_types_stay_apart():
    nodes = [leaf(Ops.CONST, value, dtypes.void) for value in ("1", 2, 3.0)]
    back = parse(dump([*nodes, leaf(Ops.CONST, True, dtypes.bool)]))
    assert [type(node.arg) for node in back] == [str, int, float, bool]


@st.composite
def graphs(draw):
    """Random graphs over all ops, dtypes and arguments; they need not mean anything."""
    nodes = []
    dtype = st.sampled_from([*dtypes.all, dtypes.index]).flatmap(
        lambda scalar: st.sampled_from([1, 2, 16]).map(scalar.vec)
    )
    for _ in range(draw(st.integers(1, 12))):
        count = draw(st.integers(0, min(3, len(nodes))))
        src = tuple(draw(st.sampled_from(nodes)) for _ in range(count))
        op = draw(st.sampled_from(list(Ops)))
        nodes.append(UOp(op, draw(dtype), src, draw(st.sampled_from(ARGUMENTS))))
    roots = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=4))
    return roots


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_random_graphs_come_back_as_the_same_nodes(roots):
    text = dump(roots)
    assert parse(text) == roots
    assert dump(parse(text)) == text


def linear_kernel():
    bound = leaf(Ops.CONST, 4, dtypes.int64)
    loop = UOp(Ops.RANGE, dtypes.int64, (bound,), RangeArg((0,), AxisType.LOOP))
    out = leaf(Ops.PARAM, ParamArg(0, 4, True))
    place = UOp(Ops.INDEX, F32, (out, loop))
    value = UOp(Ops.CAST, F32, (loop,))
    store = UOp(Ops.STORE, dtypes.void, (place, value))
    return [out, bound, loop, value, place, store, UOp(Ops.END, dtypes.void, (loop,))]


def test_linear_kernel_keeps_its_order():
    kernel = linear_kernel()
    text = dump(kernel)
    assert parse(text) == kernel
    assert text.endswith("roots all\n")


def test_deep_graph_comes_back():
    node = leaf(Ops.CONST, 1.0)
    for _ in range(20_000):
        node = UOp(Ops.NEG, F32, (node,))
    assert parse(dump(node)) == [node]


def test_text_is_stable():
    # stored texts must keep loading: a change here is a new FORMAT_VERSION
    assert dump(leaf(Ops.CONST, 1.5).alu(Ops.ADD, leaf(Ops.CONST, -0.0))) == (
        "tg-ir text 1\n"
        "0: CONST float32 () 1.5\n"
        "1: CONST float32 () -0.0\n"
        "2: ADD float32 (0, 1)\n"
        "roots (2)\n"
    )


def test_comments_and_empty_lines_are_allowed():
    text = "tg-ir text 1\n# a comment\n\n0: CONST float32 () 1.0\nroots (0)\n\n# end\n"
    assert parse(text) == [leaf(Ops.CONST, 1.0)]


BROKEN = [
    ("", "expected 'tg-ir text 1' on the first line"),
    ("tg-ir text 2\nroots ()", "this is version 2 of the format, this tg_ir reads version 1"),
    ("tg-ir text 1\n0: CONST float32 () 1.0\n", "ends without a line 'roots"),
    ("tg-ir text 1\n0: ADDD float32 () 1\nroots (0)", "no 'ADDD'; did you mean 'ADD'"),
    ("tg-ir text 1\n0: ADD float33 ()\nroots (0)", "no dtype is called 'float33'"),
    ("tg-ir text 1\n0: ADD Float ()\nroots (0)", "'Float' is not a dtype"),
    ("tg-ir text 1\n0: NEG float32 (1)\nroots (0)", "node 1 is not defined above"),
    ("tg-ir text 1\n1: NEG float32 ()\nroots (0)", "expected node number 0, got 1"),
    ("tg-ir text 1\n0: NEG float32 () $\nroots (0)", "unexpected character '\\$'"),
    ("tg-ir text 1\n0: NEG float32 () (1\nroots (0)", "expected ',' or '\\)', got the end"),
    ("tg-ir text 1\n0: NEG float32 () Vararg()\nroots (0)", "no argument is called 'Vararg'"),
    ("tg-ir text 1\n0: NEG float32 () VarArg(nam='a')\nroots (0)", "has no field 'nam'; did you"),
    ("tg-ir text 1\n0: NEG float32 () VarArg(name='a')\nroots (0)", "missing 2 required"),
    ("tg-ir text 1\n0: NEG float32 () 1 2\nroots (0)", "expected the end of the line, got '2'"),
    ("tg-ir text 1\n0: NEG float32 () )\nroots (0)", "expected an argument, got '\\)'"),
    ("tg-ir text 1\nroots ()\n0: NEG", "expected nothing after the line 'roots'"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_text_is_refused(text, message):
    with pytest.raises(TextError, match=message):
        parse(text)


def test_error_points_at_the_place():
    with pytest.raises(TextError) as caught:
        parse("tg-ir text 1\n0: CONST float32 () 1.0\n1: NEG float32 (7)\nroots (1)\n")
    assert caught.value.line_number == 3
    assert str(caught.value).splitlines()[1:] == [
        "    1: NEG float32 (7)",
        "                    ^",
    ]


def test_argument_that_has_no_text_is_refused():
    with pytest.raises(TypeError, match="not frozenset"):
        dump(leaf(Ops.CUSTOM, frozenset({1})))


def test_show_indents_loops_and_writes_expressions():
    lines = show(linear_kernel()).splitlines()
    assert [line[5:].startswith("  ") for line in lines] == [False] * 3 + [True] * 3 + [False]
    assert lines[5].endswith("# data0[r0] = (float32)r0")


def test_print_graph_prints_what_show_gives(capsys):
    print_graph(linear_kernel())
    assert capsys.readouterr().out == show(linear_kernel())


def test_expressions_of_deep_graphs_stay_short():
    node = leaf(Ops.CONST, 1.0)
    for _ in range(300):
        node = node.alu(Ops.ADD, node)
    assert max(len(line) for line in show(node).splitlines()) < 150


def test_neighbourhood_marks_the_node_and_stays_short():
    node = leaf(Ops.CONST, 1.0)
    for _ in range(100):
        node = UOp(Ops.NEG, F32, (node,))
    users = [UOp(Ops.CAST, dtype, (node,)) for dtype in dtypes.all]
    text = neighbourhood(node, users)
    assert text.splitlines()[2].startswith("  > 2: NEG float32 (1)")
    assert "... and 9 more users" in text
    assert len(text.splitlines()) == 8
