"""Many launches as one: arguments laid out once in two flat tables, then only called.

The tables are what a native walker needs as well: a row of addresses and a row of integers for
each launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from tg_ir.device import Compiled, DeviceGraph, GraphLaunch, LaunchSize

from tg_runtime_cpu.cpu_program import CPUProgram
from tg_runtime_cpu.host_allocator import HostMemory

_WORD = 8


@dataclass(slots=True)
class _Row:
    """One launch: its program, where its rows lie, and its extent."""

    program: CPUProgram
    table: int  # address of its first buffer address
    vals: int  # address of its first integer
    first_val: int  # index of its first integer
    extent: int


class CPUGraph(DeviceGraph[HostMemory]):
    """A launch table that Python walks.

    Args:
        device: the CPU device; kept for the signature that all graphs share.
        launches: what to run, in order; programs must be the CPU's.
        handles: the first memory of every slot.
    """

    def __init__(
        self, device: Compiled[Any], launches: Sequence[GraphLaunch], handles: Sequence[HostMemory]
    ) -> None:
        """Lay the tables out."""
        self._addresses = (
            ctypes.c_uint64 * max(sum(len(launch.slots) for launch in launches), 1)
        )()
        self._vals = (ctypes.c_int64 * max(sum(len(launch.vals) for launch in launches), 1))()
        self._uses: dict[int, list[int]] = {}
        self._rows: list[_Row] = []
        next_address = 0
        next_val = 0
        for launch in launches:
            if not isinstance(launch.program, CPUProgram):
                raise TypeError(
                    f"a CPU graph runs CPU programs, got {type(launch.program).__name__}"
                )
            for position, slot in enumerate(launch.slots, next_address):
                self._uses.setdefault(slot, []).append(position)
            self._rows.append(
                _Row(
                    program=launch.program,
                    table=ctypes.addressof(self._addresses) + next_address * _WORD,
                    vals=ctypes.addressof(self._vals) + next_val * _WORD,
                    first_val=next_val,
                    extent=launch.global_size[0],
                )
            )
            self._vals[next_val : next_val + len(launch.vals)] = list(launch.vals)
            next_address += len(launch.slots)
            next_val += len(launch.vals)
        for slot, handle in enumerate(handles):
            self.set_handle(slot, handle)

    def set_handle(self, slot: int, handle: HostMemory) -> None:
        """Use this memory for `slot` from the next run on."""
        for position in self._uses.get(slot, ()):
            self._addresses[position] = handle.address

    def set_sizes(self, index: int, global_size: LaunchSize, vals: tuple[int, ...]) -> None:
        """Change the extent and the integers of the launch at `index`."""
        row = self._rows[index]
        row.extent = global_size[0]
        self._vals[row.first_val : row.first_val + len(vals)] = list(vals)

    def run(self, wait: bool = False) -> float | None:
        """Run every launch in order; return the seconds it took if `wait`."""
        started = perf_counter()
        for row in self._rows:
            row.program.launch(row.table, row.vals, row.extent)
        return perf_counter() - started if wait else None
