"""Cutting a kernel whose outputs have loop nests of their own into one program for each nest.

One program can share only one loop among the workers, and only one that every store has.
"""

from __future__ import annotations

from dataclasses import replace

from tg_ir.graph import KernelInfo, Ops, UOp, toposort

from tg_codegen.loops import closed_ranges, stored_by
from tg_codegen.optimize.access import iterations

_WORTH_SHARING = 1 << 16


def split_outputs(sink: UOp) -> tuple[UOp, ...]:
    """The kernels that `sink` falls into, in order; itself where it stays whole.

    It is cut between stores that have no loop in common, where there is work to share and no store
    reads or writes what another one writes.
    """
    groups: list[list[UOp]] = []
    for end in sink.src:
        shared = [g for g in groups if _loops(g) & set(closed_ranges(end))]
        rest = [g for g in groups if not any(g is s for s in shared)]
        groups = [*rest, [*[e for g in shared for e in g], end]]
    worth = max(map(_work, sink.src), default=0) >= _WORTH_SHARING
    if len(groups) < 2 or not worth or not _are_independent(groups):
        return (sink,)
    groups.sort(key=lambda group: sink.src.index(group[0]))
    info: KernelInfo = sink.arg or KernelInfo()
    return tuple(
        UOp.sink(*group, arg=replace(info, name=f"{info.name}_{number}"))
        for number, group in enumerate(groups)
    )


def _loops(group: list[UOp]) -> set[UOp]:
    return {loop for end in group for loop in closed_ranges(end)}


def _work(end: UOp) -> int:
    """How often the innermost body below `end` runs."""
    return max((iterations(n) for n in toposort((end,)) if closed_ranges(n)), default=0)


def _are_independent(groups: list[list[UOp]]) -> bool:
    """Whether what each group writes is neither read nor written by another."""
    if any(end.op is not Ops.END for group in groups for end in group):
        return False
    written = [{_memory(store) for end in group for store in stored_by(end)} for group in groups]
    used = [{n for n in toposort(group) if n.op is Ops.PARAM} for group in groups]
    return not any(
        written[one] & used[other]
        for one in range(len(groups))
        for other in range(len(groups))
        if one != other
    )


def _memory(store: UOp) -> UOp:
    buffer = store.src[0].src[0]
    while buffer.op is Ops.AFTER:
        buffer = buffer.src[0]
    return buffer
