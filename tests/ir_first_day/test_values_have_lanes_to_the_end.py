"""Vector-typed values: from a VECTOR axis to LLVM vectors, as many nodes at any width."""

from __future__ import annotations

import re

import kernel_cases as kernels
import numpy as np
import pytest
from tg_codegen.kernel.pipeline import lower_kernel
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, Combine, Ops, ReduceArg
from tg_ir.graph.spec import kernel_graph, linear_kernel, verify

from .kernels import floats, param
from .stages import capabilities, check_kernel, renderer

V, UPCAST, STAGE = OptOps.VECTOR, OptOps.UPCAST, OptOps.STAGE


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
def test_a_matmul_in_lanes_computes_the_product(lanes: int) -> None:
    a, b = floats(5, 9), floats(9, 40)
    case = kernels.matmul(5, 40, 9)
    opts = [Opt(V, (1,), lanes), Opt(UPCAST, (0,), 5)]
    check_kernel(case.sink, [np.zeros((5, 40), np.float32), a, b], {0: a @ b}, opts)


def test_nodes_and_instructions_do_not_grow_with_the_width() -> None:
    nodes, products = set(), set()
    for lanes in (4, 8, 16):
        opts = [Opt(V, (1,), lanes), Opt(UPCAST, (0,), 4), Opt(STAGE, None, 1)]
        lowered = lower_kernel(kernels.matmul(8, 64, 32).sink, capabilities(), opts)
        text = renderer().render(lowered.linear, "kernel")
        nodes.add(len(lowered.linear))
        products.add(len(re.findall(r"call <\d+ x float> @llvm.fma", text)))
    assert max(nodes) - min(nodes) <= 2  # constants that happen to be equal are one node
    assert products == {4}


def test_a_14x32_tile_is_28_fma_of_16_lanes() -> None:
    opts = [Opt(V, (1,), 16), Opt(UPCAST, (1, 0), 2), Opt(UPCAST, (0,), 14), Opt(STAGE, None, 1)]
    linear = lower_kernel(kernels.matmul(28, 64, 128).sink, capabilities(), opts).linear
    fused = [node for node in linear if node.op is Ops.MULACC]
    assert len(fused) == 28
    assert {node.dtype for node in fused} == {dtypes.float32.vec(16)}


def test_a_vector_written_by_hand_is_kept() -> None:
    """A kernel graph may have vectors of its own: rows of four, reversed lane by lane."""
    i = UOp.range(6, 0, AxisType.GLOBAL)
    four = dtypes.float32.vec(4)
    row = param(1, 24).index(i * 4).load(dtype=four)
    reversed_row = UOp(Ops.VECTORIZE, four, tuple(row.gep(lane) for lane in (3, 2, 1, 0)))
    lanes = UOp(Ops.LANES, dtypes.int32.vec(4)).cast(four)
    total = reversed_row + lanes * UOp.const(four, 10)
    sink = UOp.sink(param(0, 24).index(i * 4).store(total).end(i))
    x = floats(6, 4)
    expected = x[:, ::-1] + np.arange(4, dtype=np.float32) * 10
    check_kernel(sink, [np.zeros_like(x), x], {0: expected})


@pytest.mark.parametrize(
    ("op", "dtype", "numpy_op"),
    [
        (Ops.ADD, dtypes.int32, np.add),
        (Ops.MUL, dtypes.int32, np.multiply),
        (Ops.MAX, dtypes.float32, np.maximum),
        (Ops.AND, dtypes.int32, np.bitwise_and),
        (Ops.XOR, dtypes.int32, np.bitwise_xor),
    ],
    ids=lambda value: value.name if isinstance(value, Ops) else "",
)
def test_lanes_of_a_reduction_are_joined(op: Ops, dtype: DType, numpy_op: np.ufunc) -> None:
    row, column = UOp.range(3, 0, AxisType.GLOBAL), UOp.range(50, 1, AxisType.REDUCE)
    value = param(1, 150, dtype).index(row * 50 + column).load()
    total = UOp(Ops.REDUCE, dtype, (value, column), ReduceArg(Combine.of(op, dtype)))
    sink = UOp.sink(param(0, 3, dtype).index(row).store(total).end(row))
    kind = np.float32 if dtype is dtypes.float32 else np.int32
    x = (floats(3, 50) * 5 + 3).astype(kind)
    expected = numpy_op.reduce(x, axis=1)
    check_kernel(sink, [np.zeros(3, kind), x], {0: expected}, [Opt(V, (1,), 16)])


def test_a_value_along_two_vector_axes_is_refused() -> None:
    i, j = (UOp.range(4, axis, AxisType.VECTOR) for axis in (0, 1))
    sink = UOp.sink(param(0, 16).index(i * 4 + j).store(UOp.const(dtypes.float32, 1)).end(i, j))
    with pytest.raises(VerificationError, match="depends on 2 VECTOR axes"):
        verify(sink, kernel_graph)


def test_operands_of_other_widths_are_refused() -> None:
    wide = UOp.const(dtypes.float32.vec(4), 1)
    narrow = UOp.const(dtypes.float32, 1)
    node = UOp(Ops.ADD, dtypes.float32.vec(4), (wide, narrow))
    with pytest.raises(VerificationError, match="operands have one dtype"):
        verify([narrow, wide, node], linear_kernel)
