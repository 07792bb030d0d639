"""Builds the expressions of all kernels from the contexts that fusion decided, sources first.

Ensures: no tensor op remains. Buffers are still BUFFER nodes and positions of gathers still
placeholders; `canonical_kernel` replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, ReduceArg, UOp, as_index

from tg_codegen.schedule.context import Context, KernelDraft
from tg_codegen.schedule.fusion import Plan
from tg_codegen.schedule.movement_index import loop_is_empty, wrapped_position
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.tensor_order import LEAVES, TRANSPARENT

Values = dict[Context, UOp]
_READS_ZERO_OUTSIDE = GroupOp.Movement | TRANSPARENT


class KernelValues:
    """The values of every node in each of its contexts."""

    def __init__(self, storage: Storage, plan: Plan) -> None:
        """Start with nothing built."""
        self._storage = storage
        self._plan = plan
        self._built: dict[UOp, Values] = {}
        self._read: dict[UOp, Values] = {}

    def run(self, order: Sequence[UOp]) -> None:
        """Builds everything in `order`, which lists sources before readers."""
        for node in order:
            wanted = self._plan.contexts.get(node)
            if wanted:
                self._built[node] = {
                    context: self._compute(node, context) for context in wanted
                }
            readers = self._plan.reads.get(node)
            if readers:
                self._read[node] = {context: self._load(node, context) for context in readers}

    def stored(self, kernel: KernelDraft) -> UOp:
        """The value that `kernel` stores."""
        store = kernel.store
        if store is None:
            raise AssertionError("a kernel draft without a store")
        if store.value is kernel.node:
            return self._built[store.value][store.context]
        return self.at(store.value, store.context)

    def at(self, node: UOp, context: Context) -> UOp:
        """The value of `node` in `context`, as a reader sees it."""
        read = self._read.get(node)
        if read is not None:
            return read[context]
        return self._built[node][context]

    # ---- leaves

    def _load(self, node: UOp, context: Context) -> UOp:
        match node.op:
            case Ops.CONST | Ops.BIND | Ops.DEFINE_VAR:
                return node
            case Ops.IOTA:
                return context.index[0].cast(node.dtype)
        if context.mask is not None and context.mask.op is Ops.CONST and not context.mask.arg:
            return UOp.const(node.dtype, 0)
        buffer = self._storage.buffers.get(node, node)
        flat, mask = self._storage.address(node, context.index)
        return buffer.index(flat, _conjunction(context.mask, mask)).load()

    # ---- everything else

    def _compute(self, node: UOp, context: Context) -> UOp:
        op = node.op
        if op in GroupOp.Elementwise or op is Ops.GETTUPLE:
            src = tuple([self.at(source, context) for source in node.src])
            return UOp(op, node.dtype, src, node.arg)
        if op in TRANSPARENT:
            return self.at(node.src[0], context)
        below = self._plan.steps[node, context]
        match op:
            case Ops.REDUCE_AXIS:
                return self._reduce(node, context, below)
            case Ops.SCAN_AXIS:
                loop = context.index[node.arg.axes[0]]
                value = self.at(node.src[0], below)
                if loop.op is not Ops.RANGE:
                    return value
                return UOp(Ops.SCAN, node.dtype, (value, loop), ReduceArg(node.arg.combine, ()))
        value = self.at(node.src[0], below)
        valid = self._plan.valid.get((node, context))
        if valid is None or self._is_zero_outside(node.src[0]):
            return value
        return valid.where(value, UOp.const(value.dtype, 0))

    def _is_zero_outside(self, node: UOp) -> bool:
        """Whether `node` reads as 0 wherever its mask is false: movement ops over memory."""
        while node.op in _READS_ZERO_OUTSIDE and node not in self._plan.reads:
            node = node.src[0]
        if node.op is Ops.CONST:
            return bool(node.arg == 0)
        return node in self._plan.reads and (node.op not in LEAVES or node.op is Ops.BUFFER)

    def _reduce(self, node: UOp, context: Context, below: Context) -> UOp:
        loops = [below.index[axis] for axis in node.arg.axes]
        values = [self.at(source, below) for source in node.src]
        if any(loop_is_empty(loop) for loop in loops):
            init = node.arg.combine.init
            states = [UOp.const(v.dtype, i) for v, i in zip(values, init, strict=True)]
        else:
            states = values
            loops = [loop for loop in loops if loop.op is Ops.RANGE]
            if loops:
                arg = ReduceArg(node.arg.combine, ())
                return UOp(Ops.REDUCE, node.dtype, (*values, *loops), arg)
        if len(states) == 1:
            return states[0]
        return UOp(Ops.TUPLE, dtypes.void, tuple(states))


def _conjunction(left: UOp | None, right: UOp | None) -> UOp | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def gathered_values(kernel: KernelDraft, values: KernelValues) -> dict[UOp, UOp]:
    """What the placeholders of `kernel` stand for; there may be other placeholders in it."""
    mapping: dict[UOp, UOp] = {}
    for found in kernel.gathered:
        position = values.at(found.index_tensor, found.context)
        at, within = wrapped_position(position, as_index(found.extent))
        mapping[found.position] = at
        mapping[found.within] = within
    return mapping
