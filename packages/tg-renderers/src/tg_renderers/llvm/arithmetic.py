"""The elementwise ops, as LLVM instructions that neither trap nor assume anything of operands.

No fast-math flag is ever used. What each op means for NaN, signed zero, wrapping and division by
zero stands in docs/explanation/ir.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

from tg_renderers.llvm.casts import arithmetic_dtype, cast, widen
from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.types import (
    is_narrow_float,
    is_unsigned,
    literal,
    value_type,
    with_lanes,
    zero,
)

NATIVE_OPS = frozenset(
    {
        Ops.ADD,
        Ops.SUB,
        Ops.MUL,
        Ops.FDIV,
        Ops.RECIPROCAL,
        Ops.SQRT,
        Ops.TRUNC,
        Ops.NEG,
        Ops.MAX,
        Ops.CMPLT,
        Ops.CMPNE,
        Ops.CMPEQ,
        Ops.AND,
        Ops.OR,
        Ops.XOR,
        Ops.SHL,
        Ops.SHR,
        Ops.WHERE,
        Ops.MULACC,
        Ops.CDIV,
        Ops.CMOD,
        Ops.CAST,
        Ops.BITCAST,
    }
)
"""The elementwise ops that this renderer takes."""

_FLOAT_INSTRUCTIONS = {
    Ops.ADD: "fadd",
    Ops.SUB: "fsub",
    Ops.MUL: "fmul",
    Ops.FDIV: "fdiv",
}
_INT_INSTRUCTIONS = {
    Ops.ADD: "add",
    Ops.SUB: "sub",
    Ops.MUL: "mul",
    Ops.AND: "and",
    Ops.OR: "or",
    Ops.XOR: "xor",
}
# A bool saturates: true + true is true. MAX is OR, MUL is AND.
_BOOL_INSTRUCTIONS = {
    Ops.ADD: "or",
    Ops.MAX: "or",
    Ops.OR: "or",
    Ops.MUL: "and",
    Ops.AND: "and",
    Ops.XOR: "xor",
    Ops.SUB: "xor",
}
_COMPARISONS = {
    Ops.CMPLT: ("olt", "slt", "ult"),
    Ops.CMPEQ: ("oeq", "eq", "eq"),
    Ops.CMPNE: ("une", "ne", "ne"),
}


def render_alu(text: FunctionText, node: UOp, values: Sequence[Operand]) -> Operand | None:
    """The value of an ALU node from those of its sources; None: not native for the dtype.

    Args:
        text: the function under construction.
        node: an elementwise node other than CAST and BITCAST.
        values: one operand a source.
    """
    if node.op in _COMPARISONS:
        return _compare(text, node, values)
    if node.op is Ops.WHERE:
        return _where(text, node, values)
    if node.op in (Ops.SHL, Ops.SHR):
        return _shift(text, node, values)
    if node.op in (Ops.CDIV, Ops.CMOD):
        return _divide(text, node, values)
    return apply(text, node.op, node.dtype, values)


def apply(
    text: FunctionText, op: Ops, dtype: DType, values: Sequence[Operand]
) -> Operand | None:
    """`op` on operands that all have the type of the result; None: not native for that type."""
    if dtype.kind == "bool":
        if op is Ops.NEG:
            return values[0]
        instruction = _BOOL_INSTRUCTIONS.get(op)
        return None if instruction is None else _binary(text, instruction, dtype, values)
    if dtype.kind == "float":
        return _float_op(text, op, dtype, values)
    return _int_op(text, op, dtype, values)


def reduce_lanes(text: FunctionText, op: Ops, dtype: DType, value: Operand) -> Operand | None:
    """All lanes of `value`, a vector of type `dtype`, joined by `op`; the vector is halved."""
    narrow = is_narrow_float(dtype)
    value = widen(text, value, dtype)
    current = arithmetic_dtype(dtype)
    while current.count > 1:
        half = with_lanes(current, current.count // 2)
        parts = [_slice(text, value, current, 0, half.count)]
        parts.append(_slice(text, value, current, half.count, half.count))
        joined = apply(text, op, half, parts)
        if joined is None:
            return None
        if current.count % 2:
            last = _lane(text, value, current, current.count - 1)
            joined = _fold_into_first(text, op, half, joined, last)
        value, current = joined, half
    return cast(text, value, current, dtype.scalar()) if narrow else value


def _binary(
    text: FunctionText, instruction: str, dtype: DType, values: Sequence[Operand]
) -> Operand:
    return text.emit(f"{instruction} {value_type(dtype)} {values[0]}, {values[1]}")


def _float_op(
    text: FunctionText, op: Ops, dtype: DType, values: Sequence[Operand]
) -> Operand | None:
    if is_narrow_float(dtype):
        return _narrow_float_op(text, op, dtype, values)
    kind = value_type(dtype)
    if op in _FLOAT_INSTRUCTIONS:
        return _binary(text, _FLOAT_INSTRUCTIONS[op], dtype, values)
    match op:
        case Ops.NEG:
            return text.emit(f"fneg {kind} {values[0]}")
        case Ops.RECIPROCAL:
            return text.emit(f"fdiv {kind} {literal(dtype, 1.0)}, {values[0]}")
        case Ops.SQRT:
            return text.overloaded("sqrt", kind, values)
        case Ops.TRUNC:
            return text.overloaded("trunc", kind, values)
        case Ops.MAX:
            # NaN if either is, +0 above -0; good code for vectors of every x86 (checked by a test)
            return text.overloaded("maximum", kind, values)
        case Ops.MULACC:
            return text.overloaded("fma", kind, values)
        case _:
            return None


def _narrow_float_op(
    text: FunctionText, op: Ops, dtype: DType, values: Sequence[Operand]
) -> Operand | None:
    """Compute in float32 and round. For one + - * / or sqrt the second rounding is innocuous.

    S. A. Figueroa, "When is double rounding innocuous?", 1995. MULACC needs float64 for that.
    """
    name = "float64" if op is Ops.MULACC else "float32"
    wide = with_lanes(dtypes.from_name(name), dtype.count)
    operands = [cast(text, value, dtype, wide) for value in values]
    result = _float_op(text, op, wide, operands)
    return None if result is None else cast(text, result, wide, dtype)


def _int_op(
    text: FunctionText, op: Ops, dtype: DType, values: Sequence[Operand]
) -> Operand | None:
    kind = value_type(dtype)
    if op in _INT_INSTRUCTIONS:
        return _binary(text, _INT_INSTRUCTIONS[op], dtype, values)
    match op:
        case Ops.NEG:
            return text.emit(f"sub {kind} {zero(dtype)}, {values[0]}")
        case Ops.TRUNC:
            return values[0]
        case Ops.MAX:
            return text.overloaded("umax" if is_unsigned(dtype) else "smax", kind, values)
        case Ops.MULACC:
            product = _binary(text, "mul", dtype, values)
            return _binary(text, "add", dtype, (product, values[2]))
        case _:
            return None


def _compare(text: FunctionText, node: UOp, values: Sequence[Operand]) -> Operand:
    for_float, signed, unsigned = _COMPARISONS[node.op]
    dtype = node.src[0].dtype
    if dtype.kind == "float":
        kind = value_type(arithmetic_dtype(dtype))
        left, right = (widen(text, value, dtype) for value in values)
        return text.emit(f"fcmp {for_float} {kind} {left}, {right}")
    predicate = unsigned if is_unsigned(dtype) else signed
    return text.emit(f"icmp {predicate} {value_type(dtype)} {values[0]}, {values[1]}")


def _where(text: FunctionText, node: UOp, values: Sequence[Operand]) -> Operand:
    kind = value_type(node.dtype)
    condition = value_type(node.src[0].dtype)
    return text.emit(f"select {condition} {values[0]}, {kind} {values[1]}, {kind} {values[2]}")


def _shift(text: FunctionText, node: UOp, values: Sequence[Operand]) -> Operand:
    """Shifts by the width or more give 0, arithmetic ones the sign; LLVM's would be poison."""
    dtype = node.dtype
    kind = value_type(dtype)
    width = dtype.bits
    signed_right = node.op is Ops.SHR and not is_unsigned(dtype)
    instruction = "shl" if node.op is Ops.SHL else "ashr" if signed_right else "lshr"
    amount = constant_value(node.src[1])
    if amount is not None and 0 <= amount < width:
        return _binary(text, instruction, dtype, values)
    if amount is not None and not signed_right:
        return zero(dtype)
    # as unsigned, so that a negative amount counts as a large one
    limit = literal(dtype, width - 1)
    clamped = text.overloaded("umin", kind, [values[1], limit])
    shifted = _binary(text, instruction, dtype, (values[0], clamped))
    if signed_right:
        return shifted
    mask = value_type(with_lanes(dtypes.bool, dtype.count))
    too_far = text.emit(f"icmp ugt {kind} {values[1]}, {limit}")
    return text.emit(f"select {mask} {too_far}, {kind} {zero(dtype)}, {kind} {shifted}")


def _divide(text: FunctionText, node: UOp, values: Sequence[Operand]) -> Operand:
    """CDIV and CMOD: x / 0 and x % 0 are 0, INT_MIN / -1 wraps. The machine would trap on both."""
    dtype = node.dtype
    prefix = "u" if is_unsigned(dtype) else "s"
    instruction = f"{prefix}{'div' if node.op is Ops.CDIV else 'rem'}"
    divisor = constant_value(node.src[1])
    if divisor is not None and divisor not in (0, -1):
        return _binary(text, instruction, dtype, values)
    kind, mask = value_type(dtype), value_type(with_lanes(dtypes.bool, dtype.count))
    one = literal(dtype, 1)
    is_zero = text.emit(f"icmp eq {kind} {values[1]}, {zero(dtype)}")
    if prefix == "u":
        safe = text.emit(f"select {mask} {is_zero}, {kind} {one}, {kind} {values[1]}")
    else:
        is_minus_one = text.emit(f"icmp eq {kind} {values[1]}, {literal(dtype, -1)}")
        special = text.emit(f"or {mask} {is_zero}, {is_minus_one}")
        safe = text.emit(f"select {mask} {special}, {kind} {one}, {kind} {values[1]}")
    result = _binary(text, instruction, dtype, (values[0], safe))
    if node.op is Ops.CMOD:
        return result  # x % 1 is 0, which is right for both special divisors
    if prefix == "s":
        negated = text.emit(f"sub {kind} {zero(dtype)}, {values[0]}")
        result = text.emit(f"select {mask} {is_minus_one}, {kind} {negated}, {kind} {result}")
    return text.emit(f"select {mask} {is_zero}, {kind} {zero(dtype)}, {kind} {result}")


def constant_value(node: UOp) -> int | None:
    """The integer that `node` is in every lane; None where that is not known."""
    if node.op is Ops.BROADCAST:
        node = node.src[0]
    return int(node.arg) if node.op is Ops.CONST else None


def _slice(text: FunctionText, value: Operand, dtype: DType, start: int, count: int) -> Operand:
    """`count` lanes from `start`; a scalar where `count` is 1."""
    if count == 1:
        return _lane(text, value, dtype, start)
    kind = value_type(dtype)
    lanes = ", ".join(f"i32 {start + lane}" for lane in range(count))
    return text.emit(f"shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{lanes}>")


def _lane(text: FunctionText, value: Operand, dtype: DType, lane: int) -> Operand:
    return text.emit(f"extractelement {value_type(dtype)} {value}, i64 {lane}")


def _fold_into_first(
    text: FunctionText, op: Ops, dtype: DType, value: Operand, extra: Operand
) -> Operand:
    """`value` with its first lane joined with `extra`, the odd lane out of a halving."""
    scalar = dtype.scalar()
    first = value if dtype.count == 1 else _lane(text, value, dtype, 0)
    joined = apply(text, op, scalar, (first, extra)) or first
    if dtype.count == 1:
        return joined
    return text.emit(
        f"insertelement {value_type(dtype)} {value}, {value_type(scalar)} {joined}, i64 0"
    )


