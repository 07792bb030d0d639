"""`TemplateRenderer`: a linear kernel as the text of one Python function.

The function takes the bytes of each buffer, `vals`, `begin` and `end`. Everything that a renderer
has to answer is here: constants, loops, memory with masks, registers, conditions, elementwise ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from tg_ir.dtype import dtypes
from tg_ir.errors import RenderError
from tg_ir.graph import AxisType, GroupOp, Ops, UOp
from tg_ir.graph.render_api import Renderer, TargetCapabilities

_IMPORTS = (
    "from tg_ir.dtype import dtypes",
    "from tg_ir.dtype.storage import from_bytes, to_bytes",
    "from tg_ir.graph import Ops",
    "from tg_ir.graph.scalar import alu",
    "inf, nan = float('inf'), float('nan')",
)
_ARGUMENTS = (Ops.PARAM, Ops.DEFINE_VAR)
# Ops that Python spells itself and that mean the same there.
_COMPARISONS = {Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "=="}


class TemplateRenderer(Renderer):
    """Takes scalars of every dtype, and all ops but the transcendental ones."""

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "TEMPLATE"
    compiler: ClassVar[str] = "TEMPLATE"
    code_format: ClassVar[str] = "python"

    @property
    def capabilities(self) -> TargetCapabilities:
        """No vectors: a kernel then has none. Ops left out are decomposed into the others."""
        return TargetCapabilities(
            ops=GroupOp.Elementwise - {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.THREEFRY},
            dtypes=frozenset(dtypes.all),
            has_threads=True,
        )

    def render(self, kernel: Sequence[UOp], name: str) -> str:
        """Return the text of a kernel; see `Renderer.render`."""
        text = _KernelText(self.capabilities.ops)
        # arguments first: the list may have them inside a loop, where they are used
        for node in sorted(kernel, key=lambda node: node.op not in _ARGUMENTS):
            text.render(node)
        text.write_back(kernel)
        header = f"def {name}(buffers, vals, begin, end):"
        return "\n".join((*_IMPORTS, header, *text.lines, "    return", ""))


class _KernelText:
    """The lines so far, and the name of each value."""

    def __init__(self, ops: frozenset[Ops]) -> None:
        self.lines: list[str] = []
        self._ops = ops
        self._names: dict[UOp, str] = {}
        self._depth = 1

    def render(self, node: UOp) -> None:
        """Append what `node` does."""
        if node.op in GroupOp.Elementwise and node.op in self._ops and node.dtype.count == 1:
            self._elementwise(node)
            return
        write = self._WRITERS.get(node.op)
        if write is None or node.dtype.count > 1:
            raise RenderError(f"TEMPLATE does not take {node!r}")
        write(self, node)

    def write_back(self, kernel: Sequence[UOp]) -> None:
        """Append what puts the values of the buffers that were written back into their bytes."""
        for node in kernel:
            if node.op is Ops.PARAM and node.arg.writable:
                data = f"to_bytes({self._names[node]}, {node.dtype!r})"
                self._line(f"buffers[{node.arg.slot}][:] = {data}")

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _define(self, node: UOp, text: str) -> None:
        self._names[node] = f"v{len(self._names)}"
        self._line(f"{self._names[node]} = {text}")

    def _elementwise(self, node: UOp) -> None:
        sources = [self._names[source] for source in node.src]
        if node.op in _COMPARISONS:
            self._define(node, f"{sources[0]} {_COMPARISONS[node.op]} {sources[1]}")
            return
        # A real renderer has an instruction for each op here; this one asks the definition.
        values = ", ".join(sources)
        source_dtype = repr(node.src[0].dtype)
        op = f"Ops.{node.op.name}"
        self._define(node, f"alu({op}, {node.dtype!r}, ({values},), {source_dtype})")

    def _const(self, node: UOp) -> None:
        self._names[node] = f"({node.arg!r})"

    def _param(self, node: UOp) -> None:
        self._define(node, f"from_bytes(buffers[{node.arg.slot}], {node.dtype!r})")

    def _variable(self, node: UOp) -> None:
        self._define(node, f"vals[{node.arg.name[1:]}]")

    def _memory(self, node: UOp) -> None:
        self._define(node, f"[0] * {node.arg.size}")

    def _after(self, node: UOp) -> None:
        self._names[node] = self._names[node.src[0]]

    def _range(self, node: UOp) -> None:
        bounds = f"0, {self._names[node.src[0]]}"
        if node.arg.kind is AxisType.THREAD:
            bounds = "begin, end"
        self._names[node] = f"v{len(self._names)}"
        self._line(f"for {self._names[node]} in range({bounds}):")
        self._depth += 1

    def _if(self, node: UOp) -> None:
        self._line(f"if {self._names[node.src[0]]}:")
        self._depth += 1

    def _end(self, node: UOp) -> None:
        closed = sum(source.op is Ops.RANGE for source in node.src)
        for _ in range(closed if node.op is Ops.END else 1):
            self._line("pass")  # a body may be empty
            self._depth -= 1

    def _index(self, node: UOp) -> None:
        """Nothing: LOAD and STORE write the access, because only they know what a mask means."""

    def _load(self, node: UOp) -> None:
        index = node.src[0]
        access = f"{self._names[index.src[0]]}[{self._names[index.src[1]]}]"
        if len(index.src) == 3:
            other = self._names[node.src[1]] if len(node.src) == 2 else "0"
            access = f"{access} if {self._names[index.src[2]]} else {other}"
        self._define(node, access)

    def _store(self, node: UOp) -> None:
        index, value = node.src
        access = f"{self._names[index.src[0]]}[{self._names[index.src[1]]}]"
        guard = f"if {self._names[index.src[2]]}: " if len(index.src) == 3 else ""
        self._line(f"{guard}{access} = {self._names[value]}")

    _WRITERS: ClassVar[dict[Ops, Callable[[_KernelText, UOp], None]]] = {
        Ops.CONST: _const,
        Ops.PARAM: _param,
        Ops.DEFINE_VAR: _variable,
        Ops.DEFINE_LOCAL: _memory,
        Ops.DEFINE_REG: _memory,
        Ops.AFTER: _after,
        Ops.RANGE: _range,
        Ops.END: _end,
        Ops.IF: _if,
        Ops.ENDIF: _end,
        Ops.INDEX: _index,
        Ops.LOAD: _load,
        Ops.STORE: _store,
    }
