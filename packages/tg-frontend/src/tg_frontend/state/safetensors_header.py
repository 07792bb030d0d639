"""The header of a safetensors file: written from entries, and read with every claim checked.

The format: 8 bytes, the length of the header (unsigned, little endian); the header, JSON in UTF-8,
an object of `name: {dtype, shape, data_offsets}` and perhaps `__metadata__`; then the data, which
the entries cover without gap or overlap. Here are no files and no tensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tg_ir.dtype import DType, dtypes

from tg_frontend.state.errors import SafetensorsError

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""The limit of the format; a longer header is a lie or an attack."""

METADATA_KEY = "__metadata__"
_ALIGNMENT = 8  # the data starts at a multiple, so that a mapped file can be used in place

_DTYPES = {
    "BOOL": dtypes.bool,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "U8": dtypes.uint8,
    "U16": dtypes.uint16,
    "U32": dtypes.uint32,
    "U64": dtypes.uint64,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """One tensor of a file.

    Attributes:
        name: its key.
        dtype: of an element.
        shape: extents, each >= 0.
        begin: first byte, counted from the start of the data.
        end: one past the last byte.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return self.end - self.begin


@dataclass(frozen=True)
class Header:
    """A whole header: entries in the order of their data, and the free-form metadata."""

    entries: tuple[Entry, ...]
    metadata: Mapping[str, str]


def place_entries(tensors: Sequence[tuple[str, DType, tuple[int, ...]]]) -> tuple[Entry, ...]:
    """Give `(name, dtype, shape)` each its place in the data, wider elements first.

    Wider first keeps every tensor aligned to its element. Equal widths are sorted by name, so that
    equal states give equal files.
    """
    entries = []
    position = 0
    for name, dtype, shape in sorted(tensors, key=lambda item: (-item[1].itemsize, item[0])):
        end = position + prod(shape) * dtype.itemsize
        entries.append(Entry(name, dtype, shape, position, end))
        position = end
    return tuple(entries)


def header_bytes(header: Header) -> bytes:
    """The first bytes of a file, length field included.

    Raises:
        SafetensorsError: a dtype has no name in the format, a name is reserved, metadata is no
            text.
    """
    content: dict[str, Any] = {}
    if header.metadata:
        content[METADATA_KEY] = _checked_metadata(dict(header.metadata), "metadata to save")
    for entry in header.entries:
        if entry.name == METADATA_KEY:
            raise SafetensorsError(f"no tensor can be called {METADATA_KEY!r}; the format uses it")
        if entry.dtype not in _NAMES:
            known = ", ".join(sorted(dtype.name for dtype in _NAMES))
            raise SafetensorsError(
                f"tensor {entry.name!r}: safetensors has no {entry.dtype.name}; cast it to one of "
                f"{known}"
            )
        content[entry.name] = {
            "dtype": _NAMES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [entry.begin, entry.end],
        }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        message = f"a header of {len(text)} bytes; the format allows {MAX_HEADER_BYTES}"
        raise SafetensorsError(message)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def header_length(first_bytes: bytes, file_size: int) -> int:
    """The length of the header in bytes, from the first eight bytes of a file.

    Raises:
        SafetensorsError: the file is too short for its own claim, or the claim is absurd.
    """
    if len(first_bytes) < LENGTH_BYTES:
        raise SafetensorsError(
            f"the file has {file_size} bytes; a safetensors file has at least {LENGTH_BYTES}"
        )
    length = int.from_bytes(first_bytes[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise SafetensorsError(
            f"the header claims {length} bytes, more than the {MAX_HEADER_BYTES} that the format "
            "allows; "
            "this is no safetensors file, or it is damaged"
        )
    if length > file_size - LENGTH_BYTES:
        raise SafetensorsError(
            f"the header claims {length} bytes, but only {file_size - LENGTH_BYTES} follow; "
            "the file is cut off"
        )
    return length


def parse_header(text: bytes, data_size: int) -> Header:
    """Read a header and check every claim it makes about `data_size` bytes of data.

    Raises:
        SafetensorsError: it is no JSON object, an entry is malformed, or the entries do not cover
            the data exactly.
    """
    content = _parsed_json(text)
    metadata = _checked_metadata(content.pop(METADATA_KEY, {}), METADATA_KEY)
    entries = [_parsed_entry(name, claim, data_size) for name, claim in content.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    _check_coverage(entries, data_size)
    return Header(tuple(entries), metadata)


def _parsed_json(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys)
    except SafetensorsError:
        raise
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(f"the header is no JSON text: {error}") from None
    if not isinstance(content, dict):
        raise SafetensorsError(f"the header is a JSON {type(content).__name__}; expected an object")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise SafetensorsError(f"the header has the key {double!r} twice")
    return content


def _checked_metadata(metadata: Any, where: str) -> dict[str, str]:
    if not isinstance(metadata, dict):
        raise SafetensorsError(f"{where} is a {type(metadata).__name__}; expected texts by name")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise SafetensorsError(
                f"{where}[{key!r}] is {value!r}; the format keeps texts only: convert it with str()"
            )
    return metadata


def _parsed_entry(name: str, claim: Any, data_size: int) -> Entry:
    if not isinstance(claim, dict) or set(claim) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorsError(
            f"tensor {name!r}: expected dtype, shape and data_offsets, got {_shortened(claim)}"
        )
    dtype_name = claim["dtype"]
    if not isinstance(dtype_name, str) or dtype_name not in _DTYPES:
        raise SafetensorsError(
            f"tensor {name!r}: unknown dtype {dtype_name!r}; known: {', '.join(sorted(_DTYPES))}"
        )
    shape = _parsed_numbers(name, "shape", claim["shape"])
    offsets = _parsed_numbers(name, "data_offsets", claim["data_offsets"])
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        message = f"tensor {name!r}: data_offsets {list(offsets)}; expected [begin, end]"
        raise SafetensorsError(message)
    entry = Entry(name, _DTYPES[dtype_name], shape, *offsets)
    if entry.end > data_size:
        raise SafetensorsError(
            f"tensor {name!r}: its data ends at byte {entry.end}, the file holds {data_size} bytes "
            "of data"
        )
    expected = prod(shape) * entry.dtype.itemsize
    if entry.nbytes != expected:
        raise SafetensorsError(
            f"tensor {name!r}: {dtype_name} of shape {shape} needs {expected} bytes, "
            f"its data_offsets {list(offsets)} hold {entry.nbytes}"
        )
    return entry


def _parsed_numbers(name: str, what: str, numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, list) or not all(_is_count(number) for number in numbers):
        raise SafetensorsError(
            f"tensor {name!r}: {what} {_shortened(numbers)}; expected a list of whole numbers >= 0"
        )
    return tuple(numbers)


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _check_coverage(entries: Sequence[Entry], data_size: int) -> None:
    position = 0
    previous = "the start of the data"
    for entry in entries:
        if entry.begin != position:
            fault = "overlaps" if entry.begin < position else "leaves a gap after"
            raise SafetensorsError(
                f"tensor {entry.name!r}: its data begins at byte {entry.begin} and {fault} "
                f"{previous}, "
                f"which ends at {position}"
            )
        position = entry.end
        previous = repr(entry.name)
    if position != data_size:
        raise SafetensorsError(
            f"the file holds {data_size} bytes of data, but its tensors end at byte {position}"
        )


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
