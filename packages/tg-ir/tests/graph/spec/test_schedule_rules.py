"""Each rule of a schedule, by a LINEAR that breaks it."""

import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, BufferArg, CallArg, KernelInfo, Ops, ParamArg
from tg_ir.graph.spec import schedule, verify
from tg_ir.graph.uop import UOp

F32, VOID = dtypes.float32, dtypes.void


def buffer(number, version=0, size=4, dtype=F32):
    return UOp(Ops.BUFFER, dtype, (), BufferArg(number, size, "CPU", version))


def param(slot, writable=False):
    return UOp(Ops.PARAM, F32, (), ParamArg(slot, 4, writable))


def kernel():
    """Writes twice argument 1 to argument 0."""
    i = UOp.range(4, 0, AxisType.GLOBAL)
    x = param(1).index(i).load()
    return UOp.sink(param(0, True).index(i).store(x + x).end(i), arg=KernelInfo("double"))


def call(*buffers, body=None, name="double", kind="kernel"):
    return UOp(Ops.CALL, VOID, (kernel() if body is None else body, *buffers), CallArg(name, kind))


def linear(*calls):
    return UOp(Ops.LINEAR, VOID, calls)


COPY = UOp(Ops.COPY, F32, (UOp(Ops.PARAM, F32, (), ParamArg(1, 4)),), "CPU:1")
N = UOp.variable("n", 1, 4)

VALID = {
    "chain": linear(call(buffer(1), buffer(0)), call(buffer(2), buffer(1))),
    "next version": linear(call(buffer(1), buffer(0)), call(buffer(0, 1), buffer(1))),
    "read before the write": linear(
        call(buffer(2), buffer(0)), call(buffer(0, 1), buffer(1)), call(buffer(3), buffer(0, 1))
    ),
    "copy": linear(call(buffer(5), buffer(0), body=COPY, name="copy", kind="copy")),
    "integers": linear(call(buffer(1), buffer(0), N.bind(2), N)),
}


@pytest.mark.parametrize("case", VALID)
def test_valid_schedules_pass(case):
    verify(VALID[case], schedule)


OPEN = UOp.range(4, 0, AxisType.GLOBAL)
BAD_KERNEL = UOp.sink(param(0, True).index(OPEN).store(UOp.const(F32, 0.0)))
BROKEN = {
    "list of others": (linear(buffer(1)), "is a list of CALLs, got BUFFER"),
    "unknown kind": (linear(call(kind="loop")), "is of kind kernel, copy, graph, got 'loop'"),
    "copy of a kernel": (linear(call(kind="copy")), "of kind copy calls COPY, got SINK"),
    "integers first": (linear(call(buffer(1), N, buffer(0))), "before its integers"),
    "value as argument": (linear(call(buffer(1), COPY)), "BUFFERs, then integers, got COPY"),
    "missing buffer": (linear(call(buffer(1))), "takes buffer 1, the CALL gives 1"),
    "buffer of another dtype": (
        linear(call(buffer(1), buffer(0, dtype=dtypes.int32))),
        "buffer 1 holds dtypes.int32",
    ),
    "small buffer": (linear(call(buffer(1), buffer(0, size=3))), "has 3 elements of 4"),
    "broken kernel": (
        linear(call(buffer(1), body=BAD_KERNEL, name="bad")),
        "in kernel 'bad': the RANGE of axis .0,. is never closed",
    ),
    "read of an overwritten version": (
        linear(call(buffer(0, 1), buffer(1)), call(buffer(2), buffer(0))),
        "reads version 0 of buffer 0, which 'double' overwrote by version 1",
    ),
    "write of an old version": (
        linear(call(buffer(0, 2), buffer(1)), call(buffer(0, 1), buffer(1))),
        "writes version 1 of buffer 0",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_schedules_are_refused(case):
    graph, message = BROKEN[case]
    with pytest.raises(VerificationError, match=message):
        verify(graph, schedule)
