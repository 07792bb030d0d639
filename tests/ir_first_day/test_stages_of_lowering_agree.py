"""Any two stages agree: random kernels through every pass, random tensors to machine code.

A pass that changes what a kernel computes is named: `check_kernel` evaluates the graph after each.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tg_codegen.kernel.pipeline import KERNEL_PASSES, LoweringContext
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.evaluate import evaluate, run_kernel_graph
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.passes import Pass
from tg_ir.graph.spec import kernel_graph, verify

from .kernels import floats, param
from .random_kernels import random_kernel, random_opts
from .random_tensors import random_tensors
from .stages import check_kernel
from .tensors import check_tensors, inputs_of

RANDOM = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@RANDOM
@given(data=st.data())
def test_every_pass_keeps_what_a_kernel_computes(data: st.DataObject) -> None:
    sink, arrays = random_kernel(data.draw)
    verify(sink, kernel_graph)
    opts = random_opts(data.draw, sink) if data.draw(st.booleans()) else None
    results = [array.copy() for array in arrays]
    run_kernel_graph(sink, [memoryview(a).cast("B") for a in results])
    check_kernel(sink, arrays, dict(enumerate(results)), opts, rtol=1e-4, atol=1e-3)


@RANDOM
@given(data=st.data())
def test_a_tensor_graph_its_schedule_and_its_program_agree(data: st.DataObject) -> None:
    values = random_tensors(data.draw)
    sink = UOp.sink(*values)
    expected = [
        np.array(v.items, node.dtype.name).reshape(v.shape)
        for v, node in zip(evaluate(sink, inputs_of(sink)), values, strict=True)
    ]
    check_tensors(values, expected, rtol=1e-4, atol=1e-3)


def with_sums_for_maxima(sink: UOp, _: LoweringContext) -> UOp:
    """A pass with a bug."""
    changed = {
        node: node.replace(op=Ops.ADD) for node in sink.toposort() if node.op is Ops.MAX
    }
    return sink.substitute(changed)


@pytest.mark.parametrize("before", ["optimise", "unroll", "separate_loops"])
def test_a_pass_that_changes_what_is_computed_is_named(before: str) -> None:
    i = UOp.range(8, 0, AxisType.GLOBAL)
    value = param(1, 8).index(i).load().alu(Ops.MAX, UOp.const(dtypes.float32, 0.5))
    sink = UOp.sink(param(0, 8).index(i).store(value).end(i))
    x = floats(8)
    arrays, expected = [np.zeros(8, np.float32), x], {0: np.maximum(x, np.float32(0.5))}
    check_kernel(sink, arrays, expected)
    broken = KERNEL_PASSES.insert(Pass("mix_up", with_sums_for_maxima), before=before)
    with pytest.raises(AssertionError, match="after pass 'mix_up'"):
        check_kernel(sink, arrays, expected, passes=broken)
