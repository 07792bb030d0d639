"""Memory as the evaluator sees it: a mutable sequence of Python numbers over the bytes of a buffer.

`memoryview.cast` serves every dtype that has a native format; float16 and bfloat16 go through a
table of all their 65,536 patterns. Buffers are in the byte order of the machine.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from functools import cache
from typing import Any, Protocol, overload

from tg_ir.dtype import DType, dtypes, from_bytes, struct_code
from tg_ir.graph.errors import EvaluationError, OutOfRangeError

Buffer = bytes | bytearray | memoryview
Value = Any  # a scalar, or a tuple of lanes


class Memory(Protocol):
    """What generated source does to memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: Any) -> Any: ...

    def __setitem__(self, position: Any, value: Any) -> None: ...


@cache
def _patterns(dtype: DType) -> list[bool | int | float]:
    """The value of each 16-bit pattern."""
    return from_bytes(array("H", range(1 << 16)).tobytes(), dtype)


def _half_pattern(value: float) -> int:
    pattern: int = _PATTERN.unpack(_HALF.pack(value))[0]
    return pattern


def _bfloat16_pattern(value: float) -> int:
    bits: int = _WORD.unpack(_SINGLE.pack(value))[0]
    return bits >> 16


_HALF = struct.Struct("e")
_PATTERN = struct.Struct("H")
_SINGLE = struct.Struct("f")
_WORD = struct.Struct("I")


class EncodedMemory:
    """16-bit floats. The values written are already rounded, so that encoding loses nothing."""

    def __init__(self, raw: memoryview, dtype: DType) -> None:
        """`raw`: the patterns, as a memoryview of format `H`."""
        self._raw = raw
        self._values = _patterns(dtype)
        is_half = dtype is dtypes.float16
        self._encode: Callable[[float], int] = _half_pattern if is_half else _bfloat16_pattern

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, position: int) -> float: ...

    @overload
    def __getitem__(self, position: slice) -> list[float]: ...

    def __getitem__(self, position: int | slice) -> float | list[float]:
        if isinstance(position, slice):
            return [self._values[pattern] for pattern in self._raw[position]]
        return self._values[self._raw[position]]

    def __setitem__(self, position: int, value: float) -> None:
        self._raw[position] = self._encode(value)


def typed_memory(buffer: Buffer, dtype: DType) -> Memory:
    """The elements of `buffer`, shared with it.

    Raises:
        EvaluationError: `dtype` has no machine format.
    """
    raw = memoryview(buffer).cast("B")
    whole = len(raw) - len(raw) % dtype.itemsize if dtype.itemsize else 0
    if dtype.count != 1 or dtype.kind in ("void", "index"):
        raise EvaluationError(
            f"a buffer of {dtype!r} has no machine format; lower its dtype to a sized scalar first"
        )
    if whole == 0:
        return []
    if dtype.name in ("float16", "bfloat16"):
        return EncodedMemory(raw[:whole].cast("H"), dtype)
    code: Any = struct_code(dtype)
    return raw[:whole].cast(code)


def out_of_range(position: object, count: int, size: int) -> None:
    """Refuse an access.

    Raises:
        OutOfRangeError: always.
    """
    elements = f"element {position}" if count == 1 else f"{count} elements from {position}"
    raise OutOfRangeError(f"touches {elements} of a buffer of {size} elements")


def _check(position: int, size: int) -> None:
    if not 0 <= position < size:
        out_of_range(position, 1, size)


def load_lanes(memory: Memory, positions: Iterable[int]) -> tuple[Value, ...]:
    """One element a position."""
    found = []
    size = len(memory)
    for position in positions:
        _check(position, size)
        found.append(memory[position])
    return tuple(found)


def load_masked_lanes(
    memory: Memory, positions: Iterable[int], mask: Iterable[bool], other: Iterable[Value]
) -> tuple[Value, ...]:
    """One element a position, that of `other` where the mask is false."""
    found = []
    size = len(memory)
    for position, touched, default in zip(positions, mask, other, strict=True):
        if touched:
            _check(position, size)
            found.append(memory[position])
        else:
            found.append(default)
    return tuple(found)


def store_lanes(memory: Memory, positions: Iterable[int], values: Sequence[Value]) -> None:
    """One element a position; the last wins."""
    size = len(memory)
    for position, value in zip(positions, values, strict=True):
        _check(position, size)
        memory[position] = value


def store_masked_lanes(
    memory: Memory, positions: Iterable[int], mask: Iterable[bool], values: Iterable[Value]
) -> None:
    """One element a position where the mask is true."""
    size = len(memory)
    for position, touched, value in zip(positions, mask, values, strict=True):
        if touched:
            _check(position, size)
            memory[position] = value


def private_memory(size: int) -> MutableSequence[Value]:
    """Registers or local memory, not initialised: an element never written reads as None."""
    return [None] * size


# What generated source may name.
FUNCTIONS: dict[str, Any] = {
    "out_of_range": out_of_range,
    "load_lanes": load_lanes,
    "load_masked_lanes": load_masked_lanes,
    "store_lanes": store_lanes,
    "store_masked_lanes": store_masked_lanes,
}
