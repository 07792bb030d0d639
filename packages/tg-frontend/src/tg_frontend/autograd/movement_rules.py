"""Gradients of movement ops and of ops that only say where a value is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tg_ir.dtype import sum_accumulator
from tg_ir.graph import Ops, UOp, same_extent

from tg_frontend.autograd.rules import Contribution, gradient_of
from tg_frontend.autograd.structural_zeros import moved


@gradient_of(Ops.RESHAPE)
def gradient_of_reshape(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Reshaped back."""
    source = node.src[0]
    yield source, moved(gradient, lambda value: value.reshape(source.shape))


@gradient_of(Ops.EXPAND)
def gradient_of_expand(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Summed over the axes that were expanded, in the accumulator dtype."""
    source = node.src[0]
    axes = [
        axis
        for axis, (old, new) in enumerate(zip(source.shape, node.shape, strict=True))
        if not same_extent(old, new)
    ]
    wide = gradient.cast(sum_accumulator(gradient.dtype))
    yield source, wide.reduce_axis(Ops.ADD, axes).cast(gradient.dtype)


@gradient_of(Ops.PERMUTE)
def gradient_of_permute(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Permuted back."""
    back = sorted(range(node.ndim), key=node.arg.__getitem__)
    yield node.src[0], moved(gradient, lambda value: value.permute(back))


@gradient_of(Ops.FLIP)
def gradient_of_flip(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Flipped back."""
    yield node.src[0], moved(gradient, lambda value: value.flip(node.arg))


@gradient_of(Ops.PAD)
def gradient_of_pad(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """The part that is not padding."""
    source = node.src[0]
    bounds = [
        (before, before + extent)
        for (before, _), extent in zip(node.marg, source.shape, strict=True)
    ]
    yield source, moved(gradient, lambda value: value.shrink(bounds))


@gradient_of(Ops.SHRINK)
def gradient_of_shrink(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Zeros around."""
    source = node.src[0]
    around = [
        (begin, extent - end)
        for (begin, end), extent in zip(node.marg, source.shape, strict=True)
    ]
    yield source, gradient.pad(around)


@gradient_of(Ops.SKEW, Ops.UNSKEW)
def gradient_of_skew(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Each is the transpose of the other."""
    source = node.src[0]
    back = Ops.UNSKEW if node.op is Ops.SKEW else Ops.SKEW
    arg = replace(node.arg, size=source.shape[node.arg.axis])
    yield source, UOp(back, gradient.dtype, (gradient,), arg)


@gradient_of(Ops.CONTIGUOUS)
def gradient_of_contiguous(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """As it is."""
    yield node.src[0], gradient


@gradient_of(Ops.COPY)
def gradient_of_copy(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Copied back."""
    source = node.src[0]
    device = source.device
    yield source, gradient if device is None else gradient.copy_to_device(device)
