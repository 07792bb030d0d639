"""The package keeps the contracts of renderers and compilers, and is found by its entry points."""

from __future__ import annotations

from tg_ir.conformance import CompilerSuite, RendererSuite
from tg_ir.conformance.renderer_suite import LoadedKernel
from tg_ir.graph.render_api import Compiler, Renderer, open_compiler, open_renderer
from tg_ir.target import Target

TARGET = Target("TOY", "TEMPLATE")


class TestTemplateRenderer(RendererSuite):
    def renderer(self) -> Renderer:
        return open_renderer("TEMPLATE", TARGET)

    def compiler(self) -> Compiler:
        return open_compiler("TEMPLATE", TARGET)

    def load(self, code: bytes, name: str) -> LoadedKernel:
        scope: dict[str, LoadedKernel] = {}
        exec(code, scope)
        return scope[name]


class TestTemplateCompiler(CompilerSuite):
    good_source = "def kernel(buffers, vals, begin, end):\n    return\n"

    def compiler(self) -> Compiler:
        return open_compiler("TEMPLATE", TARGET)
