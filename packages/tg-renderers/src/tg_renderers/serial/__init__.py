"""Kernels in the text form of the IR itself, which DEV=PYTHON evaluates: slow, exact, and the
reference.
"""

from tg_renderers.serial.renderer import SerialCompiler, SerialRenderer

__all__ = ["SerialCompiler", "SerialRenderer"]
