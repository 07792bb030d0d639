"""Lowering of one kernel: `lower_kernel` and the pipeline of named passes behind it."""
