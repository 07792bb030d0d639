"""What every op computes, by running it: the reference that all backends are compared with. Standard library only."""

from tg_ir.graph.evaluate.kernel_graph import (
    clear_kernel_graphs,
    kernel_graph_source,
    run_kernel_graph,
    stage_layout,
)
from tg_ir.graph.evaluate.linear_kernel import clear_kernels, python_source_of, run_linear_kernel

__all__ = [
    "clear_kernel_graphs",
    "clear_kernels",
    "kernel_graph_source",
    "python_source_of",
    "run_kernel_graph",
    "run_linear_kernel",
    "stage_layout",
]
