"""Where the temporaries of a program lie: offsets in one arena a device.

Those that are never live together share memory.
Few are placed greedily by size (Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural
Net Inference", 2020): the largest first, each at the lowest offset that is free for as long as it
lives. Many are placed in the order of their first use, as an allocator would (`free_memory`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tg_ir.device import BufferDecl, Copy, Launch, Step, View

from tg_codegen.compile.free_memory import FreeMemory

ALIGNMENT = 64
_ARENA = 0
# With more temporaries than this on a device they are placed in the order of their first use: the
# search by size is quadratic.
_MAX_BY_SIZE = 400


@dataclass(frozen=True)
class _Lifetime:
    buffer: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class _Placed:
    lifetime: _Lifetime
    offset: int

    @property
    def end(self) -> int:
        return self.offset + _aligned(self.lifetime.nbytes)


def plan_memory(buffers: Sequence[BufferDecl], steps: Sequence[Step]) -> tuple[BufferDecl, ...]:
    """`buffers` with an offset for each temporary that has memory of its own.

    Requires: every temporary is written before it is read. Ensures: two temporaries overlap only if
    one's last use is before the other's first. Targets of views keep no memory; what they show
    lives as long as they do.
    """
    by_device: dict[str, list[_Lifetime]] = {}
    for lifetime in _lifetimes(buffers, steps):
        by_device.setdefault(buffers[lifetime.buffer].device, []).append(lifetime)
    planned = list(buffers)
    for lifetimes in by_device.values():
        for placed in _place(lifetimes):
            index = placed.lifetime.buffer
            planned[index] = replace(buffers[index], arena=_ARENA, offset=placed.offset)
    return tuple(planned)


def _lifetimes(buffers: Sequence[BufferDecl], steps: Sequence[Step]) -> list[_Lifetime]:
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    memory_of: dict[int, int] = {}  # the buffer whose memory the target of a view shows
    for number, step in enumerate(steps):
        if isinstance(step, View):
            memory_of[step.dest] = memory_of.get(step.source, step.source)
        for used in _uses(step):
            owner = memory_of.get(used, used)
            first.setdefault(owner, number)
            last[owner] = number
    return [
        _Lifetime(index, buffers[index].nbytes, first[index], last[index])
        for index in sorted(first)
        if buffers[index].role == "temporary"
    ]


def _uses(step: Step) -> Sequence[int]:
    match step:
        case Launch():
            return step.buffers
        case Copy() | View():
            return (step.dest, step.source)


def _place(lifetimes: Sequence[_Lifetime]) -> list[_Placed]:
    if len(lifetimes) > _MAX_BY_SIZE:
        return _place_in_order(lifetimes)
    placed: list[_Placed] = []
    for lifetime in sorted(lifetimes, key=lambda item: (-item.nbytes, item.first, item.buffer)):
        together = [
            other
            for other in placed
            if other.lifetime.first <= lifetime.last and lifetime.first <= other.lifetime.last
        ]
        placed.append(_Placed(lifetime, _lowest_gap(together, lifetime.nbytes)))
    return placed


def _place_in_order(lifetimes: Sequence[_Lifetime]) -> list[_Placed]:
    placed: list[_Placed] = []
    memory = FreeMemory()
    # the last use, the offset and the end of those alive, the first to go on top
    alive: list[tuple[int, int, int]] = []
    for lifetime in sorted(lifetimes, key=lambda item: (item.first, -item.nbytes, item.buffer)):
        while alive and alive[0][0] < lifetime.first:
            _, begin, end = heapq.heappop(alive)
            memory.give_back(begin, end)
        new = _Placed(lifetime, memory.take(_aligned(lifetime.nbytes)))
        heapq.heappush(alive, (lifetime.last, new.offset, new.end))
        placed.append(new)
    return placed


def _lowest_gap(others: Sequence[_Placed], nbytes: int) -> int:
    """The lowest offset at which `nbytes` overlap none of `others`."""
    offset = 0
    for other in sorted(others, key=lambda item: item.offset):
        if offset + nbytes <= other.offset:
            break
        offset = max(offset, other.end)
    return offset


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
