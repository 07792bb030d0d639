"""The steps of a program in the form in which the executor runs them: loaded, with arguments bound.

Consecutive launches on one device make a segment, which the device may run as one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tg_ir.device.artifact import Copy, Launch
from tg_ir.device.buffer import Buffer
from tg_ir.device.errors import UnsupportedByDevice
from tg_ir.device.int_expr import Const, IntExpr
from tg_ir.device.runtime_api import AnyCompiled, DeviceGraph, GraphLaunch, LaunchSize, Program

BufferOf: TypeAlias = Callable[[int], Buffer]
"""Gives the buffer of the program at an index."""

SupportOf: TypeAlias = Callable[[AnyCompiled], Mapping[str, Program[Any]]]
"""Loads the support kernels of a program for a device; see `GraphFactory`."""


class PreparedLaunch:
    """A launch with its loaded program; handles and sizes are bound before it runs.

    Attributes:
        step: what the program says.
        name: of the kernel.
        device: where it runs.
        depends_on_variables: whether `bind_sizes` gives other results for other values.
        handles: memory of each kernel parameter.
        global_size, local_size, vals: as `Program.__call__` takes them.
        flops, nbytes: estimates for this run.
    """

    def __init__(self, step: Launch, name: str, device: AnyCompiled, program: Program[Any]) -> None:
        """Keep the parts; nothing is bound yet."""
        self.step = step
        self.name = name
        self.device = device
        self.program = program
        sizes = (*step.vals, *step.global_size, *(step.local_size or ()), step.flops, step.bytes)
        self.depends_on_variables = not all(isinstance(size, Const) for size in sizes)
        self.handles: list[Any] = []
        self.global_size: LaunchSize = ()
        self.local_size: LaunchSize | None = None
        self.vals: tuple[int, ...] = ()
        self.flops = 0
        self.nbytes = 0
        self.sizes_version = 0  # counts the calls of bind_sizes, so that a graph sees a change

    def bind_handles(self, buffers: Sequence[Buffer]) -> None:
        """Take the memory of each parameter, in order."""
        self.handles = [buffer.get_buf(self.device.device) for buffer in buffers]

    def bind_sizes(self, values: Mapping[str, int]) -> None:
        """Evaluate everything that depends on variables."""
        step = self.step
        self.global_size = _evaluate_all(step.global_size, values)
        self.local_size = (
            None if step.local_size is None else _evaluate_all(step.local_size, values)
        )
        self.vals = _evaluate_all(step.vals, values)
        self.flops = step.flops.evaluate(values)
        self.nbytes = step.bytes.evaluate(values)
        self.sizes_version += 1

    def run(self, wait: bool) -> float | None:
        """Launch; return the seconds it took if `wait`."""
        return self.program(
            *self.handles,
            global_size=self.global_size,
            local_size=self.local_size,
            vals=self.vals,
            wait=wait,
        )


class PreparedCopy:
    """A copy; it has nothing to prepare."""

    def __init__(self, step: Copy) -> None:
        """Keep what the program says."""
        self.step = step


class Segment:
    """Consecutive launches on one device, or one copy.

    Attributes:
        launches: what to launch, in order; empty for a copy.
        copy: the copy, or None for launches.
        graph: the device's graph once it was made.
    """

    def __init__(self, launches: list[PreparedLaunch], copy: PreparedCopy | None = None) -> None:
        """Keep the steps; the graph is made when first wanted."""
        self.launches = launches
        self.copy = copy
        self.graph: DeviceGraph[Any] | None = None
        self._uses: dict[int, list[PreparedLaunch]] = {}  # by buffer: who has it as a parameter
        for launch in launches:
            self._note_uses(launch)
        self._launches_are_stale = False
        self._seen_sizes: list[int] = []

    def add(self, launch: PreparedLaunch) -> None:
        """Append a launch on the same device."""
        self.launches.append(launch)
        self._note_uses(launch)

    def _note_uses(self, launch: PreparedLaunch) -> None:
        for index in dict.fromkeys(launch.step.buffers):
            self._uses.setdefault(index, []).append(launch)

    @property
    def device(self) -> AnyCompiled:
        """The device of the launches."""
        return self.launches[0].device

    def flops(self) -> int:
        """Return the estimate for all launches."""
        return sum(launch.flops for launch in self.launches)

    def nbytes(self) -> int:
        """Return the estimate for all launches."""
        return sum(launch.nbytes for launch in self.launches)

    def bind_handles(self, changed: set[int], buffer_of: BufferOf) -> None:
        """Use the new memory of the buffers in `changed`, in the graph if there is one."""
        used = [index for index in changed if index in self._uses]
        if not used:
            return
        if self.graph is None:
            stale: dict[PreparedLaunch, None] = {}
            for index in used:
                stale.update(dict.fromkeys(self._uses[index]))
            for launch in stale:
                launch.bind_handles([buffer_of(index) for index in launch.step.buffers])
            return
        name = self.device.device
        for index in used:
            self.graph.set_handle(index, buffer_of(index).get_buf(name))
        self._launches_are_stale = True

    def refresh_handles(self, buffer_of: BufferOf) -> None:
        """Make the launches ready to run one by one, after runs of which only the graph knows."""
        if self._launches_are_stale:
            for launch in self.launches:
                launch.bind_handles([buffer_of(index) for index in launch.step.buffers])
            self._launches_are_stale = False

    def run_graph(self, wait: bool, slot_count: int, support_of: SupportOf) -> float | None:
        """Run the launches as a graph with what is bound now; the first call records them.

        Args:
            wait: wait for the end.
            slot_count: number of buffers of the program; their indices are the slots.
            support_of: loads what graphs of a device need.
        """
        if self.graph is None:
            self.graph = self._record(slot_count, support_of)
        for number, launch in enumerate(self.launches):
            if launch.sizes_version != self._seen_sizes[number]:
                self._seen_sizes[number] = launch.sizes_version
                self.graph.set_sizes(number, launch.global_size, launch.vals)
        return self.graph.run(wait)

    def _record(self, slot_count: int, support_of: SupportOf) -> DeviceGraph[Any]:
        factory = self.device.graph
        if factory is None:
            raise UnsupportedByDevice(f"{self.device.device} records no launches")
        handles: list[Any] = [None] * slot_count
        for launch in self.launches:
            for index, handle in zip(launch.step.buffers, launch.handles, strict=True):
                handles[index] = handle
        self._seen_sizes = [launch.sizes_version for launch in self.launches]
        recorded = [_as_graph_launch(launch) for launch in self.launches]
        return factory(self.device, recorded, handles, support_of(self.device))


def _as_graph_launch(launch: PreparedLaunch) -> GraphLaunch:
    return GraphLaunch(
        program=launch.program,
        slots=launch.step.buffers,
        global_size=launch.global_size,
        local_size=launch.local_size,
        vals=launch.vals,
    )


def split_into_segments(steps: Sequence[PreparedLaunch | PreparedCopy]) -> list[Segment]:
    """Group steps in order: a copy alone, launches with their neighbours on the same device."""
    segments: list[Segment] = []
    for step in steps:
        if isinstance(step, PreparedCopy):
            segments.append(Segment([], step))
        elif segments and segments[-1].launches and segments[-1].device is step.device:
            segments[-1].add(step)
        else:
            segments.append(Segment([step]))
    return segments


def _evaluate_all(exprs: Sequence[IntExpr], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(expr.evaluate(values) for expr in exprs)
