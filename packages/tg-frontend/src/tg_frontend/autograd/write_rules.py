"""Gradients of reads and writes at places: GATHER, and AFTER with its STOREs."""

from __future__ import annotations

from collections.abc import Iterator

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

from tg_frontend.autograd.rules import Contribution, gradient_of
from tg_frontend.autograd.scattered import scatter_add
from tg_frontend.live.history import replaces_all
from tg_frontend.nodes.broadcasting import filled, iota


@gradient_of(Ops.GATHER)
def gradient_of_gather(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Added up where it was read; an index outside gets nothing."""
    source, *indices = node.src
    yield source, scatter_add(source, indices, node.arg, gradient)


@gradient_of(Ops.AFTER)
def gradient_of_writes(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """To the values what is read at their place, to the version before what was not overwritten."""
    version, *stores = node.src
    remaining = gradient
    for store in reversed(stores):
        target, value = store.src
        part = _over(target, version, remaining)
        if store.arg is None and _has_gather(target, version):
            part = _of_last_writers(target, version, part)
        yield value, part
        if store.arg is None:
            kept = remaining.contiguous()
            hole = _over(target, version, kept)
            remaining = kept.after(hole.store(hole.const_like(0)))
    if not replaces_all(node):
        yield version, remaining


def _over(target: UOp, version: UOp, base: UOp) -> UOp:
    """The chain of a write's target over `base` in place of `version`."""
    steps = []
    while target is not version:
        steps.append(target)
        target = target.src[0]
    for step in reversed(steps):
        base = UOp(step.op, base.dtype, (base, *step.src[1:]), step.arg)
    return base


def _has_gather(target: UOp, version: UOp) -> bool:
    while target is not version:
        if target.op is Ops.GATHER:
            return True
        target = target.src[0]
    return False


def _of_last_writers(target: UOp, version: UOp, part: UOp) -> UOp:
    """`part`, zero for values that a later one of the same write replaced."""
    numbers = (iota(part.size, dtypes.int32) + 1).reshape(part.shape)
    nobody = filled(dtypes.int32, 0, version.shape).contiguous()
    who = nobody.after(_over(target, version, nobody).store(numbers))
    is_last = _over(target, version, who).eq(numbers)
    return is_last.where(part, part.const_like(0))
