"""A loaded CPU kernel and its launch: packed arguments, one thread or several.

Calling convention: `void name(void **buffers, int64_t *vals, int64_t begin, int64_t end)`, where
`[begin, end)` is the part of the THREAD axis to run, and `global_size[0]` its whole extent.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeAlias

from tg_ir.device import LaunchSize, Program, TinyELF

from tg_runtime_cpu.errors import KernelCallError
from tg_runtime_cpu.host_allocator import HostMemory
from tg_runtime_cpu.object_file import load_object
from tg_runtime_cpu.required_features import require_features
from tg_runtime_cpu.thread_pool import split_evenly, thread_count, thread_pool

CODE_FORMAT = "elf"

KernelFunction: TypeAlias = Callable[[bytes | int, bytes | int, int, int], None]
"""The entry point: addresses (or packed bytes) of the two tables, then begin and end."""

_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


class ThreadingChoice:
    """Whether a kernel's launches should use threads, learnt from its first launches.

    Waking workers costs tens of microseconds, which a short kernel never wins back. Results do not
    depend on the choice, since iterations of a THREAD axis are independent.
    """

    __slots__ = ("_alone", "_trials", "_together")

    # A threaded launch that took longer was worth it. Far above the cost of starting the workers,
    # which the first launch of a process pays, and which would otherwise make a tiny kernel look
    # long.
    LONG_SECONDS = 5e-3
    TRIALS = 6  # half of them with threads

    def __init__(self) -> None:
        """Know nothing yet."""
        self._trials = 0
        self._together = float("inf")
        self._alone = float("inf")

    def use_threads(self) -> bool:
        """Return the choice for the next launch."""
        if self._trials < self.TRIALS:
            return self._trials % 2 == 0
        return self._together < self._alone

    @property
    def is_learning(self) -> bool:
        """Whether the next launch should be timed and told to `learn`."""
        return self._trials < self.TRIALS

    def learn(self, threaded: bool, seconds: float) -> None:
        """Take in how long a launch took."""
        self._trials += 1
        if not threaded:
            self._alone = min(self._alone, seconds)
            return
        self._together = min(self._together, seconds)
        if seconds > self.LONG_SECONDS:
            self._trials = self.TRIALS
            self._alone = float("inf")


class CPUProgram(Program[HostMemory]):
    """Machine code in executable memory; unmapped with the last reference.

    Args:
        obj: a relocatable object for this machine.

    Raises:
        KernelCallError: the code is in another format.
        ObjectFileError: the object cannot be loaded.
        ForeignCodeError: it may use instructions that this machine lacks.
    """

    def __init__(self, obj: TinyELF) -> None:
        """Load the object and find the entry point."""
        if obj.code_format != CODE_FORMAT:
            raise KernelCallError(
                f"kernel {obj.name}: CPU loads code of format '{CODE_FORMAT}', "
                f"got '{obj.code_format}'"
            )
        require_features(obj.target)
        self.name = obj.name
        self.signature = obj.signature
        self._loaded = load_object(obj.code)
        self.entry = self._loaded.address(obj.name)
        self.function: KernelFunction = _PROTOTYPE(self.entry)
        self._pack_addresses = struct.Struct(f"{len(obj.signature.buffers)}Q").pack
        self._pack_vals = struct.Struct(f"{len(obj.signature.vals)}q").pack
        self._choices: dict[int, ThreadingChoice] = {}

    def __call__(
        self,
        *buffers: HostMemory,
        global_size: LaunchSize = (1, 1, 1),
        local_size: LaunchSize | None = None,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """Run the kernel to its end; see `Program`.

        Raises:
            KernelCallError: another number of buffers or integers than the kernel takes.
        """
        try:
            table = self._pack_addresses(*[buffer.address for buffer in buffers])
            packed_vals = self._pack_vals(*vals)
        except struct.error as error:
            raise self._wrong_arguments(len(buffers), vals) from error
        if not wait:
            self.launch(table, packed_vals, global_size[0])
            return None
        started = perf_counter()
        self.launch(table, packed_vals, global_size[0])
        return perf_counter() - started

    def launch(self, table: bytes | int, vals: bytes | int, extent: int) -> None:
        """Run `[0, extent)` of the THREAD axis on one thread or several.

        Args:
            table: addresses of the buffers, or where that table lies.
            vals: the integers as int64, or where they lie.
            extent: 1 for a kernel without a THREAD axis.
        """
        workers = thread_count() if extent > 1 else 1
        if workers == 1:
            self.function(table, vals, 0, extent)
            return
        choice = self._choices.get(extent)
        if choice is None:
            choice = self._choices.setdefault(extent, ThreadingChoice())
        threaded = choice.use_threads()
        if not choice.is_learning:
            self._launch_as(threaded, table, vals, extent, workers)
            return
        started = perf_counter()
        self._launch_as(threaded, table, vals, extent, workers)
        choice.learn(threaded, perf_counter() - started)

    def _launch_as(
        self, threaded: bool, table: bytes | int, vals: bytes | int, extent: int, workers: int
    ) -> None:
        if not threaded:
            self.function(table, vals, 0, extent)
            return

        def run_part(begin: int, end: int) -> None:
            self.function(table, vals, begin, end)

        thread_pool(workers - 1).run(run_part, split_evenly(extent, workers))

    def _wrong_arguments(self, buffers: int, vals: Sequence[int]) -> KernelCallError:
        return KernelCallError(
            f"kernel {self.name} takes {len(self.signature.buffers)} buffers and "
            f"{len(self.signature.vals)} integers of 64 bits; "
            f"got {buffers} buffers and {tuple(vals)}"
        )
