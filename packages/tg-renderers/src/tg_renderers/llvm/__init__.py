"""The LLVM IR renderer for CPUs. Text only: llvmlite is needed to compile it, not to make it."""

from tg_renderers.llvm.renderer import LLVMRenderer

__all__ = ["LLVMRenderer"]
