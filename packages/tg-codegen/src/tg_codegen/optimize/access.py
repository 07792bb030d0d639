"""How a kernel uses its axes.

Which it has, how far apart in memory neighbours lie, and how much work there is.
"""

from __future__ import annotations

from tg_ir.graph import AxisType, Ops, UOp, toposort
from tg_ir.graph.symbolic import split_affine

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.split_range import extent


def stride(index: UOp, axis: UOp) -> int | None:
    """The distance in elements between neighbours along `axis` in an INDEX.

    0 where it does not matter, None where the position is not affine in it.
    """
    where = index.src[1]
    if axis not in where.ranges:
        return 0
    parts = split_affine(where, axis)
    if parts is None or parts[0].op is not Ops.CONST:
        return None
    return int(parts[0].arg)


def loads_of(value: UOp) -> list[UOp]:
    """The LOADs below `value`, those of addresses too."""
    return [n for n in toposort((value,)) if n.op is Ops.LOAD]


def body_loads(value: UOp) -> list[UOp]:
    """The LOADs below `value` that no REDUCE below it contains."""
    inside = toposort((value,), lambda n: n.op is not Ops.REDUCE)
    return [n for n in inside if n.op is Ops.LOAD]


def states_of(reduction: UOp) -> tuple[UOp, ...]:
    """What a REDUCE joins, one value a state."""
    return reduction.src[: len(reduction.arg.combine.init)]


def has_mask(value: UOp, axis: UOp | None = None) -> bool:
    """Whether `value` reads through a mask that depends on `axis` (on anything, for None)."""
    for load in loads_of(value):
        masks = load.src[0].src[2:]
        if any(axis is None or axis in mask.ranges for mask in masks):
            return True
    return False


def output_axes(sink: UOp) -> list[UOp]:
    """The GLOBAL axes that every store of the kernel has, outermost first."""
    first = closed_ranges(sink.src[0])
    shared = [r for r in first if all(r in closed_ranges(end) for end in sink.src)]
    return [r for r in shared if r.arg.kind is AxisType.GLOBAL and extent(r) > 0]


def iterations(node: UOp) -> int:
    """How often the innermost body of a REDUCE or END runs (symbolic axes at their largest)."""
    total = 1
    for loop in (*node.ranges, *closed_ranges(node)):
        total *= max(1, int(loop.vmax) + 1)
    return total


def reductions(sink: UOp) -> list[UOp]:
    """The REDUCEs with loops, inner ones first."""
    return [n for n in toposort((sink,)) if n.op is Ops.REDUCE and closed_ranges(n)]
