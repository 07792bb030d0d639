"""Each rule of the tensor graph, by a graph that breaks it, beside one that does not."""

import math

import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import (
    BufferArg,
    Combine,
    CustomArg,
    FunctionArg,
    Ops,
    ParamArg,
    ReduceArg,
    SkewArg,
    VarArg,
)
from tg_ir.graph.spec import is_valid, tensor_graph, verify
from tg_ir.graph.uop import Symbol, UOp

F32, I32, BOOL, INDEX, VOID = (
    dtypes.float32,
    dtypes.int32,
    dtypes.bool,
    dtypes.index,
    dtypes.void,
)


def buffer(size=6, dtype=F32, number=1):
    return UOp(Ops.BUFFER, dtype, (), BufferArg(number, size, "CPU"))


def const(value, dtype=F32):
    return UOp(Ops.CONST, dtype, (), value)


X = buffer()
Y = buffer(number=2)
GRID = X.reshape((2, 3))
INTS = buffer(4, I32, 3)
N = UOp(Ops.DEFINE_VAR, INDEX, (), VarArg("n", 1, 4))
ADD = Combine.of(Ops.ADD, F32)


def state(side, position=0, dtype=F32):
    return UOp(Ops.STATE, dtype, (), (side, position))


def reduced(combine=ADD, axes=(0,), src=(GRID,), dtype=F32, op=Ops.REDUCE_AXIS):
    return UOp(op, dtype, src, ReduceArg(combine, axes))


def pair(body):
    return Combine("pair", (0.0, 0), body)


GOOD_BODY = (state(0), state(1, 1, I32))
TWO = reduced(pair(GOOD_BODY), src=(X, buffer(6, I32, 5)))
PARAM = UOp(Ops.PARAM, F32, (), ParamArg(0, shape=(6,)))
BODY = UOp(Ops.TUPLE, VOID, (PARAM + PARAM, PARAM))
CALL = UOp(Ops.FUNCTION, VOID, (BODY, X), FunctionArg("f"))
CUSTOM = UOp(Ops.CUSTOM, VOID, (X,), CustomArg("c", "C", "", (((2,), I32),)))

VALID = [
    X + Y,
    GRID.permute((1, 0)).pad(((0, 1), (2, 0))).shrink(((0, 4), (1, 4))).flip((True, False)),
    X.shrink(((0, N),)),
    X.reshape((6, 1)).expand((6, 2)),
    (X < Y).where(X, Y),
    reduced(),
    reduced(op=Ops.SCAN_AXIS),
    TWO.get_tuple(1, I32),
    UOp(Ops.GATHER, F32, (X, INTS), (0,)),
    UOp(Ops.SKEW, F32, (GRID,), SkewArg(1, 0, 1, 1, 2)),
    UOp(Ops.UNSKEW, F32, (GRID,), SkewArg(1, 0, 2, 1, 9)),
    X.after(X.store(Y), X.shrink(((0, 2),)).store(Y.shrink(((2, 4),)), Ops.ADD)),
    UOp(Ops.REALIZED, F32, (GRID, Y + Y)).contiguous().detach().copy_to_device(("CPU", "CPU:1")),
    CALL.get_tuple(1, F32),
    CUSTOM.get_tuple(0, I32),
    UOp(Ops.BIND, INDEX, (N, const(4, INDEX))),
    UOp(Ops.IOTA, I32, (), 4),
    UOp(Ops.IOTA, I32, (N,)),
    X.cast(I32).bitcast(F32),
    const(math.nan),
    # versions are values: reading an overwritten one is the scheduler's business
    UOp.sink(X.after(X.store(Y)), X + X),
]


@pytest.mark.parametrize("graph", VALID, ids=lambda graph: graph.op.name)
def test_valid_graphs_pass(graph):
    verify(graph, tensor_graph)


BROKEN = {
    "op of another stage": (UOp(Ops.LANES, I32.vec(4)), "LANES: has no place in a tensor graph"),
    "too few sources": (UOp(Ops.ADD, F32, (X,)), "takes 2 source.s., got 1"),
    "too many sources": (UOp(Ops.BUFFER, F32, (X,), X.arg), "takes no sources, got 1"),
    "wrong argument": (UOp(Ops.NEG, F32, (X,), 3), "its argument is None, got 3"),
    "negative size": (buffer(-1), "size and version are at least 0"),
    "constant not exact": (const(0.1), "0.1 .float. is no exact value of dtypes.float32"),
    "constant of wrong type": (const(977), "977 .int. is no exact value"),
    "constant out of range": (const(128, dtypes.int8), "no exact value of dtypes.int8"),
    "empty variable": (UOp(Ops.DEFINE_VAR, INDEX, (), VarArg("n", 3, 2)), "3..2 are empty"),
    "float variable": (UOp(Ops.DEFINE_VAR, F32, (), VarArg("n", 0, 2)), "its dtype is an int"),
    "bind of no variable": (UOp(Ops.BIND, INDEX, (const(1, INDEX),) * 2), "joins DEFINE_VAR and"),
    "bind out of bounds": (UOp(Ops.BIND, INDEX, (N, const(5, INDEX))), "takes 1..4, got 5"),
    "iota of floats": (UOp(Ops.IOTA, F32, (), 3), "counts in an int dtype"),
    "iota without length": (UOp(Ops.IOTA, I32), "length is at least 0"),
    "iota with two lengths": (UOp(Ops.IOTA, I32, (N,), 3), "not both"),
    "vector": (UOp(Ops.NEG, F32.vec(4), (buffer(6, F32.vec(4)),)), "is a scalar per element"),
    "reshape to another size": (UOp(Ops.RESHAPE, F32, (X,), (4,)), "has 6 elements"),
    "negative extent": (UOp(Ops.RESHAPE, F32, (X,), (-2, -3)), "negative extent"),
    "expand of a long axis": (UOp(Ops.EXPAND, F32, (X,), (12,)), "does not expand"),
    "permute with a wrong order": (UOp(Ops.PERMUTE, F32, (GRID,), (0, 0)), "not an order"),
    "movement that casts": (UOp(Ops.FLIP, I32, (X,), (True,)), "dtype is that of its source"),
    "flip of wrong rank": (UOp(Ops.FLIP, F32, (X,), (True, True)), "for 2 axes, the source has 1"),
    "pad by less than 0": (UOp(Ops.PAD, F32, (X,), ((-1, 0),)), "pads by at least 0"),
    "pad without pairs": (UOp(Ops.PAD, F32, (X,), (1,)), "a pair an axis"),
    "shrink outside": (UOp(Ops.SHRINK, F32, (X,), ((0, 7),)), "reaches outside of shape"),
    "size of wrong dtype": (
        UOp(Ops.SHRINK, F32, (X, const(3, I32)), ((0, Symbol(1)),)),
        "symbolic sizes are scalars of dtype index",
    ),
    "symbol of no source": (UOp(Ops.SHRINK, F32, (X,), ((0, Symbol(1)),)), "names none of its 1"),
    "skew reads beyond": (
        UOp(Ops.SKEW, F32, (GRID,), SkewArg(1, 0, 1, 1, 3)),
        "reads row 3 of axis 1, which has 3",
    ),
    "skew along one axis": (
        UOp(Ops.SKEW, F32, (GRID,), SkewArg(1, 1, 1, 1, 1)),
        "names two axes",
    ),
    "skew by nothing": (UOp(Ops.SKEW, F32, (GRID,), SkewArg(1, 0, 0, 1, 1)), "at least 1"),
    "operands of two dtypes": (UOp(Ops.ADD, F32, (X, INTS)), "operands have one dtype"),
    "operands of two shapes": (UOp(Ops.ADD, F32, (X, GRID)), "must have equal shapes"),
    "wrong result": (UOp(Ops.ADD, I32, (X, Y)), "gives dtypes.float32, got dtypes.int32"),
    "comparison of no bool": (UOp(Ops.CMPLT, F32, (X, Y)), "gives dtypes.bool"),
    "condition of no bool": (UOp(Ops.WHERE, F32, (X, X, Y)), "its condition is dtypes.bool"),
    "sine of ints": (UOp(Ops.SIN, I32, (INTS,)), "is defined on floats"),
    "xor of floats": (UOp(Ops.XOR, F32, (X, Y)), "is not defined on floats"),
    "shift of bools": (UOp(Ops.SHL, BOOL, (const(True, BOOL),) * 2), "is defined on ints"),
    "threefry of ints": (UOp(Ops.THREEFRY, I32, (INTS, INTS)), "is defined on uint64"),
    "arithmetic on effects": (UOp(Ops.NEG, VOID, (UOp.sink(),)), "without a value"),
    "cast of an effect": (UOp(Ops.CAST, F32, (UOp.sink(),)), "void has none"),
    "bitcast to another size": (UOp(Ops.BITCAST, dtypes.int8, (X,)), "keeps the size"),
    "cast to more lanes": (UOp(Ops.CAST, F32.vec(2), (X,)), "keeps the number of lanes"),
    "reduction of no axis": (reduced(axes=()), "in order, each once"),
    "reduction of axes out of order": (reduced(axes=(1, 0)), "in order, each once"),
    "reduction of a missing axis": (reduced(axes=(2,)), "reduces axes .2,. of shape"),
    "scan along two axes": (reduced(axes=(0, 1), op=Ops.SCAN_AXIS), "scans along one axis"),
    "states of two shapes": (reduced(pair(GOOD_BODY), src=(X, GRID.cast(I32))), "share a shape"),
    "wrong number of states": (reduced(pair(GOOD_BODY)), "has 2 states, got 1 values"),
    "identity of another type": (
        reduced(Combine("sum", (0,), (), Ops.ADD)),
        "starts from 0, no exact",
    ),
    "combine by another op": (reduced(Combine("sub", (0.0,), (), Ops.SUB)), "one of ADD, MUL"),
    "bitwise combine of floats": (reduced(Combine("or", (0.0,), (), Ops.OR)), "not defined on"),
    "body without a result": (
        reduced(pair((state(0),)), src=(X, buffer(6, I32))),
        "has 1 results for 2 states",
    ),
    "body of another dtype": (
        reduced(pair((state(0), state(0))), src=(X, buffer(6, I32))),
        "makes dtypes.float32 of a state of dtypes.int32",
    ),
    "body with a missing state": (
        reduced(Combine("odd", (0.0,), (state(0, 1),))),
        "has no state .0, 1.",
    ),
    "body with a state of another dtype": (
        reduced(Combine("odd", (0.0,), (state(0, 0, I32).cast(F32),))),
        "STATE .0, 0. is of dtypes.float32",
    ),
    "body with a buffer": (reduced(Combine("odd", (0.0,), (X,))), "holds BUFFER; only ALU"),
    "gather by floats": (UOp(Ops.GATHER, F32, (X, Y), (0,)), "its indices are ints"),
    "gather along one axis twice": (
        UOp(Ops.GATHER, F32, (GRID, INTS, INTS), (0, 0)),
        "its axes are distinct",
    ),
    "gather along a missing axis": (UOp(Ops.GATHER, F32, (X, INTS), (1,)), "axes .1,. with 1"),
    "tuple of a single result": (reduced().get_tuple(0, F32), "has a single one"),
    "result out of range": (TWO.get_tuple(2, F32), "takes result 2 of 2"),
    "result of another dtype": (TWO.get_tuple(1, F32), "result 1 is dtypes.int32"),
    "contiguous that casts": (UOp(Ops.CONTIGUOUS, I32, (X,)), "dtype is that of its source"),
    "copy to nowhere": (UOp(Ops.COPY, F32, (X,), ()), "the name of a device"),
    "store to a value": ((X + Y).store(X), "movement over a version of storage, got ADD"),
    "store of another dtype": (X.store(buffer(6, I32)), "stores dtypes.int32 to elements of"),
    "store of another shape": (X.store(GRID), "to a target of shape"),
    "store by another op": (X.store(Y, Ops.MUL), "or accumulates by ADD"),
    "store through an expanded view": (
        X.reshape((6, 1)).expand((6, 2)).store(buffer(12).reshape((6, 2))),
        "writes through an expanded view",
    ),
    "effect with a value": (UOp(Ops.STORE, F32, (X, Y)), "an effect of dtype void"),
    "version of a value": ((X + Y).after(X.store(Y)), "next version of a version, got ADD"),
    "version after a value": (UOp(Ops.AFTER, F32, (X, Y)), "comes after STOREs, got BUFFER"),
    "version after another's write": (X.after(Y.store(X)), "one writes another"),
    "realised value of an op": (UOp(Ops.REALIZED, F32, (X + Y, X)), "holds what is in a BUFFER"),
    "function without a body": (UOp(Ops.FUNCTION, VOID, (X,), CALL.arg), "its body is a TUPLE"),
    "function without arguments": (UOp(Ops.FUNCTION, VOID, (BODY,), CALL.arg), "argument 0 of 0"),
    "argument of another shape": (
        UOp(Ops.FUNCTION, VOID, (BODY, GRID), CALL.arg),
        "the body wants dtypes.float32 of .6,.",
    ),
    "custom without results": (
        UOp(Ops.CUSTOM, VOID, (), CustomArg("c", "C", "", ())),
        "has at least one result",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_graphs_are_refused(case):
    graph, message = BROKEN[case]
    with pytest.raises(VerificationError, match=message):
        verify(graph, tensor_graph)


def test_every_op_of_the_stage_is_in_a_valid_graph():
    covered = {node.op for graph in VALID for node in graph.toposort()}
    assert covered >= tensor_graph.ops.keys() - {op for op in Ops if op >= Ops.CAST}


def test_error_shows_the_node_its_sources_and_its_users():
    broken = UOp(Ops.SIN, I32, (INTS,))
    with pytest.raises(VerificationError) as caught:
        verify((broken + INTS).alu(Ops.NEG), tensor_graph)
    shown = str(caught.value).splitlines()
    assert shown[0].startswith("tensor graph: SIN: is defined on floats")
    assert [line.split(":")[1].split()[0] for line in shown[1:]] == ["BUFFER", "SIN", "ADD"]
    assert shown[2].startswith("  >")


def test_is_valid_says_whether():
    assert is_valid(X + Y, tensor_graph)
    assert not is_valid(UOp(Ops.SIN, I32, (INTS,)), tensor_graph)


def test_verifying_is_linear_and_takes_any_depth():
    graph = X
    for _ in range(20_000):
        graph = graph + X
    verify(graph, tensor_graph)
