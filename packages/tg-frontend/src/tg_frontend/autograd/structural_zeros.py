"""Gradients that are zero by structure: `where(mask, value, 0)`, kept in this form as they move on.

What is multiplied to such a gradient is multiplied under the mask. So a derivative that is
infinite or NaN only in the branch that was not taken cannot leak out of it (SEMANTICS 4), which a
product with 0 would let it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tg_ir.graph import Ops, UOp


class Masked(NamedTuple):
    """A gradient that is `value` where `mask` is `taken`, elsewhere zero."""

    mask: UOp
    value: UOp
    taken: bool

    def rebuilt(self, mask: UOp, value: UOp) -> UOp:
        """The node of the same form with other parts."""
        zero = value.const_like(0)
        return mask.where(value, zero) if self.taken else mask.where(zero, value)


def split_mask(gradient: UOp) -> Masked | None:
    """The parts of a gradient that is zero by structure."""
    if gradient.op is not Ops.WHERE:
        return None
    mask, yes, no = gradient.src
    if is_zero_constant(no):
        return Masked(mask, yes, True)
    return Masked(mask, no, False) if is_zero_constant(yes) else None


def is_zero_constant(uop: UOp) -> bool:
    """Whether every element is the constant 0."""
    while uop.op in (Ops.RESHAPE, Ops.EXPAND):
        uop = uop.src[0]
    return uop.op is Ops.CONST and uop.arg == 0


def under_mask(gradient: UOp, change: Callable[[UOp], UOp]) -> UOp:
    """An elementwise `change` of a gradient, made under its mask if it has one."""
    parts = split_mask(gradient)
    if parts is None:
        return change(gradient)
    return parts.rebuilt(parts.mask, change(parts.value))


def moved(gradient: UOp, move: Callable[[UOp], UOp]) -> UOp:
    """A one-to-one movement of a gradient, of its mask and its value alike."""
    parts = split_mask(gradient)
    if parts is None:
        return move(gradient)
    return parts.rebuilt(move(parts.mask), move(parts.value))


def selected(condition: UOp, gradient: UOp, taken: bool = True) -> UOp:
    """The gradient where `condition` is `taken`, elsewhere zero by structure.

    A gradient with a mask of its own keeps one mask, so that what follows sees both.
    """
    parts = split_mask(gradient)
    if parts is None:
        return Masked(condition, gradient, taken).rebuilt(condition, gradient)
    inner = parts.mask if parts.taken else parts.mask.logical_not()
    outer = condition if taken else condition.logical_not()
    return (outer & inner).where(parts.value, parts.value.const_like(0))


def scaled(gradient: UOp, derivative: UOp) -> UOp:
    """Gradient times derivative."""
    return under_mask(gradient, lambda value: value * derivative)


def divided(gradient: UOp, divisor: UOp) -> UOp:
    """Gradient divided by a node."""
    return under_mask(gradient, lambda value: value / divisor)


def added(left: UOp, right: UOp) -> UOp:
    """The sum of two gradients of one value; zero by structure where both are."""
    first, second = split_mask(left), split_mask(right)
    if first is None or second is None:
        return left + right
    first_mask = first.mask if first.taken else first.mask.logical_not()
    second_mask = second.mask if second.taken else second.mask.logical_not()
    if first_mask is second_mask:
        return first_mask.where(first.value + second.value, left.const_like(0))
    return (first_mask | second_mask).where(left + right, left.const_like(0))
