"""The pass that turns STAGE into memory.

Registers, scratch of a worker, or a part of a workspace: the loops that fill it, and reads ordered
after them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.ops import AddrSpace, AxisType, DefineArg, Ops, ParamArg
from tg_ir.graph.uop import UOp, toposort

from tg_codegen.errors import LoweringError
from tg_codegen.kernel.workspace import MAX_WORKSPACE_BYTES
from tg_codegen.loops import closed_ranges
from tg_codegen.stage_layout import stage_position, stage_size


@dataclass(slots=True)
class _Memory:
    """What is given out so far.

    Attributes:
        scratch_left: bytes of DEFINE_LOCAL that the target still has.
        slots: the next free slot of each kind of memory.
        worker: the THREAD range, whose iterations each have their own part of a workspace.
    """

    scratch_left: int
    slots: dict[Ops, int]
    worker: UOp | None
    offsets: dict[UOp, UOp] = field(default_factory=dict)


def lower_stage(sink: UOp, scratch_bytes: int) -> UOp:
    """Gives each STAGE its memory, at most `scratch_bytes` of it DEFINE_LOCAL.

    Ensures: no STAGE; what read it reads AFTER the END of the loops that fill it. A PARAM that was
    not in the kernel before is a workspace.

    Raises:
        LoweringError: a tile does not even fit a workspace.
    """
    order = toposort((sink,))
    if not any(node.op is Ops.STAGE for node in order):
        return sink
    memory = _survey(order, scratch_bytes)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.STAGE:
            new[node] = _filled(node, src, memory)
        elif node.op is Ops.INDEX and new[node.src[0]] in memory.offsets:
            place = src[1] + memory.offsets[src[0]]
            new[node] = UOp(node.op, node.dtype, (src[0], place, *src[2:]), node.arg)
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]


def _survey(order: dict[UOp, None], scratch_bytes: int) -> _Memory:
    kinds = (Ops.PARAM, Ops.DEFINE_LOCAL, Ops.DEFINE_REG)
    slots = {kind: 0 for kind in kinds}
    left = scratch_bytes
    worker = None
    for node in order:
        if node.op in slots:
            slots[node.op] = max(slots[node.op], node.arg.slot + 1)
        if node.op is Ops.DEFINE_LOCAL:
            left -= node.arg.size * node.dtype.itemsize
        if node.op is Ops.RANGE and node.arg.kind is AxisType.THREAD:
            worker = node
    return _Memory(left, slots, worker)


def _filled(stage: UOp, src: tuple[UOp, ...], memory: _Memory) -> UOp:
    """The memory of `stage`, after the loops that fill it."""
    size = stage_size(stage.arg)
    where = stage_position(stage.arg, closed_ranges(stage))
    kind = _kind_of_memory(stage, size, memory)
    if kind is not Ops.PARAM:
        buffer = UOp(kind, stage.dtype, (), DefineArg(_next_slot(kind, memory), size))
        return buffer.after(buffer.index(where).store(src[0]).end(*src[1:]))
    buffer, offset = _workspace(stage.dtype, size, memory)
    filled = buffer.after(buffer.index(where + offset).store(src[0]).end(*src[1:]))
    memory.offsets[filled] = offset
    return filled


def _kind_of_memory(stage: UOp, size: int, memory: _Memory) -> Ops:
    if stage.arg.space is AddrSpace.REG:
        return Ops.DEFINE_REG
    nbytes = size * stage.dtype.itemsize
    fits = stage.arg.space is AddrSpace.LOCAL and nbytes <= memory.scratch_left
    if not fits:
        return Ops.PARAM
    memory.scratch_left -= nbytes
    return Ops.DEFINE_LOCAL


def _next_slot(kind: Ops, memory: _Memory) -> int:
    slot = memory.slots[kind]
    memory.slots[kind] = slot + 1
    return slot


def _workspace(dtype: DType, size: int, memory: _Memory) -> tuple[UOp, UOp]:
    """A workspace, and where in it the tile of this iteration of the THREAD range begins.

    Workers run different iterations, so no two ever share a part.
    """
    if dtype.scalar() is dtypes.index:
        raise LoweringError(
            "a tile of dtype index does not fit the scratch memory, and has no size in a workspace; "
            "cast it to an int dtype"
        )
    parts = 1 if memory.worker is None else int(memory.worker.vmax) + 1
    nbytes = parts * size * dtype.itemsize
    if nbytes > MAX_WORKSPACE_BYTES:
        raise LoweringError(
            f"a staged tile of {size} x {dtype.name} for each of {parts} THREAD iterations takes "
            f"{nbytes} bytes, more than {MAX_WORKSPACE_BYTES}; use a smaller tile, or split the "
            "axis and thread its outer part"
        )
    arg = ParamArg(_next_slot(Ops.PARAM, memory), parts * size, writable=True)
    offset = UOp.const(dtypes.index, 0) if memory.worker is None else memory.worker * size
    return UOp(Ops.PARAM, dtype, (), arg), offset
