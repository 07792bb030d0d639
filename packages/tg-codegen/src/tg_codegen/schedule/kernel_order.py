"""The order of kernels: after what they read is written, and before it is overwritten.

Where a reader of a version itself needs the next version of that buffer, no order exists: the
reader then reads a snapshot, copied before the write. So do versions that tensors outside the
schedule still read.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tg_ir.graph import AxisType, UOp, unique_number

from tg_codegen.schedule.finished_kernel import Kernel

VersionKey = tuple[int, int]


@dataclass(slots=True)
class Ordered:
    """Kernels in execution order.

    Attributes:
        kernels: the kernels.
        moved: kernel -> the BUFFER versions that it reads from a snapshot, and the snapshot.
        snapshots: BUFFER version -> the BUFFER that holds its copy.
    """

    kernels: list[Kernel] = field(default_factory=list)
    moved: dict[Kernel, dict[UOp, UOp]] = field(default_factory=dict)
    snapshots: dict[UOp, UOp] = field(default_factory=dict)


def order_kernels(kernels: Sequence[Kernel], pinned: Iterable[UOp]) -> Ordered:
    """An execution order of `kernels`, listed in the order of the graph.

    `pinned`: BUFFER versions to keep; those that a kernel overwrites are copied first.
    """
    return _Ordering(kernels, pinned).run()


def copy_kernel(destination: UOp, source: UOp) -> Kernel:
    """A kernel that copies a whole buffer to another on the same device."""
    loop = UOp.range(source.arg.size, 0, AxisType.GLOBAL)
    store = destination.index(loop).store(source.index(loop).load())
    return Kernel((store.end(loop),), (destination,), frozenset((source,)))


def snapshot_of(version: UOp) -> UOp:
    """A fresh BUFFER like `version`."""
    return version.replace(arg=replace(version.arg, id=unique_number(), version=0))


def _key(buffer: UOp) -> VersionKey:
    return (buffer.arg.id, buffer.arg.version)


def _next(buffer: UOp) -> VersionKey:
    return (buffer.arg.id, buffer.arg.version + 1)


class _Ordering:
    def __init__(self, kernels: Sequence[Kernel], pinned: Iterable[UOp]) -> None:
        self._kernels = list(kernels)
        self._result = Ordered()
        self._writers: dict[VersionKey, list[Kernel]] = {}
        for kernel in self._kernels:
            for buffer in kernel.writes:
                self._writers.setdefault(_key(buffer), []).append(kernel)
        for version in pinned:
            if _next(version) in self._writers:
                self._add_snapshot(version)
        self._position = {kernel: place for place, kernel in enumerate(self._kernels)}
        self._waits: dict[Kernel, set[Kernel]] = {}
        # a write waits for these readers of the version it overwrites; they may be given a snapshot
        # instead
        self._waits_for_readers: dict[Kernel, dict[Kernel, list[UOp]]] = {}
        self._followers: dict[Kernel, list[Kernel]] = {}
        self._done: set[Kernel] = set()

    def _add_snapshot(self, version: UOp) -> Kernel:
        kernel = copy_kernel(snapshot_of(version), version)
        self._result.snapshots[version] = kernel.writes[0]
        self._kernels.append(kernel)
        self._writers[_key(kernel.writes[0])] = [kernel]
        return kernel

    def run(self) -> Ordered:
        self._connect()
        ready = [
            self._position[kernel]
            for kernel in self._kernels
            if not self._waits[kernel] and not self._waits_for_readers[kernel]
        ]
        heapq.heapify(ready)
        done = self._done
        while len(done) < len(self._kernels):
            if not ready:
                self._break_cycle(done, ready)
                continue
            kernel = self._kernels[heapq.heappop(ready)]
            if kernel in done:
                continue
            done.add(kernel)
            self._result.kernels.append(kernel)
            for follower in self._followers.get(kernel, ()):
                self._waits[follower].discard(kernel)
                self._waits_for_readers[follower].pop(kernel, None)
                self._push_if_ready(follower, ready)
        return self._result

    def _push_if_ready(self, kernel: Kernel, ready: list[int]) -> None:
        if not self._waits[kernel] and not self._waits_for_readers[kernel]:
            heapq.heappush(ready, self._position[kernel])

    def _connect(self) -> None:
        for kernel in self._kernels:
            self._waits[kernel] = set()
            self._waits_for_readers[kernel] = {}
        for kernel in self._kernels:
            for buffer in sorted(kernel.reads, key=_key):
                self._connect_read(kernel, buffer)
            for buffer in kernel.writes:
                self._connect_write(kernel, buffer)

    def _connect_read(self, kernel: Kernel, buffer: UOp) -> None:
        if buffer not in kernel.writes:
            for writer in self._writers.get(_key(buffer), ()):
                self._wait(kernel, writer)
        for overwriter in self._writers.get(_next(buffer), ()):
            if overwriter is not kernel and buffer not in kernel.writes:
                self._waits_for_readers[overwriter].setdefault(kernel, []).append(buffer)
                self._followers.setdefault(kernel, []).append(overwriter)

    def _connect_write(self, kernel: Kernel, buffer: UOp) -> None:
        for earlier in self._writers.get((buffer.arg.id, buffer.arg.version - 1), ()):
            self._wait(kernel, earlier)
        same = self._writers[_key(buffer)]
        if len(same) > 1:
            self._wait(kernel, same[max(0, same.index(kernel) - 1)])

    def _wait(self, kernel: Kernel, earlier: Kernel) -> None:
        if earlier is not kernel:
            self._waits[kernel].add(earlier)
            self._followers.setdefault(earlier, []).append(kernel)

    # ---- cycles

    def _break_cycle(self, done: set[Kernel], ready: list[int]) -> None:
        """Gives a snapshot to readers that wait for the very write that waits for them."""
        stuck = [k for k in self._kernels if k not in done and not self._waits[k]]
        for writer in stuck:
            later = self._reachable(writer, done)
            readers = [r for r in self._waits_for_readers[writer] if r in later]
            if readers:
                self._give_snapshot(writer, readers, ready)
                return
        raise AssertionError(
            "kernels wait for each other, but no write waits for its own reader"
        )

    def _reachable(self, kernel: Kernel, done: set[Kernel]) -> set[Kernel]:
        """The kernels that cannot run before `kernel`, whatever snapshots are made."""
        found: set[Kernel] = set()
        stack = [kernel]
        while stack:
            for follower in self._followers.get(stack.pop(), ()):
                if follower not in found and follower not in done:
                    found.add(follower)
                    stack.append(follower)
        return found

    def _give_snapshot(
        self, writer: Kernel, readers: Sequence[Kernel], ready: list[int]
    ) -> None:
        for reader in readers:
            for version in self._waits_for_readers[writer].pop(reader):
                makers = self._snapshot_makers(version, ready)
                self._result.moved.setdefault(reader, {})[version] = self._result.snapshots[
                    version
                ]
                for maker in makers:
                    if maker not in self._done:
                        self._wait(reader, maker)
                self._release(reader, version, ready)
        self._push_if_ready(writer, ready)

    def _snapshot_makers(self, version: UOp, ready: list[int]) -> list[Kernel]:
        """The kernel that copies `version`, made where there is none yet.

        What it needs is done: the write that waits needs it too.
        """
        snapshot = self._result.snapshots.get(version)
        if snapshot is not None:
            return self._writers[_key(snapshot)]
        copy = self._add_snapshot(version)
        self._position[copy] = len(self._kernels) - 1
        self._waits[copy] = set()
        self._waits_for_readers[copy] = {}
        heapq.heappush(ready, self._position[copy])
        for overwriter in self._writers[_next(version)]:
            self._waits_for_readers[overwriter].setdefault(copy, []).append(version)
            self._followers.setdefault(copy, []).append(overwriter)
        return [copy]

    def _release(self, reader: Kernel, version: UOp, ready: list[int]) -> None:
        """Writes of the next version no longer wait for `reader` on account of `version`."""
        for overwriter in self._writers[_next(version)]:
            waits = self._waits_for_readers[overwriter]
            if version in waits.get(reader, ()):
                waits[reader].remove(version)
                if not waits[reader]:
                    del waits[reader]
            self._push_if_ready(overwriter, ready)
