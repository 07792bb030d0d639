"""`Executor`: runs a `LinearProgram` on opened devices, as often as wanted, with whatever inputs.

It walks no UOps. What depends on neither inputs nor variables is prepared once; a run changes only
what differs from the last run, and hands runs of launches to the device's graph where there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from tg_ir.config import DEBUG
from tg_ir.counters import GlobalCounters
from tg_ir.device.artifact import BufferDecl, Copy, Launch, LinearProgram, View
from tg_ir.device.buffer import Buffer
from tg_ir.device.errors import ProgramInputError
from tg_ir.device.launch_report import launch_line
from tg_ir.device.prepared_steps import PreparedCopy, PreparedLaunch, Segment, split_into_segments
from tg_ir.device.registry import canonical_device_name, open_device
from tg_ir.device.runtime_api import AnyCompiled, Program
from tg_ir.dtype import dtypes
from tg_ir.events import BufferCopied, KernelLaunched, emit, listening

_NO_VALUES: Mapping[str, int] = {}


class Executor:
    """A program, its temporaries and constants, ready to run.

    Temporaries live as long as the executor, or until `release_temporaries`. Inputs are not kept.

    Args:
        program: what to run.
        use_graph: let devices record launches from the second run on.

    Raises:
        ProgramInputError: the program does not fit together.
        UnknownDeviceError, DeviceOpenError: a device of the program is not here.
    """

    def __init__(self, program: LinearProgram, use_graph: bool = True) -> None:
        """Load the kernels; memory is allocated by the first run."""
        program.verify()
        self.program = program
        self._use_graph = use_graph
        self._lock = threading.Lock()
        self._runs = 0
        self._input_indices = program.input_indices()
        self._views = [step for step in program.steps if isinstance(step, View)]
        self._buffers: list[Buffer | None] = [None] * len(program.buffers)
        self._last_handles: list[Any] = [None] * len(self._input_indices)
        self._last_values: dict[str, int] | None = None
        self._steps = self._prepare_steps()
        self._segments = split_into_segments(self._steps)

    def run(
        self,
        inputs: Sequence[Buffer],
        var_values: Mapping[str, int] = _NO_VALUES,
        wait: bool = False,
    ) -> float | None:
        """Run the program once.

        Args:
            inputs: the buffers with role `input`, results included, in the order of the program.
            var_values: a value for each variable of the program; others are ignored.
            wait: wait for the end.

        Returns:
            Seconds that launches and copies took if `wait`, else None.

        Raises:
            ProgramInputError: the buffers or values are not what the program was made for.
            OutOfDeviceMemory: no room for the temporaries; nothing was run.
        """
        with self._lock:
            self._check_inputs(inputs)
            values = self._checked_values(var_values)
            try:
                self._bind_or_start_over(inputs, values)
                seconds = self._run_segments(wait)
            finally:
                self._forget_inputs()
            self._runs += 1
        return seconds

    def release_temporaries(self) -> None:
        """Free temporaries and constants; the next run allocates them again."""
        with self._lock:
            self._forget_binding()

    # Preparation.

    def _prepare_steps(self) -> list[PreparedLaunch | PreparedCopy]:
        # By kernel and device, because hashing a TinyELF for `loaded_program` costs microseconds.
        loaded: dict[tuple[int, str], tuple[AnyCompiled, Program[Any]]] = {}
        steps: list[PreparedLaunch | PreparedCopy] = []
        for step in self.program.steps:
            if isinstance(step, Copy):
                steps.append(PreparedCopy(step))
            elif isinstance(step, Launch):
                kernel = self.program.kernels[step.kernel]
                # A kernel without buffers has no effect, so the first buffer always exists.
                name = self.program.buffers[step.buffers[0]].device
                if (found := loaded.get((step.kernel, name))) is None:
                    device = open_device(name)
                    found = (device, device.loaded_program(kernel))
                    loaded[step.kernel, name] = found
                steps.append(PreparedLaunch(step, kernel.name, *found))
        return steps

    def _support_of(self, device: AnyCompiled) -> dict[str, Program[Any]]:
        """Load the kernels that no step launches; see `GraphFactory`."""
        launched = {step.kernel for step in self.program.steps if isinstance(step, Launch)}
        unused = [kernel for i, kernel in enumerate(self.program.kernels) if i not in launched]
        return {kernel.name: device.loaded_program(kernel) for kernel in unused}

    def _launches(self) -> Iterable[PreparedLaunch]:
        return (step for step in self._steps if isinstance(step, PreparedLaunch))

    # Checks.

    def _check_inputs(self, inputs: Sequence[Buffer]) -> None:
        name = self.program.name
        if len(inputs) != len(self._input_indices):
            raise ProgramInputError(
                f"{name}: expected {len(self._input_indices)} input buffers, got {len(inputs)}"
            )
        for position, (index, buffer) in enumerate(zip(self._input_indices, inputs, strict=True)):
            decl = self.program.buffers[index]
            if buffer.nbytes != decl.nbytes or not _same_device(buffer, decl):
                raise ProgramInputError(
                    f"{name}: input {position} should have {decl.nbytes} bytes on {decl.device}, "
                    f"got {buffer.nbytes} bytes on {buffer.device}"
                )

    def _checked_values(self, var_values: Mapping[str, int]) -> dict[str, int]:
        values = {}
        for bounds in self.program.variables:
            if bounds.name not in var_values:
                given = ", ".join(sorted(var_values)) or "none"
                raise ProgramInputError(
                    f"{self.program.name}: no value for the variable '{bounds.name}'; "
                    f"given: {given}"
                )
            value = var_values[bounds.name]
            if not bounds.minimum <= value <= bounds.maximum:
                raise ProgramInputError(
                    f"{self.program.name}: {bounds.name} = {value} is outside its bounds "
                    f"{bounds.minimum}..{bounds.maximum}"
                )
            values[bounds.name] = value
        return values

    # Binding: give every buffer index its memory and every launch its arguments.

    def _bind_or_start_over(self, inputs: Sequence[Buffer], values: dict[str, int]) -> None:
        try:
            self._bind(inputs, values)
        except BaseException:
            # Half of the launches may be bound, so what was remembered no longer says what is.
            self._forget_binding()
            raise

    def _forget_binding(self) -> None:
        self._buffers = [None] * len(self.program.buffers)
        self._last_handles = [None] * len(self._input_indices)
        self._last_values = None

    def _bind(self, inputs: Sequence[Buffer], values: dict[str, int]) -> None:
        first_time = self._last_values is None
        changed = self._allocate_own_buffers() if first_time else set()
        for position, (index, buffer) in enumerate(zip(self._input_indices, inputs, strict=True)):
            self._buffers[index] = buffer
            handle = buffer.get_buf()
            if handle is not self._last_handles[position]:
                self._last_handles[position] = handle
                changed.add(index)
        values_changed = values != self._last_values
        self._make_views(changed, values, values_changed)
        for segment in self._segments:
            segment.bind_handles(changed, self._buffer)
        if values_changed:
            for launch in self._launches():
                if first_time or launch.depends_on_variables:
                    launch.bind_sizes(values)
        self._last_values = values

    def _make_views(self, changed: set[int], values: dict[str, int], values_changed: bool) -> None:
        for view in self._views:
            moves = values_changed and bool(view.byte_offset.variables())
            # Views of inputs are made anew for copies as well, which use buffers, not handles.
            if view.source in changed or moves or self._buffers[view.dest] is None:
                nbytes = self.program.buffers[view.dest].nbytes
                offset = view.byte_offset.evaluate(values)
                source = self._buffer(view.source)
                self._buffers[view.dest] = source.view(nbytes, dtypes.uint8, offset)
                changed.add(view.dest)

    def _allocate_own_buffers(self) -> set[int]:
        """Allocate arenas, temporaries and constants; return the indices that have memory now."""
        arenas: dict[tuple[str, int], int] = {}
        for decl in self.program.buffers:
            if decl.arena is not None:
                key = (decl.device, decl.arena)
                arenas[key] = max(arenas.get(key, 0), decl.offset + decl.nbytes)
        roots = {key: _bytes_buffer(key[0], nbytes) for key, nbytes in arenas.items()}
        view_targets = {view.dest for view in self._views}
        for index in self.program.indices_of("temporary"):
            decl = self.program.buffers[index]
            if index in view_targets:
                continue
            if decl.arena is None:
                self._buffers[index] = _bytes_buffer(decl.device, decl.nbytes)
            else:
                root = roots[decl.device, decl.arena]
                self._buffers[index] = root.view(decl.nbytes, dtypes.uint8, decl.offset)
        for index, contents in zip(
            self.program.indices_of("constant"), self.program.constants, strict=True
        ):
            constant = _bytes_buffer(self.program.buffers[index].device, len(contents))
            self._buffers[index] = constant.copyin(contents)
        owned = [index for index, buffer in enumerate(self._buffers) if buffer is not None]
        for index in owned:
            self._buffer(index).ensure_allocated()
        return set(owned)

    def _forget_inputs(self) -> None:
        """Drop the caller's buffers, and views of them, so that they can be freed."""
        for index in self._input_indices:
            self._buffers[index] = None
        for view in self._views:
            if view.source in self._input_indices or self._buffers[view.source] is None:
                self._buffers[view.dest] = None

    def _buffer(self, index: int) -> Buffer:
        buffer = self._buffers[index]
        if buffer is None:
            raise ProgramInputError(
                f"{self.program.name}: buffer {index} is used before anything gives it memory"
            )
        return buffer

    # Running.

    def _run_segments(self, wait: bool) -> float | None:
        observed = DEBUG >= 2 or listening()
        total = 0.0
        launches = 0
        ops = 0
        mem = 0
        for segment in self._segments:
            if segment.copy is not None:
                total += self._run_copy(segment.copy.step, wait, observed)
                launches += 1
                mem += 2 * self._buffer(segment.copy.step.source).nbytes
            else:
                total += self._run_launches(segment, wait, observed)
                launches += len(segment.launches)
                ops += segment.flops()
                mem += segment.nbytes()
        if DEBUG < 2:  # where each launch was counted with its time
            GlobalCounters.count_launches(launches, ops, mem, total)
        return total if wait else None

    def _run_launches(self, segment: Segment, wait: bool, observed: bool) -> float:
        if self._use_graph and self._runs > 0 and not observed and segment.device.graph is not None:
            seconds = segment.run_graph(wait, len(self._buffers), self._support_of)
            return seconds if seconds is not None else 0.0
        segment.refresh_handles(self._buffer)
        total = 0.0
        for launch in segment.launches:
            seconds = launch.run(wait or DEBUG >= 2)
            total += seconds if seconds is not None else 0.0
            if observed:
                _report_launch(launch, seconds)
        return total

    def _run_copy(self, step: Copy, wait: bool, observed: bool) -> float:
        source = self._buffer(step.source)
        dest = self._buffer(step.dest)
        started = perf_counter()
        dest.copy_from(source)
        if wait or DEBUG >= 2:
            open_device(dest.device).synchronize()
        seconds = perf_counter() - started
        if observed:
            _report_copy(source, dest, seconds)
        return seconds


def _bytes_buffer(device: str, nbytes: int) -> Buffer:
    return Buffer(device, nbytes, dtypes.uint8)


def _same_device(buffer: Buffer, decl: BufferDecl) -> bool:
    # The first comparison spares the canonical form in the usual case.
    return buffer.device == decl.device or buffer.device == canonical_device_name(decl.device)


def _report_launch(launch: PreparedLaunch, seconds: float | None) -> None:
    device = launch.device.device
    if listening():
        emit(KernelLaunched(launch.name, device, seconds, launch.nbytes, launch.flops))
    if DEBUG >= 2 and seconds is not None:
        GlobalCounters.count_launches(1, launch.flops, launch.nbytes, seconds)
        print(
            launch_line(
                device,
                GlobalCounters.kernel_count,
                launch.name,
                len(launch.step.buffers),
                seconds,
                launch.flops,
                launch.nbytes,
            )
        )


def _report_copy(source: Buffer, dest: Buffer, seconds: float) -> None:
    if listening():
        emit(BufferCopied(source.device, dest.device, dest.nbytes, seconds))
    if DEBUG >= 2:
        moved = 2 * dest.nbytes
        GlobalCounters.count_launches(1, 0, moved, seconds)
        name = f"copy {source.device} -> {dest.device}"
        number = GlobalCounters.kernel_count
        print(launch_line(dest.device, number, name, 2, seconds, 0, moved))
