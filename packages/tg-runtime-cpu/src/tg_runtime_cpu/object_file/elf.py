"""Read a relocatable ELF64 object: its sections, symbols and relocations, as plain data.

Layout from the System V ABI (gABI), chapters "Object Files" and "Relocation". Nothing is loaded
here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tg_runtime_cpu.errors import ObjectFileError

SECTION_ALLOC = 0x2  # SHF_ALLOC: occupies memory when loaded
SECTION_WRITE = 0x1  # SHF_WRITE
SECTION_EXECUTE = 0x4  # SHF_EXECINSTR

SYMBOL_UNDEFINED = 0  # SHN_UNDEF
SYMBOL_ABSOLUTE = 0xFFF1  # SHN_ABS
SYMBOL_COMMON = 0xFFF2  # SHN_COMMON

MACHINE_NAMES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}

_TYPE_SYMBOLS = 2  # SHT_SYMTAB
_TYPE_RELOCATIONS = 4  # SHT_RELA
_TYPE_NO_BITS = 8  # SHT_NOBITS
_RELOCATABLE = 1  # ET_REL

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True)
class Section:
    """A section; `contents` is empty for one that only reserves `size` zero bytes."""

    name: str
    flags: int
    size: int
    alignment: int
    contents: bytes

    @property
    def is_loaded(self) -> bool:
        """Whether it occupies memory."""
        return bool(self.flags & SECTION_ALLOC)


@dataclass(frozen=True)
class Symbol:
    """A name with a place: `value` bytes into `section`, or elsewhere if undefined."""

    name: str
    section: int
    value: int
    size: int
    is_weak: bool


@dataclass(frozen=True)
class Relocation:
    """A place in a section that depends on where a symbol ends up."""

    section: int  # the section to patch
    offset: int
    kind: int  # number from the machine's ABI
    symbol: int
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """A parsed object; indices in symbols and relocations are into these tuples."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True)
class _SectionHeader:
    name_offset: int
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def parse_object(data: bytes) -> ObjectFile:
    """Read an object file.

    Raises:
        ObjectFileError: it is no relocatable little-endian ELF64 file, or is truncated.
    """
    try:
        return _parse(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ObjectFileError(
            f"object file of {len(data)} bytes is truncated or damaged: {error}"
        ) from error


def _parse(data: bytes) -> ObjectFile:
    if data[:4] != b"\x7fELF":
        raise ObjectFileError(f"no ELF object: it begins with {data[:4]!r}; expected b'\\x7fELF'")
    if data[4:6] != b"\x02\x01":
        raise ObjectFileError(
            "ELF object is not 64-bit little-endian, the only kind that is loaded here"
        )
    fields = _HEADER.unpack_from(data)
    file_type, machine, headers_at, header_size, count, names_index = (
        fields[1],
        fields[2],
        fields[6],
        fields[11],
        fields[12],
        fields[13],
    )
    if file_type != _RELOCATABLE:
        raise ObjectFileError(
            f"ELF file of type {file_type}; "
            "expected a relocatable object (type 1), as `cc -c` makes"
        )
    headers = [_read_section_header(data, headers_at + i * header_size) for i in range(count)]
    names = _contents(data, headers[names_index])
    sections = tuple(_read_section(data, header, names) for header in headers)
    return ObjectFile(
        machine, sections, _read_symbols(data, headers), _read_relocations(data, headers)
    )


def _read_section_header(data: bytes, offset: int) -> _SectionHeader:
    fields = _SECTION.unpack_from(data, offset)
    name, kind, flags, _address, start, size, link, info, alignment, _entry_size = fields
    return _SectionHeader(name, kind, flags, start, size, link, info, max(alignment, 1))


def _contents(data: bytes, header: _SectionHeader) -> bytes:
    if header.type == _TYPE_NO_BITS:
        return b""
    if header.offset + header.size > len(data):
        raise ObjectFileError(
            f"a section ends at {header.offset + header.size} of {len(data)} bytes"
        )
    return data[header.offset : header.offset + header.size]


def _read_section(data: bytes, header: _SectionHeader, names: bytes) -> Section:
    return Section(
        name=_string_at(names, header.name_offset),
        flags=header.flags,
        size=header.size,
        alignment=header.alignment,
        contents=_contents(data, header),
    )


def _read_symbols(data: bytes, headers: list[_SectionHeader]) -> tuple[Symbol, ...]:
    tables = [header for header in headers if header.type == _TYPE_SYMBOLS]
    if not tables:
        return ()
    names = _contents(data, headers[tables[0].link])
    symbols = []
    for fields in _SYMBOL.iter_unpack(_contents(data, tables[0])):
        name, info, _visibility, section, value, size = fields
        is_weak = info >> 4 == 2  # STB_WEAK
        symbols.append(Symbol(_string_at(names, name), section, value, size, is_weak))
    return tuple(symbols)


def _read_relocations(data: bytes, headers: list[_SectionHeader]) -> tuple[Relocation, ...]:
    relocations = []
    for header in headers:
        if header.type != _TYPE_RELOCATIONS or not headers[header.info].flags & SECTION_ALLOC:
            continue  # debug information is not loaded, so need not be relocated
        for offset, info, addend in _RELOCATION.iter_unpack(_contents(data, header)):
            relocations.append(
                Relocation(header.info, offset, info & 0xFFFFFFFF, info >> 32, addend)
            )
    return tuple(relocations)


def _string_at(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()
