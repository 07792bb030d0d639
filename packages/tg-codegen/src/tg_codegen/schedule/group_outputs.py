"""Joins kernels with the same loops into one with several outputs, where they share what they read.

An Adam step is one kernel that reads the gradient once and writes both moments and the parameter. A
kernel that reads what another of the group writes takes the value itself.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp, substitute

from tg_codegen.schedule.facts import MAX_BUFFERS, MAX_NODES
from tg_codegen.schedule.finished_kernel import Kernel, stores_of

# Groups are sought among this many kernels before; what belongs together stands together.
_WINDOW = 16
# How far to look for a kernel between two that are to be joined; beyond that they are left apart.
_MAX_VISITS = 64
# More running totals than this in one loop leave no registers for the rest.
_MAX_REDUCTIONS = 4

_VersionKey = tuple[int, int]


def group_outputs(kernels: Sequence[Kernel], wanted: Set[int]) -> list[Kernel]:
    """`kernels` (in the order of the graph) with groups of them joined.

    `wanted`: ids of the buffers that are read after the schedule. Others that only their own
    kernel read are no longer stored.
    """
    if sum(kernel.loops is not None for kernel in kernels) < 2:
        return list(kernels)
    joined = _Grouping(kernels).run()
    read = {_key(buffer) for kernel in joined for buffer in kernel.reads}
    return [_without_unread(kernel, read, wanted) for kernel in joined]


def _without_unread(kernel: Kernel, read: Set[_VersionKey], wanted: Set[int]) -> Kernel:
    """`kernel` without the stores that nothing reads; it is one kernel of a group."""
    if len(kernel.writes) < 2:
        return kernel
    effect = kernel.effects[0]
    kept = [
        (store, buffer)
        for store, buffer in zip(stores_of(effect), kernel.writes, strict=True)
        if buffer.arg.id in wanted or _key(buffer) in read
    ]
    if len(kept) == len(kernel.writes) or not kept:
        return kernel
    group = UOp(Ops.TUPLE, dtypes.void, tuple(store for store, _ in kept))
    inner = group if len(kept) > 1 else kept[0][0]
    loops = effect.src[1:] if effect.op is Ops.END else ()
    return Kernel.of(inner.end(*loops), tuple(buffer for _, buffer in kept))


@dataclass(eq=False, slots=True)
class _Group:
    """Kernels that are joined: their places, and the kernel they make."""

    members: list[int]
    kernel: Kernel


class _Grouping:
    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels = kernels
        self._readers: dict[_VersionKey, list[int]] = {}
        self._writers: dict[_VersionKey, list[int]] = {}
        for place, kernel in enumerate(kernels):
            for buffer in kernel.reads:
                self._readers.setdefault(_key(buffer), []).append(place)
            for buffer in kernel.writes:
                self._writers.setdefault(_key(buffer), []).append(place)
        self._lowest = self._lowest_landings()
        self._group_of: dict[int, _Group] = {}

    def run(self) -> list[Kernel]:
        groups: list[_Group] = []
        for place, kernel in enumerate(self._kernels):
            if kernel.loops is None or not self._join(place, kernel, groups[-_WINDOW:]):
                groups.append(_Group([place], kernel))
                self._group_of[place] = groups[-1]
        return [group.kernel for group in groups]

    def _join(self, place: int, kernel: Kernel, groups: Sequence[_Group]) -> bool:
        for group in reversed(groups):
            joined = self._joined(group, place, kernel)
            if joined is not None:
                group.kernel = joined
                group.members.append(place)
                self._group_of[place] = group
                return True
        return False

    # ---- whether and how

    def _joined(self, group: _Group, place: int, kernel: Kernel) -> Kernel | None:
        other = group.kernel
        if other.loops is None or other.loops != kernel.loops or not _gains(other, kernel):
            return None
        stored = _values_taken(other, kernel)
        if stored is None or not _keeps_old_values(other, kernel):
            return None
        if self._stands_between(group.members, place):
            return None
        effect = _joined_effect(other.effects[0], kernel.effects[0], stored)
        result = Kernel.of(effect, (*other.writes, *kernel.writes))
        buffers = {buffer.arg.id for buffer in (*result.reads, *result.writes)}
        return result if len(buffers) <= MAX_BUFFERS and result.nodes <= MAX_NODES else None

    # ---- what runs in between

    def _followers(self, place: int) -> set[int]:
        """Kernels that must run after this one.

        They read what it writes, or overwrite what it reads or writes.
        """
        kernel = self._kernels[place]
        found: set[int] = set()
        for buffer in kernel.writes:
            found.update(self._readers.get(_key(buffer), ()))
            found.update(self._writers.get(_next(buffer), ()))
        for buffer in kernel.reads:
            found.update(self._writers.get(_next(buffer), ()))
        found.discard(place)
        return found

    def _preceding(self, place: int) -> set[int]:
        """Kernels that must run before this one."""
        kernel = self._kernels[place]
        found: set[int] = set()
        for buffer in kernel.reads:
            found.update(self._writers.get(_key(buffer), ()))
        for buffer in kernel.writes:
            found.update(self._readers.get(_previous(buffer), ()))
            found.update(self._writers.get(_previous(buffer), ()))
        found.discard(place)
        return found

    def _lowest_landings(self) -> list[int]:
        """For each place, the lowest place that a kernel at or after it must run before."""
        lowest = [len(self._kernels)] * (len(self._kernels) + 1)
        for place in reversed(range(len(self._kernels))):
            back = min(self._followers(place), default=len(self._kernels))
            lowest[place] = min(lowest[place + 1], back)
        return lowest

    def _stands_between(self, members: Sequence[int], place: int) -> bool:
        """Whether some other kernel must run after one of `members` and before `place`.

        True also if in doubt.
        """
        own = {*members, place}
        goals = self._preceding(place) - own
        if not goals:
            return False
        # beyond this nothing is joined yet, and what is reached there leads further on
        bound = max(*goals, place)
        seen: set[int] = set()
        stack = [f for member in members for f in self._followers(member)]
        while stack:
            at = stack.pop()
            if at in seen or at in own:
                continue
            if at in goals or len(seen) > _MAX_VISITS:
                return True
            if at > bound and self._lowest[at] > bound:
                continue
            seen.add(at)
            group = self._group_of.get(at)
            if group is not None:
                # all of a group run together
                stack.extend(group.members)
            stack.extend(self._followers(at))
        return False


def _gains(first: Kernel, second: Kernel) -> bool:
    """Whether joining saves a read.

    Of a common input, of what the other writes, or of a whole reduction.
    """
    written = {_key(buffer) for buffer in first.writes}
    if second.reductions:
        return bool(first.reductions & second.reductions) or _share_a_pass(first, second)
    if first.reductions:
        return any(_key(buffer) in written for buffer in second.reads)
    shared = {_key(buffer) for buffer in first.reads} | written
    return any(_key(buffer) in shared for buffer in second.reads)


def _share_a_pass(first: Kernel, second: Kernel) -> bool:
    """Whether both reduce over the same loops, and read the same elements in all of them.

    Neither may need the result of the other.

    A product of operands that are each read many times has loops laid out for itself, and stays
    alone.
    """
    if not first.reductions or not second.reductions:
        return False
    if {_key(b) for b in first.writes} & {_key(b) for b in second.reads}:
        return False
    loops = {tuple(node.src[1:]) for node in (*first.reductions, *second.reductions)}
    if len(loops) != 1 or len(first.reductions) + len(second.reductions) > _MAX_REDUCTIONS:
        return False
    every = frozenset(*loops) | frozenset(first.loops or ())
    return any(load.ranges >= every for load in first.loads & second.loads)


def _values_taken(first: Kernel, second: Kernel) -> dict[UOp, UOp] | None:
    """For the loads of `second` of what `first` writes, the values stored.

    None if one is of another element.
    """
    places = {store.src[0].src[0]: store for store in stores_of(first.effects[0])}
    taken: dict[UOp, UOp] = {}
    for load in second.loads:
        store = places.get(load.src[0].src[0])
        if store is None:
            continue
        if load.src[0] is not store.src[0] or len(load.src[0].src) > 2:
            return None
        taken[load] = store.src[1]
    return taken


def _keeps_old_values(first: Kernel, second: Kernel) -> bool:
    """Whether no kernel of the two overwrites an element before the other has read it.

    That is so where both need the old element, so that it is loaded before the first store.
    """
    if {b.arg.id for b in first.writes} & {b.arg.id for b in second.writes}:
        return False
    for writer, reader in ((first, second), (second, first)):
        for store in stores_of(writer.effects[0]):
            place = store.src[0]
            buffer = place.src[0]
            old = [load for load in reader.loads if _overwritten_by(buffer, load.src[0].src[0])]
            if any(
                load not in writer.loads or load.src[0].src[1:] != place.src[1:] for load in old
            ):
                return False
    return True


def _overwritten_by(written: UOp, read: UOp) -> bool:
    return bool(read.arg.id == written.arg.id and read.arg.version < written.arg.version)


def _joined_effect(first: UOp, second: UOp, taken: dict[UOp, UOp]) -> UOp:
    added = stores_of(second)
    if taken:
        added = substitute(added, taken)
    group = UOp(Ops.TUPLE, dtypes.void, (*stores_of(first), *added))
    return group.end(*[s for s in first.src[1:] if first.op is Ops.END])


def _key(buffer: UOp) -> _VersionKey:
    return (buffer.arg.id, buffer.arg.version)


def _next(buffer: UOp) -> _VersionKey:
    return (buffer.arg.id, buffer.arg.version + 1)


def _previous(buffer: UOp) -> _VersionKey:
    return (buffer.arg.id, buffer.arg.version - 1)
