"""Each rule of the kernel graph, by a graph that breaks it, beside kernels that do not."""

import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import (
    AddrSpace,
    AxisType,
    Combine,
    DefineArg,
    KernelInfo,
    Ops,
    ParamArg,
    RangeArg,
    ReduceArg,
    StageArg,
    VarArg,
)
from tg_ir.graph.spec import kernel_graph, verify
from tg_ir.graph.uop import UOp

F32, I32, BOOL, INDEX, VOID = (
    dtypes.float32,
    dtypes.int32,
    dtypes.bool,
    dtypes.index,
    dtypes.void,
)
INFO = KernelInfo("k")


def param(slot, size=8, dtype=F32, writable=False):
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, writable))


def const(value, dtype=F32):
    return UOp(Ops.CONST, dtype, (), value)


def loop(axis, bound=8, kind=AxisType.GLOBAL):
    return UOp.range(bound, axis, kind)


OUT, IN = param(0, writable=True), param(1)
R, J = loop(0), loop(1)
K = loop(2, 4, AxisType.REDUCE)
V, W = loop(3, 4, AxisType.VECTOR), loop(4, 2, AxisType.VECTOR)
L = loop(5, 8, AxisType.LOOP)
X = IN.index(R).load()
ADD = Combine.of(Ops.ADD, F32)


def kernel(value, *loops, out=OUT):
    ranges = loops or (R,)
    return UOp.sink(out.index(ranges[0]).store(value).end(*ranges), arg=INFO)


def node(op, dtype=F32, src=(), arg=None):
    return UOp(op, dtype, src, arg)


def staged(arg, *loops, dtype=F32):
    value = IN.index(loops[0]).load() if loops else X
    return node(Ops.STAGE, dtype, (value, *loops), arg)


TILE = staged(StageArg(AddrSpace.LOCAL, (4,), (0,), 1), K)
REG = node(Ops.DEFINE_REG, F32, (), DefineArg(0, 1))
LOCAL = node(Ops.DEFINE_LOCAL, F32, (), DefineArg(0, 8))
STATES = [
    UOp(Ops.STATE, dtype, (), (side, k)) for k, dtype in enumerate((F32, I32)) for side in (0, 1)
]
TWO = Combine("pair", (0.0, 0), (STATES[0], STATES[3]))
BOTH = node(Ops.REDUCE, F32, (IN.index(K).load(), K.cast(I32), K), ReduceArg(TWO))
PREFIX = node(Ops.SCAN, F32, (IN.index(L).load(), L), ReduceArg(ADD))
MASK = R < 4
VARIABLE = UOp(Ops.DEFINE_VAR, INDEX, (), VarArg("v0", 1, 8))
WIDE = IN.index(const(0, INDEX)).load(None, F32.vec(4))
LANES = node(Ops.LANES, INDEX.vec(4))

VALID = {
    "elementwise": kernel(X + X),
    "reduction": kernel((X * IN.index(K).load()).reduce(Ops.ADD, K)),
    "two states": kernel(BOTH.get_tuple(1, I32).cast(F32)),
    "scan": kernel(PREFIX, L),
    "stage": kernel(TILE.index(R % 4).load()),
    "mask": kernel(IN.index(R, MASK).load(const(1.0))),
    "symbolic": kernel(IN.index(loop(7, VARIABLE)).load(), loop(7, VARIABLE)),
    "in place": kernel(OUT.index(R).load() + X),
    "in place, in order": kernel(OUT.index(L + 1).load(), L),
    "in place, other elements": UOp.sink(
        param(0, 16, writable=True).index(R).store(
            param(0, 16, writable=True).index(R + 8).load()
        ).end(R)
    ),
    "several stores": UOp.sink(
        node(Ops.TUPLE, VOID, (OUT.index(R).store(X), param(2, writable=True).index(R).store(X)))
        .end(R),
        arg=INFO,
    ),
    "vectors": UOp.sink(
        OUT.index(const(0, INDEX)).store(WIDE + const(1.0).broadcast(4)),
        OUT.index(LANES).store(IN.index(LANES).load()),
        OUT.index(const(1, INDEX)).store(node(Ops.REDUCE_LANES, F32, (WIDE,), Ops.MAX)),
        OUT.index(const(2, INDEX)).store(node(Ops.VECTORIZE, F32.vec(2), (WIDE.gep(1),) * 2)),
        arg=INFO,
    ),
    "vector axis": kernel(IN.index(V).load(), V),
    "registers": kernel(
        REG.after(REG.after(R).index(0).store(const(0.0))).index(0).load()
    ),
    "grid": UOp.sink(
        OUT.index(node(Ops.SPECIAL, INDEX, (const(8, INDEX),), "g0")).store(const(0.0)), arg=INFO
    ),
    "local memory": kernel(
        LOCAL.after(node(Ops.BARRIER, VOID, (LOCAL.index(R).store(X),)))
        .index(R)
        .load()
    ),
    "casts": kernel(X.cast(I32).bitcast(F32)),
}


@pytest.mark.parametrize("case", VALID)
def test_valid_kernels_pass(case):
    verify(VALID[case], kernel_graph)


BROKEN = {
    "op of another stage": (kernel(X.reshape((1,))), "RESHAPE: has no place in a kernel graph"),
    "argument without a format": (kernel(param(1, 8, INDEX).index(R).load().cast(F32)), "machine"),
    "negative slot": (kernel(param(-1).index(R).load()), "slot and size are at least 0"),
    "register of effects": (
        kernel(node(Ops.DEFINE_REG, VOID, (), DefineArg(0, 1)).index(R).load()),
        "holds values, not void",
    ),
    "bound of floats": (
        kernel(X, node(Ops.RANGE, INDEX, (const(8.0),), RangeArg((0,), AxisType.GLOBAL))),
        "its bound is an int",
    ),
    "counter of another dtype": (
        kernel(X, node(Ops.RANGE, I32, R.src, R.arg)),
        "counts in the dtype of its bound",
    ),
    "place in no grid": (
        kernel(node(Ops.SPECIAL, INDEX, R.src, "x0").cast(F32)),
        "is one of g0, g1, g2, l0, l1, l2, got 'x0'",
    ),
    "index of a value": (kernel(node(Ops.LOAD, F32, (X.index(R),))), "reaches into a buffer"),
    "position of floats": (kernel(IN.index(X).load()), "its position is an int"),
    "element of another dtype": (
        kernel(node(Ops.INDEX, I32, (IN, R)).load().cast(F32)),
        "is an element of its buffer",
    ),
    "mask of ints": (kernel(IN.index(R, const(1, I32)).load()), "its mask is a bool"),
    "mask of other lanes": (
        kernel(node(Ops.REDUCE_LANES, F32, (IN.index(LANES, MASK.broadcast(2)).load(),), Ops.ADD)),
        "its mask has one lane or 4",
    ),
    "load of a value": (kernel(node(Ops.LOAD, F32, (X,))), "reads an INDEX, got LOAD"),
    "load as another dtype": (
        kernel(IN.index(R).load(None, I32).cast(F32)),
        "reads elements of dtypes.float32",
    ),
    "default of another dtype": (
        kernel(IN.index(R, MASK).load(const(0, I32))),
        "where its mask is false, got dtypes.int32",
    ),
    "load at other lanes": (
        kernel(IN.index(LANES).load(None, F32.vec(2)).gep(0)),
        "accesses 2 lanes at 4 positions",
    ),
    "row under a mask of other lanes": (
        kernel(IN.index(R, MASK.broadcast(2)).load(None, F32.vec(4)).gep(0)),
        "under a mask of",
    ),
    "store to a value": (
        UOp.sink(node(Ops.STORE, VOID, (X, X)).end(R)),
        "writes an INDEX, got LOAD",
    ),
    "store of another dtype": (kernel(R.cast(I32)), "writes elements of dtypes.float32"),
    "store to an input": (kernel(X, out=param(0)), "argument 0, which is not writable"),
    "store of lanes to other lanes": (
        UOp.sink(OUT.index(LANES).store(node(Ops.VECTORIZE, F32.vec(2), (X, X))).end(R)),
        "accesses 2 lanes at 4 positions",
    ),
    "version of a value": (kernel(node(Ops.AFTER, F32, (X,)).index(R).load()), "is a buffer after"),
    "version after a value": (kernel(IN.after(X).index(R).load()), "comes after effects, got LOAD"),
    "end of a value": (UOp.sink(node(Ops.END, VOID, (X, R))), "repeats an effect, got LOAD"),
    "end of no range": (
        UOp.sink(node(Ops.END, VOID, (OUT.index(R).store(X), X, R))),
        "closes RANGEs, got LOAD",
    ),
    "range closed twice": (kernel(X, R, R), "closes a RANGE twice"),
    "effects with a value among them": (
        UOp.sink(node(Ops.TUPLE, VOID, (X,)).end(R)),
        "the effects of one END, got LOAD",
    ),
    "range never closed": (
        UOp.sink(OUT.index(R).store(X), arg=INFO),
        "the RANGE of axis .0,. is never closed",
    ),
    "sink of a value": (UOp.sink(X, arg=INFO), "holds effects, got LOAD"),
    "reduction of axes": (
        kernel(node(Ops.REDUCE, F32, (IN.index(K).load(), K), ReduceArg(ADD, (0,)))),
        "reduces its RANGEs, not axes",
    ),
    "reduction with other states": (
        kernel(node(Ops.REDUCE, F32, (X, X, K), ReduceArg(TWO))),
        "starts from 0, no exact",
    ),
    "reduction that casts": (
        kernel(node(Ops.REDUCE, I32, (X, K), ReduceArg(ADD)).cast(F32)),
        "dtype is that of its source",
    ),
    "scan along two ranges": (
        kernel(node(Ops.SCAN, F32, (X, R, L), ReduceArg(ADD)), L, R),
        "runs along one RANGE, got 2",
    ),
    "result that does not exist": (kernel(BOTH.get_tuple(2, F32)), "takes result 2 of 2"),
    "stage of wrong shape": (
        kernel(staged(StageArg(AddrSpace.LOCAL, (4, 4), (0, 1)), K).index(R).load()),
        "for its 1 RANGEs",
    ),
    "stage in no order": (
        kernel(staged(StageArg(AddrSpace.LOCAL, (4,), (1,)), K).index(R).load()),
        "for its 1 RANGEs",
    ),
    "stage too small": (
        kernel(staged(StageArg(AddrSpace.LOCAL, (3,), (0,)), K).index(R).load()),
        "has 3 places for a RANGE up to 4",
    ),
    "stage padded by less than 0": (
        kernel(staged(StageArg(AddrSpace.LOCAL, (4,), (0,), -1), K).index(R).load()),
        "pads by at least 0",
    ),
    "value along two vector axes": (
        kernel(IN.index(V).load() + IN.index(W).load(), V, W),
        "depends on 2 VECTOR axes",
    ),
    "operands of other lanes": (
        kernel(node(Ops.ADD, F32.vec(4), (WIDE, X)).gep(0)),
        "operands have one dtype",
    ),
    "condition of other lanes": (
        kernel(node(Ops.WHERE, F32.vec(4), (MASK, WIDE, WIDE)).gep(0)),
        "its condition is dtypes.bool.vec.4.",
    ),
    "lanes of floats": (kernel(node(Ops.LANES, F32.vec(4)).gep(0)), "is a vector of ints"),
    "broadcast of a vector": (
        kernel(node(Ops.BROADCAST, F32.vec(4), (WIDE,)).gep(0)),
        "of a scalar",
    ),
    "vector of missing lanes": (
        kernel(node(Ops.VECTORIZE, F32.vec(4), (X, X)).gep(0)),
        "has 2 lanes, its dtype",
    ),
    "vector of other dtypes": (
        kernel(node(Ops.VECTORIZE, F32.vec(2), (X, R)).gep(0)),
        "its lanes are dtypes.float32",
    ),
    "missing lane": (kernel(WIDE.gep(4)), "takes lane 4 of 4"),
    "lane of another dtype": (kernel(node(Ops.GEP, I32, (WIDE,), 0).cast(F32)), "gives"),
    "lanes joined by another op": (
        kernel(node(Ops.REDUCE_LANES, F32, (WIDE,), Ops.SUB)),
        "joins lanes by ADD",
    ),
    "lanes of a scalar joined": (
        kernel(node(Ops.REDUCE_LANES, F32, (X,), Ops.ADD)),
        "joins the lanes of a vector",
    ),
    "two loops of one axis": (
        kernel(X + IN.index(loop(0, 4)).load(), R, loop(0, 4)),
        "another RANGE is also called axis .0,.",
    ),
    "read of an overwritten buffer": (
        UOp.sink(
            OUT.index(R).store(X).end(R),
            param(2, writable=True).index(J).store(OUT.index(J).load()).end(J),
        ),
        "may see either version",
    ),
    "read of what another iteration overwrites": (
        kernel(OUT.index(R + 1).load()),
        "another iteration of the same independent loops",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_kernels_are_refused(case):
    graph, message = BROKEN[case]
    with pytest.raises(VerificationError, match=message):
        verify(graph, kernel_graph)


def test_read_after_the_write_is_in_order():
    written = OUT.after(OUT.index(R).store(X).end(R))
    graph = UOp.sink(param(2, writable=True).index(J).store(written.index(J).load()).end(J))
    verify(graph, kernel_graph)


def test_unrolled_iterations_that_write_in_place_leave_one_another_alone():
    stores = []
    for place in (R * 2, R * 2 + 1):
        element = OUT.index(place)
        stores.append(element.store(element.load() + element.load()))
    both = UOp(Ops.TUPLE, dtypes.void, tuple(stores))
    verify(UOp.sink(both.end(R)), kernel_graph)


def test_every_op_of_the_stage_is_in_a_valid_kernel():
    covered = {part.op for graph in VALID.values() for part in graph.toposort()}
    assert covered >= kernel_graph.ops.keys() - {op for op in Ops if op >= Ops.CAST}
