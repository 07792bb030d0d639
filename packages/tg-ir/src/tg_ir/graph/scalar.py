"""`alu`: what each elementwise op computes for one scalar, in folding and in the evaluator.

Ints wrap at their width, floats are rounded once to their dtype, division by zero of ints gives 0
(docs/reference/semantics.md, promises 7 to 10). Values are Python bools, ints and floats exact in
their dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tg_ir.dtype import DType, bitcast_scalar, cast_scalar, wrap_int
from tg_ir.errors import DTypeError
from tg_ir.graph.ops import ConstType, GroupOp, Ops

_UINT32 = 0xFFFFFFFF
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def alu(
    op: Ops, dtype: DType, values: Sequence[ConstType], src_dtype: DType | None = None
) -> ConstType:
    """The value of `op` for the operands `values`.

    Args:
        op: an elementwise op (`GroupOp.Elementwise`).
        dtype: of the result; lanes do not matter.
        values: one a source, exact in the dtypes of the sources.
        src_dtype: of the (first) source; needed by BITCAST only.

    Raises:
        DTypeError: `op` is not defined on this dtype.
    """
    if op in GroupOp.Comparison:
        return _COMPARE[op](values[0], values[1])
    if op is Ops.WHERE:
        return values[1] if values[0] else values[2]
    if op is Ops.CAST:
        return cast_scalar(values[0], dtype)
    if op is Ops.BITCAST:
        return bitcast_scalar(values[0], src_dtype or dtype, dtype)
    if dtype.kind == "float":
        return _float_alu(op, dtype, [float(value) for value in values])
    function = _INT.get(op)
    if function is None:
        raise DTypeError(f"{op.name} is not defined on {dtype.scalar().name}; cast to a float")
    if op in {Ops.SHL, Ops.SHR}:
        width = None if dtype.kind == "index" else dtype.bits
        result = _shift(op, int(values[0]), int(values[1]), width)
    else:
        result = function(*[int(value) for value in values])
    return bool(result) if dtype.kind == "bool" else wrap_int(result, dtype)


# ---- integers


def _shift(op: Ops, value: int, amount: int, width: int | None) -> int:
    """By the width or more (a negative amount counts as that): 0, or the sign for SHR."""
    too_far = amount < 0 or (width is not None and amount >= width)
    if too_far:
        return -1 if op is Ops.SHR and value < 0 else 0
    return value << amount if op is Ops.SHL else value >> amount


def threefry(counter: int, key: int) -> int:
    """Threefry-2x32, 20 rounds (Salmon et al., SC 2011); numbers are two words, low word first."""
    keys = [key & _UINT32, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ _THREEFRY_PARITY)
    x = ((counter & _UINT32) + keys[0]) & _UINT32
    y = ((counter >> 32) + keys[1]) & _UINT32
    for group in range(5):
        for rotation in _THREEFRY_ROTATIONS[group % 2]:
            x = (x + y) & _UINT32
            y = ((y << rotation | y >> (32 - rotation)) & _UINT32) ^ x
        x = (x + keys[(group + 1) % 3]) & _UINT32
        y = (y + keys[(group + 2) % 3] + group + 1) & _UINT32
    return y << 32 | x


def truncating_division(x: int, y: int) -> int:
    """C's quotient; 0 where `y` is 0."""
    if y == 0:
        return 0
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def truncating_remainder(x: int, y: int) -> int:
    """C's remainder; 0 where `y` is 0."""
    return 0 if y == 0 else x - y * truncating_division(x, y)


def _floor_division(x: int, y: int) -> int:
    return x // y if y else 0


def _floor_remainder(x: int, y: int) -> int:
    return x % y if y else 0


_INT: dict[Ops, Callable[..., int]] = {
    Ops.NEG: lambda x: -x,
    Ops.TRUNC: lambda x: x,
    Ops.ADD: lambda x, y: x + y,
    Ops.SUB: lambda x, y: x - y,
    Ops.MUL: lambda x, y: x * y,
    Ops.MULACC: lambda x, y, z: x * y + z,
    Ops.FLOORDIV: _floor_division,
    Ops.FLOORMOD: _floor_remainder,
    Ops.CDIV: truncating_division,
    Ops.CMOD: truncating_remainder,
    Ops.MAX: max,
    Ops.AND: lambda x, y: x & y,
    Ops.OR: lambda x, y: x | y,
    Ops.XOR: lambda x, y: x ^ y,
    Ops.SHL: _shift,
    Ops.SHR: _shift,
    Ops.THREEFRY: threefry,
}

_COMPARE: dict[Ops, Callable[[ConstType, ConstType], bool]] = {
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPNE: lambda x, y: x != y,
    Ops.CMPEQ: lambda x, y: x == y,
}


# ---- floats


def _float_alu(op: Ops, dtype: DType, values: Sequence[float]) -> float:
    """In double, then rounded.

    With 53 bits, at least twice those of float32 plus two, the second rounding of a sum, product,
    quotient or square root changes nothing (Figueroa, 1995); MULACC is computed exactly instead.
    """
    if op is Ops.MULACC:
        return fused_multiply_add(values[0], values[1], values[2], dtype)
    function = _FLOAT.get(op)
    if function is None:
        raise DTypeError(f"{op.name} is not defined on {dtype.scalar().name}; cast to an int")
    result = function(*values)
    return result if dtype.bits == 64 else float(cast_scalar(result, dtype))


def fused_multiply_add(x: float, y: float, z: float, dtype: DType) -> float:
    """`x * y + z`, rounded once to the float `dtype`."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        # the sign of a zero is that of the plain sum; a full cancellation gives +0
        return x * y + z if x == 0.0 or y == 0.0 else 0.0
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if nearest == 0.0:
        nearest = math.copysign(nearest, exact.numerator)
    if dtype.bits == 64 or Fraction(nearest) == exact:
        return float(cast_scalar(nearest, dtype))
    return float(cast_scalar(_odd_neighbour(nearest, exact), dtype))


def _odd_neighbour(nearest: float, exact: Fraction) -> float:
    """Of the two doubles around `exact` the one with an odd last bit: it can be rounded again."""
    if int(math.ldexp(math.frexp(nearest)[0], 53)) & 1:
        return nearest
    toward = math.inf if exact > Fraction(nearest) else -math.inf
    return math.nextafter(nearest, toward)


def _maximum(x: float, y: float) -> float:
    if x != x or y != y:
        return math.nan
    if x == y:
        # +0 is above -0
        return x if math.copysign(1.0, x) > 0.0 else y
    return max(x, y)


def _divide(x: float, y: float) -> float:
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def _log2(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.nan if x < 0.0 else math.log2(x)


def _truncate(x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


_FLOAT: dict[Ops, Callable[..., float]] = {
    Ops.NEG: lambda x: -x,
    Ops.ADD: lambda x, y: x + y,
    Ops.SUB: lambda x, y: x - y,
    Ops.MUL: lambda x, y: x * y,
    Ops.FDIV: _divide,
    Ops.RECIPROCAL: lambda x: _divide(1.0, x),
    Ops.MAX: _maximum,
    Ops.SQRT: lambda x: math.nan if x < 0.0 else math.sqrt(x),
    Ops.TRUNC: _truncate,
    Ops.EXP2: _exp2,
    Ops.LOG2: _log2,
    Ops.SIN: lambda x: math.nan if math.isinf(x) else math.sin(x),
}
