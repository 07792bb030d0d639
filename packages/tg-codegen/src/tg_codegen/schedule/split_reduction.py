"""Splits a long reduction with few results in two, so that parts of it run side by side.

A sum of 16 million elements becomes 256 sums of 65,536 and one of 256. Reductions may be reordered
(docs: semantics, accumulation), so this is exact where the combine is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.graph import Ops, ReduceArg, UOp, prod

from tg_codegen.schedule.inline_functions import over

MIN_REDUCED = 1 << 16
MAX_RESULTS = 16
MAX_PARTS = 256


def split_reductions(order: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each node of `order` to the node that computes the same with long reductions split.

    Empty if there are none to split.
    """
    if not any(_parts(node) > 1 for node in order):
        return {}
    new: dict[UOp, UOp] = {}
    for node in order:
        moved = over(node, new)
        parts = _parts(moved)
        new[node] = _split(moved, parts) if parts > 1 else moved
    return new


def _parts(node: UOp) -> int:
    """Into how many parts the first reduced axis of `node` is split; 1 for not at all."""
    if node.op is not Ops.REDUCE_AXIS:
        return 1
    shape = node.src[0].shape
    if any(not isinstance(extent, int) for extent in shape):
        return 1
    reduced = prod(shape[axis] for axis in node.arg.axes)
    if reduced < MIN_REDUCED or prod(node.shape) >= MAX_RESULTS:
        return 1
    return _largest_divisor(shape[_split_axis(node)])


def _split_axis(node: UOp) -> int:
    """The first reduced axis that is not of size 1."""
    shape = node.src[0].shape
    axis: int = next(axis for axis in node.arg.axes if shape[axis] > 1)
    return axis


def _largest_divisor(extent: int) -> int:
    for parts in range(min(MAX_PARTS, extent), 1, -1):
        if extent % parts == 0:
            return parts
    return 1


def _split(node: UOp, parts: int) -> UOp:
    """The two reductions, one after the other."""
    shape = node.src[0].shape
    axis = _split_axis(node)
    wide = (*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :])
    inner_axes = tuple(a + 1 if a >= axis else a for a in node.arg.axes)
    combine = node.arg.combine
    values = tuple(source.reshape(wide) for source in node.src)
    first = UOp(Ops.REDUCE_AXIS, node.dtype, values, ReduceArg(combine, inner_axes))
    states: tuple[UOp, ...] = (first,)
    if len(node.src) > 1:
        states = tuple(first.get_tuple(i, s.dtype) for i, s in enumerate(node.src))
    narrow = tuple(1 if a in node.arg.axes and a != axis else e for a, e in enumerate(shape))
    narrow = (*narrow[:axis], parts, *narrow[axis + 1 :])
    flat = tuple(state.reshape(narrow) for state in states)
    return UOp(Ops.REDUCE_AXIS, node.dtype, flat, ReduceArg(combine, (axis,)))
