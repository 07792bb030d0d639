"""What Python numbers become in a dtype: casts, literals that must fit, reinterpreted bits.

These functions define SEMANTICS promises 8, 10 and 14; constant folding and the evaluator use
them, so a folded cast and one at run time agree.
"""

import math
import struct

from tg_ir.dtype.data_type import DType, Scalar, dtypes
from tg_ir.dtype.storage import from_bytes, to_bytes
from tg_ir.errors import DTypeError, LiteralError

# A double rounded to odd at 53 bits still rounds right to any significand of 51 bits or fewer.
_DOUBLE_BITS = 53


def _double_rounded_to_odd(value: int) -> float:
    """A double near `value` from which rounding to float32 or less gives the exact result.

    Raises:
        OverflowError: `value` is beyond the range of a double.
    """
    shift = abs(value).bit_length() - _DOUBLE_BITS
    if shift <= 0:
        return float(value)
    kept, lost = divmod(abs(value), 1 << shift)
    if lost:
        kept |= 1
    return math.copysign(math.ldexp(kept, shift), value)


def _round_by_struct(value: float, code: str) -> float:
    """Round through the machine format `code`: nearest even, overflow to infinity."""
    try:
        return float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_float(value: Scalar, dtype: DType) -> float:
    """Round to a float dtype once, from an int of any size or from a double."""
    try:
        if isinstance(value, float):
            double = value
        elif dtype is dtypes.float64:
            double = float(value)
        else:
            double = _double_rounded_to_odd(int(value))
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    match dtype.name:
        case "float64":
            return double
        case "float32":
            return _round_by_struct(double, "<f")
        case "float16":
            return _round_by_struct(double, "<e")
        case _:
            return float(from_bytes(to_bytes([double], dtypes.bfloat16), dtypes.bfloat16)[0])


def wrap_int(value: int, dtype: DType) -> int:
    """`value` as two's complement at the width of an int dtype; index never wraps."""
    if dtype.kind == "index":
        return value
    bits = dtype.bits
    low = value & ((1 << bits) - 1)
    if dtype.kind == "int" and low >> (bits - 1):
        return low - (1 << bits)
    return low


def _saturate(value: float, low: int, high: int) -> int:
    """`value` without its fraction, NaN as 0, held between the bounds."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.trunc(value)))


def _float_to_int(value: float, dtype: DType) -> int:
    """Truncate; 8 and 16 bits through int32 and wrapped, wider ones saturated."""
    through = dtypes.int32 if dtype.bits < 32 else dtype
    whole = _saturate(value, int(dtypes.min(through)), int(dtypes.max(through)))
    return wrap_int(whole, dtype)


def cast_scalar(value: Scalar, dtype: DType) -> Scalar:
    """The value of a Python number after a cast to `dtype` (SEMANTICS 10).

    To floats: rounds to nearest even once, overflows to infinity, keeps subnormals. Float to
    int: truncates, through int32 with wrapping for 8 and 16 bits, else saturates; NaN gives 0.
    Int to int wraps. To bool: whether it is not zero. Vectors cast each lane alike, so the
    lanes of `dtype` do not matter.

    Returns:
        A `bool`, `int` or `float`, as the dtype's kind asks.

    Raises:
        DTypeError: `dtype` is void, or `value` is no number.
    """
    if not isinstance(value, (bool, int, float)):
        raise DTypeError(f"cast_scalar takes a bool, int or float, got {type(value).__name__}")
    match dtype.kind:
        case "float":
            return _to_float(value, dtype)
        case "int" | "uint" | "index":
            if isinstance(value, float):
                return _float_to_int(value, dtype)
            return wrap_int(int(value), dtype)
        case "bool":
            return bool(value)
        case "void":
            raise DTypeError(f"cannot cast {value!r} to void; void has no values")


def fits(value: Scalar, dtype: DType) -> bool:
    """Whether a literal can be held by `dtype` without changing what it means.

    An int fits an int dtype in range and any float dtype that does not overflow; a float may
    lose digits in a float dtype but not overflow, and fits an int dtype if it is whole and in
    range; bool takes 0 and 1.
    """
    scalar = dtype.scalar()
    if scalar.kind == "void":
        return False
    if scalar.kind == "float":
        if isinstance(value, float) and not math.isfinite(value):
            return True
        return math.isfinite(_to_float(value, scalar))
    if isinstance(value, float) and not value.is_integer():
        return False
    if scalar.kind == "index":
        return True
    return bool(dtypes.min(scalar) <= value <= dtypes.max(scalar))


def check_literal(value: Scalar, dtype: DType) -> None:
    """Refuse a literal that `dtype` cannot hold (SEMANTICS 14).

    Raises:
        LiteralError: says the value, the dtype and its range.
    """
    if fits(value, dtype):
        return
    scalar = dtype.scalar()
    name = scalar.name
    if scalar.kind == "void":
        raise LiteralError(f"void cannot hold {value!r}; void has no values")
    if scalar.kind == "float":
        largest = dtypes.finfo(scalar).largest
        raise LiteralError(
            f"{name} cannot hold {value!r} (largest finite value {largest!r}); "
            "cast the tensor to a wider float first, or write float('inf')"
        )
    if isinstance(value, float) and not value.is_integer():
        raise LiteralError(
            f"{name} cannot hold {value!r}, which is not a whole number; "
            "cast the tensor to a float first, or round the number"
        )
    low, high = int(dtypes.min(scalar)), int(dtypes.max(scalar))
    raise LiteralError(
        f"{name} cannot hold {value!r} ({low}..{high}); cast the tensor to a wider dtype first"
    )


def bitcast_scalar(value: Scalar, from_dtype: DType, to_dtype: DType) -> Scalar:
    """The bits of `value` in `from_dtype`, read as a `to_dtype`.

    `value` is cast to `from_dtype` first.

    Raises:
        DTypeError: the two dtypes differ in size, or one is void or index.
    """
    for dtype in (from_dtype, to_dtype):
        if dtype.kind in ("void", "index"):
            raise DTypeError(f"bitcast takes dtypes with a machine format, not {dtype.name}")
    source, target = from_dtype.scalar(), to_dtype.scalar()
    if source.itemsize != target.itemsize:
        raise DTypeError(
            f"bitcast keeps the size: {source.name} has {source.itemsize} bytes, "
            f"{target.name} {target.itemsize}; use a cast to change the value's width"
        )
    return from_bytes(to_bytes([cast_scalar(value, source)], source), target)[0]
