"""What a graph overwrites that live tensors still read.

A reader whose value the graph computes anyway is better realised with it; what others read is
pinned, and the scheduler keeps a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tg_ir.graph import GroupOp, Ops, UOp

from tg_frontend.live.registry import ValueHolder
from tg_frontend.live.walk import place_of, value_order, value_sources

_STORED = frozenset({Ops.AFTER, Ops.CONTIGUOUS, Ops.COPY})
_WORK = GroupOp.Elementwise | {Ops.REDUCE_AXIS, Ops.SCAN_AXIS, Ops.GATHER}
_FEW_NODES = 96


@dataclass(frozen=True)
class PinnedReads:
    """Attributes: `pinned`, versions to keep; `computed`, holders to realise with the graph."""

    pinned: tuple[UOp, ...]
    computed: tuple[ValueHolder, ...]


def overwritten_versions(order: Iterable[UOp]) -> set[UOp]:
    """The versions (BUFFER, CONTIGUOUS, AFTER) that the writes of a graph end."""
    return {place_of(node.src[0]) for node in order if node.op is Ops.AFTER}


def find_pinned_reads(
    order: Sequence[UOp], roots: Sequence[UOp], holders: Sequence[ValueHolder]
) -> PinnedReads:
    """What the graph of `roots`, whose nodes are `order`, overwrites and `holders` still read."""
    overwritten = overwritten_versions(order)
    if not overwritten:
        return PinnedReads((), ())
    nodes = set(order)
    stored = {node for node in order if node.op in _STORED}
    stored.update(root for root in roots if place_of(root) not in overwritten)
    reading: dict[UOp, frozenset[UOp]] = {}
    nothing: frozenset[UOp] = frozenset()
    for node in value_order((holder.uop for holder in holders), stored):
        found = frozenset((node,)) if node in overwritten else nothing
        if node not in stored:
            for source in value_sources(node):
                found |= reading[source]
        reading[node] = found
    computed = []
    pinned: dict[UOp, None] = {}
    for holder in holders:
        if not reading[holder.uop]:
            continue
        if place_of(holder.uop) not in overwritten and _is_little_more(holder.uop, nodes):
            computed.append(holder)
        else:
            pinned.update(dict.fromkeys(reading[holder.uop]))
    return PinnedReads(tuple(pinned), tuple(computed))


def _is_little_more(value: UOp, nodes: set[UOp]) -> bool:
    """Whether the graph of `nodes` computes `value`, or all but few last operations of it.

    The loss of a training step is: the step needs its gradient, and so nearly all of it.
    """
    if value in nodes:
        return True
    extra = value_order((value,), nodes)
    shares_work = any(node in nodes and node.op in _WORK for node in extra)
    return shares_work and len(extra) <= _FEW_NODES
