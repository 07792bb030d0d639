"""`create_schedule`: from the tensor graph to kernels in execution order.

The steps: decide what is stored (leaves up), decide where everything else is computed (readers
down), build the expressions (leaves up), order the kernels, and write each as a canonical CALL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tg_ir.config import SPEC
from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp, spec
from tg_ir.graph.rewrite import collection_paused

from tg_codegen.schedule.canonical_kernel import canonical_call, resolve_gathers
from tg_codegen.schedule.context import KernelDraft
from tg_codegen.schedule.finished_kernel import Kernel
from tg_codegen.schedule.fusion import Fusion, Plan
from tg_codegen.schedule.group_outputs import group_outputs
from tg_codegen.schedule.inline_functions import inline_functions
from tg_codegen.schedule.kernel_order import copy_kernel, order_kernels, snapshot_of
from tg_codegen.schedule.kernel_values import KernelValues, gathered_values
from tg_codegen.schedule.model import Schedule
from tg_codegen.schedule.schedule_cache import describe, recall, remember
from tg_codegen.schedule.split_reduction import split_reductions
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.stored_values import decide_storage
from tg_codegen.schedule.tensor_order import STORED, addressing_base, rebase, tensor_order
from tg_codegen.schedule.transfers import transfer_call


def create_schedule(sink: UOp, pinned: Collection[UOp] = ()) -> Schedule:
    """The kernels that compute the values of `sink`, in order.

    Args:
        sink: SINK of the values to realise, a graph that satisfies `spec.tensor_graph`.
        pinned: versions (BUFFER, CONTIGUOUS, AFTER, REALIZED) that are still read outside of this
            graph.

    Raises:
        ScheduleError: the graph cannot be scheduled; the message says why.
        VerificationError: with `SPEC=1`, the graph breaks a rule of its stage.
    """
    with collection_paused():
        return _checked_schedule(sink, pinned, SPEC.value >= 1)


def _checked_schedule(sink: UOp, pinned: Collection[UOp], check: bool) -> Schedule:
    if check:
        spec.verify(sink, spec.tensor_graph)
    description = describe(sink.src, pinned)
    known = recall(description)
    if known is not None:
        return known
    schedule = _rewritten_schedule(sink.src, description.pinned)
    if check:
        for call in schedule.linear.src:
            if call.arg.kind == "kernel":
                spec.verify(call.src[0], spec.kernel_graph)
    remember(description, schedule)
    return schedule


def _rewritten_schedule(requested: Sequence[UOp], pinned: Sequence[UOp]) -> Schedule:
    """Rewrites the tensor graph, schedules it and answers in terms of the old nodes."""
    old_order = tensor_order(requested)
    order = old_order
    new = {node: node for node in order}
    for rewrite in (inline_functions, split_reductions):
        mapping = rewrite(order)
        if mapping:
            new = {node: mapping[now] for node, now in new.items() if now in mapping}
            order = tensor_order(new[value] for value in requested)
    moved_pinned = {version: new.get(version, version) for version in pinned}
    values = [new[value] for value in requested]
    result = _schedule(values, order, tuple(moved_pinned.values()))
    becomes = {
        node: result.becomes[new[node]]
        for node in old_order
        if node in new and new[node] in result.becomes
    }
    snapshots = {
        version: result.snapshots[moved]
        for version, moved in moved_pinned.items()
        if moved in result.snapshots
    }
    return Schedule(result.linear, becomes, snapshots)


def _schedule(
    requested: Sequence[UOp], order: Sequence[UOp], pinned: Sequence[UOp]
) -> Schedule:
    storage, facts, required = decide_storage(requested, order)
    plan = Fusion(storage, facts, required).run(order)
    values = KernelValues(storage, plan)
    values.run(order)
    wanted = {storage.buffers[node].arg.id for node in required}
    kernels = group_outputs(_finished_kernels(plan, storage, values), wanted)
    for draft in plan.kernels:
        draft.release()
    kept = {v: storage.version_buffer(v) for v in pinned if _is_stored(v, storage)}
    read_later = [storage.version_buffer(v) for v in requested if _is_version(v, storage)]
    ordered = order_kernels(kernels, dict.fromkeys((*kept.values(), *read_later)))
    calls = tuple(
        canonical_call(kernel, ordered.moved.get(kernel, {})) for kernel in ordered.kernels
    )
    snapshots = {
        version: storage.in_layout_of(version, ordered.snapshots[buffer])
        for version, buffer in kept.items()
        if buffer in ordered.snapshots
    }
    becomes = _results(requested, order, storage, ordered.snapshots)
    return Schedule(UOp(Ops.LINEAR, dtypes.void, calls), becomes, snapshots)


def _is_stored(version: UOp, storage: Storage) -> bool:
    base = addressing_base(version)
    return base.op is Ops.BUFFER or base in storage.buffers


def _is_version(value: UOp, storage: Storage) -> bool:
    """Whether a requested value is read from a version, which a later write must not change."""
    return value not in storage.buffers or value.op is Ops.AFTER or value.op in STORED


# ---- kernels


def _finished_kernels(plan: Plan, storage: Storage, values: KernelValues) -> list[Kernel]:
    """The kernels over BUFFERs, in the order of the graph."""
    kernels: list[Kernel] = []
    for after, old in storage.copies.items():
        fresh = storage.buffers[after]
        first = fresh.replace(arg=replace(fresh.arg, version=0))
        kernels.append(copy_kernel(first, old))
    for node in reversed(plan.copied):
        kernels.append(transfer_call(node, storage))
    read_copies: dict[UOp, UOp] = {}
    read_elsewhere: dict[UOp, dict[UOp, UOp]] = {}
    for after in storage.reads_copied:
        version = storage.copies.get(after) or storage.version_buffer(after.src[0])
        if version not in read_copies:
            read_copies[version] = snapshot_of(version)
            kernels.append(copy_kernel(read_copies[version], version))
        # only this version: what another write overwrites may be what this one writes
        read_elsewhere[after] = {version: read_copies[version]}
    for draft in reversed(plan.kernels):
        kernels.append(_finished(draft, values, read_elsewhere.get(draft.node, {})))
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
    return Kernel.of(effect, (store.buffer,))


# ---- results


def _results(
    requested: Sequence[UOp],
    order: Sequence[UOp],
    storage: Storage,
    snapshots: Mapping[UOp, UOp],
) -> dict[UOp, UOp]:
    becomes: dict[UOp, UOp] = {}
    for node in order:
        if node.op not in STORED and node.op is not Ops.AFTER:
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
