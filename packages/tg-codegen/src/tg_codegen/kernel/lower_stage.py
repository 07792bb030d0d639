"""The pass that turns STAGE into memory.

A DEFINE_LOCAL, the loops that fill it, and reads ordered after them.
"""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import DefineArg, Ops, StageArg
from tg_ir.graph.uop import UOp, as_index, toposort

from tg_codegen.kernel.separate_loops import closed_ranges


def stage_strides(arg: StageArg) -> tuple[int, ...]:
    """The distance in memory between neighbours along each axis of a staged tile."""
    strides = [0] * len(arg.shape)
    step = 1
    for place, axis in enumerate(reversed(arg.order)):
        strides[axis] = step
        step *= arg.shape[axis] + (arg.pad if place == 0 else 0)
    return tuple(strides)


def stage_size(arg: StageArg) -> int:
    """The number of elements that a staged tile takes, padding included."""
    if not arg.order:
        return 1
    outermost = arg.order[0]
    pad = arg.pad if len(arg.order) == 1 else 0
    return stage_strides(arg)[outermost] * (arg.shape[outermost] + pad)


def stage_position(arg: StageArg, indices: tuple[UOp, ...]) -> UOp:
    """The position in memory of element `indices` of a staged tile."""
    where: UOp = as_index(0)
    for index, stride in zip(indices, stage_strides(arg), strict=True):
        where = where + index * stride
    return where


def lower_stage(sink: UOp) -> UOp:
    """Gives each STAGE its memory.

    Ensures: no STAGE; what read it reads `AFTER(DEFINE_LOCAL, END)`.
    """
    new: dict[UOp, UOp] = {}
    slots = 0
    for node in toposort((sink,)):
        src = tuple([new[s] for s in node.src])
        if node.op is not Ops.STAGE:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
            continue
        ranges = closed_ranges(node)
        memory = UOp(Ops.DEFINE_LOCAL, node.dtype, (), DefineArg(slots, stage_size(node.arg)))
        slots += 1
        where = stage_position(node.arg, ranges)
        store = UOp(Ops.STORE, dtypes.void, (memory.index(where), src[0]))
        new[node] = memory.after(store.end(*src[1:]))
    return new[sink]
