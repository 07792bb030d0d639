"""What every op computes, by running it: the reference that all backends are compared with."""

from tg_ir.graph.evaluate.kernel_graph import (
    clear_kernel_graphs,
    kernel_graph_source,
    run_kernel_graph,
    stage_layout,
)
from tg_ir.graph.evaluate.linear_kernel import clear_kernels, python_source_of, run_linear_kernel
from tg_ir.graph.evaluate.movement import TensorValue
from tg_ir.graph.evaluate.tensor_graph import evaluate, register_custom

__all__ = [
    "TensorValue",
    "clear_kernel_graphs",
    "clear_kernels",
    "evaluate",
    "kernel_graph_source",
    "python_source_of",
    "register_custom",
    "run_kernel_graph",
    "run_linear_kernel",
    "stage_layout",
]
