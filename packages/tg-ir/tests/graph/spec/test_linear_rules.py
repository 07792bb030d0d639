"""Each rule of the linear kernel, by a list that breaks it."""

import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, DefineArg, Ops, ParamArg, RangeArg, VarArg
from tg_ir.graph.spec import linear_kernel, verify
from tg_ir.graph.uop import UOp

F32, I64, VOID = dtypes.float32, dtypes.int64, dtypes.void


def const(value, dtype=I64):
    return UOp(Ops.CONST, dtype, (), value)


def loop(axis, kind=AxisType.LOOP, bound=None):
    return UOp(Ops.RANGE, I64, (bound or const(8),), RangeArg((axis,), kind))


def end(opened):
    return UOp(Ops.END, VOID, (opened,))


def condition(test):
    return UOp(Ops.IF, VOID, (test,))


def endif(opened):
    return UOp(Ops.ENDIF, VOID, (opened,))


EIGHT = const(8)
OUT = UOp(Ops.PARAM, F32, (), ParamArg(0, 8, True))
IN = UOp(Ops.PARAM, F32, (), ParamArg(0, 8))
R, J = loop(0), loop(1)
ZERO = const(0.0, F32)


def at(position, buffer=OUT):
    return UOp(Ops.INDEX, buffer.dtype, (buffer, position))


REG = UOp(Ops.DEFINE_REG, F32.vec(4), (), DefineArg(0, 1))
STORE_I = at(R).store(ZERO)
TEST = UOp(Ops.CMPLT, dtypes.bool, (R, EIGHT))
IF = condition(TEST)
THREAD = loop(3, AxisType.THREAD)
HEAD = [OUT, EIGHT, ZERO]

VALID = {
    "loop": [*HEAD, R, at(R), STORE_I, end(R)],
    "nested loops": [*HEAD, R, at(R), J, STORE_I, end(J), end(R)],
    "condition": [*HEAD, R, at(R), TEST, IF, STORE_I, endif(IF), end(R)],
    "threads": [*HEAD, THREAD, end(THREAD)],
    "read after the loop": [
        *HEAD,
        R,
        at(R),
        STORE_I,
        end(R),
        after := OUT.after(end(R)),
        zero := const(0),
        at(zero, after),
        at(zero, after).load(),
    ],
    "vector registers": [
        REG,
        zero,
        at(zero, REG),
        wide := UOp(Ops.BROADCAST, F32.vec(4), (ZERO,)),
        at(zero, REG).store(wide),
    ],
}
VALID["vector registers"].insert(0, ZERO)


@pytest.mark.parametrize("case", VALID)
def test_valid_kernels_pass(case):
    verify(VALID[case], linear_kernel)


INDEX_CONST = const(8, dtypes.index)
VALUE = UOp(Ops.CAST, F32, (R,))
ELSEWHERE = at(EIGHT).store(VALUE)
BROKEN = {
    "op of another stage": ([UOp.sink()], "SINK: has no place in a linear kernel"),
    "node twice": ([EIGHT, EIGHT], "stands twice in the list"),
    "source after its user": ([R, EIGHT, end(R)], "its source .* stands after it"),
    "source not in the list": ([R, end(R)], "its source .* is not in the list"),
    "index dtype": ([INDEX_CONST], "has dtype index, which has no machine width"),
    "end of no range": ([*HEAD, at(EIGHT), end(at(EIGHT).load())], "ends a RANGE, got LOAD"),
    "endif of no if": ([EIGHT, R, endif(R), end(R)], "ends an IF, got RANGE"),
    "condition of ints": ([EIGHT, condition(EIGHT)], "asks a bool, got dtypes.int64"),
    "range never ended": ([EIGHT, R], "RANGE: is never ended"),
    "if never ended": ([EIGHT, R, TEST, end(R), IF], "uses .*CMPLT.* computed inside"),
    "loops not nested": ([EIGHT, R, J, end(R), end(J)], "but innermost is .*axis=.1,."),
    "loop ended twice": ([EIGHT, R, end(R), endif(IF)], "is not in the list"),
    "value used outside of its loop": (
        [*HEAD, at(EIGHT), R, VALUE, end(R), ELSEWHERE],
        "uses .*CAST.* which was computed inside",
    ),
    "vector axis": ([EIGHT, v := loop(2, AxisType.VECTOR), end(v)], "kind VECTOR are lanes"),
    "unrolled axis": ([EIGHT, u := loop(2, AxisType.UNROLL), end(u)], "kind UNROLL are lanes"),
    "two thread ranges": (
        [EIGHT, THREAD, end(THREAD), t := loop(4, AxisType.THREAD), end(t)],
        "is a second THREAD range",
    ),
    "inner thread range": ([EIGHT, R, THREAD, end(THREAD), end(R)], "it is outermost"),
    "store to an input": (
        [IN, EIGHT, ZERO, at(EIGHT, IN), at(EIGHT, IN).store(ZERO)],
        "which is not writable",
    ),
    "variable of floats": ([UOp(Ops.DEFINE_VAR, F32, (), VarArg("v0", 0, 1))], "dtype is an int"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_kernels_are_refused(case):
    nodes, message = BROKEN[case]
    with pytest.raises(VerificationError, match=message):
        verify(nodes, linear_kernel)
