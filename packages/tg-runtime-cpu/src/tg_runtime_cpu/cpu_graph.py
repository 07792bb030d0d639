"""Many launches as one: arguments laid out once in flat tables, then walked.

With a native walker among the support kernels a run is one native call on every worker, which
claim parts of each launch. Without one, Python walks the launches. `docs/reference/cpu-walker.md`
has the layout.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from tg_ir.device import Compiled, DeviceGraph, GraphLaunch, LaunchSize, Program

from tg_runtime_cpu.cpu_program import CPUProgram, ThreadingChoice
from tg_runtime_cpu.host_allocator import HostMemory
from tg_runtime_cpu.thread_pool import thread_count, thread_pool

WALKER = "tg_walker"
"""Name of the support kernel that walks a table."""

# A row: address of the kernel, of its buffer table, of its integers, and the extent of its THREAD
# axis.
_COLUMNS = 4
_EXTENT_COLUMN = 3
_WORD = 8

# Parts claimed and parts finished of each row, on a cache line of their own.
_COUNTER_BYTES = 64

# Ctrl-C is seen between slices; waking the workers for each costs about 0.1 ms.
_SLICE_SECONDS = 0.1


class CPUGraph(DeviceGraph[HostMemory]):
    """A launch table.

    Args:
        device: the CPU device; kept for the signature that all graphs share.
        launches: what to run, in order; programs must be the CPU's.
        handles: the first memory of every slot.
        support: kernels of the program that no step launches; `WALKER` is used if it is there.
    """

    def __init__(
        self,
        device: Compiled[Any],
        launches: Sequence[GraphLaunch],
        handles: Sequence[HostMemory],
        support: Mapping[str, Program[Any]],
    ) -> None:
        """Lay the tables out."""
        walker = support.get(WALKER)
        self._walker = walker if isinstance(walker, CPUProgram) else None
        self._programs = [_as_cpu_program(launch.program) for launch in launches]
        self._addresses = (
            ctypes.c_uint64 * max(sum(len(launch.slots) for launch in launches), 1)
        )()
        self._vals = (ctypes.c_int64 * max(sum(len(launch.vals) for launch in launches), 1))()
        self._rows = (ctypes.c_int64 * max(_COLUMNS * len(launches), 1))()
        self._counters = (ctypes.c_char * max(_COUNTER_BYTES * len(launches), _COUNTER_BYTES))()
        self._uses: dict[int, list[int]] = {}
        self._first_val: list[int] = []
        self._seconds = 0.0
        self._has_parallel_row = False
        self._choice = ThreadingChoice()
        self._fill_rows(launches)
        for slot in self._uses:
            self.set_handle(slot, handles[slot])
        self._walker_buffers = struct.pack(
            "2Q", ctypes.addressof(self._rows), ctypes.addressof(self._counters)
        )

    def _fill_rows(self, launches: Sequence[GraphLaunch]) -> None:
        next_address = 0
        next_val = 0
        for number, (launch, program) in enumerate(zip(launches, self._programs, strict=True)):
            for position, slot in enumerate(launch.slots, next_address):
                self._uses.setdefault(slot, []).append(position)
            self._first_val.append(next_val)
            self._rows[_COLUMNS * number : _COLUMNS * number + _EXTENT_COLUMN] = [
                program.entry,
                ctypes.addressof(self._addresses) + next_address * _WORD,
                ctypes.addressof(self._vals) + next_val * _WORD,
            ]
            self.set_sizes(number, launch.global_size, launch.vals)
            next_address += len(launch.slots)
            next_val += len(launch.vals)

    def set_handle(self, slot: int, handle: HostMemory) -> None:
        """Use this memory for `slot` from the next run on."""
        for position in self._uses[slot]:
            self._addresses[position] = handle.address

    def set_sizes(self, index: int, global_size: LaunchSize, vals: tuple[int, ...]) -> None:
        """Change the extent and the integers of the launch at `index`."""
        self._rows[_COLUMNS * index + _EXTENT_COLUMN] = global_size[0]
        self._has_parallel_row = self._has_parallel_row or global_size[0] > 1
        first = self._first_val[index]
        self._vals[first : first + len(vals)] = list(vals)

    def run(self, wait: bool = False) -> float | None:
        """Run every launch in order; return the seconds it took if `wait`."""
        started = perf_counter()
        if self._walker is None:
            self._walk_in_python()
        else:
            self._walk_natively(self._walker)
        self._seconds = perf_counter() - started
        return self._seconds if wait else None

    def _walk_in_python(self) -> None:
        rows = self._rows
        for number, program in enumerate(self._programs):
            _, table, vals, extent = rows[_COLUMNS * number : _COLUMNS * (number + 1)]
            program.launch(table, vals, extent)

    def _walk_natively(self, walker: CPUProgram) -> None:
        count = len(self._programs)
        slices = min(count, 1 + int(self._seconds / _SLICE_SECONDS))
        workers = thread_count() if self._has_parallel_row else 1
        threaded = workers > 1 and self._choice.use_threads()
        started = perf_counter()
        for number in range(slices):
            first, end = count * number // slices, count * (number + 1) // slices
            self._walk_slice(walker, first, end, workers if threaded else 1)
        if workers > 1 and self._choice.is_learning:
            self._choice.learn(threaded, perf_counter() - started)

    def _walk_slice(self, walker: CPUProgram, first: int, end: int, workers: int) -> None:
        counters = ctypes.addressof(self._counters) + _COUNTER_BYTES * first
        ctypes.memset(counters, 0, _COUNTER_BYTES * (end - first))
        bounds = struct.pack("2q", first, end)

        def walk(worker: int, _: int) -> None:
            walker.function(self._walker_buffers, bounds, worker, workers)

        if workers > 1:
            parts = [(worker, worker + 1) for worker in range(workers)]
            if thread_pool(workers - 1).run_together(walk, parts):
                return
        # Alone, or while another thread's program has the pool: nobody to wait for.
        walker.function(self._walker_buffers, bounds, 0, 1)


def _as_cpu_program(program: Program[Any]) -> CPUProgram:
    if not isinstance(program, CPUProgram):
        raise TypeError(f"a CPU graph runs CPU programs, got {type(program).__name__}")
    return program
