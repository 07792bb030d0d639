"""`SerialRenderer` writes a linear kernel as text of the IR; `SerialCompiler` passes that on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_ir.dtype import dtypes
from tg_ir.float_model import FloatModel
from tg_ir.graph import GroupOp, UOp
from tg_ir.graph.errors import TextError
from tg_ir.graph.render_api import Compiler, Renderer, TargetCapabilities
from tg_ir.graph.text import dump, parse


class SerialRenderer(Renderer):
    """Takes every elementwise op and every dtype; no vectors, no threads."""

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "SERIAL"
    compiler: ClassVar[str] = "SERIAL"
    code_format: ClassVar[str] = "text"

    @property
    def capabilities(self) -> TargetCapabilities:
        """Everything that the evaluator knows."""
        return TargetCapabilities(
            ops=GroupOp.Elementwise,
            dtypes=frozenset(dtypes.all),
            vector_bits=0,
            float_model=FloatModel(),
        )

    def render(self, kernel: Sequence[UOp], name: str) -> str:
        """Return the text form; the name stands in the `TinyELF` only."""
        return dump(tuple(kernel))


class SerialCompiler(Compiler):
    """Checks that the text can be read and returns it as UTF-8."""

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "SERIAL"
    code_format: ClassVar[str] = "text"

    def compile(self, source: str) -> bytes:
        """Return the text as bytes; see `Compiler.compile`."""
        try:
            parse(source)
        except TextError as error:
            raise self.refused(source, str(error)) from error
        return source.encode()

    def disassemble(self, code: bytes) -> str:
        """Return the text again."""
        return code.decode()
