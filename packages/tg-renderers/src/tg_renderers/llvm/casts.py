"""CAST and BITCAST between all pairs of dtypes, and the arithmetic width of 16-bit floats.

Every conversion to a narrower float rounds once, to nearest even (SEMANTICS 10). Float to int
saturates, or goes through int32 and wraps for 8 and 16 bits; NaN gives 0. No case is poison.
"""

from __future__ import annotations

from tg_ir.dtype import DType, dtypes

from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.types import (
    is_narrow_float,
    is_unsigned,
    literal,
    value_type,
    vector_of,
    with_lanes,
    zero,
)


def cast(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    """The value of `value` in the type `dest`, which has as many lanes as `source`."""
    if source is dest:
        return value
    if dest.kind == "bool":
        return _to_bool(text, value, source)
    if source.kind == "float":
        if dest.kind == "float":
            return _float_to_float(text, value, source, dest)
        return _float_to_int(text, value, source, dest)
    if dest.kind == "float":
        return _int_to_float(text, value, source, dest)
    return _resize_int(text, value, source, dest)


def bitcast(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    """The bits of `value` as a `dest` of the same size. A bool has the bits of 0 or 1 in 8 bits."""
    if source.kind == "bool":
        value = text.emit(f"zext {value_type(source)} {value} to {vector_of('i8', source.count)}")
        source = with_lanes(dtypes.uint8, source.count)
    if dest.kind == "bool":
        bytes_dtype = with_lanes(dtypes.uint8, dest.count)
        return _to_bool(text, bitcast(text, value, source, bytes_dtype), bytes_dtype)
    old, new = value_type(source), value_type(dest)
    return value if old == new else text.emit(f"bitcast {old} {value} to {new}")


def widen(text: FunctionText, value: Operand, dtype: DType) -> Operand:
    """A 16-bit float as float32, exactly; any other value as it is."""
    if not is_narrow_float(dtype):
        return value
    return _float_to_float(text, value, dtype, with_lanes(dtypes.float32, dtype.count))


def arithmetic_dtype(dtype: DType) -> DType:
    """The type in which arithmetic of `dtype` is done."""
    return with_lanes(dtypes.float32, dtype.count) if is_narrow_float(dtype) else dtype


def _to_bool(text: FunctionText, value: Operand, source: DType) -> Operand:
    if source.kind == "float":
        wide = arithmetic_dtype(source)
        operand = widen(text, value, source)
        return text.emit(f"fcmp une {value_type(wide)} {operand}, {zero(wide)}")
    return text.emit(f"icmp ne {value_type(source)} {value}, {zero(source)}")


def _resize_int(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    old, new = value_type(source), value_type(dest)
    if old == new:
        return value
    if dest.bits < source.bits:
        return text.emit(f"trunc {old} {value} to {new}")
    extension = "zext" if is_unsigned(source) else "sext"
    return text.emit(f"{extension} {old} {value} to {new}")


def _float_to_float(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    lanes = dest.count
    single = with_lanes(dtypes.float32, lanes)
    if source.name == "bfloat16":
        wide = text.emit(
            f"zext {value_type(source)} {value} to {vector_of('i32', lanes)}"
        )
        shifted = text.emit(f"shl {vector_of('i32', lanes)} {wide}, {_ints(32, 16, lanes)}")
        value = text.emit(f"bitcast {vector_of('i32', lanes)} {shifted} to {value_type(single)}")
        source = single
    if source is dest:
        return value
    if is_narrow_float(dest) and source.name == "float64":
        value = _round_double_to_odd(text, value, lanes)
        source = single
    if dest.name == "bfloat16":
        if source.name == "float16":
            value = text.emit(f"fpext {value_type(source)} {value} to {value_type(single)}")
        return _single_to_bfloat16(text, value, lanes)
    operation = "fptrunc" if dest.bits < source.bits else "fpext"
    return text.emit(f"{operation} {value_type(source)} {value} to {value_type(dest)}")


def _round_double_to_odd(text: FunctionText, value: Operand, lanes: int) -> Operand:
    """float64 to float32, an inexact result made odd: rounding that again to 16 bits rounds once.

    S. Boldo, G. Melquiond, "When double rounding is odd", 2005.
    """
    double, single, bits = (vector_of(kind, lanes) for kind in ("double", "float", "i32"))
    nearest = text.emit(f"fptrunc {double} {value} to {single}")
    back = text.emit(f"fpext {single} {nearest} to {double}")
    inexact = text.emit(f"fcmp one {double} {back}, {value}")
    above = text.emit(
        f"fcmp ogt {double} {text.overloaded('fabs', double, [back])}, "
        f"{text.overloaded('fabs', double, [value])}"
    )
    pattern = text.emit(f"bitcast {single} {nearest} to {bits}")
    step = text.emit(f"sext {vector_of('i1', lanes)} {above} to {bits}")
    truncated = text.emit(f"add {bits} {pattern}, {step}")
    sticky = text.emit(f"zext {vector_of('i1', lanes)} {inexact} to {bits}")
    odd = text.emit(f"or {bits} {truncated}, {sticky}")
    return text.emit(f"bitcast {bits} {odd} to {single}")


def _single_to_bfloat16(text: FunctionText, value: Operand, lanes: int) -> Operand:
    """Round to nearest even on the bits; NaN becomes the quiet NaN of its sign."""
    single, bits = vector_of("float", lanes), vector_of("i32", lanes)
    pattern = text.emit(f"bitcast {single} {value} to {bits}")
    upper = text.emit(f"lshr {bits} {pattern}, {_ints(32, 16, lanes)}")
    lowest = text.emit(f"and {bits} {upper}, {_ints(32, 1, lanes)}")
    bias = text.emit(f"add {bits} {lowest}, {_ints(32, 0x7FFF, lanes)}")
    rounded = text.emit(f"add {bits} {pattern}, {bias}")
    shifted = text.emit(f"lshr {bits} {rounded}, {_ints(32, 16, lanes)}")
    quiet = text.emit(f"or {bits} {upper}, {_ints(32, 0x7FC0, lanes)}")
    nan = text.emit(f"fcmp uno {single} {value}, {value}")
    chosen = text.emit(
        f"select {vector_of('i1', lanes)} {nan}, {bits} {quiet}, {bits} {shifted}"
    )
    return text.emit(f"trunc {bits} {chosen} to {vector_of('i16', lanes)}")


def _int_to_float(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    operation = "uitofp" if is_unsigned(source) else "sitofp"
    if not is_narrow_float(dest):
        return text.emit(f"{operation} {value_type(source)} {value} to {value_type(dest)}")
    # Through float64, which holds every int that float16 does not round to infinity, and every one
    # for bfloat16 once the low bits of a 64-bit one are folded into a sticky bit.
    if source.bits == 64 and dest.name == "bfloat16":
        value = _fold_low_bits(text, value, source)
    double = with_lanes(dtypes.float64, dest.count)
    exact = text.emit(f"{operation} {value_type(source)} {value} to {value_type(double)}")
    return _float_to_float(text, exact, double, dest)


def _fold_low_bits(text: FunctionText, value: Operand, source: DType) -> Operand:
    """A 64-bit int that rounds to bfloat16 as `value` does and that float64 holds exactly."""
    lanes = source.count
    kind = value_type(source)
    mask = vector_of("i1", lanes)
    low = text.emit(f"and {kind} {value}, {_ints(64, 0xFFFF, lanes)}")
    sticky = text.emit(f"icmp ne {kind} {low}, {zero(source)}")
    high = text.emit(f"xor {kind} {value}, {low}")
    marked = text.emit(f"or {kind} {high}, {_ints(64, 0x8000, lanes)}")
    folded = text.emit(f"select {mask} {sticky}, {kind} {marked}, {kind} {high}")
    magnitude = value
    if not is_unsigned(source):
        name = f"llvm.abs.{'v' + str(lanes) if lanes > 1 else ''}i64"
        magnitude = text.call(name, kind, [(kind, value), ("i1", "false")])
    large = text.emit(f"icmp ugt {kind} {magnitude}, {_ints(64, 1 << 40, lanes)}")
    return text.emit(f"select {mask} {large}, {kind} {folded}, {kind} {value}")


def _float_to_int(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    lanes = dest.count
    value = widen(text, value, source)
    source = arithmetic_dtype(source)
    through = dest if dest.bits >= 32 else with_lanes(dtypes.int32, lanes)
    whole = _saturate(text, value, source, through)
    return _resize_int(text, whole, through, dest)


def _saturate(text: FunctionText, value: Operand, source: DType, dest: DType) -> Operand:
    """Float to a 32- or 64-bit int. LLVM's own saturating conversion is scalar code for vectors."""
    floats, ints = value_type(source), value_type(dest)
    mask = vector_of("i1", dest.count)
    low, high = int(dtypes.min(dest.scalar())), int(dtypes.max(dest.scalar()))
    # -2^31 - 1 is no float32, so the signed limit is tested as "not below low", which is exact in
    # all types
    too_low = text.emit(f"fcmp olt {floats} {value}, {literal(source, float(low))}")
    too_high = text.emit(f"fcmp oge {floats} {value}, {literal(source, float(high + 1))}")
    above_low = text.emit(f"fcmp oge {floats} {value}, {literal(source, float(low))}")
    below_high = text.emit(f"fcmp olt {floats} {value}, {literal(source, float(high + 1))}")
    inside = text.emit(f"and {mask} {above_low}, {below_high}")
    safe = text.emit(f"select {mask} {inside}, {floats} {value}, {floats} {zero(source)}")
    operation = "fptoui" if is_unsigned(dest) else "fptosi"
    whole = text.emit(f"{operation} {floats} {safe} to {ints}")
    whole = text.emit(
        f"select {mask} {too_high}, {ints} {literal(dest, high)}, {ints} {whole}"
    )
    if low == 0:
        return whole  # below range `safe` was 0 already
    return text.emit(f"select {mask} {too_low}, {ints} {literal(dest, low)}, {ints} {whole}")


def _ints(bits: int, value: int, lanes: int) -> str:
    """The constant `value` in all lanes of an int type."""
    dtype = dtypes.int32 if bits == 32 else dtypes.int64
    return literal(with_lanes(dtype, lanes), value)
