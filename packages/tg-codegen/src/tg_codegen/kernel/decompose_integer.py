"""Division with the sign rules of Python, and the small arithmetic ops, in terms of others.

CDIV and CMOD are safe wherever a target has them (0 for a divisor of 0, INT_MIN / -1 wraps), so
what is made of them here is safe too.
"""

from __future__ import annotations

import math

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp
from tg_ir.graph.render_api import TargetCapabilities


def constant_value(node: UOp) -> int | float | None:
    """The number that `node` is in every lane; None where that is not known."""
    if node.op is Ops.BROADCAST:
        node = node.src[0]
    if node.op is not Ops.CONST:
        return None
    value: int | float = node.arg
    return value


def _power_of_two(divisor: UOp) -> int | None:
    """The k for which the divisor is the constant 2**k."""
    value = constant_value(divisor)
    if not isinstance(value, int) or value <= 0 or value & (value - 1):
        return None
    return value.bit_length() - 1


def _same_as_truncating(x: UOp, y: UOp) -> bool:
    """Whether both kinds of division agree: neither operand is negative."""
    return bool(x.vmin >= 0 and y.vmin >= 0)


def floor_division(node: UOp) -> UOp | None:
    """Rewrites x // y -> a shift, a CDIV, or a CDIV put right where the signs differ."""
    x, y = node.src
    shift = _power_of_two(y)
    if shift is not None:
        # an arithmetic shift rounds down whatever the sign
        return x.alu(Ops.SHR, x.const_like(shift)) if shift else x
    quotient = x.alu(Ops.CDIV, y)
    if _same_as_truncating(x, y):
        return quotient
    if y.vmin > 0:
        below = (x - quotient * y) < x.const_like(0)
        return below.where(quotient - quotient.const_like(1), quotient)
    below = _rounds_up(x.alu(Ops.CMOD, y), y)
    return below.where(quotient - quotient.const_like(1), quotient)


def floor_remainder(node: UOp) -> UOp | None:
    """Rewrites x % y -> a mask, a CMOD, or a CMOD put right where the signs differ."""
    x, y = node.src
    shift = _power_of_two(y)
    if shift is not None:
        return x & x.const_like((1 << shift) - 1)
    remainder = x.alu(Ops.CMOD, y)
    if _same_as_truncating(x, y):
        return remainder
    below = remainder < x.const_like(0) if y.vmin > 0 else _rounds_up(remainder, y)
    return below.where(remainder + y, remainder)


def _rounds_up(remainder: UOp, divisor: UOp) -> UOp:
    """Whether truncation went up: the remainder is not 0 and its sign is not the divisor's."""
    zero = remainder.const_like(0)
    return remainder.ne(zero) & ((remainder ^ divisor) < zero)


def truncating_remainder(node: UOp) -> UOp | None:
    """Rewrites cmod(x, y) -> x - cdiv(x, y) * y, and 0 for a divisor of 0."""
    x, y = node.src
    remainder = x - x.alu(Ops.CDIV, y) * y
    if y.vmin > 0 or y.vmax < 0:
        return remainder
    return y.ne(y.const_like(0)).where(remainder, x.const_like(0))


def reciprocal(node: UOp) -> UOp | None:
    """Rewrites 1 / x -> fdiv(1, x)."""
    return node.const_like(1.0).alu(Ops.FDIV, node.src[0])


def divide_exactly_by_reciprocal(node: UOp) -> UOp | None:
    """Rewrites x / 2**k -> x * 2**-k. Other divisions would round twice and are left."""
    value = constant_value(node.src[1])
    if value is None or value == 0 or not math.isfinite(value):
        return None
    if abs(math.frexp(value)[0]) != 0.5:
        return None
    layout = dtypes.finfo(node.dtype)
    if not layout.smallest_normal <= abs(1.0 / value) <= layout.largest:
        return None
    return node.src[0] * node.const_like(1.0 / value)


def negative(node: UOp) -> UOp | None:
    """Rewrites -x -> x * -1; 0 - x would lose the sign of zero."""
    return node.src[0].alu(Ops.MUL, node.const_like(-1))


def subtraction(node: UOp) -> UOp | None:
    """Rewrites x - y -> x + -y."""
    return node.src[0].alu(Ops.ADD, node.src[1].alu(Ops.NEG))


def compare_equal(node: UOp) -> UOp | None:
    """Rewrites x == y -> not x != y, for NaN too."""
    return node.src[0].ne(node.src[1]).logical_not()


def maximum(node: UOp) -> UOp | None:
    """Rewrites max(x, y) of ints -> where(x < y, y, x); floats have no other way."""
    x, y = node.src
    return None if dtypes.is_float(node.dtype) else (x < y).where(y, x)


def multiply_add(ctx: TargetCapabilities, node: UOp) -> UOp | None:
    """Rewrites x*y + z in two ops.

    Exact for ints; on floats only reductions ask for MULACC, and they may round twice.
    """
    x, y, z = node.src
    return x.alu(Ops.MUL, y).alu(Ops.ADD, z)
