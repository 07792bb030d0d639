"""Gradients of elementwise ops."""

from __future__ import annotations

from collections.abc import Iterator

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

from tg_frontend.autograd.rules import Contribution, gradient_of
from tg_frontend.autograd.structural_zeros import divided, scaled, selected, under_mask
from tg_frontend.nodes.special_functions import LN2, LOG2_E, cosine


@gradient_of(Ops.ADD)
def gradient_of_sum(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(a + b) = da + db."""
    yield node.src[0], gradient
    yield node.src[1], gradient


@gradient_of(Ops.SUB)
def gradient_of_difference(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(a - b) = da - db."""
    yield node.src[0], gradient
    yield node.src[1], under_mask(gradient, lambda value: -value)


@gradient_of(Ops.NEG)
def gradient_of_negation(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(-a) = -da."""
    yield node.src[0], under_mask(gradient, lambda value: -value)


@gradient_of(Ops.MUL)
def gradient_of_product(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(a b) = b da + a db; of log2(x) ln 2, the natural logarithm, dx / x in one step."""
    left, right = node.src
    if left.op is Ops.LOG2 and _is_constant(right, LN2):
        yield left.src[0], divided(gradient, left.src[0])
        return
    yield left, scaled(gradient, right)
    yield right, scaled(gradient, left)


@gradient_of(Ops.MULACC)
def gradient_of_fused_product(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(a b + c) = b da + a db + dc."""
    left, right, addend = node.src
    yield left, scaled(gradient, right)
    yield right, scaled(gradient, left)
    yield addend, gradient


@gradient_of(Ops.FDIV)
def gradient_of_quotient(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(a / b) = da / b - (a / b) db / b."""
    divisor = node.src[1]
    over = divided(gradient, divisor)
    yield node.src[0], over
    yield divisor, under_mask(over, lambda value: -(value * node))


@gradient_of(Ops.RECIPROCAL)
def gradient_of_reciprocal(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(1 / a) = -da / a^2."""
    yield node.src[0], under_mask(gradient, lambda value: -(value * node * node))


@gradient_of(Ops.SQRT)
def gradient_of_square_root(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(sqrt a) = da / (2 sqrt a)."""
    yield node.src[0], under_mask(gradient, lambda value: value / node * 0.5)


@gradient_of(Ops.EXP2)
def gradient_of_exponential(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(2^a) = ln 2 2^a da; of 2^(x log2 e), the natural exponential, e^x dx in one step."""
    exponent = node.src[0]
    if exponent.op is Ops.MUL and _is_constant(exponent.src[1], LOG2_E):
        yield exponent.src[0], scaled(gradient, node)
        return
    yield exponent, under_mask(gradient, lambda value: value * node * LN2)


@gradient_of(Ops.LOG2)
def gradient_of_logarithm(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(log2 a) = da / (a ln 2)."""
    yield node.src[0], divided(gradient, node.src[0] * LN2)


@gradient_of(Ops.SIN)
def gradient_of_sine(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """d(sin a) = cos a da."""
    yield node.src[0], scaled(gradient, cosine(node.src[0]))


@gradient_of(Ops.TRUNC)
def gradient_of_whole_part(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Zero: the function is flat."""
    yield node.src[0], node.const_like(0)


@gradient_of(Ops.MAX)
def gradient_of_maximum(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """To the larger operand; equal ones get half each."""
    left, right = node.src
    tie = left.eq(right)
    shared = under_mask(gradient, lambda value: tie.where(value * 0.5, value))
    yield left, selected(left < right, shared, taken=False)
    yield right, selected(right < left, shared, taken=False)


@gradient_of(Ops.WHERE)
def gradient_of_choice(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """To the operand that was chosen; the other gets a zero by structure."""
    condition, yes, no = node.src
    yield yes, selected(condition, gradient)
    yield no, selected(condition, gradient, taken=False)


@gradient_of(Ops.CAST)
def gradient_of_cast(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """The gradient in the dtype of the source; none by an int."""
    source = node.src[0]
    if dtypes.is_float(source.dtype):
        yield source, under_mask(gradient, lambda value: value.cast(source.dtype))


def _is_constant(uop: UOp, value: float) -> bool:
    """Whether every element is the constant `value` of its dtype."""
    expected = UOp.const(uop.dtype, value).arg
    while uop.op in (Ops.RESHAPE, Ops.EXPAND):
        uop = uop.src[0]
    return uop.op is Ops.CONST and bool(uop.arg == expected)
