"""The pass that makes every UNROLL range disappear.

One copy of what depends on it for each of its values.

What does not depend on the range is shared by the copies. A REDUCE over it becomes independent
accumulators that are joined at the end.
"""

from __future__ import annotations

from tg_ir.graph import AxisType, Combine, Ops, UOp, as_index, substitute, toposort
from tg_ir.graph.symbolic import simplify

from tg_codegen.kernel.join_states import States, joined_in_pairs
from tg_codegen.kernel.private_memory import next_slots, renamed, scratch_filled_in
from tg_codegen.loops import closed_ranges


def is_unroll_range(node: UOp) -> bool:
    """Whether `node` is a RANGE of kind UNROLL."""
    return node.op is Ops.RANGE and node.arg.kind is AxisType.UNROLL


def unroll(sink: UOp) -> UOp:
    """Replaces UNROLL ranges by copies.

    Requires: their bounds are constant. Ensures: no UNROLL range; addresses and masks are
    simplified.
    """
    order = toposort((sink,))
    if not any(is_unroll_range(node) for node in order):
        return sink
    free = next_slots(order)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        result = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        copied = any(is_unroll_range(r) for r in node.src[1:])
        if copied and node.op is Ops.REDUCE:
            result = _unroll_reduce(result, free)
        elif copied and node.op in {Ops.END, Ops.STAGE}:
            result = _unroll_effect(result, free)
        new[node] = result
    return new[sink]


def _copies(
    roots: tuple[UOp, ...], axes: list[UOp], free: dict[Ops, int]
) -> list[tuple[UOp, ...]]:
    """`roots` once for each combination of values of `axes`, the last axis fastest."""
    copies = [roots]
    for axis in axes:
        values = range(int(axis.src[0].arg))
        copies = [_with_value(copy, axis, value, free) for copy in copies for value in values]
    return copies


def _with_value(
    roots: tuple[UOp, ...], axis: UOp, value: int, free: dict[Ops, int]
) -> tuple[UOp, ...]:
    """`roots` with `axis` = `value`; nodes that do not depend on it are not visited."""
    order = toposort(roots, lambda n: n is not axis and _mentions(n, axis))
    new: dict[UOp, UOp] = {axis: as_index(value)}
    filled = scratch_filled_in(order, axis) if value else []
    own = {memory: renamed(memory, free) for memory in filled}
    for node in order:
        if node is axis:
            continue
        if not _mentions(node, axis):
            new[node] = substitute((node,), own)[0] if own else node
            continue
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.INDEX:
            src = (src[0], *[simplify(s) for s in src[1:]])
        new[node] = UOp(node.op, node.dtype, src, node.arg)
    return tuple([new[root] for root in roots])


def _mentions(node: UOp, axis: UOp) -> bool:
    return axis in node.ranges


def _unroll_effect(node: UOp, free: dict[Ops, int]) -> UOp:
    ranges = closed_ranges(node)
    axes = [r for r in ranges if is_unroll_range(r)]
    loops = tuple(r for r in ranges if not is_unroll_range(r))
    effect = node.src[0]
    effects = effect.src if effect.op is Ops.TUPLE else (effect,)
    stores = [store for copy in _copies(effects, axes, free) for store in copy]
    group = stores[0] if len(stores) == 1 else UOp(Ops.TUPLE, node.dtype, tuple(stores))
    return UOp(node.op, node.dtype, (group, *loops), node.arg)


def _unroll_reduce(node: UOp, free: dict[Ops, int]) -> UOp:
    combine: Combine = node.arg.combine
    count = len(combine.init)
    ranges = closed_ranges(node)
    axes = [r for r in ranges if is_unroll_range(r)]
    loops = tuple(r for r in ranges if not is_unroll_range(r))
    copies = _copies(node.src[:count], axes, free)
    partial = [_states(node, copy, loops) for copy in copies]
    joined = joined_in_pairs(combine, partial)
    # without ranges a REDUCE is just the tuple of its states
    return joined[0] if count == 1 else UOp(node.op, node.dtype, joined, node.arg)


def _states(node: UOp, values: States, loops: tuple[UOp, ...]) -> States:
    """The states of `node` for one copy of its values."""
    if not loops:
        return values
    reduced = UOp(node.op, node.dtype, (*values, *loops), node.arg)
    if len(values) == 1:
        return (reduced,)
    return tuple([reduced.get_tuple(k, value.dtype) for k, value in enumerate(values)])
