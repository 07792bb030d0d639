"""Our renderers and compilers keep their contracts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tg_ir.conformance import CompilerSuite, RendererSuite
from tg_ir.conformance.renderer_suite import LoadedKernel
from tg_ir.graph.evaluate import run_linear_kernel
from tg_ir.graph.render_api import Compiler, Renderer
from tg_ir.graph.text import parse
from tg_ir.target import Target
from tg_renderers.compilers.llvm import LLVMCompiler
from tg_renderers.llvm import LLVMRenderer
from tg_renderers.serial import SerialCompiler, SerialRenderer


class TestLLVMRenderer(RendererSuite):
    def renderer(self) -> Renderer:
        return LLVMRenderer(Target("CPU", "LLVM"))

    def compiler(self) -> Compiler:
        return LLVMCompiler(Target("CPU", "LLVM"))

    @pytest.fixture(autouse=True)
    def _use_native_code(self, native_kernel: Callable[[bytes, str], LoadedKernel]) -> None:
        self.native_kernel = native_kernel

    def load(self, code: bytes, name: str) -> LoadedKernel:
        return self.native_kernel(code, name)


class TestSerialRenderer(RendererSuite):
    def renderer(self) -> Renderer:
        return SerialRenderer(Target("PYTHON", "SERIAL"))

    def compiler(self) -> Compiler:
        return SerialCompiler(Target("PYTHON", "SERIAL"))

    def load(self, code: bytes, name: str) -> LoadedKernel:
        kernel = parse(code.decode())

        def run(buffers: Sequence[bytearray], vals: Sequence[int], begin: int, end: int) -> None:
            run_linear_kernel(kernel, buffers, vals, begin, end)

        return run


class TestLLVMCompiler(CompilerSuite):
    good_source = "define void @f() {\n  ret void\n}\n"

    def compiler(self) -> Compiler:
        return LLVMCompiler(Target("CPU", "LLVM"))


class TestSerialCompiler(CompilerSuite):
    good_source = "tg-ir text 1\n0: CONST int64 () 3\nroots (0)\n"

    def compiler(self) -> Compiler:
        return SerialCompiler(Target("PYTHON", "SERIAL"))
