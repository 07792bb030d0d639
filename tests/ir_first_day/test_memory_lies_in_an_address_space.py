"""Address spaces: arguments (GLOBAL), scratch (LOCAL) and registers (REG) in one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import EvaluationError, VerificationError
from tg_ir.graph.evaluate import run_kernel_graph
from tg_ir.graph.ops import AxisType, DefineArg, Ops, ParamArg
from tg_ir.graph.spec import kernel_graph, verify

from .kernels import floats, param
from .stages import check_kernel

GLOBAL, LOOP = AxisType.GLOBAL, AxisType.LOOP
F32 = dtypes.float32
ROWS, WIDTH = 5, 6


def memory(op: Ops, size: int, dtype: DType = F32, slot: int = 0) -> UOp:
    return UOp(op, dtype, (), DefineArg(slot, size))


def filled(buffer: UOp, value: UOp, loop: UOp) -> UOp:
    return buffer.after(buffer.index(loop).store(value).end(loop))


def reversed_twice(kind: AxisType) -> UOp:
    """Each row goes from its argument to scratch, backwards to registers, and backwards out."""
    row = UOp.range(ROWS, 0, GLOBAL)
    first, second, third = (UOp.range(WIDTH, k, kind) for k in (1, 2, 3))
    scratch, registers = memory(Ops.DEFINE_LOCAL, WIDTH), memory(Ops.DEFINE_REG, WIDTH)
    x = param(1, ROWS * WIDTH).index(row * WIDTH + first).load()
    scratch = filled(scratch, x, first)
    registers = filled(registers, scratch.index(WIDTH - 1 - second).load() * 2, second)
    out = param(0, ROWS * WIDTH).index(row * WIDTH + third)
    return UOp.sink(out.store(registers.index(WIDTH - 1 - third).load()).end(row, third))


@pytest.mark.parametrize(
    "opts",
    [[], [Opt(OptOps.UPCAST, (0,), 2)], [Opt(OptOps.VECTOR, (0,), 4)], [Opt(OptOps.THREAD, (0,))]],
    ids=str,
)
@pytest.mark.parametrize("kind", [LOOP, AxisType.UNROLL], ids=lambda kind: kind.name)
def test_values_go_through_all_three(kind: AxisType, opts: list[Opt]) -> None:
    x = floats(ROWS, WIDTH)
    checked = check_kernel(reversed_twice(kind), [np.zeros_like(x), x], {0: x * 2}, opts)
    # registers that are reached by constants are values; by counters, memory
    expected = 1 if kind is AxisType.UNROLL else 2
    if not opts:
        assert checked.text.count("alloca") == expected


@pytest.mark.parametrize("op", [Ops.DEFINE_LOCAL, Ops.DEFINE_REG], ids=lambda op: op.name)
def test_memory_that_was_never_written_is_reported(op: Ops) -> None:
    sink = UOp.sink(param(0, 1).index(0).store(memory(op, 4).index(2).load() * 2))
    with pytest.raises(EvaluationError, match="local memory that was never written"):
        run_kernel_graph(sink, [memoryview(np.zeros(1, np.float32)).cast("B")])


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (UOp.const(F32, 1), "INDEX: reaches into a buffer, got CONST"),
        (memory(Ops.DEFINE_LOCAL, -1), "DEFINE_LOCAL: slot and size are at least 0"),
        (memory(Ops.DEFINE_REG, 4, dtypes.void), "DEFINE_REG: holds values, not void"),
        (
            UOp(Ops.PARAM, F32.vec(4), (), ParamArg(1, 4)),
            "PARAM: holds scalars with a machine format",
        ),
        (
            UOp(Ops.PARAM, dtypes.index, (), ParamArg(1, 4)),
            "PARAM: holds scalars with a machine format",
        ),
    ],
    ids=["no memory", "negative size", "no values", "vectors", "no machine format"],
)
def test_what_is_no_memory_is_refused(buffer: UOp, message: str) -> None:
    value = buffer.index(0).load()
    sink = UOp.sink(param(0, 4).index(0).store(value))
    with pytest.raises(VerificationError, match=message):
        verify(sink, kernel_graph)
