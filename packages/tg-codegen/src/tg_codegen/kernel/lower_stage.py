"""The pass that turns STAGE into memory.

A DEFINE_LOCAL, the loops that fill it, and reads ordered after them.
"""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import DefineArg, Ops
from tg_ir.graph.uop import UOp, toposort

from tg_codegen.loops import closed_ranges
from tg_codegen.stage_layout import stage_position, stage_size


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
