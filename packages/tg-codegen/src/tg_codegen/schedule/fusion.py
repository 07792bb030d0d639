"""Decides, readers first, in which kernels and at which indices every value is computed.

Each realised node starts a kernel. Every other node is computed where it is read, once for each
distinct index: its contexts. A node that would be computed too often, or inside a loop where it
does not belong, is realised.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from tg_ir.graph import AxisType, GroupOp, Ops, UOp

from tg_codegen.schedule.context import Context, KernelDraft, KernelStore, loops_of
from tg_codegen.schedule.errors import ScheduleError
from tg_codegen.schedule.facts import FactsWalk
from tg_codegen.schedule.movement_index import Index, both, flatten, push_index
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.store_or_recompute import is_better_stored
from tg_codegen.schedule.tensor_order import LEAVES, TRANSPARENT, is_transfer


@dataclass(slots=True)
class Plan:
    """Where everything is computed.

    Attributes:
        kernels: the kernels to make, readers first.
        contexts: node -> the contexts in which it is computed.
        reads: realised node or leaf -> the contexts in which it is read from memory.
        steps: (node, context) -> the context of its source, for ops that change the index.
        valid: (PAD or UNSKEW, context) -> the condition under which it is not 0.
        copied: COPY nodes, readers first.
    """

    kernels: list[KernelDraft] = field(default_factory=list)
    contexts: dict[UOp, list[Context]] = field(default_factory=dict)
    reads: dict[UOp, list[Context]] = field(default_factory=dict)
    steps: dict[tuple[UOp, Context], Context] = field(default_factory=dict)
    valid: dict[tuple[UOp, Context], UOp] = field(default_factory=dict)
    copied: list[UOp] = field(default_factory=list)


class Fusion:
    """One walk over the tensor graph, readers first, that fills a `Plan`."""

    def __init__(self, storage: Storage, facts: FactsWalk, required: Set[UOp]) -> None:
        """Start an empty plan.

        `required` are computed even where nothing in the graph reads them.
        """
        self.plan = Plan()
        self._required = required
        self._storage = storage
        self._facts = facts
        self._wanted: dict[UOp, dict[Context, None]] = {}

    def run(self, order: Sequence[UOp]) -> Plan:
        """The plan for the nodes of `order`, which lists sources before readers."""
        for node in reversed(order):
            wanted = list(self._wanted.pop(node, ()))
            if node.op in LEAVES:
                self.plan.reads[node] = wanted
                continue
            if node.op in {Ops.STORE, Ops.SINK}:
                continue
            stored = node in self._storage.buffers
            if stored or is_better_stored(node, self._facts[node], wanted):
                self.plan.reads[node] = wanted
                if wanted or node in self._required:
                    self._start(node)
            elif wanted:
                self._inline(node, wanted)
        return self.plan

    # ---- kernels

    def _start(self, node: UOp) -> None:
        if 0 in node.shape:
            self._storage.allocate(node)
            return
        if node.op is Ops.AFTER:
            self._start_writes(node)
            return
        if node.op is Ops.COPY and is_transfer(node):
            self.plan.copied.append(node)
            return
        kernel = KernelDraft(node)
        kinds = [AxisType.GLOBAL] * len(node.shape)
        if node.op is Ops.SCAN_AXIS:
            kinds[node.arg.axes[0]] = AxisType.LOOP
        index = tuple(
            kernel.add_loop(extent, kind)
            for extent, kind in zip(node.shape, kinds, strict=True)
        )
        loops = loops_of(index)
        # the loop of a scan is innermost, so that one running value is enough
        kernel.loops = tuple(sorted(loops, key=lambda loop: loop.arg.kind is AxisType.LOOP))
        context = kernel.context(index, None, kernel.loops)
        buffer = self._storage.allocate(node)
        value = node
        if node.op in {Ops.CONTIGUOUS, Ops.COPY}:
            value = node.src[0]
            self._want(value, context)
        else:
            self._inline(node, [context])
        kernel.store = KernelStore(buffer, flatten(index, node.shape), None, value, context)
        self.plan.kernels.append(kernel)

    def _start_writes(self, node: UOp) -> None:
        """A kernel for each STORE of an AFTER, the last first."""
        buffer = self._storage.buffers[node]
        for store in reversed(node.src[1:]):
            target, value = store.src
            if 0 in target.shape:
                continue
            kernel = KernelDraft(node)
            kinds = _loop_kinds(target)
            index = tuple(
                kernel.add_loop(extent, kind)
                for extent, kind in zip(target.shape, kinds, strict=True)
            )
            kernel.loops = loops_of(index)
            context = kernel.context(index, None, kernel.loops)
            flat, mask = self._write_position(kernel, target, context)
            self._want(value, context)
            kernel.store = KernelStore(buffer, flat, mask, value, context, store.arg)
            self.plan.kernels.append(kernel)

    def _write_position(
        self, kernel: KernelDraft, target: UOp, context: Context
    ) -> tuple[UOp, UOp | None]:
        index, mask = context.index, context.mask
        while target.op in GroupOp.Movement or target.op is Ops.GATHER:
            if target.op is Ops.GATHER:
                here = kernel.context(index, mask, context.open)
                index, valid = self._gathered_index(target, here)
            else:
                index, valid = push_index(target, index)
            mask = both(mask, valid)
            target = target.src[0]
        flat, inner = self._storage.address(target, index)
        return flat, both(mask, inner)

    # ---- pushing contexts down

    def _want(self, node: UOp, context: Context) -> None:
        self._wanted.setdefault(node, {})[context] = None

    def _inline(self, node: UOp, wanted: list[Context]) -> None:
        self.plan.contexts[node] = wanted
        op = node.op
        if op in GroupOp.Elementwise or op in TRANSPARENT or op is Ops.GETTUPLE:
            sources = node.src[:1] if op in TRANSPARENT else node.src
            for source in sources:
                self._wanted.setdefault(source, {}).update(dict.fromkeys(wanted))
            return
        for context in wanted:
            if op in GroupOp.Movement:
                self._push_movement(node, context)
            elif op is Ops.REDUCE_AXIS:
                self._push_reduce(node, context)
            elif op is Ops.SCAN_AXIS:
                self.plan.steps[node, context] = context
                self._want(node.src[0], context)
            elif op is Ops.GATHER:
                self._push_gather(node, context)
            else:
                raise _not_scheduled(node)

    def _push_movement(self, node: UOp, context: Context) -> None:
        index, valid = push_index(node, context.index)
        below = context.kernel.context(index, both(context.mask, valid), context.open)
        self.plan.steps[node, context] = below
        if valid is not None:
            self.plan.valid[node, context] = valid
        self._want(node.src[0], below)

    def _push_reduce(self, node: UOp, context: Context) -> None:
        kernel = context.kernel
        shape = node.src[0].shape
        index = list(context.index)
        for axis in node.arg.axes:
            index[axis] = kernel.add_loop(shape[axis], AxisType.REDUCE)
        added = loops_of([index[axis] for axis in node.arg.axes])
        around = tuple(loop for loop in context.open if loop in context.used)
        below = kernel.context(tuple(index), context.mask, around + added)
        self.plan.steps[node, context] = below
        for source in node.src:
            self._want(source, below)

    def _push_gather(self, node: UOp, context: Context) -> None:
        index, within = self._gathered_index(node, context)
        below = context.kernel.context(index, both(context.mask, within), context.open)
        self.plan.steps[node, context] = below
        if within is not None:
            self.plan.valid[node, context] = within
        self._want(node.src[0], below)

    def _gathered_index(self, node: UOp, context: Context) -> tuple[Index, UOp | None]:
        """The index into the source of a GATHER, and whether it is in range, as placeholders."""
        kernel = context.kernel
        tensors = node.src[1:]
        shared = tensors[0].ndim
        at_tensors = kernel.context(context.index[:shared], context.mask, context.open)
        rest = iter(context.index[shared:])
        shape = node.src[0].shape
        index: list[UOp] = []
        within: UOp | None = None
        for axis in range(len(shape)):
            if axis not in node.arg:
                index.append(next(rest))
                continue
            tensor = tensors[node.arg.index(axis)]
            self._want(tensor, at_tensors)
            found = kernel.gather(tensor, at_tensors, shape[axis])
            index.append(found.position)
            within = both(within, found.within)
        return tuple(index), within


def _loop_kinds(target: UOp) -> list[AxisType]:
    """The kinds of the loops over a write target.

    In order where a data-dependent index may hit an element twice.
    """
    kinds = [AxisType.GLOBAL] * target.ndim
    node = target
    while node.op in GroupOp.Movement:
        node = node.src[0]
    if node.op is not Ops.GATHER:
        return kinds
    if node is not target:
        return [AxisType.LOOP] * target.ndim
    shared = node.src[1].ndim
    return [AxisType.LOOP] * shared + kinds[shared:]


def _not_scheduled(node: UOp) -> ScheduleError:
    if node.op is Ops.CUSTOM:
        return ScheduleError(
            f"CUSTOM kernel '{node.arg.name}' is written for renderer {node.arg.renderer}, and no "
            "toolchain runs such text yet; tg_ir.graph.evaluate computes it"
        )
    return ScheduleError(
        f"the scheduler cannot compute {node.op.name}; expected a tensor graph "
        "(docs/explanation/ir.md lists its ops)"
    )
