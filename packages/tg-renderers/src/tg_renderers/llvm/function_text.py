"""`FunctionText`: one LLVM function under construction, as lines of text.

It knows names, blocks, allocas and the declarations of intrinsics, and nothing of UOps.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_renderers.llvm.types import suffix, vector_of

Operand = str
"""The text of a value: a name such as `%v3`, or a constant."""


class FunctionText:
    """Collects the text of a function. The entry block is kept apart, so that it can grow."""

    def __init__(self) -> None:
        """Start in the entry block."""
        self.block = "start"
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._declarations: dict[str, str] = {}
        self._values = 0
        self._labels = 0
        self._widest_bits = 0

    def emit(self, instruction: str) -> Operand:
        """Append an instruction that gives a value; returns its name."""
        name = self.new_name()
        self._lines.append(f"  {name} = {instruction}")
        return name

    def emit_in_entry(self, instruction: str) -> Operand:
        """As `emit`, at the end of the entry block: before everything else, once."""
        name = self.new_name()
        self._entry.append(f"  {name} = {instruction}")
        return name

    def effect(self, instruction: str) -> None:
        """Append an instruction without a value."""
        self._lines.append(f"  {instruction}")

    def effect_in_entry(self, instruction: str) -> None:
        """As `effect`, at the end of the entry block."""
        self._entry.append(f"  {instruction}")

    def new_name(self) -> Operand:
        """A value name that nothing else has."""
        self._values += 1
        return f"%v{self._values}"

    def new_label(self, stem: str) -> str:
        """A block label that nothing else has."""
        self._labels += 1
        return f"{stem}{self._labels}"

    def start_block(self, label: str) -> None:
        """Begin the block `label`; the one before must have ended in a branch."""
        self._lines.append(f"{label}:")
        self.block = label

    def reserve_line(self) -> int:
        """Append a line to be filled later by `fill_line`; returns its position."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill_line(self, position: int, instruction: str) -> None:
        """Write a line kept by `reserve_line`."""
        self._lines[position] = f"  {instruction}"

    def call(
        self, intrinsic: str, result: str, arguments: Sequence[tuple[str, Operand]], flags: str = ""
    ) -> Operand:
        """Call an LLVM intrinsic and declare it.

        Args:
            intrinsic: full name without `@`, such as `llvm.fma.v16f32`.
            result: type of the result; `void` calls give the empty operand.
            arguments: type and value of each.
            flags: fast-math flags of the call.
        """
        types = ", ".join(kind for kind, _ in arguments)
        self._declarations[intrinsic] = f"declare {result} @{intrinsic}({types})"
        values = ", ".join(f"{kind} {value}" for kind, value in arguments)
        text = f"call {flags}{' ' if flags else ''}{result} @{intrinsic}({values})"
        if result == "void":
            self.effect(text)
            return ""
        return self.emit(text)

    def overloaded(self, stem: str, kind: str, values: Sequence[Operand]) -> Operand:
        """Call the intrinsic `stem` on operands of one type, which the result has too."""
        name = f"llvm.{stem}.{suffix(kind)}"
        return self.call(name, kind, [(kind, value) for value in values])

    def broadcast(self, scalar: str, value: Operand, count: int) -> Operand:
        """`count` equal lanes of `value` of the LLVM type `scalar`."""
        if count == 1:
            return value
        kind = vector_of(scalar, count)
        first = self.emit(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        mask = f"<{count} x i32> zeroinitializer"
        return self.emit(f"shufflevector {kind} {first}, {kind} poison, {mask}")

    def note_vector(self, bits: int) -> None:
        """Remember the widest vector, which the attributes of the function name."""
        self._widest_bits = max(self._widest_bits, bits)

    def finish(self, name: str, parameters: str, vector_bits: int) -> str:
        """The text of the module.

        Args:
            name: of the function.
            parameters: its parameter list.
            vector_bits: width of the registers to use; 0 leaves that to LLVM.
        """
        # Without these LLVM splits 512-bit values on CPUs that it thinks prefer 256 bits.
        widths = ""
        if vector_bits and self._widest_bits:
            width = min(vector_bits, max(128, self._widest_bits))
            widths = f' "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        lines = [
            *sorted(self._declarations.values()),
            f"define void @{name}({parameters}) nounwind{widths} {{",
            "entry:",
            *self._entry,
            "  br label %start",
            "start:",
            *self._lines,
            "  ret void",
            "}",
            "",
        ]
        return "\n".join(lines)
