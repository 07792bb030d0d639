"""Work-items that meet at a BARRIER, as loops: what LOCAL axes mean where items run one by one.

A value is a pure function of memory and loop counters, so the part of a work-item before a BARRIER
can be run for all items by loops of its own, and the part behind it computes again what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import AxisType, Ops, RangeArg
from tg_ir.graph.uop import UOp, substitute, toposort


def split_at_barriers(sink: UOp) -> UOp:
    """`sink` with each BARRIER replaced by loops over the LOCAL axes that its effects stand in.

    Requires: who waits for a BARRIER is an AFTER or another BARRIER (`spec.kernel_graph`).
    Ensures: no BARRIER. Where one was, all items have done its effects before any goes on.
    """
    order = toposort((sink,))
    if not any(node.op is Ops.BARRIER for node in order):
        return sink
    next_axis = 1 + max((n.arg.axis[0] for n in order if n.op is Ops.RANGE), default=-1)
    new: dict[UOp, UOp] = {}
    done: dict[UOp, tuple[UOp, ...]] = {}  # for each BARRIER: the effects that stand for it
    for node in order:
        src: list[UOp] = []
        for source in node.src:
            src.extend(done[source] if source.op is Ops.BARRIER else (new[source],))
        if node.op is Ops.BARRIER:
            done[node] = _for_all_items(src, next_axis)
            next_axis += len(done[node][0].src) - 1 if done[node] else 0
        else:
            kept = tuple(src)
            new[node] = node if kept == node.src else UOp(node.op, node.dtype, kept, node.arg)
    return new[sink]


def _for_all_items(effects: Sequence[UOp], next_axis: int) -> tuple[UOp, ...]:
    """`effects`, repeated for all values of the LOCAL axes that are open around them."""
    group = effects[0] if len(effects) == 1 else UOp(Ops.TUPLE, dtypes.void, tuple(effects))
    items = [loop for loop in group.ranges if loop.arg.kind is AxisType.LOCAL]
    if not items:
        return tuple(effects)
    items.sort(key=lambda loop: loop.arg.axis)
    fresh = {
        loop: UOp(Ops.RANGE, loop.dtype, loop.src, RangeArg((next_axis + number,), AxisType.LOCAL))
        for number, loop in enumerate(items)
    }
    return (substitute((group,), fresh)[0].end(*fresh.values()),)
