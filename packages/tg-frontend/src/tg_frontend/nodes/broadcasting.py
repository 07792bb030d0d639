"""Shapes and constants of tensor graphs at the level of UOps.

Broadcasting, filling, axis numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tg_ir.dtype import DType
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, as_int, same_extent

from tg_frontend.errors import AxisError
from tg_frontend.nodes.sizes import Shape as Shape
from tg_frontend.nodes.sizes import whole_number


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape that all `shapes` expand to, by numpy's rules.

    Raises:
        ShapeError: two extents differ and neither is 1; names all shapes.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    ndim = max(len(shape) for shape in shapes)
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for extents in zip(*aligned, strict=True):
        wanted = next((extent for extent in extents if not same_extent(extent, 1)), 1)
        if not all(same_extent(extent, 1) or same_extent(extent, wanted) for extent in extents):
            shown = " and ".join(str(shape) for shape in shapes)
            raise ShapeError(
                f"shapes {shown} do not broadcast: aligned at the last axis, "
                "extents must be equal or 1"
            )
        result.append(wanted)
    return tuple(result)


def broadcast_to(uop: UOp, shape: Shape) -> UOp:
    """`uop` expanded to `shape`.

    Raises:
        ShapeError: it does not expand to that shape.
    """
    old = uop.shape
    if old == shape:
        return uop
    if len(old) > len(shape):
        raise ShapeError(f"shape {old} does not broadcast to {shape}: it has more axes")
    aligned = (1,) * (len(shape) - len(old)) + old
    fits = all(
        same_extent(extent, 1) or same_extent(extent, wanted)
        for extent, wanted in zip(aligned, shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"shape {old} does not broadcast to {shape}")
    return uop.reshape(aligned).expand(shape)


def filled(dtype: DType, value: bool | int | float, shape: Shape) -> UOp:
    """The constant `value` in every element."""
    return broadcast_to(UOp.const(dtype, value), shape)


def is_constant_expression(uop: UOp) -> bool:
    """Whether nothing below `uop` is stored: it has no device, and no identity of its own."""
    return uop.device is None


def resolve_axis(axis: int, ndim: int, extra: int = 0) -> int:
    """`axis` counted from the front.

    Args:
        axis: from `-(ndim + extra)` to `ndim + extra - 1`.
        ndim: number of axes of the tensor.
        extra: 1 where the axis is one that will be added.

    Raises:
        AxisError: there is no such axis.
        ArgumentError: it is no int.
    """
    axis = whole_number(axis, "axis")
    total = ndim + extra
    if ndim == 0 and extra == 0 and axis in (0, -1):
        return 0
    if not -total <= axis < total:
        raise AxisError(
            f"axis {axis} is out of range for a tensor of {ndim} axes; "
            f"expected {-total}..{total - 1}"
        )
    return axis + total if axis < 0 else axis


def existing_axis(axis: int, shape: Shape, what: str) -> int:
    """`axis` counted from the front, for what works along one that has to be there.

    Raises:
        AxisError: there is no such axis.
        ShapeError: there is none at all.
    """
    if not shape:
        raise ShapeError(f"{what}: a tensor without axes has none to work along; reshape it first")
    return resolve_axis(axis, len(shape))


def resolve_axes(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes meant, sorted and without doubles; None means all.

    Raises:
        AxisError: one does not exist, or is given twice.
    """
    if axes is None:
        return tuple(range(ndim))
    given = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    resolved = [resolve_axis(axis, ndim) for axis in given]
    if len(set(resolved)) != len(resolved):
        raise AxisError(f"axes {given} name one axis of {ndim} twice")
    return tuple(sorted(resolved)) if ndim else ()


def iota(length: Any, dtype: DType) -> UOp:
    """0, 1, ... length-1, shape `(length,)`."""
    size = as_int(length)
    if isinstance(size, UOp):
        return UOp(Ops.IOTA, dtype, (size,), None)
    return UOp(Ops.IOTA, dtype, (), size)


def positions(shape: Shape, axis: int, dtype: DType) -> UOp:
    """For each element of `shape` its index along `axis`."""
    ndim = len(shape)
    aligned = tuple(shape[axis] if k == axis else 1 for k in range(ndim))
    return iota(shape[axis], dtype).reshape(aligned).expand(shape)


def replaced(items: Iterable[Any], position: int, value: Any) -> tuple[Any, ...]:
    """`items` as a tuple with the one at `position` replaced."""
    changed = list(items)
    changed[position] = value
    return tuple(changed)
