"""What every op computes, by running it: the reference that all backends are compared with. Standard library only."""

from tg_ir.graph.evaluate.linear_kernel import clear_kernels, python_source_of, run_linear_kernel

__all__ = ["clear_kernels", "python_source_of", "run_linear_kernel"]
