"""Loop-carried accumulators: SSA values in the LLVM text, which no pass has to find first."""

from __future__ import annotations

import kernel_cases as kernels
import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import EvaluationError, VerificationError
from tg_ir.graph.evaluate import run_linear_kernel
from tg_ir.graph.ops import AxisType, DefineArg, Ops
from tg_ir.graph.spec import linear_kernel, verify

from .kernels import floats, param
from .stages import check_kernel

V, UPCAST, UNROLL = OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL


def summed(count: int) -> UOp:
    i = UOp.range(count, 0, AxisType.REDUCE)
    total = param(1, count).index(i).load().reduce(Ops.ADD, i)
    return UOp.sink(param(0, 1).index(0).store(total))


@pytest.mark.parametrize(
    ("opts", "phis", "kind"),
    [
        ([], 1, "float"),
        ([Opt(UNROLL, (0,), 4)], 4, "float"),
        ([Opt(V, (0,), 8)], 1, "<8 x float>"),
        ([Opt(V, (0,), 8), Opt(UNROLL, (0, 0), 2)], 2, "<8 x float>"),
    ],
    ids=["one", "independent", "lanes", "independent lanes"],
)
def test_each_accumulator_is_one_phi(opts: list[Opt], phis: int, kind: str) -> None:
    x = floats(64)
    checked = check_kernel(summed(64), [np.zeros(1, np.float32), x], {0: x.sum()[None]}, opts)
    assert checked.text.count(f"= phi {kind} ") == phis
    assert "alloca" not in checked.text


def test_a_register_tile_is_all_phis() -> None:
    a, b = floats(8, 24), floats(24, 32)
    case = kernels.matmul(8, 32, 24)
    opts = [Opt(V, (1,), 16), Opt(UPCAST, (1, 0), 2), Opt(UPCAST, (0,), 8)]
    checked = check_kernel(case.sink, [np.zeros((8, 32), np.float32), a, b], {0: a @ b}, opts)
    assert checked.count(Ops.DEFINE_REG) == 16
    assert checked.text.count("= phi <16 x float> ") == 16
    assert "alloca" not in checked.text


def test_an_empty_loop_leaves_the_identity() -> None:
    bound = UOp.variable("v0", 0, 8)
    i = UOp.range(bound, 0, AxisType.REDUCE)
    total = param(1, 8).index(i).load().reduce(Ops.MAX, i)
    sink = UOp.sink(param(0, 1).index(0).store(total))
    x = floats(8)
    for count in (0, 1, 8):
        expected = np.array([x[:count].max(initial=-np.inf)], np.float32)
        check_kernel(sink, [np.zeros(1, np.float32), x], {0: expected}, vals=[count])


def linear_sum(*, initialised: bool) -> list[UOp]:
    """A sum written by hand as a linear kernel."""
    four, zero = UOp.const(dtypes.int64, 4), UOp.const(dtypes.int64, 0)
    out, x = param(0, 1), param(1, 4)
    loop = UOp.range(four, 0, AxisType.REDUCE).replace(dtype=dtypes.int64)
    register = UOp(Ops.DEFINE_REG, dtypes.float32, (), DefineArg(0, 1))
    start = UOp.const(dtypes.float32, 0)
    setting = register.index(zero).store(start)
    inside = register.after(loop)
    total = inside.index(zero).load() + x.index(loop).load()
    update = inside.index(zero).store(total)
    end = UOp(Ops.END, dtypes.void, (loop,))
    result = register.after(end).index(zero).load()
    store = out.index(zero).store(result)
    roots = [setting] if initialised else []
    listed = list(UOp.sink(*roots, loop).toposort())[:-1]
    for root in (update, end, store):
        listed += [node for node in root.toposort() if node not in listed]
    return listed


def test_a_linear_kernel_by_hand_reads_its_accumulator_through_after() -> None:
    kernel = linear_sum(initialised=True)
    verify(kernel, linear_kernel)
    x, out = floats(4), np.zeros(1, np.float32)
    run_linear_kernel(kernel, [memoryview(a).cast("B") for a in (out, x)])
    np.testing.assert_allclose(out[0], x.sum(), rtol=1e-6)


def test_an_accumulator_that_was_never_set_is_reported() -> None:
    x, out = floats(4), np.zeros(1, np.float32)
    with pytest.raises(EvaluationError, match="never written"):
        run_linear_kernel(
            linear_sum(initialised=False), [memoryview(a).cast("B") for a in (out, x)]
        )


def test_what_a_loop_computes_stays_inside() -> None:
    """Only an accumulator leaves a loop, not a value of its last iteration."""
    kernel = linear_sum(initialised=True)
    total = next(node for node in kernel if node.op is Ops.ADD)
    zero = UOp.const(dtypes.int64, 0)
    leak = param(0, 1).index(zero).store(total)
    with pytest.raises(VerificationError, match="was computed inside"):
        verify([*kernel, leak], linear_kernel)
