"""What a movement op does to an index.

From the index of an element of its result to the index of the element of its source, and for PAD
and UNSKEW the condition under which there is one.

Pure index arithmetic; nothing here knows kernels or buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp, as_index, is_one, is_zero, prod, same_extent
from tg_ir.graph.symbolic import simplify

Index = tuple[UOp, ...]
Extent = int | UOp

ZERO = as_index(0)


def push_index(node: UOp, index: Index) -> tuple[Index, UOp | None]:
    """The index into `node.src[0]` of element `index` of a movement op, and when it exists.

    The condition is None where it always does; where it is false the element is 0.
    """
    source = node.src[0].shape
    match node.op:
        case Ops.RESHAPE:
            return _reshape(index, node.shape, source), None
        case Ops.EXPAND:
            kept = (
                ZERO if is_one(extent) and not is_one(wide) else position
                for position, extent, wide in zip(index, source, node.shape, strict=True)
            )
            return tuple(kept), None
        case Ops.PERMUTE:
            return tuple(index[node.arg.index(axis)] for axis in range(len(source))), None
        case Ops.SHRINK:
            shifted = (
                simplify(position + begin)
                for position, (begin, _) in zip(index, node.marg, strict=True)
            )
            return tuple(shifted), None
        case Ops.FLIP:
            turned = (
                simplify(as_index(extent) - 1 - position) if flipped else position
                for position, extent, flipped in zip(index, source, node.arg, strict=True)
            )
            return tuple(turned), None
        case Ops.PAD:
            return _pad(index, source, node.marg)
        case Ops.SKEW:
            return _skew(node, index), None
        case _:
            return _unskew(node, index, source)


def both(left: UOp | None, right: UOp | None) -> UOp | None:
    """The conjunction of two conditions, None standing for true."""
    if left is None:
        return right
    if right is None or left is right:
        return left
    return simplify(left & right)


def in_range(position: UOp, begin: Extent, end: Extent) -> UOp | None:
    """The condition `begin <= position < end`; None where the bounds of `position` prove it."""
    low, high = as_index(begin), as_index(end)
    above = None
    below = None
    if not position.vmin >= low.vmax:
        above = simplify((low - 1).alu(Ops.CMPLT, position))
    if not position.vmax < high.vmin:
        below = simplify(position.alu(Ops.CMPLT, high))
    return both(above, below)


def flatten(index: Sequence[UOp], shape: Sequence[Extent]) -> UOp:
    """The row-major position of `index` in `shape`."""
    total = ZERO
    for position, extent in zip(index, shape, strict=True):
        total = total * extent + position
    return total


def _pad(
    index: Index, source: Sequence[Extent], padding: Sequence[tuple[Extent, Extent]]
) -> tuple[Index, UOp | None]:
    moved: list[UOp] = []
    valid: UOp | None = None
    for position, extent, (before, after) in zip(index, source, padding, strict=True):
        if is_zero(before) and is_zero(after):
            moved.append(position)
            continue
        inner = simplify(position - before)
        valid = both(valid, in_range(inner, 0, extent))
        moved.append(inner)
    return tuple(moved), valid


def _skew(node: UOp, index: Index) -> Index:
    window = node.arg
    at = index[window.axis] * window.stride + index[window.window_axis] * window.dilation
    moved = list(index)
    moved[window.axis] = simplify(at)
    return tuple(moved)


def _unskew(node: UOp, index: Index, source: Sequence[Extent]) -> tuple[Index, UOp | None]:
    window = node.arg
    offset = simplify(index[window.axis] - index[window.window_axis] * window.dilation)
    moved = list(index)
    at = simplify(offset // window.stride)
    valid = in_range(at, 0, source[window.axis])
    if window.stride != 1:
        whole = simplify((offset % window.stride).alu(Ops.CMPEQ, ZERO))
        valid = both(valid, whole)
    moved[window.axis] = at
    return tuple(moved), valid


def _reshape(index: Index, shape: Sequence[Extent], source: Sequence[Extent]) -> Index:
    """Axes are matched in the smallest groups of equal size, so that unrelated axes stay apart."""
    out_axes = [(i, e) for i, e in zip(index, shape, strict=True) if not is_one(e)]
    in_axes = [axis for axis, extent in enumerate(source) if not is_one(extent)]
    moved: list[UOp] = [ZERO] * len(source)
    taken = 0
    given = 0
    while given < len(in_axes) and taken < len(out_axes):
        out_end, in_end = _matching_group(out_axes, taken, source, in_axes, given)
        group = out_axes[taken:out_end]
        flat = flatten([i for i, _ in group], [e for _, e in group])
        _unflatten(flat, in_axes[given:in_end], source, moved)
        taken, given = out_end, in_end
    return tuple(moved)


def _matching_group(
    out_axes: Sequence[tuple[UOp, Extent]],
    taken: int,
    source: Sequence[Extent],
    in_axes: Sequence[int],
    given: int,
) -> tuple[int, int]:
    """The ends of the shortest runs of axes from here on with the same number of elements."""
    out_end = taken + 1
    in_end = given + 1
    left: Extent = out_axes[taken][1]
    right: Extent = source[in_axes[given]]
    while not same_extent(left, right):
        grow_left = out_end < len(out_axes)
        grow_right = in_end < len(in_axes)
        if isinstance(left, int) and isinstance(right, int):
            if grow_left and (left < right or not grow_right):
                grow_right = False
            elif grow_right:
                grow_left = False
        elif grow_left or grow_right:
            # symbolic sizes that do not match axis by axis: everything left is one group
            return len(out_axes), len(in_axes)
        if not grow_left and not grow_right:
            break
        if grow_left:
            left = prod((left, out_axes[out_end][1]))
            out_end += 1
        else:
            right = prod((right, source[in_axes[in_end]]))
            in_end += 1
    return out_end, in_end


def _unflatten(
    flat: UOp, axes: Sequence[int], source: Sequence[Extent], moved: list[UOp]
) -> None:
    """Writes the coordinates of position `flat` in `axes` of `source` into `moved`."""
    rest = flat
    for axis in reversed(axes[1:]):
        moved[axis] = simplify(rest % source[axis])
        rest = rest // source[axis]
    moved[axes[0]] = simplify(rest)


def wrapped_position(position: UOp, extent: UOp) -> tuple[UOp, UOp]:
    """A position read from a tensor of ints.

    Wrapped once where negative, and whether it lies in `extent`.
    """
    at = position.cast(dtypes.index)
    if position.dtype is dtypes.uint64:
        # the upper half has no place in a signed 64 bit index, so it is compared as it is
        return at, position.alu(Ops.CMPLT, extent.cast(dtypes.uint64))
    wrapped = at if at.vmin >= 0 else at.alu(Ops.CMPLT, ZERO).where(at + extent, at)
    within = in_range(wrapped, 0, extent)
    return wrapped, UOp.const(dtypes.bool, True) if within is None else within


def loop_is_empty(position: UOp) -> bool:
    """Whether `position` counts a loop of no iterations."""
    return (
        position.op is Ops.RANGE
        and position.src[0].op is Ops.CONST
        and position.src[0].arg <= 0
    )
