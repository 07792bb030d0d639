"""`create_schedule`: from the tensor graph to kernels in execution order.

The steps: decide what is stored (leaves up), decide where everything else is computed (readers down), build the
expressions (leaves up), order the kernels, and write each as a canonical CALL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import CallArg, GroupOp, Ops, ParamArg
from tg_ir.graph.uop import UOp

from tg_codegen.schedule.canonical_kernel import (
    Kernel,
    buffers_read,
    canonical_call,
    resolve_gathers,
)
from tg_codegen.schedule.context import KernelDraft
from tg_codegen.schedule.facts import FactsWalk
from tg_codegen.schedule.fusion import Fusion, Plan
from tg_codegen.schedule.kernel_order import copy_kernel, order_kernels, snapshot_of
from tg_codegen.schedule.kernel_values import KernelValues, gathered_values
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.tensor_order import (
    ADDRESSING,
    LEAVES,
    TRANSPARENT,
    addressing_base,
    is_transfer,
    rebase,
    strip_transparent,
    tensor_order,
    value_sources,
)
from tg_codegen.schedule.writes import store_values_first


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to run for a tensor graph, and where its values are afterwards.

    Attributes:
        linear: LINEAR of CALLs in execution order.
        becomes: each requested value, and each CONTIGUOUS, COPY and AFTER that was realised on the way, to movement
            ops over the BUFFER that holds it once the schedule has run.
        snapshots: each pinned version that the schedule overwrites, to where its old value was copied.
    """

    linear: UOp
    becomes: dict[UOp, UOp] = field(default_factory=dict)
    snapshots: dict[UOp, UOp] = field(default_factory=dict)


_STORED = frozenset({Ops.CONTIGUOUS, Ops.COPY})


def create_schedule(sink: UOp, pinned: Collection[UOp] = ()) -> Schedule:
    """The kernels that compute the values of `sink`, in order.

    `pinned`: versions (BUFFER, CONTIGUOUS, AFTER, REALIZED) that are still read outside of this graph.

    Raises:
        ScheduleError: the graph cannot be scheduled; the message says why.
    """
    order = tensor_order(sink.src)
    storage, facts, required = _decide_storage(sink.src, order)
    plan = Fusion(storage, facts, required).run(order)
    values = KernelValues(storage, plan)
    values.run(order)
    kernels = _finished_kernels(plan, storage, values)
    kept = {v: storage.version_buffer(v) for v in pinned if _is_stored(v, storage)}
    read_later = [storage.version_buffer(value) for value in sink.src if _is_version(value, storage)]
    ordered = order_kernels(kernels, dict.fromkeys((*kept.values(), *read_later)))
    calls = tuple(canonical_call(kernel, ordered.moved.get(kernel, {})) for kernel in ordered.kernels)
    snapshots = {
        version: storage.in_layout_of(version, ordered.snapshots[buffer])
        for version, buffer in kept.items()
        if buffer in ordered.snapshots
    }
    becomes = _results(sink.src, order, storage, ordered.snapshots)
    return Schedule(UOp(Ops.LINEAR, dtypes.void, calls), becomes, snapshots)


def _is_stored(version: UOp, storage: Storage) -> bool:
    base = addressing_base(version)
    return base.op is Ops.BUFFER or base in storage.buffers


def _is_version(value: UOp, storage: Storage) -> bool:
    """Whether a requested value is read from a version, which a later write must not change."""
    return value not in storage.buffers or value.op is Ops.AFTER or value.op in _STORED


# ---- what is stored


def _decide_storage(
    requested: Sequence[UOp], order: Sequence[UOp]
) -> tuple[Storage, FactsWalk, set[UOp]]:
    """Storage for all that must be stored: what is asked for, what is written, what limits and writes demand."""
    storage = Storage(_some_device(order))
    targets = {_realise_target(value) for value in requested}
    consumers = _count_consumers(order)
    facts = FactsWalk(storage, consumers)
    required: set[UOp] = set()
    for node in order:
        facts.visit(node, value_sources(node))
        if node.op is Ops.AFTER:
            _store_write(node, storage, facts, required)
        elif node.op in _STORED or node in targets:
            if node.op not in LEAVES or node.op is not Ops.BUFFER:
                storage.allocate(node)
                required.add(node)
            if is_transfer(node):
                _store_copy_source(node, storage, required)
    return storage, facts, required


def _store_write(node: UOp, storage: Storage, facts: FactsWalk, required: set[UOp]) -> None:
    version = strip_transparent(node.src[0])
    base = addressing_base(version)
    if base.op is not Ops.BUFFER and base not in storage.buffers:
        storage.allocate(base)
        required.add(base)
    storage.add_write(node)
    required.add(node)
    store_values_first(node, storage, facts)


def _store_copy_source(node: UOp, storage: Storage, required: set[UOp]) -> None:
    source = node.src[0]
    if _contiguous_part(source, storage) is None:
        storage.allocate(source)
        required.add(source)


def _some_device(order: Sequence[UOp]) -> str | tuple[str, ...] | None:
    for node in order:
        if node.op is Ops.BUFFER or node.op is Ops.COPY:
            return node.device
    return None


def _count_consumers(order: Sequence[UOp]) -> dict[UOp, int]:
    counts: dict[UOp, int] = {}
    for node in order:
        for source in value_sources(node):
            counts[source] = counts.get(source, 0) + 1
    return counts


def _realise_target(value: UOp) -> UOp:
    """The node to store for a requested value: itself, or what it is only a view of."""
    base = addressing_base(value)
    if base.op is Ops.BUFFER or base.op in _STORED or base.op is Ops.AFTER:
        return base
    node = value
    while node.op is Ops.RESHAPE or node.op in TRANSPARENT:
        node = node.src[0]
    return value if node.op in LEAVES or node.op in GroupOp.Movement else node


# ---- kernels


def _finished_kernels(plan: Plan, storage: Storage, values: KernelValues) -> list[Kernel]:
    """The kernels over BUFFERs, in the order of the graph."""
    kernels: list[Kernel] = []
    for after, old in storage.copies.items():
        fresh = storage.buffers[after]
        first = fresh.replace(arg=type(fresh.arg)(fresh.arg.id, fresh.arg.size, fresh.arg.device))
        kernels.append(copy_kernel(first, old))
    for node in reversed(plan.copied):
        kernels.append(_transfer(node, storage))
    read_copies: dict[UOp, UOp] = {}
    for after in storage.reads_copied:
        version = storage.copies.get(after) or storage.version_buffer(after.src[0])
        if version not in read_copies:
            read_copies[version] = snapshot_of(version)
            kernels.append(copy_kernel(read_copies[version], version))
    for draft in reversed(plan.kernels):
        copied = read_copies if draft.node in storage.reads_copied else {}
        kernels.append(_finished(draft, values, copied))
    return kernels


def _finished(draft: KernelDraft, values: KernelValues, copied: dict[UOp, UOp]) -> Kernel:
    store = draft.store
    if store is None:
        raise AssertionError("a kernel draft without a store")
    place = store.buffer.index(store.flat, store.mask)
    value = values.stored(draft)
    if store.accumulate is not None:
        value = place.load().alu(store.accumulate, value)
    effect = place.store(value).end(*draft.loops)
    effect = resolve_gathers(effect, gathered_values(draft, values))
    if copied:
        effect = effect.substitute(copied)
    return Kernel((effect,), (store.buffer,), buffers_read((effect,)))


def _transfer(node: UOp, storage: Storage) -> Kernel:
    source = node.src[0]
    part = _contiguous_part(source, storage)
    if part is None:
        raise AssertionError("the source of a COPY was not stored")
    buffer, begin, end = part
    held = UOp(Ops.PARAM, buffer.dtype, (), ParamArg(1, buffer.arg.size))
    copied = UOp(Ops.COPY, node.dtype, (held.shrink(((begin, end),)),), node.arg)
    destination = storage.buffers[node]
    name = f"copy_{end - begin}"
    call = UOp(Ops.CALL, dtypes.void, (copied, destination, buffer), CallArg(name, "copy"))
    return Kernel((), (destination,), frozenset((buffer,)), call)


def _contiguous_part(value: UOp, storage: Storage) -> tuple[UOp, int, int] | None:
    """The run `[begin, end)` of a BUFFER that holds exactly the elements of `value` in order; None if there is none."""
    node = value
    begin = 0
    length = 0
    first = True
    while node not in storage.buffers and node.op in ADDRESSING:
        if node.op in {Ops.RESHAPE, *TRANSPARENT}:
            node = node.src[0]
            continue
        run = _leading_run(node) if node.op is Ops.SHRINK else None
        if run is None:
            return None
        begin += run[0]
        length = length if not first else run[1]
        first = False
        node = node.src[0]
    if node.op is not Ops.BUFFER and node not in storage.buffers:
        return None
    if any(not isinstance(extent, int) for extent in node.shape):
        return None
    buffer = node if node.op is Ops.BUFFER else storage.buffers[node]
    if node.op is Ops.AFTER and storage.layouts[node].op in ADDRESSING:
        return None
    size = 1
    for extent in value.shape:
        size *= extent
    return buffer, begin, begin + size


def _leading_run(node: UOp) -> tuple[int, int] | None:
    """Begin and length of the run of elements that a SHRINK keeps; None where it keeps no single run."""
    source = node.src[0].shape
    if any(not isinstance(extent, int) for extent in (*source, *node.shape)):
        return None
    whole = True
    begin = 0
    stride = 1
    for extent, (low, high) in reversed(tuple(zip(source, node.marg, strict=True))):
        if not whole and high - low != 1:
            return None
        begin += low * stride
        whole = whole and high - low == extent
        stride *= extent
    length = 1
    for extent in node.shape:
        length *= extent
    return begin, length


# ---- results


def _results(
    requested: Sequence[UOp],
    order: Sequence[UOp],
    storage: Storage,
    snapshots: Mapping[UOp, UOp],
) -> dict[UOp, UOp]:
    becomes: dict[UOp, UOp] = {}
    for node in order:
        if node.op not in _STORED and node.op is not Ops.AFTER:
            continue
        buffer = storage.buffers[node]
        held = snapshots.get(buffer, buffer)
        if held is not buffer or not storage.is_overwritten(buffer):
            becomes[node] = storage.in_layout_of(node, held)
    for value in requested:
        base = value if value in storage.buffers else addressing_base(value)
        buffer = base if base.op is Ops.BUFFER else storage.buffers[base]
        stored = storage.in_layout_of(base, snapshots.get(buffer, buffer))
        becomes[value] = rebase(value, base, stored)
    return becomes
