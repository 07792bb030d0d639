"""What a kernel graph says about its loops: which ranges a node closes, and what an END repeats."""

from __future__ import annotations

from tg_ir.graph import Ops, UOp


def closed_ranges(node: UOp) -> tuple[UOp, ...]:
    """The ranges that a REDUCE, STAGE or END closes, outermost first."""
    # a loop counter may also be a value that is reduced
    values = len(node.arg.combine.init) if node.op is Ops.REDUCE else 1
    return tuple(s for s in node.src[values:] if s.op is Ops.RANGE)


def stored_by(end: UOp) -> tuple[UOp, ...]:
    """The STOREs that an END repeats."""
    effect = end.src[0]
    return effect.src if effect.op is Ops.TUPLE else (effect,)
