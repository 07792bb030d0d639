"""Types and literals of LLVM IR text.

A bool is `i1` as a value and `i8` in memory. bfloat16 is carried as its 16 bits: LLVM's own
lowering of `bfloat` flushes subnormals on some CPUs and calls a library on others.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tg_ir.dtype import DType, dtypes
from tg_ir.dtype.storage import to_bytes

Scalar = bool | int | float

_SCALARS = {
    "bool": "i1",
    "int8": "i8",
    "uint8": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
    "index": "i64",
    "float16": "half",
    "bfloat16": "i16",
    "float32": "float",
    "float64": "double",
}


def vector_of(scalar: str, count: int) -> str:
    """The text of `count` lanes of an LLVM scalar type; of the type itself for one lane."""
    return scalar if count == 1 else f"<{count} x {scalar}>"


def value_type(dtype: DType) -> str:
    """The LLVM type of a value, such as `<16 x float>` or `i1`."""
    return vector_of(_SCALARS[dtype.name], dtype.count)


def memory_type(dtype: DType) -> str:
    """The LLVM type of an element in memory: as `value_type`, but `i8` for bool."""
    return vector_of("i8" if dtype.name == "bool" else _SCALARS[dtype.name], dtype.count)


def with_lanes(dtype: DType, count: int) -> DType:
    """The scalar type of `dtype` in `count` lanes."""
    return dtype.scalar().vec(count)


def suffix(llvm_type: str) -> str:
    """How a type is spelled in the name of an intrinsic: `<16 x float>` is `v16f32`."""
    if llvm_type.startswith("<"):
        count, scalar = llvm_type[1:-1].split(" x ")
        return f"v{count}{suffix(scalar)}"
    return {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(llvm_type, llvm_type)


def scalar_literal(dtype: DType, value: Scalar) -> str:
    """The text of a constant of the scalar type of `dtype`; exact for every value of the type."""
    match dtype.name:
        case "bool":
            return "true" if value else "false"
        case "float32":
            # LLVM writes a float as the double of the same value
            (rounded,) = struct.unpack("<f", to_bytes([value], dtypes.float32))
            return _double_bits(rounded)
        case "float64":
            return _double_bits(float(value))
        case "float16":
            (pattern,) = struct.unpack("<H", to_bytes([value], dtypes.float16))
            return f"0xH{pattern:04X}"
        case "bfloat16":
            (pattern,) = struct.unpack("<h", to_bytes([value], dtypes.bfloat16))
            return str(pattern)
        case _:
            return str(_as_signed(int(value), dtype.bits))


def literal(dtype: DType, value: Scalar) -> str:
    """The text of a constant of `dtype`, equal in all lanes."""
    return splat(dtype, scalar_literal(dtype, value))


def splat(dtype: DType, scalar: str) -> str:
    """A vector constant whose lanes are all the constant `scalar`; `scalar` itself for one lane."""
    if dtype.count == 1:
        return scalar
    return f"splat ({value_type(dtype.scalar())} {scalar})"


def vector_literal(dtype: DType, lanes: Sequence[str]) -> str:
    """A vector constant from the constants of its lanes."""
    scalar = value_type(dtype.scalar())
    return f"<{', '.join(f'{scalar} {lane}' for lane in lanes)}>"


def constant_lanes(dtype: DType, values: Sequence[Scalar]) -> str:
    """A vector constant from the Python values of its lanes."""
    lanes = [scalar_literal(dtype.scalar(), value) for value in values]
    if all(lane == lanes[0] for lane in lanes):
        return splat(dtype, lanes[0])
    return vector_literal(dtype, lanes)


def zero(dtype: DType) -> str:
    """The constant 0 (false) of `dtype`."""
    return "zeroinitializer" if dtype.count > 1 else scalar_literal(dtype, 0)


def is_unsigned(dtype: DType) -> bool:
    """Whether integers of `dtype` are widened with zeros; so is bool."""
    return dtype.kind in ("uint", "bool")


def is_narrow_float(dtype: DType) -> bool:
    """Whether arithmetic of `dtype` is done in float32 and rounded: float16 and bfloat16."""
    return dtype.name in ("float16", "bfloat16")


def _double_bits(value: float) -> str:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{bits:016X}"


def _as_signed(value: int, bits: int) -> int:
    wrapped = value & ((1 << bits) - 1)
    return wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped
