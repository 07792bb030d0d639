"""Python expressions that compute one ALU op on scalars, for the evaluator's source.

`tg_ir.graph.scalar.alu` is what an op means. Ops that Python computes exactly the same way are
written inline, because a call costs ten times as much; a property test compares every one with
`alu`.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from tg_ir.dtype import DType, cast_scalar, dtypes
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.scalar import alu

Scalar = bool | int | float


@dataclass(frozen=True, slots=True)
class Expression:
    """A Python expression over the operands `{0}`, `{1}`, `{2}`, each a plain name.

    text: the expression.
    through_float32: its value must still be rounded by a trip through an `array('f')`.
    """

    text: str
    through_float32: bool = False

    def of(self, *operands: str) -> str:
        """The expression over these names."""
        return self.text.format(*operands)


def _as_float32(value: float) -> float:
    return array("f", [value])[0]


def _as_float16(value: float) -> float:
    try:
        rounded: float = _HALF.unpack(_HALF.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


_HALF = struct.Struct("<e")


def _as_bfloat16(value: float) -> float:
    return float(cast_scalar(value, dtypes.bfloat16))


def may_be_tie(lost: float) -> bool:
    """Whether a double, rounded to float32 by losing `lost`, may have been rounded wrongly.

    The double was rounded itself. That does no harm unless it lies half way between two float32
    numbers; what is lost is then a power of two. An infinity or NaN is looked at too.
    """
    mantissa = math.frexp(lost)[0]
    return mantissa == 0.5 or mantissa == -0.5 or lost - lost != 0.0


def fused_float32(a: float, b: float, c: float) -> float:
    """a*b + c of float32 values, rounded once.

    The product is exact in a double, and the sum nearly always good enough.
    """
    total = a * b + c
    rounded = array("f", (total,))[0]
    lost = total - rounded
    if lost != 0.0 and may_be_tie(lost):
        return float(alu(Ops.MULACC, dtypes.float32, (a, b, c)))
    return rounded


def fused_float32_lanes(
    left: Sequence[float], right: Sequence[float], added: Sequence[float]
) -> tuple[float, ...]:
    """`fused_float32` of each lane."""
    totals = [a * b + c for a, b, c in zip(left, right, added)]  # noqa: B905 - lanes agree
    rounded = array("f", totals)
    # bits of the doubles that a float32 in the normal range does not have
    lost_bits = [b & 0x1FFFFFFF for b in memoryview(array("d", totals)).cast("B").cast("Q")]
    if 0x10000000 not in lost_bits and min(map(abs, totals)) >= _SMALLEST_NORMAL:
        return tuple(rounded)
    for lane, (total, value) in enumerate(zip(totals, rounded)):  # noqa: B905 - made above
        if total != value and may_be_tie(total - value):
            operands = (left[lane], right[lane], added[lane])
            rounded[lane] = float(alu(Ops.MULACC, dtypes.float32, operands))
    return tuple(rounded)


_SMALLEST_NORMAL = 2.0**-126


# What generated source may name, besides one function for each op that is not inline.
FUNCTIONS: dict[str, Any] = {
    "array": array,
    "as_float32": _as_float32,
    "as_float16": _as_float16,
    "as_bfloat16": _as_bfloat16,
    "fused_float32": fused_float32,
    "fused_float32_lanes": fused_float32_lanes,
    "reduce": reduce,
    "sqrt": math.sqrt,
    "inf": math.inf,
    "nan": math.nan,
}


def literal(value: Scalar) -> str:
    """A Python number as source, in terms of `FUNCTIONS`."""
    return f"({value!r})" if value < 0 or str(value) == "-0.0" else repr(value)


def zero_of(dtype: DType) -> Scalar:
    """The zero of a dtype, of one lane."""
    if dtypes.is_bool(dtype):
        return False
    return 0.0 if dtypes.is_float(dtype) else 0


def alu_function(op: Ops, dtype: DType, src_dtype: DType) -> Callable[..., Scalar]:
    """`alu` for one op and one choice of scalar dtypes, as a function of the operands."""

    def run(*values: Scalar) -> Scalar:
        return alu(op, dtype, values, src_dtype)

    return run


def _call_of_alu(op: Ops, dtype: DType, src_dtype: DType, count: int) -> Expression:
    name = f"{op.name.lower()}_{dtype.name}_{src_dtype.name}"
    if name not in FUNCTIONS:
        FUNCTIONS[name] = alu_function(op, dtype, src_dtype)
    return Expression(f"{name}({', '.join(f'{{{k}}}' for k in range(count))})")


def joining_function(op: Ops, dtype: DType) -> str:
    """The name, in generated source, of a function that joins two scalars of `dtype` by `op`."""
    name = f"join_{op.name.lower()}_{dtype.name}"
    if name not in FUNCTIONS:
        expression = scalar_expression(op, dtype, dtype)
        text = expression.of("a", "b")
        rounded = f"as_float32({text})" if expression.through_float32 else text
        FUNCTIONS[name] = eval(f"lambda a, b: {rounded}", dict(FUNCTIONS))
    return name


_COMPARISONS = {Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "=="}
_ARITHMETIC = {Ops.ADD: "{0} + {1}", Ops.SUB: "{0} - {1}", Ops.MUL: "{0} * {1}"}
_BITWISE = {Ops.AND: "{0} & {1}", Ops.OR: "{0} | {1}", Ops.XOR: "{0} ^ {1}"}


@cache
def scalar_expression(op: Ops, dtype: DType, src_dtype: DType) -> Expression:
    """How to compute `op` with a result of `dtype` from operands of `src_dtype` (both scalar).

    For WHERE, `src_dtype` is that of the values.
    """
    found = _inline(op, dtype, src_dtype)
    if found is not None:
        return found
    return _call_of_alu(op, dtype, src_dtype, _operand_count(op))


def _operand_count(op: Ops) -> int:
    if op in GroupOp.Ternary:
        return 3
    return 2 if op in GroupOp.Binary else 1


def _inline(op: Ops, dtype: DType, src_dtype: DType) -> Expression | None:
    if op in _COMPARISONS:
        return Expression(f"{{0}} {_COMPARISONS[op]} {{1}}")
    if op is Ops.WHERE:
        return Expression("{1} if {0} else {2}")
    if op is Ops.CAST:
        return _cast(dtype, src_dtype)
    if op is Ops.BITCAST:
        return None
    if dtypes.is_float(dtype):
        return _float(op, dtype)
    if dtypes.is_bool(dtype):
        return Expression(_BITWISE[op]) if op in _BITWISE else None
    return _integer(op, dtype)


def _float(op: Ops, dtype: DType) -> Expression | None:
    if op is Ops.NEG:
        return Expression("-{0}")
    slow = f"{op.name.lower()}_{dtype.name}_{dtype.name}"
    if op is Ops.MAX:
        _call_of_alu(op, dtype, dtype, 2)
        text = "{0} if {0} > {1} else {1} if {1} > {0} else " + slow + "({0}, {1})"
        return Expression(text)
    if op is Ops.MULACC and dtype is dtypes.float32:
        return Expression("fused_float32({0}, {1}, {2})")
    text = _ARITHMETIC.get(op, "")
    if op in (Ops.FDIV, Ops.RECIPROCAL, Ops.SQRT):
        # the conditions keep away the arguments for which Python raises
        _call_of_alu(op, dtype, dtype, _operand_count(op))
        text = {
            Ops.FDIV: "{0} / {1} if {1} else " + slow + "({0}, {1})",
            Ops.RECIPROCAL: "1.0 / {0} if {0} else " + slow + "({0})",
            Ops.SQRT: "sqrt({0}) if {0} >= 0.0 else " + slow + "({0})",
        }[op]
    return _rounded(text, dtype) if text else None


def _rounded(text: str, dtype: DType) -> Expression:
    """A double rounded to `dtype`: harmless, as it has over twice the digits."""
    match dtype.name:
        case "float64":
            return Expression(text)
        case "float32":
            return Expression(text, through_float32=True)
        case _:
            return Expression(f"as_{dtype.name}({text})")


def _wrapped(text: str, dtype: DType) -> Expression:
    """An int as two's complement at the width of `dtype`."""
    if dtype is dtypes.index:
        return Expression(text)
    mask = (1 << dtype.bits) - 1
    if dtypes.is_unsigned(dtype):
        return Expression(f"({text}) & {mask}")
    half = 1 << (dtype.bits - 1)
    return Expression(f"(({text}) + {half} & {mask}) - {half}")


def _integer(op: Ops, dtype: DType) -> Expression | None:
    if op in _ARITHMETIC:
        return _wrapped(_ARITHMETIC[op], dtype)
    if op in _BITWISE:
        return Expression(_BITWISE[op])
    match op:
        case Ops.NEG:
            return _wrapped("-{0}", dtype)
        case Ops.MULACC:
            return _wrapped("{0} * {1} + {2}", dtype)
        case Ops.MAX:
            return Expression("{0} if {0} > {1} else {1}")
        case Ops.FLOORDIV:
            return _wrapped("{0} // {1} if {1} else 0", dtype)
        case Ops.FLOORMOD:
            return Expression("{0} % {1} if {1} else 0")
        case Ops.CDIV if dtypes.is_unsigned(dtype):
            return Expression("{0} // {1} if {1} else 0")
        case Ops.CMOD if dtypes.is_unsigned(dtype):
            return Expression("{0} % {1} if {1} else 0")
        case _:
            return None


def _cast(dtype: DType, src_dtype: DType) -> Expression | None:
    if dtype is src_dtype:
        return Expression("{0}")
    if dtypes.is_bool(dtype):
        return Expression("{0} != 0")
    if dtypes.is_float(dtype):
        if dtypes.is_float(src_dtype):
            return _rounded("{0}", dtype)
        # every int of 32 bits is a double; wider ones must not be rounded twice
        return _rounded("float({0})", dtype) if 0 < src_dtype.bits <= 32 else None
    if dtypes.is_float(src_dtype):
        return None
    if dtypes.is_bool(src_dtype):
        return Expression("int({0})")
    return _wrapped("{0}", dtype)
