"""Splitting a RANGE of a kernel in two, with masks where the parts do not divide it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tg_ir.graph import AxisType, Ops, UOp, as_index, toposort
from tg_ir.graph.symbolic import simplify

from tg_codegen.loops import stored_by

_CLOSERS = frozenset({Ops.REDUCE, Ops.END})


@dataclass(frozen=True, slots=True)
class _Split:
    """`axis` becomes `loops`; `value` is what stands for it, `mask` (None.

    Always true) where that is in range, `safe` an index in range even where `value` is not.
    """

    axis: UOp
    loops: tuple[UOp, ...]
    value: UOp
    safe: UOp
    mask: UOp | None


def extent(axis: UOp) -> int:
    """The constant bound of a RANGE, or -1 where it is symbolic."""
    bound = axis.src[0]
    return int(bound.arg) if bound.op is Ops.CONST else -1


def split_range(sink: UOp, axis: UOp, count: int, kind: AxisType) -> UOp:
    """`axis` as an outer loop (its kind.

    Path + (0,)) and an inner one of `count` (`kind`; path + (1,)).

    Where `count` is the whole extent or more there is no outer loop. Where it does not divide the
    extent, loads and stores beyond it are masked and a reduction takes the identity there.

    Requires: the bound of `axis` is constant.
    """
    total = extent(axis)
    inner = UOp.range(count, (*axis.arg.axis, 1), kind)
    outer_count = -(-total // count)
    loops: tuple[UOp, ...] = (inner,)
    value = inner
    if outer_count > 1:
        outer = UOp.range(outer_count, (*axis.arg.axis, 0), axis.arg.kind)
        loops = (outer, inner)
        value = outer * count + inner
    if outer_count * count == total:
        return _rebuild(sink, _Split(axis, loops, value, value, None))
    # rows of a register tile read a valid row again: a mask would be a branch in the inner loop
    safe = value.minimum(total - 1) if kind is AxisType.UNROLL else value
    return _rebuild(sink, _Split(axis, loops, value, safe, value < total))


def block_range(sink: UOp, axis: UOp, count: int) -> UOp:
    """`axis` as an outer loop over blocks and an inner one of at most `count` iterations.

    The last block is shorter where `count` does not divide the extent, so nothing is masked.

    Requires: the bound of `axis` is constant.
    """
    total = extent(axis)
    blocks = -(-total // count)
    if blocks * count == total or blocks == 1:
        return split_range(sink, axis, count, axis.arg.kind)
    outer = UOp.range(blocks, (*axis.arg.axis, 0), axis.arg.kind)
    left = as_index(total) - outer * count
    inner = UOp.range(simplify(left.minimum(count)), (*axis.arg.axis, 1), axis.arg.kind)
    value = outer * count + inner
    return _rebuild(sink, _Split(axis, (outer, inner), value, value, None))


def retag_range(sink: UOp, axis: UOp, kind: AxisType) -> UOp:
    """`axis` with another kind."""
    loop = UOp(Ops.RANGE, axis.dtype, axis.src, replace(axis.arg, kind=kind))
    return _rebuild(sink, _Split(axis, (loop,), loop, loop, None))


def _rebuild(sink: UOp, split: _Split) -> UOp:
    reduced = any(
        n.op is Ops.REDUCE and split.axis in n.src[1:] for n in toposort((sink,))
    )
    # beyond the end of a reduction nothing may be read again: its loads are masked instead
    stand_in = split.value if reduced else split.safe
    clamped = stand_in is not split.value
    order = toposort((sink,))
    fixed = _stores_at_fixed_places(order, split.axis) if split.mask is not None else set()
    new: dict[UOp, UOp] = {split.axis: stand_in}
    for node in order:
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if node.op in _CLOSERS and split.axis in node.src[1:]:
            new[node] = _closer(node, src, split)
        elif node.op is Ops.INDEX and split.axis in node.ranges:
            new[node] = _access(src, node, None if clamped else split.mask)
        elif node in fixed:
            target = _access(src[0].src, node.src[0], split.mask)
            new[node] = UOp(node.op, node.dtype, (target, *src[1:]), node.arg)
        elif node.op is Ops.STORE and clamped and split.axis in node.ranges:
            target = _exact(node.src[0], new, split)
            new[node] = UOp(node.op, node.dtype, (target, *src[1:]), node.arg)
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]


def _stores_at_fixed_places(order: Iterable[UOp], axis: UOp) -> set[UOp]:
    """STOREs that the loop of `axis` repeats at a place that does not depend on it."""
    ends = [node for node in order if node.op is Ops.END and axis in node.src[1:]]
    return {s for end in ends for s in stored_by(end) if axis not in s.src[0].ranges}


def _exact(index: UOp, new: dict[UOp, UOp], split: _Split) -> UOp:
    """The INDEX of a STORE over the exact position.

    Masked, where everything else uses the clamped one.
    """
    exact: dict[UOp, UOp] = {split.axis: split.value}
    for node in toposort(index.src[1:], lambda n: split.axis in n.ranges and n.op is not Ops.LOAD):
        if node in exact:
            continue
        if split.axis not in node.ranges or node.op is Ops.LOAD:
            exact[node] = new[node]
            continue
        src = tuple([exact[s] for s in node.src])
        exact[node] = UOp(node.op, node.dtype, src, node.arg)
    src = (new[index.src[0]], *[exact[s] for s in index.src[1:]])
    return _access(src, index, split.mask)


def _access(src: tuple[UOp, ...], index: UOp, mask: UOp | None) -> UOp:
    masks = [simplify(s) for s in src[2:]]
    if mask is not None:
        masks = [simplify(masks[0] & mask)] if masks else [mask]
    return UOp(Ops.INDEX, index.dtype, (src[0], simplify(src[1]), *masks))


def _closer(node: UOp, src: tuple[UOp, ...], split: _Split) -> UOp:
    place = node.src.index(split.axis, 1)
    loops = (*src[1:place], *split.loops, *src[place + 1 :])
    if node.op is Ops.END:
        return UOp(node.op, node.dtype, (src[0], *loops), node.arg)
    combine = node.arg.combine
    count = len(combine.init)
    place_of_loops = node.src.index(split.axis)
    values = [
        _masked(value, old, start, split)
        for value, old, start in zip(src[:count], node.src[:count], combine.init, strict=True)
    ]
    before = src[count:place_of_loops]
    return UOp(
        node.op, node.dtype, (*values, *before, *split.loops, *src[place_of_loops + 1 :]), node.arg
    )


def _masked(value: UOp, old: UOp, identity: bool | int | float, split: _Split) -> UOp:
    if split.mask is None or (identity == 0 and _is_zero_beyond(old, split.axis)):
        return value
    return split.mask.where(value, UOp.const(value.dtype, identity))


def _is_zero_beyond(value: UOp, axis: UOp) -> bool:
    """Whether masking the loads of `value` is enough to make it 0 beyond the end of `axis`."""
    if value.op is Ops.WHERE and value.src[2].op is Ops.CONST and value.src[2].arg == 0:
        return _is_zero_beyond(value.src[1], axis)
    if value.op is Ops.MUL:
        return all(_is_zero_beyond(s, axis) for s in value.src)
    return value.op is Ops.LOAD and len(value.src) == 1 and axis in value.src[0].ranges


def range_with_axis(sink: UOp, axis: tuple[int, ...]) -> UOp:
    """The RANGE of `sink` whose path is `axis`.

    Raises:
        KeyError: there is none; lists the axes there are.
    """
    ranges = {n.arg.axis: n for n in toposort((sink,)) if n.op is Ops.RANGE}
    if axis not in ranges:
        there = ", ".join(".".join(map(str, a)) for a in sorted(ranges))
        raise KeyError(f"no axis {'.'.join(map(str, axis))} in this kernel; there are {there}")
    return ranges[axis]

