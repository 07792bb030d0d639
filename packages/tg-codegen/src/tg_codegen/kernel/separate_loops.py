"""The pass that gives every loop of a kernel one place.

Closers (REDUCE, END) that cannot share a loop get loops of their own.

Two closers share a loop when they close the same ranges at the same place and neither needs the
other's result.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import partial

from tg_ir.graph import Ops, RangeArg, UOp, toposort

from tg_codegen.loops import closed_ranges

_CLOSERS = frozenset({Ops.REDUCE, Ops.END})
_MEMORY = frozenset({Ops.DEFINE_LOCAL, Ops.DEFINE_REG})


@dataclass(slots=True)
class _Group:
    """Closers that share their loops.

    The ranges that stay open around them, and a bit for each member.
    """

    opened: frozenset[UOp]
    members: int = 0


@dataclass(slots=True)
class _State:
    """What has been placed so far."""

    owners: dict[UOp, tuple[UOp, ...]] = field(default_factory=dict)
    groups: dict[tuple[UOp, ...], _Group] = field(default_factory=dict)
    needs: dict[UOp, int] = field(default_factory=dict)
    bits: itertools.count[int] = field(default_factory=itertools.count)
    fresh_axes: itertools.count[int] = field(default_factory=itertools.count)
    fresh_slots: itertools.count[int] = field(default_factory=itertools.count)


def separate_loops(sink: UOp) -> UOp:
    """Renames ranges so that each belongs to closers that can share its loop.

    Requires: no STAGE. Ensures: all closers of a range close the same ranges in the same order,
    have the same open ranges, and do not depend on each other.
    """
    order = toposort((sink,))
    ranges = [node for node in order if node.op is Ops.RANGE]
    state = _State()
    state.fresh_axes = itertools.count(1 + max((r.arg.axis[0] for r in ranges), default=0))
    slots = [node.arg.slot for node in order if node.op in _MEMORY]
    state.fresh_slots = itertools.count(1 + max(slots, default=-1))
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        result = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if result.op in _CLOSERS and closed_ranges(result):
            result = _place(result, state)
        else:
            _note_needs(result, state)
        new[node] = result
    return new[sink]


def _note_needs(node: UOp, state: _State) -> None:
    if node in state.needs:
        return
    needs = 0
    for source in node.src:
        needs |= state.needs.get(source, 0)
    state.needs[node] = needs


def _place(closer: UOp, state: _State) -> UOp:
    if closer in state.needs:
        return closer
    needs = 0
    for source in closer.src:
        needs |= state.needs.get(source, 0)
    ranges = closed_ranges(closer)
    group = state.groups.get(ranges)
    free = all(r not in state.owners for r in ranges)
    if group is None and free:
        group = _Group(closer.ranges)
        state.groups[ranges] = group
        state.owners.update(dict.fromkeys(ranges, ranges))
    elif group is None or group.opened != closer.ranges or group.members & needs:
        return _place(_with_fresh_ranges(closer, state), state)
    bit = 1 << next(state.bits)
    group.members |= bit
    state.needs[closer] = needs | bit
    return closer


def _with_fresh_ranges(closer: UOp, state: _State) -> UOp:
    """A copy of `closer` over new ranges.

    Loops inside its body that depend on them are renewed too.
    """
    body, renamed = _renamed_body(closer)
    # what a copied loop fills is memory of its own: the two copies may be read in any order
    moved = {
        n.src[0]
        for n in body
        if n.op is Ops.AFTER and n.ranges & renamed and n.src[0].op in _MEMORY
    }
    new: dict[UOp, UOp] = {}
    for node in body:
        src = tuple([new.get(s, s) for s in node.src])
        if node in moved:
            new[node] = node.replace(arg=replace(node.arg, slot=next(state.fresh_slots)))
            _note_needs(new[node], state)
            continue
        if node in renamed:
            # its extent may depend on another of these loops
            arg = RangeArg((next(state.fresh_axes),), node.arg.kind)
            new[node] = UOp(Ops.RANGE, node.dtype, src, arg)
            _note_needs(new[node], state)
            continue
        copy = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if copy is not node:
            if copy.op in _CLOSERS and closed_ranges(copy):
                copy = _place(copy, state)
            else:
                _note_needs(copy, state)
        new[node] = copy
    return UOp(closer.op, closer.dtype, tuple([new.get(s, s) for s in closer.src]), closer.arg)


def _depends_on(ranges: frozenset[UOp], node: UOp) -> bool:
    return node in ranges or bool(node.ranges & ranges)


def _renamed_body(closer: UOp) -> tuple[dict[UOp, None], set[UOp]]:
    """What a copy of `closer` over new ranges copies, and the ranges that it renames.

    A loop inside that depends on a renamed one is renamed, and with it all that depends on that.
    """
    renamed = set(closed_ranges(closer))
    while True:
        known = frozenset(renamed)
        body = toposort(closer.src, partial(_depends_on, known))
        for node in body:
            if node.op in _CLOSERS and node.ranges & known:
                renamed.update(closed_ranges(node))
        if len(renamed) == len(known):
            return body, renamed
