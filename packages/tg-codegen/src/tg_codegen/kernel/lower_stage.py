"""The pass that turns STAGE into memory.

A DEFINE_LOCAL or DEFINE_REG, the loops that fill it, and reads ordered after them.
"""

from __future__ import annotations

from tg_ir.graph import AddrSpace, DefineArg, Ops, UOp, toposort

from tg_codegen.kernel.private_memory import next_slots
from tg_codegen.loops import closed_ranges
from tg_codegen.stage_layout import stage_position, stage_size


def lower_stage(sink: UOp) -> UOp:
    """Gives each STAGE its memory.

    Ensures: no STAGE; what read it reads AFTER the END of the loops that fill it.
    """
    order = toposort((sink,))
    if not any(node.op is Ops.STAGE for node in order):
        return sink
    free = next_slots(order)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.STAGE:
            new[node] = _filled(node, src, free)
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]


def _filled(stage: UOp, src: tuple[UOp, ...], free: dict[Ops, int]) -> UOp:
    """The memory of `stage`, after the loops that fill it."""
    kind = Ops.DEFINE_REG if stage.arg.space is AddrSpace.REG else Ops.DEFINE_LOCAL
    is_workspace = stage.arg.space is AddrSpace.GLOBAL
    arg = DefineArg(free[kind], stage_size(stage.arg), is_workspace)
    free[kind] += 1
    memory = UOp(kind, stage.dtype, (), arg)
    where = stage_position(stage.arg, closed_ranges(stage))
    return memory.after(memory.index(where).store(src[0]).end(*src[1:]))
