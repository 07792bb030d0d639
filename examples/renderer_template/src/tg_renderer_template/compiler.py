"""`TemplateCompiler`: checks Python source and returns it as bytes."""

from __future__ import annotations

from typing import ClassVar

from tg_ir.graph.render_api import Compiler


class TemplateCompiler(Compiler):
    """A real one would run a toolchain here, loaded at the first `compile` and not before."""

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "TEMPLATE"
    code_format: ClassVar[str] = "python"

    def compile(self, source: str) -> bytes:
        """Return the source as bytes; see `Compiler.compile`."""
        try:
            compile(source, "<kernel>", "exec")
        except SyntaxError as error:
            raise self.refused(source, str(error)) from error
        return source.encode()
