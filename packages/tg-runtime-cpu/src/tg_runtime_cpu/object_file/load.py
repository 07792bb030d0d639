"""Load a relocatable object into this process: place sections, resolve symbols, patch, seal.

Sections go into three runs of pages, code (with stubs for far calls), constants (with the table of
addresses), and data, so that each run gets one protection and none is writable and executable.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

from tg_runtime_cpu.errors import ObjectFileError, UnresolvedSymbolError
from tg_runtime_cpu.executable_memory import (
    ExecutableMemory,
    Protection,
    Segment,
    allocate_executable,
    round_to_page,
)
from tg_runtime_cpu.object_file.elf import (
    MACHINE_NAMES,
    SECTION_EXECUTE,
    SECTION_WRITE,
    SYMBOL_ABSOLUTE,
    SYMBOL_COMMON,
    SYMBOL_UNDEFINED,
    ObjectFile,
    Relocation,
    Symbol,
    parse_object,
)
from tg_runtime_cpu.object_file.external_symbols import external_address
from tg_runtime_cpu.object_file.relocation import RelocationRules
from tg_runtime_cpu.object_file.relocation_aarch64 import AArch64Relocations
from tg_runtime_cpu.object_file.relocation_x86_64 import X8664Relocations

_RULES: dict[str, RelocationRules] = {
    "x86_64": X8664Relocations(),
    "amd64": X8664Relocations(),
    "aarch64": AArch64Relocations(),
    "arm64": AArch64Relocations(),
}

_POINTER = 8


@dataclass(frozen=True)
class LoadedObject:
    """Code in this process; it stays mapped as long as this object lives.

    Attributes:
        memory: the mapped range.
        symbols: address of each global name that the object defines.
    """

    memory: ExecutableMemory
    symbols: dict[str, int]

    def address(self, name: str) -> int:
        """Return the address of a symbol that the object defines.

        Raises:
            ObjectFileError: there is none of that name.
        """
        if name not in self.symbols:
            defined = ", ".join(sorted(self.symbols)) or "none"
            raise ObjectFileError(f"the object defines no symbol '{name}'; defined: {defined}")
        return self.symbols[name]


@dataclass
class _Layout:
    """Where everything goes, in bytes from the start of the memory."""

    section_at: dict[int, int] = field(default_factory=dict)  # by section index
    common_at: dict[int, int] = field(default_factory=dict)  # by symbol index
    stub_at: dict[int, int] = field(default_factory=dict)  # by symbol index
    table_at: dict[int, int] = field(default_factory=dict)  # by symbol index
    segments: list[Segment] = field(default_factory=list)
    size: int = 0

    def place(self, size: int, alignment: int) -> int:
        """Reserve the next `size` bytes and return where they begin."""
        start = -(-self.size // alignment) * alignment
        self.size = start + size
        return start

    def end_segment(self, protection: Protection) -> None:
        """Close the run of pages that began where the last one ended."""
        start = self.segments[-1].offset + self.segments[-1].size if self.segments else 0
        self.size = round_to_page(self.size)
        self.segments.append(Segment(start, self.size - start, protection))


def load_object(data: bytes) -> LoadedObject:
    """Load an object file for this machine.

    Raises:
        ObjectFileError: it is damaged, for another machine, or needs what the loader does not know.
        UnresolvedSymbolError: it calls a function that this machine does not have.
        ExecutableMemoryError: the operating system refused memory for code.
    """
    obj = parse_object(data)
    rules = _rules_for(obj)
    layout = _plan(obj, rules)
    if layout.size == 0:
        raise ObjectFileError("the object has no code and no data")
    needs_low = any(relocation.kind in rules.low_address for relocation in obj.relocations)
    memory = allocate_executable(layout.size, below_2_gib=needs_low)
    view = memory.view()
    for index, start in layout.section_at.items():
        contents = obj.sections[index].contents
        view[start : start + len(contents)] = contents
    addresses = _resolve(obj, layout, memory.address)
    _fill_indirections(view, layout, rules, addresses)
    for relocation in obj.relocations:
        _relocate(view, relocation, rules, layout, memory.address, addresses)
    view.release()
    memory.seal(layout.segments)
    defined = {
        symbol.name: address
        for symbol, address in zip(obj.symbols, addresses, strict=True)
        if symbol.name and symbol.section in layout.section_at
    }
    return LoadedObject(memory, defined)


def _rules_for(obj: ObjectFile) -> RelocationRules:
    host = platform.machine().lower()
    rules = _RULES.get(host)
    if rules is None:
        raise ObjectFileError(
            f"no loader for this machine '{host}'; loaders: {', '.join(sorted(_RULES))}"
        )
    if rules.machine != obj.machine:
        made_for = MACHINE_NAMES.get(obj.machine, f"machine {obj.machine}")
        raise ObjectFileError(
            f"the object is for {made_for}, this machine is {host}; compile for {host}"
        )
    return rules


def _plan(obj: ObjectFile, rules: RelocationRules) -> _Layout:
    layout = _Layout()
    far, indirect = _symbols_with_indirection(obj, rules)
    _place_sections(obj, layout, SECTION_EXECUTE)
    for symbol in far:
        layout.stub_at[symbol] = layout.place(rules.stub_size, 16)
    layout.end_segment(Protection.READ_EXECUTE)
    _place_sections(obj, layout, 0)
    for symbol in indirect:
        layout.table_at[symbol] = layout.place(_POINTER, _POINTER)
    layout.end_segment(Protection.READ)
    _place_sections(obj, layout, SECTION_WRITE)
    for index, definition in enumerate(obj.symbols):
        if definition.section == SYMBOL_COMMON:  # there `value` is the alignment
            layout.common_at[index] = layout.place(definition.size, max(definition.value, 1))
    layout.end_segment(Protection.READ_WRITE)
    return layout


def _place_sections(obj: ObjectFile, layout: _Layout, wanted: int) -> None:
    for index, section in enumerate(obj.sections):
        if not section.is_loaded or section.flags & (SECTION_EXECUTE | SECTION_WRITE) != wanted:
            if (
                section.is_loaded
                and section.flags & SECTION_EXECUTE
                and section.flags & SECTION_WRITE
            ):
                raise ObjectFileError(
                    f"section {section.name} is writable and executable; W^X forbids it"
                )
            continue
        layout.section_at[index] = layout.place(section.size, section.alignment)


def _symbols_with_indirection(
    obj: ObjectFile, rules: RelocationRules
) -> tuple[list[int], list[int]]:
    """Return the symbols that may need a stub, and those that need a table entry."""
    far: dict[int, None] = {}
    indirect: dict[int, None] = {}
    for relocation in obj.relocations:
        rules.name_of(relocation.kind)  # refuses an unknown one before anything is mapped
        if relocation.kind in rules.through_table:
            indirect[relocation.symbol] = None
        elif (
            relocation.kind in rules.calls
            and obj.symbols[relocation.symbol].section == SYMBOL_UNDEFINED
        ):
            far[relocation.symbol] = None
    return list(far), list(indirect)


def _resolve(obj: ObjectFile, layout: _Layout, base: int) -> list[int]:
    """Return the address of every symbol that is defined here or referred to; 0 for the others."""
    used = {relocation.symbol for relocation in obj.relocations}
    addresses = []
    for index, symbol in enumerate(obj.symbols):
        address = 0
        if symbol.section in layout.section_at:
            address = base + layout.section_at[symbol.section] + symbol.value
        elif index in layout.common_at:
            address = base + layout.common_at[index]
        elif symbol.section == SYMBOL_ABSOLUTE:
            address = symbol.value
        elif symbol.section == SYMBOL_UNDEFINED and index in used:
            address = _external(symbol)
        addresses.append(address)
    return addresses


def _external(symbol: Symbol) -> int:
    try:
        return external_address(symbol.name)
    except UnresolvedSymbolError:
        if symbol.is_weak:  # the ABI's way to ask whether a function exists
            return 0
        raise


def _fill_indirections(
    view: memoryview, layout: _Layout, rules: RelocationRules, addresses: list[int]
) -> None:
    for symbol, start in layout.stub_at.items():
        code = rules.stub(addresses[symbol])
        view[start : start + len(code)] = code
    for symbol, start in layout.table_at.items():
        view[start : start + _POINTER] = addresses[symbol].to_bytes(_POINTER, "little")


def _relocate(
    view: memoryview,
    relocation: Relocation,
    rules: RelocationRules,
    layout: _Layout,
    base: int,
    addresses: list[int],
) -> None:
    at = layout.section_at[relocation.section] + relocation.offset
    place = base + at
    target = addresses[relocation.symbol]
    if relocation.kind in rules.through_table:
        target = base + layout.table_at[relocation.symbol]
    elif relocation.symbol in layout.stub_at and not rules.reaches(relocation.kind, place, target):
        target = base + layout.stub_at[relocation.symbol]
    rules.apply(view, at, relocation.kind, place, target + relocation.addend)
