"""Movement ops on flat, row-major lists: which element of the source stands where in the result.

The items may be anything. The evaluator moves values, and positions of elements where it asks which
ones a STORE writes; `fill` stands where nothing comes from the source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.ops import Ops, SkewArg

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorValue:
    """The value of a tensor: `items` in row-major order of `shape`."""

    shape: Shape
    items: list[Any]

    @property
    def item(self) -> Any:
        """The one element of a value that has one."""
        if len(self.items) != 1:
            raise EvaluationError(f"expected a single number, got shape {self.shape}")
        return self.items[0]


def strides_of(shape: Shape) -> list[int]:
    """The distance between neighbours along each axis of a row-major list."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return strides


def positions_of(shape: Shape, strides: Sequence[int], offset: int = 0) -> list[int]:
    """Where the elements of a strided view lie, in row-major order of the view."""
    positions = [offset]
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        steps = [k * stride for k in range(extent)]
        positions = [position + step for position in positions for step in steps]
    return positions


def _view(value: TensorValue, shape: Shape, strides: Sequence[int], offset: int = 0) -> TensorValue:
    items = value.items
    if math.prod(shape) == 0:
        return TensorValue(shape, [])
    return TensorValue(shape, [items[p] for p in positions_of(shape, strides, offset)])


def move(op: Ops, value: TensorValue, arg: Any, fill: Any) -> TensorValue:
    """The result of a movement op whose argument `arg` holds plain ints.

    Raises:
        EvaluationError: the argument does not fit the shape.
    """
    strides = strides_of(value.shape)
    match op:
        case Ops.RESHAPE:
            return _reshape(value, arg)
        case Ops.EXPAND:
            return _expand(value, arg, strides)
        case Ops.PERMUTE:
            shape = tuple(value.shape[axis] for axis in arg)
            return _view(value, shape, [strides[axis] for axis in arg])
        case Ops.SHRINK:
            return _shrink(value, arg, strides)
        case Ops.FLIP:
            return _flip(value, arg, strides)
        case Ops.PAD:
            return _pad(value, arg, fill)
        case Ops.SKEW:
            return _skew(value, arg, strides)
        case Ops.UNSKEW:
            return _unskew(value, arg, fill)
        case _:
            raise EvaluationError(f"{op.name} does not move elements")


def _reshape(value: TensorValue, shape: Shape) -> TensorValue:
    if math.prod(shape) != len(value.items):
        raise EvaluationError(f"reshape: {value.shape} has not as many elements as {shape}")
    return TensorValue(shape, value.items)


def _expand(value: TensorValue, shape: Shape, strides: list[int]) -> TensorValue:
    fits = len(shape) == len(value.shape)
    if not fits or any(old not in (1, new) for old, new in zip(value.shape, shape, strict=True)):
        raise EvaluationError(f"expand: {value.shape} does not expand to {shape}")
    kept = [
        stride if old == new else 0
        for stride, old, new in zip(strides, value.shape, shape, strict=True)
    ]
    return _view(value, shape, kept)


def _shrink(value: TensorValue, bounds: Any, strides: list[int]) -> TensorValue:
    for extent, (begin, end) in zip(value.shape, bounds, strict=True):
        if not 0 <= begin <= end <= extent:
            raise EvaluationError(f"shrink: {bounds} reaches outside of shape {value.shape}")
    shape = tuple(end - begin for begin, end in bounds)
    offset = sum(b[0] * stride for b, stride in zip(bounds, strides, strict=True))
    return _view(value, shape, strides, offset)


def _flip(value: TensorValue, flags: Sequence[bool], strides: list[int]) -> TensorValue:
    offset = sum(
        (extent - 1) * stride
        for extent, stride, flipped in zip(value.shape, strides, flags, strict=True)
        if flipped
    )
    signed = [-s if flipped else s for s, flipped in zip(strides, flags, strict=True)]
    return _view(value, value.shape, signed, offset)


def _pad(value: TensorValue, padding: Any, fill: Any) -> TensorValue:
    shape = tuple(
        before + extent + after
        for extent, (before, after) in zip(value.shape, padding, strict=True)
    )
    if any(before < 0 or after < 0 for before, after in padding):
        raise EvaluationError(f"pad: expected sizes of at least 0, got {padding}")
    items = [fill] * math.prod(shape)
    strides = strides_of(shape)
    offset = sum(p[0] * stride for p, stride in zip(padding, strides, strict=True))
    if value.items:
        places = positions_of(value.shape, strides, offset)
        for place, item in zip(places, value.items, strict=True):
            items[place] = item
    return TensorValue(shape, items)


def _with_extent(shape: Shape, axis: int, extent: int) -> Shape:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _windowed(strides: Sequence[int], arg: SkewArg) -> list[int]:
    """Strides by which (o, k) reaches row `o*stride + k*dilation` of `axis`."""
    skewed = list(strides)
    skewed[arg.axis] = strides[arg.axis] * arg.stride
    skewed[arg.window_axis] = strides[arg.window_axis] + strides[arg.axis] * arg.dilation
    return skewed


def _skew(value: TensorValue, arg: SkewArg, strides: list[int]) -> TensorValue:
    shape = _with_extent(value.shape, arg.axis, arg.size)
    last = (arg.size - 1) * arg.stride + (value.shape[arg.window_axis] - 1) * arg.dilation
    if arg.size > 0 and last >= value.shape[arg.axis]:
        raise EvaluationError(
            f"skew: reads row {last} of axis {arg.axis} of shape {value.shape}: {arg}"
        )
    return _view(value, shape, _windowed(strides, arg))


def _unskew(value: TensorValue, arg: SkewArg, fill: Any) -> TensorValue:
    shape = _with_extent(value.shape, arg.axis, arg.size)
    items = [fill] * math.prod(shape)
    if not value.items:
        return TensorValue(shape, items)
    axis_alone = [int(axis == arg.axis) for axis in range(len(shape))]
    rows = positions_of(value.shape, [*_only(_windowed(axis_alone, arg), arg)])
    places = positions_of(value.shape, _windowed(strides_of(shape), arg))
    for row, place, item in zip(rows, places, value.items, strict=True):
        if row < arg.size:
            items[place] = item
    return TensorValue(shape, items)


def _only(strides: Sequence[int], arg: SkewArg) -> list[int]:
    """The strides that count rows of `axis`: those of the axis and of its window."""
    return [s if axis in (arg.axis, arg.window_axis) else 0 for axis, s in enumerate(strides)]


def gather(
    value: TensorValue, indices: Sequence[TensorValue], axes: Sequence[int], fill: Any
) -> TensorValue:
    """`value` at `indices` along `axes`: axes of the indices, then the others. Else `fill`."""
    strides = strides_of(value.shape)
    others = [axis for axis in range(len(value.shape)) if axis not in axes]
    rest_shape = tuple(value.shape[axis] for axis in others)
    rest = positions_of(rest_shape, [strides[a] for a in others]) if 0 not in rest_shape else []
    items: list[Any] = []
    for number in range(len(indices[0].items)):
        base = 0
        for index, axis in zip(indices, axes, strict=True):
            extent = value.shape[axis]
            wanted = index.items[number]
            wrapped = wanted + extent if wanted < 0 else wanted
            if not 0 <= wrapped < extent:
                items.extend([fill] * len(rest))
                break
            base += wrapped * strides[axis]
        else:
            items.extend([value.items[base + step] for step in rest])
    return TensorValue(indices[0].shape + rest_shape, items)
