"""What a graph overwrites that live tensors still read.

A reader whose value the graph computes anyway is better realised with it; what others read is
pinned, and the scheduler keeps a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tg_ir.graph import Ops, UOp

from tg_frontend.live.registry import ValueHolder
from tg_frontend.live.walk import place_of, value_order, value_sources

_STORED = frozenset({Ops.AFTER, Ops.CONTIGUOUS, Ops.COPY})


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
        if holder.uop in nodes and place_of(holder.uop) not in overwritten:
            computed.append(holder)
        else:
            pinned.update(dict.fromkeys(reading[holder.uop]))
    return PinnedReads(tuple(pinned), tuple(computed))
