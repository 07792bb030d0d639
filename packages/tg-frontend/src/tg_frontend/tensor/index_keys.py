"""What stands between the brackets: parsed once, for reading and for writing.

A key becomes bounds, directions and steps for each axis (a view), and index nodes for some of them
(a gather). Python ints drop their axis before index tensors are looked at, as in torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import Ops, UOp, as_size

from tg_frontend.errors import IndexOutOfRangeError
from tg_frontend.nodes.broadcasting import Shape, broadcast_shape, broadcast_to
from tg_frontend.nodes.sizes import with_values
from tg_frontend.tensor.movement import every_nth


@dataclass
class ParsedKey:
    """A key for a tensor of one shape.

    Attributes:
        bounds: begin and end for each axis.
        flips: whether each axis is then reversed.
        steps: distance of the elements taken, for each axis.
        layout: for each axis of the view the axis it comes from, None for a new one.
        indices: axis of the view -> the index node for it.
    """

    bounds: list[tuple[Any, Any]] = field(default_factory=list)
    flips: list[bool] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    layout: list[int | None] = field(default_factory=list)
    indices: dict[int, UOp] = field(default_factory=dict)

    def view(self, uop: UOp) -> UOp:
        """The part that ints, slices and None choose."""
        moved = uop.shrink(self.bounds).flip(self.flips)
        for axis, step in enumerate(self.steps):
            moved = every_nth(moved, axis, step)
        shape = tuple(1 if axis is None else moved.shape[axis] for axis in self.layout)
        return moved.reshape(shape)

    def select(self, uop: UOp) -> UOp:
        """The elements that the whole key chooses."""
        viewed = self.view(uop)
        return gathered(viewed, self.indices) if self.indices else viewed


def gathered(uop: UOp, indices: dict[int, UOp]) -> UOp:
    """`uop` at index nodes that broadcast.

    Their axes stand where the first was if they are neighbours.

    Raises:
        ShapeError: the indices do not broadcast.
    """
    axes = tuple(sorted(indices))
    shape = broadcast_shape(*(indices[axis].shape for axis in axes))
    nodes = [broadcast_to(indices[axis], shape) for axis in axes]
    picked = UOp(Ops.GATHER, uop.dtype, (uop, *nodes), axes)
    first = axes[0]
    neighbours = axes == tuple(range(first, first + len(axes)))
    if not neighbours or first == 0:
        return picked
    front, count = list(range(len(shape), len(shape) + first)), len(shape)
    return picked.permute([*front, *range(count), *range(count + first, picked.ndim)])


def parse_key(key: Sequence[Any], shape: Shape) -> ParsedKey:
    """Parse items that are ints, slices, None, Ellipsis, symbolic ints or index nodes.

    Raises:
        IndexOutOfRangeError: an int outside its axis, or more items than axes.
        DTypeError: an item of another type.
    """
    parsed = ParsedKey()
    for item in _without_ellipsis(key, len(shape)):
        axis = len(parsed.bounds)
        if item is None:
            parsed.layout.append(None)
            continue
        extent = shape[axis]
        bounds, flip, step = (0, extent), False, 1
        if isinstance(item, UOp) and item.dtype is not dtypes.index:
            parsed.indices[len(parsed.layout)] = item
            parsed.layout.append(axis)
        elif isinstance(item, slice):
            bounds, flip, step = _slice_of_axis(item, extent)
            parsed.layout.append(axis)
        else:
            position = _position(item, extent, axis, shape)
            bounds = (position, position + 1)
        parsed.bounds.append(bounds)
        parsed.flips.append(flip)
        parsed.steps.append(step)
    return parsed


def _without_ellipsis(key: Sequence[Any], ndim: int) -> list[Any]:
    items = list(key)
    places = [k for k, item in enumerate(items) if item is Ellipsis]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if len(places) > 1:
        raise IndexOutOfRangeError(f"an index has at most one Ellipsis, got {len(places)}")
    if used > ndim:
        raise IndexOutOfRangeError(f"{used} indices for a tensor of {ndim} axes")
    place = places[0] if places else len(items)
    whole = [slice(None)] * (ndim - used)
    return items[:place] + whole + items[place + 1 :]


def _position(item: Any, extent: Any, axis: int, shape: Shape) -> Any:
    if isinstance(item, UOp):
        _check_symbolic_bounds(item, item + 1, extent)
        return item
    if isinstance(item, bool) or not hasattr(item, "__index__"):
        raise DTypeError(
            f"cannot index with {type(item).__name__} {item!r}; "
            "expected ints, slices, None, Ellipsis, or int and bool tensors"
        )
    position = item.__index__()
    if isinstance(extent, int) and not -extent <= position < extent:
        raise IndexOutOfRangeError(
            f"index {position} is out of range for axis {axis} of shape {shape}; "
            f"expected {-extent}..{extent - 1}"
        )
    return as_size(extent + position) if position < 0 else position


def _check_symbolic_bounds(begin: Any, end: Any, extent: Any) -> None:
    """Refuse bounds that for some value of their variables leave the axis.

    Raises:
        IndexOutOfRangeError: so they would, or they end before they begin.
    """
    lowest = begin.vmin if isinstance(begin, UOp) else begin
    highest = end.vmax if isinstance(end, UOp) else end
    if isinstance(extent, int) and not (0 <= lowest and highest <= extent):
        raise IndexOutOfRangeError(
            f"symbolic bounds {begin}:{end} may reach {lowest}..{highest}, outside an axis of "
            f"{extent}; give the variable bounds that fit"
        )
    size = with_values(as_size(end - begin))
    if isinstance(size, int) and size < 0:
        raise IndexOutOfRangeError(
            f"symbolic bounds {begin}:{end} end before they begin; give them in order"
        )


def _from_the_front(place: Any, extent: Any) -> Any:
    """A bound of a slice; a negative int counts from the end, whatever the extent is."""
    return as_size(extent + place) if isinstance(place, int) and place < 0 else place


def _slice_of_axis(item: slice, extent: Any) -> tuple[tuple[Any, Any], bool, int]:
    """Bounds, direction and step of a slice."""
    if any(isinstance(part, UOp) for part in (item.start, item.stop, extent)):
        if item.step not in (None, 1):
            raise ShapeError(f"a slice with symbolic bounds has step 1, got {item.step}")
        begin = 0 if item.start is None else _from_the_front(item.start, extent)
        end = extent if item.stop is None else _from_the_front(item.stop, extent)
        _check_symbolic_bounds(begin, end, extent)
        return (begin, end), False, 1
    for part in (item.start, item.stop, item.step):
        if part is not None and not hasattr(type(part), "__index__"):
            raise DTypeError(
                f"a slice is of ints, got {type(part).__name__} {part!r} in "
                f"{item.start}:{item.stop}:{item.step}"
            )
    if item.step == 0:
        raise ShapeError("a slice has a step other than 0")
    start, stop, step = item.indices(extent)
    count = len(range(start, stop, step))
    if not count:
        return (0, 0), False, 1
    if step > 0:
        return (start, stop), False, step
    return (start + (count - 1) * step, start + 1), True, -step


def check_index_dtype(uop: UOp) -> UOp:
    """An index node of an int dtype.

    Raises:
        DTypeError: another dtype.
    """
    if not dtypes.is_int(uop.dtype):
        raise DTypeError(f"an index tensor has an int or bool dtype, got {uop.dtype.name}; cast it")
    return uop
