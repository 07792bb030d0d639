"""Joining states of reductions.

A `Combine` written out over given values, lane by lane for vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.graph import Combine, Ops, UOp, toposort

States = tuple[UOp, ...]
"""One value a state, all scalars or all vectors of as many lanes."""


def joined_states(combine: Combine, accumulated: Sequence[UOp], new: Sequence[UOp]) -> States:
    """The states that `combine` makes of two."""
    if combine.op is not None:
        return (UOp(combine.op, new[0].dtype, (accumulated[0], new[0])),)
    lanes = new[0].dtype.count
    over: dict[UOp, UOp] = {}
    for node in toposort(combine.body):
        if node.op is Ops.STATE:
            side, position = node.arg
            over[node] = (new if side else accumulated)[position]
        elif node.op is Ops.CONST:
            over[node] = node.broadcast(lanes)
        else:
            src = tuple([over[s] for s in node.src])
            over[node] = UOp(node.op, node.dtype.vec(lanes), src, node.arg)
    return tuple([over[root] for root in combine.body])


def joined_in_pairs(combine: Combine, several: Sequence[States]) -> States:
    """All of `several` joined, as a balanced tree; their order is that of no loop."""
    left = list(several)
    while len(left) > 1:
        pairs = [
            joined_states(combine, left[place], left[place + 1])
            for place in range(0, len(left) - 1, 2)
        ]
        left = pairs + left[len(pairs) * 2 :]
    return left[0]
