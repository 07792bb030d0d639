"""`realize`: computes what tensors hold, and points every live tensor at the result.

The one file that knows scheduler, compile driver, toolchain and executor together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tg_codegen.compile import bound_values, compile_schedule, schedule_buffers
from tg_codegen.kernel.pipeline import lower_call
from tg_codegen.schedule import Schedule, create_schedule
from tg_ir.device import Buffer, LinearProgram
from tg_ir.device.execute import Executor
from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

from tg_frontend import storage
from tg_frontend.capture import observers
from tg_frontend.device import Device
from tg_frontend.errors import StaleVersionError
from tg_frontend.interrupts import interrupts_wait
from tg_frontend.live.history import Histories
from tg_frontend.live.pinned_reads import find_pinned_reads
from tg_frontend.live.registry import ValueHolder, live_holders
from tg_frontend.live.walk import is_view_of_storage, place_of, replaced_values, value_order
from tg_frontend.toolchain import toolchain_of


def realize(*holders: ValueHolder) -> None:
    """Compute the values of `holders`, all in one schedule.

    Every live tensor that shares one of the values computed then reads it from storage; a tensor
    that still reads what was overwritten gets a copy of it.

    Raises:
        StaleVersionError: a value depends on contents that are gone.
        ScheduleError, CompileError, OutOfDeviceMemory: as scheduler, compiler and executor say.
    """
    for observer in observers():
        observer.before_realize([holder.uop for holder in holders])
    pending = [holder for holder in holders if _has_work(holder.uop)]
    if not pending:
        return
    for holder in pending:
        if holder.uop.device is None:
            # nothing below is stored: this says where to compute it
            holder.uop = holder.uop.copy_to_device(Device.DEFAULT)
    _realize_pending(pending)


def _has_work(uop: UOp) -> bool:
    return not is_view_of_storage(uop) and uop.size != 0


def _realize_pending(pending: Sequence[ValueHolder]) -> None:
    roots = list(dict.fromkeys(holder.uop for holder in pending))
    order = value_order(roots)
    _check_contents_exist(order)
    live = live_holders()
    reads = find_pinned_reads(order, roots, live)
    known = len(roots)
    while reads.computed:
        roots = list(dict.fromkeys([*roots, *(holder.uop for holder in reads.computed)]))
        # what is computed along may write too, and so end versions that others read
        order = value_order(roots)
        _check_contents_exist(order)
        reads = find_pinned_reads(order, roots, live)
        if len(roots) == known:
            break
        known = len(roots)
    schedule = create_schedule(UOp.sink(*roots), reads.pinned)
    changes = _new_values(schedule, live)
    results = {place_of(new) for new in _plain_results(schedule)}
    kept = {place_of(uop) for uop in changes.used}
    prepared = _prepare_all(schedule.linear, kept)
    with interrupts_wait():
        try:
            _run_all(prepared)
        except KeyboardInterrupt:
            _forget_overwritten(results)  # how much was written, nobody knows
            raise
        _forget_overwritten(results)
        for holder, uop in changes.moves:
            holder.uop = uop


def _forget_overwritten(results: Iterable[UOp]) -> None:
    for node in results:
        if storage.memory_of_id(node) is not None:
            storage.written(node)


def _check_contents_exist(order: Iterable[UOp]) -> None:
    for node in order:
        if node.op is Ops.BUFFER and not storage.is_stored(node):
            raise StaleVersionError(storage.stale_message(node))


def _plain_results(schedule: Schedule) -> list[UOp]:
    return [*schedule.becomes.values(), *schedule.snapshots.values()]


@dataclass(frozen=True)
class _Changes:
    """Attributes: `moves`, what each tensor will hold.

    `used`, the views of storage that they read.
    """

    moves: list[tuple[ValueHolder, UOp]]
    used: list[UOp]


def _new_values(schedule: Schedule, live: Sequence[ValueHolder]) -> _Changes:
    """What live tensors will hold after the run."""
    # a snapshot stands for contents that the schedule overwrites, so it goes before the result
    plain = {**schedule.becomes, **schedule.snapshots}
    order = value_order((h.uop for h in live), plain)
    touched = [node for node in order if node in plain]
    mapping = {node: plain[node] for node in touched}
    written_again = {n.src[0] for n in order if n.op is Ops.AFTER and n not in plain}
    histories = Histories(live, dict(mapping))
    for node in touched:
        history = histories.of(node)
        if history is None and node in written_again and plain[node].op is not Ops.BUFFER:
            # a write continues a version, which movement over a BUFFER alone is not
            history = plain[node]
        if history is not None:
            mapping[node] = UOp(Ops.REALIZED, node.dtype, (plain[node], history))
    new = replaced_values((holder.uop for holder in live), mapping)
    moves = [(holder, new[holder.uop]) for holder in live if holder.uop in new]
    return _Changes(moves, [plain[node] for node in touched])


def run_linear(linear: UOp, keep: Iterable[UOp] = ()) -> None:
    """Run a LINEAR of CALLs on the memory of its BUFFERs.

    Args:
        linear: as the scheduler makes it.
        keep: BUFFERs without memory yet whose contents are wanted afterwards; other new ones are
            temporary.
    """
    _run_all(_prepare_all(linear, set(keep)))


def _prepare_all(linear: UOp, kept: set[UOp]) -> list[_Prepared]:
    """Compile each part and give it its memory, before the first runs.

    A part that failed later would leave what an earlier one has overwritten.
    """
    kept_ids = {node.arg.id for node in kept}
    prepared = []
    for part in _parts_by_device(linear):
        temporaries = []
        for node in schedule_buffers(part.linear):
            if storage.memory_of_id(node) is not None:
                continue
            if node.arg.id in kept_ids or node.arg.id in part.shared:
                storage.adopt(node)
            else:
                temporaries.append(node)
        prepared.append(_prepare(part, temporaries))
    return prepared


def _run_all(prepared: Sequence[_Prepared]) -> None:
    for part in prepared:
        # before memory is allocated: so they see whose contents these programs make
        for observer in observers():
            observer.before_run(part.program, part.inputs, part.values)
    for part in prepared:  # all, before the first runs
        for buffer in part.inputs:
            buffer.ensure_allocated()
    for part in prepared:
        part.executor.run(part.inputs, part.values)


@dataclass(frozen=True)
class _Part:
    """Calls whose kernels run on one device; `shared`: ids of buffers that other parts use too."""

    linear: UOp
    device: str
    shared: frozenset[int]


def _parts_by_device(linear: UOp) -> list[_Part]:
    devices: list[str] = []
    groups: list[list[UOp]] = []
    for call in linear.src:
        # a copy needs no compiler, so it belongs to any part
        device = "" if call.arg.kind == "copy" else _device_of_call(call)
        if groups and (not device or devices[-1] in ("", device)):
            devices[-1] = devices[-1] or device
            groups[-1].append(call)
        else:
            devices.append(device)
            groups.append([call])
    linears = [UOp(Ops.LINEAR, dtypes.void, tuple(calls)) for calls in groups]
    ids = [{node.arg.id for node in schedule_buffers(part)} for part in linears]
    parts = []
    for number, device in enumerate(devices):
        elsewhere = set().union(*(other for k, other in enumerate(ids) if k != number))
        shared = frozenset(ids[number] & elsewhere)
        parts.append(_Part(linears[number], device or Device.DEFAULT, shared))
    return parts


def _device_of_call(call: UOp) -> str:
    return str(place_of(call.src[1]).arg.device)


@dataclass(frozen=True)
class _Prepared:
    """A part that is ready to run."""

    program: LinearProgram
    executor: Executor
    inputs: list[Buffer]
    values: Mapping[str, int]


def _prepare(part: _Part, temporaries: Sequence[UOp]) -> _Prepared:
    toolchain = toolchain_of(part.device)
    program = compile_schedule(
        part.linear,
        toolchain.renderer,
        toolchain.compiler,
        part.device,
        lower_call,
        temporaries,
    )
    temporary_ids = {node.arg.id for node in temporaries}
    inputs = []
    for node in schedule_buffers(part.linear):
        if node.arg.id not in temporary_ids:
            inputs.append(_memory(node))
    executor = Executor(program, use_graph=False)
    return _Prepared(program, executor, inputs, bound_values(part.linear))


def _memory(node: UOp) -> Buffer:
    memory = storage.memory_of_id(node)
    if memory is None:
        raise StaleVersionError(storage.stale_message(node))
    return memory


def memory_of(holder: ValueHolder) -> Buffer | None:
    """The memory that holds exactly the elements of a tensor in order, realised first.

    None if it has none.

    A tensor without elements has no memory.
    """
    if holder.uop.size == 0:
        return None
    realize(holder)
    if not _is_whole(holder.uop):
        raise StaleVersionError(
            f"a value of shape {holder.uop.shape} is a view of a buffer; make it contiguous first"
        )
    return storage.buffer_of(place_of(holder.uop))


def storage_of(holder: ValueHolder) -> Buffer:
    """The memory that a tensor with elements looks into, realised first."""
    realize(holder)
    return storage.buffer_of(place_of(holder.uop))


def is_whole_storage(uop: UOp) -> bool:
    """Whether a realised value is all of a BUFFER, in order."""
    return _is_whole(uop)


def _is_whole(uop: UOp) -> bool:
    while uop.op in (Ops.RESHAPE, Ops.REALIZED, Ops.DETACH):
        uop = uop.src[0]
    return uop.op is Ops.BUFFER


def is_realized(holder: ValueHolder) -> bool:
    """Whether the value is in storage, so that there is nothing to compute."""
    return not _has_work(holder.uop)


def plan(*holders: ValueHolder) -> UOp:
    """The LINEAR that `realize` would run. Nothing runs, no tensor changes."""
    pending = [holder.uop for holder in holders if _has_work(holder.uop)]
    roots = [
        uop.copy_to_device(Device.DEFAULT) if uop.device is None else uop for uop in pending
    ]
    if not roots:
        return UOp(Ops.LINEAR)
    return create_schedule(UOp.sink(*dict.fromkeys(roots))).linear
