"""Python numbers to and from the bytes of a buffer, little-endian, without numpy.

Values are taken as they are: floats are rounded to the format, ints must be in range. Cast
with `cast_scalar` first where they may not be.
"""

import array
import math
import struct
import sys
from collections.abc import Iterable, Sequence

from tg_ir.dtype.data_type import DType, Scalar, dtypes
from tg_ir.errors import DTypeError, LiteralError

# `array` typecodes whose sizes the C standard leaves open are looked up by size.
_ARRAY_CODES = {
    (kind, array.array(code).itemsize): code
    for kind, codes in (("int", "bhilq"), ("uint", "BHILQ"))
    for code in codes
}
_ARRAY_CODES |= {("float", 4): "f", ("float", 8): "d", ("bool", 1): "B"}

_STRUCT_CODES = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def struct_code(dtype: DType) -> str | None:
    """The `struct` and `memoryview` format character of one lane; None for bfloat16.

    None also for void and index, which have no machine format.
    """
    return _STRUCT_CODES.get(dtype.name)


def _storable(dtype: DType) -> DType:
    """The scalar dtype, if it has a machine format."""
    if dtype.kind in ("void", "index"):
        raise DTypeError(
            f"{dtype.name} has no machine format; cast to int64 or another sized dtype first"
        )
    return dtype.scalar()


def _swap_if_big_endian(items: "array.array[int] | array.array[float]") -> None:
    """Bytes in buffers are little-endian on every machine."""
    if sys.byteorder == "big":
        items.byteswap()


def _half_bytes(values: Sequence[float]) -> bytes:
    """float16 by struct, with overflow to infinity where struct refuses."""
    from_doubles = struct.Struct(f"<{len(values)}e")
    try:
        return from_doubles.pack(*values)
    except OverflowError:
        limit = 65520.0  # half way between the largest finite number and the next step
        infinite = float("inf")
        clipped = [infinite if value >= limit else value for value in values]
        return from_doubles.pack(*(-infinite if value <= -limit else value for value in clipped))


def _bfloat16_pattern(value: float) -> int:
    """The 16 bits of a double rounded to bfloat16 (nearest even, rounded once)."""
    bits = int.from_bytes(struct.pack(">d", value), "big")
    sign = (bits >> 63) << 15
    if math.isnan(value):
        return sign | 0x7FC0
    magnitude = abs(value)
    if magnitude >= _BFLOAT16_OVERFLOW:
        return sign | 0x7F80
    if magnitude < _BFLOAT16_NORMAL:
        # In units of the smallest subnormal; a carry runs into the exponent as it should.
        return sign | round(magnitude * _BFLOAT16_PER_UNIT)
    # Drop 45 of the 52 mantissa bits to nearest even, then rebias the exponent 1023 -> 127.
    kept = (bits & 0x7FFF_FFFF_FFFF_FFFF) + (1 << 44) - 1 + ((bits >> 45) & 1)
    return sign | ((kept >> 45) - ((1023 - 127) << 7))


_BFLOAT16_OVERFLOW = (2.0 - 2.0**-8) * 2.0**127
_BFLOAT16_NORMAL = 2.0**-126
_BFLOAT16_PER_UNIT = 2.0**133


def to_bytes(values: Iterable[Scalar], dtype: DType) -> bytes:
    """The bytes of a buffer that holds `values`, one lane each.

    Args:
        values: numbers that fit; floats are rounded to nearest even.
        dtype: any dtype with a machine format; lanes do not matter.

    Raises:
        DTypeError: void or index, or a float among the values of an int dtype.
        LiteralError: an int is out of range.
    """
    scalar = _storable(dtype)
    if scalar is dtypes.float16:
        return _half_bytes([float(value) for value in values])
    items: array.array[int] | array.array[float]
    try:
        if scalar is dtypes.bfloat16:
            items = array.array("H", [_bfloat16_pattern(float(value)) for value in values])
        elif scalar is dtypes.bool:
            items = array.array("B", [bool(value) for value in values])
        else:
            items = array.array(_ARRAY_CODES[scalar.kind, scalar.itemsize], values)
    except OverflowError as error:
        low, high = dtypes.min(scalar), dtypes.max(scalar)
        raise LiteralError(
            f"a value is out of range for {scalar.name} ({low}..{high}): {error}; "
            "cast the values first"
        ) from error
    except TypeError as error:
        raise DTypeError(f"a value is no {scalar.name}: {error}; cast the values first") from error
    _swap_if_big_endian(items)
    return items.tobytes()


def from_bytes(data: bytes | bytearray | memoryview, dtype: DType) -> list[Scalar]:
    """The values in a buffer of `dtype`, one per lane.

    Raises:
        DTypeError: void or index, or a length that is no multiple of the lane size.
    """
    scalar = _storable(dtype)
    raw = bytes(data)
    if len(raw) % scalar.itemsize:
        raise DTypeError(
            f"{len(raw)} bytes hold no whole number of {scalar.name} ({scalar.itemsize} bytes each)"
        )
    if scalar is dtypes.float16:
        return list(struct.unpack(f"<{len(raw) // 2}e", raw))
    if scalar is dtypes.bfloat16:
        return _bfloat16_values(raw)
    items: array.array[int] | array.array[float]
    items = array.array(_ARRAY_CODES[scalar.kind, scalar.itemsize])
    items.frombytes(raw)
    _swap_if_big_endian(items)
    if scalar is dtypes.bool:
        return [item != 0 for item in items]
    return list(items)


def _bfloat16_values(raw: bytes) -> list[Scalar]:
    """A bfloat16 is the upper half of a float32."""
    wide = bytearray(2 * len(raw))
    wide[2::4] = raw[0::2]
    wide[3::4] = raw[1::2]
    return list(struct.unpack(f"<{len(raw) // 2}f", wide))
