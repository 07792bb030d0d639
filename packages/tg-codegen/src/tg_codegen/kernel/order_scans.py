"""The pass that makes a scanned loop the innermost of its END: its state is then one register."""

from __future__ import annotations

from tg_ir.graph import AxisType, Ops, UOp, toposort

from tg_codegen.errors import LoweringError
from tg_codegen.loops import closed_ranges


def order_scans(sink: UOp) -> UOp:
    """Moves the loops that a SCAN runs along inside of the independent loops beside them.

    Ensures: in every END scanned loops come last.

    Raises:
        LoweringError: a loop that must run in order stands inside of a scanned one.
    """
    order = toposort((sink,))
    if not any(node.op is Ops.SCAN for node in order):
        return sink
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        result = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        new[node] = _ordered(result) if node.op is Ops.END else result
    return new[sink]


def _ordered(end: UOp) -> UOp:
    loops = closed_ranges(end)
    below = toposort((end.src[0],), lambda node: bool(node.ranges.intersection(loops)))
    scanned = {node.src[-1] for node in below if node.op is Ops.SCAN}
    places = [place for place, loop in enumerate(loops) if loop in scanned]
    if not places:
        return end
    for loop in loops[places[0] :]:
        if loop.arg.kind is AxisType.LOOP and loop not in scanned:
            raise LoweringError(
                f"the loop of axis {loop.arg.axis} runs in order inside the scanned loop of axis "
                f"{loops[places[0]].arg.axis}; store the prefixes first, and loop over them"
            )
    rest = [loop for loop in loops if loop not in scanned]
    return end.src[0].end(*rest, *[loop for loop in loops if loop in scanned])
