"""Every pass of the kernel pipeline keeps what a kernel computes, on random kernels and moves.

A pass that does not is named: `check_kernel` evaluates the graph after each.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tg_codegen.kernel.pipeline import KERNEL_PASSES
from tg_ir.graph.evaluate import run_kernel_graph
from tg_ir.graph.spec import kernel_graph, verify

from .random_kernels import random_kernel, random_opts
from .stages import check_kernel

EXAMPLES = int(os.environ.get("TG_EXAMPLES", "60"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_stages_agree(data: st.DataObject) -> None:
    sink, arrays = random_kernel(data.draw)
    verify(sink, kernel_graph)
    opts = random_opts(data.draw, sink)
    results = [array.copy() for array in arrays]
    run_kernel_graph(sink, [memoryview(a).cast("B") for a in results])
    check_kernel(sink, arrays, dict(enumerate(results)), opts, rtol=1e-4, atol=1e-3)
