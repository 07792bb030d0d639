"""Scratch memory that each iteration of an axis has for itself.

DEFINE_LOCAL and DEFINE_REG belong to one iteration of the loops that they are filled in. Where such
a loop becomes lanes or copies, its iterations run side by side, so each needs memory of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from tg_ir.graph import DefineArg, Ops, UOp, toposort

SCRATCH = frozenset({Ops.DEFINE_LOCAL, Ops.DEFINE_REG})


def memory_of(buffer: UOp) -> UOp:
    """What holds the elements: `buffer` behind its AFTERs."""
    while buffer.op is Ops.AFTER:
        buffer = buffer.src[0]
    return buffer


def scratch_filled_in(nodes: Iterable[UOp], axis: UOp) -> list[UOp]:
    """The scratch memories among `nodes` that each iteration of `axis` fills anew."""
    found = [
        memory_of(node)
        for node in nodes
        if node.op is Ops.AFTER and axis in node.ranges and memory_of(node).op in SCRATCH
    ]
    return list(dict.fromkeys(found))


def next_slots(nodes: Iterable[UOp]) -> dict[Ops, int]:
    """For each kind of scratch memory the first slot that nothing among `nodes` has."""
    free = dict.fromkeys(SCRATCH, 0)
    for node in nodes:
        if node.op in free:
            free[node.op] = max(free[node.op], node.arg.slot + 1)
    return free


def renamed(memory: UOp, free: dict[Ops, int]) -> UOp:
    """Memory of the same size that nothing else uses."""
    slot = free[memory.op]
    free[memory.op] = slot + 1
    return memory.replace(arg=DefineArg(slot, memory.arg.size))


def with_memory_for_each_lane(sink: UOp, axes: Iterable[UOp]) -> UOp:
    """`sink` with scratch that each lane fills anew laid out as one row of lanes an element.

    Requires: a node depends on at most one of the `axes`.
    """
    for axis in axes:
        order = toposort((sink,))
        filled = set(scratch_filled_in(order, axis))
        if filled:
            sink = _widened(order, filled, axis)
    return sink


def _widened(order: dict[UOp, None], memories: set[UOp], axis: UOp) -> UOp:
    width = int(axis.src[0].arg)
    new: dict[UOp, UOp] = {}
    node = axis
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node in memories:
            new[node] = node.replace(arg=DefineArg(node.arg.slot, node.arg.size * width))
        elif node.op is Ops.INDEX and memory_of(node.src[0]) in memories:
            new[node] = UOp(node.op, node.dtype, (src[0], src[1] * width + axis, *src[2:]))
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[node]
