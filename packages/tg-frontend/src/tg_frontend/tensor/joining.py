"""Operators that put tensors together or elements around one: cat, stack, pad, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeVar

from tg_ir.dtype import dtypes
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, as_index, same_extent

from tg_frontend.errors import ArgumentError
from tg_frontend.nodes.broadcasting import broadcast_to, filled, iota, positions, resolve_axis
from tg_frontend.nodes.sizes import as_shape, expect_plain_sizes
from tg_frontend.nodes.special_functions import absolute
from tg_frontend.tensor.core import common_operands, expect_tensors
from tg_frontend.tensor.keyword_names import also_called
from tg_frontend.tensor.movement import Movement

TensorT = TypeVar("TensorT")
_Pairs = list[tuple[Any, Any]]


class Joining(Movement):
    """Joining and padding."""

    __slots__ = ()

    @also_called("axis", "dim")
    def cat(self, *args: Self, dim: int = 0) -> Self:
        """This and the others one after the other along an axis; `Tensor.cat(list)` works too.

        Raises:
            ShapeError: they differ in another axis; names all shapes.
        """
        tensors = _tensors_given("cat", self, args)
        first = tensors[0]
        if first.ndim == 0:
            raise ShapeError("cat: a tensor without axes; use stack to make one")
        axis = resolve_axis(dim, first.ndim)
        for other in tensors[1:]:
            fits = other.ndim == first.ndim and all(
                k == axis or same_extent(a, b)
                for k, (a, b) in enumerate(zip(first.shape, other.shape, strict=True))
            )
            if not fits:
                shown = " and ".join(str(tensor.shape) for tensor in tensors)
                raise ShapeError(f"cat: shapes {shown} differ in an axis other than {axis}")
        return first._from_uop(concatenated([tensor.uop for tensor in tensors], axis))

    @also_called("axis", "dim")
    def stack(self, *args: Self, dim: int = 0) -> Self:
        """This and the others along a new axis; `Tensor.stack(list)` works too.

        Raises:
            ShapeError: the shapes differ.
        """
        tensors = _tensors_given("stack", self, args)
        shape = tensors[0].shape
        axis = resolve_axis(dim, len(shape), extra=1)
        for other in tensors[1:]:
            if other.shape != shape:
                raise ShapeError(f"stack: shapes {shape} and {other.shape} differ")
        first, *rest = [tensor.unsqueeze(axis) for tensor in tensors]
        return first.cat(*rest, dim=axis)

    def pad(self, padding: Any, mode: str = "constant", value: bool | int | float = 0) -> Self:
        """Elements added around the tensor, or taken away where negative.

        Args:
            padding: one `(before, after)` or None an axis, or a flat list `(left, right, top,
                bottom, ...)`
                that begins with the last axis.
            mode: "constant" (`value`), "reflect", "replicate" or "circular".
            value: what is added in mode "constant".

        Raises:
            ShapeError: not a form above, or more than the mode can take from the axis.
        """
        if not isinstance(value, (bool, int, float)):
            raise ArgumentError(f"pad: expected a number to pad with, got {value!r}")
        pairs = _padding_pairs(padding, self.ndim)
        if mode == "constant":
            return self._from_uop(_padded(self.uop, pairs, value))
        if mode not in _SOURCE_OF_PADDING:
            raise ValueError(
                f"pad: mode is constant, reflect, replicate or circular, got {mode!r}"
            )
        uop = self.uop
        for axis, (before, after) in enumerate(pairs):
            if before or after:
                uop = _padded_from_inside(uop, axis, before, after, mode)
        return self._from_uop(uop)

    def pad_to(self, *shape: Any, value: bool | int | float = 0) -> Self:
        """Elements added at the end of each axis up to the shape given; None keeps an axis.

        Raises:
            ShapeError: not one extent an axis, or a smaller one.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        wanted = [
            old if new is None else new for old, new in zip(self.shape, given, strict=False)
        ]
        fits = len(given) == self.ndim and all(
            isinstance(old, UOp) or isinstance(new, UOp) or old <= new
            for old, new in zip(self.shape, wanted, strict=True)
        )
        if not fits:
            raise ShapeError(f"pad_to: {tuple(given)} is no larger shape than {self.shape}")
        return self.pad(
            [(0, new - old) for old, new in zip(self.shape, wanted, strict=True)], value=value
        )

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Self:
        """The elements moved along the axes; what leaves at the end comes in at the front."""
        if dims is None:
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        all_shifts = as_shape((shifts,), "roll: shifts")
        all_dims = as_shape((dims,), "roll: dims")
        if len(all_shifts) != len(all_dims):
            raise ShapeError(f"roll: shifts {all_shifts} and dims {all_dims} differ in number")
        result = self
        for shift, dim in zip(all_shifts, all_dims, strict=True):
            axis = resolve_axis(dim, self.ndim)
            expect_plain_sizes(self.shape, "roll")
            extent = int(self.shape[axis])
            cut = (-shift) % extent if extent else 0
            if cut:
                front = result._narrow(axis, 0, cut)
                result = result._narrow(axis, cut, extent).cat(front, dim=axis)
        return result

    def meshgrid(self, *args: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Coordinate grids of vectors; indexing "ij" or "xy"."""
        if indexing not in ("ij", "xy"):
            raise ValueError(f"meshgrid: indexing is 'ij' or 'xy', got {indexing!r}")
        expect_tensors("meshgrid", *args)
        vectors = [self, *args]
        order = list(range(len(vectors)))
        if indexing == "xy" and len(order) > 1:
            order[0], order[1] = 1, 0
        grids = []
        full = [0] * len(order)
        for vector, axis in zip(vectors, order, strict=True):
            expect_plain_sizes(vector.shape, "meshgrid")
            full[axis] = int(vector.numel())
        for vector, axis in zip(vectors, order, strict=True):
            aligned = tuple(size if k == axis else 1 for k, size in enumerate(full))
            grids.append(vector.reshape(aligned).expand(tuple(full)))
        return tuple(grids)


def _tensors_given(what: str, first: TensorT, others: Sequence[TensorT]) -> list[TensorT]:
    """The tensors to join: one by one, or all in one list."""
    given: Any = first
    tensors = list(given) if isinstance(given, (list, tuple)) and not others else [first, *others]
    expect_tensors(what, *tensors)
    if not tensors:
        raise ArgumentError(f"{what}: expected at least one tensor, got an empty list")
    return tensors


def concatenated(uops: Sequence[UOp], axis: int) -> UOp:
    """Nodes one after the other along `axis`: each padded to the whole, and chosen by position.

    Chosen and not added, so that -0 stays.
    """
    sizes = [uop.shape[axis] for uop in uops]
    dtype = common_operands([uop.reshape((uop.size,)).shrink([(0, 0)]) for uop in uops])[1]
    total = sum(sizes[1:], start=sizes[0])
    result: UOp | None = None
    end: Any = 0
    for uop, size in zip(uops, sizes, strict=True):
        if same_extent(size, 0) and len(uops) > 1 and not same_extent(total, 0):
            continue
        begin, end = end, end + size
        pairs = [(0, 0)] * uop.ndim
        pairs[axis] = (begin, total - end)
        part = uop.cast(dtype).pad(pairs)
        if result is None:
            result = part
        else:
            place = positions(part.shape, axis, dtypes.int32)
            limit = broadcast_to(as_index(begin).cast(dtypes.int32), place.shape)
            result = (place < limit).where(result, part)
    return uops[0] if result is None else result


def _padding_pairs(padding: Any, ndim: int) -> _Pairs:
    if isinstance(padding, int):
        padding = (padding, padding) * ndim
    if not isinstance(padding, (tuple, list)):
        raise ArgumentError(f"pad: expected a pair for each axis, got {padding!r}")
    items = list(padding)
    if items and all(isinstance(item, (int, UOp)) for item in items):
        if len(items) % 2 or len(items) > 2 * ndim:
            raise ShapeError(
                f"pad: a flat padding has 2 numbers an axis, got {padding} for {ndim} axes"
            )
        pairs = list(zip(items[::2], items[1::2], strict=True))[::-1]
        return [(0, 0)] * (ndim - len(pairs)) + pairs
    if len(items) != ndim:
        raise ShapeError(f"pad: expected a pair for each of {ndim} axes, got {padding}")
    pairs = []
    for item in items:
        sides = (0, 0) if item is None else as_shape((item,), "pad")
        if len(sides) != 2:
            raise ShapeError(f"pad: expected pairs (before, after), got {item} in {padding}")
        pairs.append((sides[0], sides[1]))
    return pairs


def _padded(uop: UOp, pairs: _Pairs, value: bool | int | float) -> UOp:
    bounds = []
    outside = []
    for extent, (before, after) in zip(uop.shape, pairs, strict=True):
        cut_before = max(0, -before) if isinstance(before, int) else 0
        cut_after = max(0, -after) if isinstance(after, int) else 0
        bounds.append((cut_before, extent - cut_after))
        outside.append((before + cut_before, after + cut_after))
    inner = uop.shrink(bounds)
    padded = inner.pad(outside)
    if value == 0 or padded is inner:
        return padded
    inside = filled(dtypes.bool, True, inner.shape).pad(outside)
    return inside.where(padded, padded.const_like(value))


def _reflect(place: UOp, extent: int) -> UOp:
    distance = absolute(place)
    return distance.minimum(2 * (extent - 1) - distance)


def _replicate(place: UOp, extent: int) -> UOp:
    return place.maximum(0).minimum(extent - 1)


def _circular(place: UOp, extent: int) -> UOp:
    return place % extent


_SOURCE_OF_PADDING = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}


def _padded_from_inside(uop: UOp, axis: int, before: int, after: int, mode: str) -> UOp:
    expect_plain_sizes(uop.shape, f"pad with mode {mode}")
    extent = int(uop.shape[axis])
    limit = {"reflect": extent - 1, "circular": extent}.get(mode)
    if limit is not None and max(before, after) > limit or extent == 0:
        raise ShapeError(f"pad: mode {mode} adds at most {limit} to axis {axis} of {uop.shape}")
    place = iota(extent + before + after, dtypes.int32) - before
    picked = UOp(Ops.GATHER, uop.dtype, (uop, _SOURCE_OF_PADDING[mode](place, extent)), (axis,))
    order = list(range(1, uop.ndim))
    order.insert(axis, 0)
    return picked.permute(order)
