"""Worker threads that run parts of one kernel at the same time.

The kernel is machine code called through ctypes, which releases the interpreter lock, so Python
threads run it in parallel. There is one pool a process; a forked child makes its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeAlias

from tg_ir.config import THREADS
from tg_ir.host import cores_available

from tg_runtime_cpu.errors import WorkerThreadError

Part: TypeAlias = tuple[int, int]
"""The iterations `[begin, end)` of the THREAD axis that one worker runs."""

Work: TypeAlias = Callable[[int, int], object]
"""Runs a part; it must not raise."""


class ThreadPool:
    """`workers` parked threads besides the caller.

    Args:
        workers: number of threads to start, >= 0.
    """

    def __init__(self, workers: int) -> None:
        """Start the threads; they are daemons, so an unfinished kernel never blocks exit.

        Raises:
            WorkerThreadError: the system starts no more; those started end.
        """
        self.workers = workers
        self._busy = threading.Lock()
        self._finished: SimpleQueue[None] = SimpleQueue()
        self._inboxes: list[SimpleQueue[tuple[Work, Part] | None]] = []
        for number in range(workers):
            inbox: SimpleQueue[tuple[Work, Part] | None] = SimpleQueue()
            name = f"tg-cpu-worker-{number}"
            thread = threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self.stop()
                raise WorkerThreadError(
                    f"cannot start {workers} worker threads: this system gives the process no more "
                    f"than {number}; set THREADS to {number + 1} or less"
                ) from None
            self._inboxes.append(inbox)

    def run(self, work: Work, parts: Sequence[Part]) -> None:
        """Run every part and return when all are done; the caller runs the first one itself.

        A launch that finds the pool busy with another thread's launch runs in its own thread.

        Args:
            work: runs one part.
            parts: at most one more than there are workers.
        """
        if not self.run_together(work, parts):
            for begin, end in parts:
                work(begin, end)

    def run_together(self, work: Work, parts: Sequence[Part]) -> bool:
        """As `run`, with all parts at the same time, so that they may wait for each other.

        Returns:
            False if the pool is busy; then nothing was run.
        """
        if not self._busy.acquire(blocking=False):
            return False
        try:
            self._run_parallel(work, parts)
        finally:
            self._busy.release()
        return True

    def stop(self) -> None:
        """Let the threads end once they are idle; the pool must not be used again."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes = []

    def _run_parallel(self, work: Work, parts: Sequence[Part]) -> None:
        for inbox, part in zip(self._inboxes, parts[1:], strict=False):
            inbox.put((work, part))
        interrupt: KeyboardInterrupt | None = None
        try:
            work(*parts[0])
        except KeyboardInterrupt as error:
            interrupt = error
        unfinished = len(parts) - 1
        while unfinished:
            # Workers use memory that the caller may free, so even Ctrl-C waits for them.
            try:
                self._finished.get()
                unfinished -= 1
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _serve(self, inbox: SimpleQueue[tuple[Work, Part] | None]) -> None:
        while (request := inbox.get()) is not None:
            work, part = request
            try:
                work(*part)
            finally:
                del work, request  # a parked worker must not keep a kernel's memory alive
                self._finished.put(None)


def split_evenly(extent: int, workers: int) -> list[Part]:
    """Split `[0, extent)` into at most `workers` runs whose lengths differ by at most one.

    Args:
        extent: iterations, > 0.
        workers: most parts to make, > 0.
    """
    count = min(extent, workers)
    return [(extent * i // count, extent * (i + 1) // count) for i in range(count)]


def thread_count() -> int:
    """Return how many threads a launch may use: THREADS, or one for each core of this process."""
    return THREADS.value or _state.cores


def thread_pool(workers: int) -> ThreadPool:
    """Return the pool of the process, made anew if it has fewer than `workers` threads."""
    pool = _state.pool
    if pool is not None and pool.workers >= workers:
        return pool
    with _state.lock:
        pool = _state.pool
        if pool is None or pool.workers < workers:
            if pool is not None:
                pool.stop()
            pool = ThreadPool(workers)
            _state.pool = pool
    return pool


class _State:
    """The pool and its lock, kept in an object so that a forked child can replace both."""

    def __init__(self) -> None:
        self.pool: ThreadPool | None = None
        self.lock = threading.Lock()
        self.cores = cores_available()  # once: it reads files


_state = _State()


def _forget_pool_after_fork() -> None:
    # The threads of the parent do not exist in the child, and its locks may be held by them.
    _state.__init__()  # type: ignore[misc]  # resets every field, which is what is meant


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool_after_fork)
