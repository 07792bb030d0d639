"""Kernels in the text form of the IR itself, which DEV=PYTHON evaluates: slow and exact."""

from tg_renderers.serial.renderer import SerialCompiler, SerialRenderer

__all__ = ["SerialCompiler", "SerialRenderer"]
