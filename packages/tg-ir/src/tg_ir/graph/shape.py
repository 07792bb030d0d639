"""The shape and the device of every node of a tensor graph.

And the errors for operands that do not fit.

Kernel-level nodes are scalars or vectors: their shape is `()`.
"""

from __future__ import annotations

from typing import Any

from tg_ir.errors import ShapeError
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.uop import UOp, as_int, as_size, prod, toposort

Shape = tuple[Any, ...]

_SAME_AS_FIRST = (
    GroupOp.Elementwise
    | {Ops.CONTIGUOUS, Ops.DETACH, Ops.COPY, Ops.AFTER, Ops.REALIZED, Ops.SCAN_AXIS, Ops.STORE}
)


def infer_shapes(root: UOp) -> None:
    """Fills `_shape` of `root` and of all that it needs.

    Raises:
        ShapeError: a node whose operands do not fit.
    """
    for node in toposort((root,), _needs_shape):
        if node._shape is None:
            node._shape = _shape_of(node)


def _needs_shape(node: UOp) -> bool:
    return node._shape is None


def _shape_of(node: UOp) -> Shape:
    op = node.op
    if op in GroupOp.ALU:
        return _elementwise_shape(node)
    if op in _SAME_AS_FIRST:
        return tuple(node.src[0]._shape)
    if op in GroupOp.Movement:
        return _movement_shape(node)
    match op:
        case Ops.BUFFER:
            return (node.arg.size,)
        case Ops.IOTA:
            return (as_int(node.src[0]),) if node.src else (node.arg,)
        case Ops.PARAM:
            return (node.arg.size,) if node.arg.shape is None else tuple(node.arg.shape)
        case Ops.REDUCE_AXIS:
            return tuple(
                1 if axis in node.arg.axes else extent
                for axis, extent in enumerate(node.src[0]._shape)
            )
        case Ops.GATHER:
            return _gather_shape(node)
        case Ops.GETTUPLE:
            return _tuple_item_shape(node)
        case _:
            return ()


def same_extent(left: Any, right: Any) -> bool:
    """Whether two sizes (`int | UOp`) are known to be equal."""
    if isinstance(left, UOp) or isinstance(right, UOp):
        if left is right:
            return True
        return as_size(left - right) == 0
    return bool(left == right)


def same_shape(left: Shape, right: Shape) -> bool:
    """Whether two shapes are known to be equal."""
    if len(left) != len(right):
        return False
    return all(same_extent(a, b) for a, b in zip(left, right, strict=True))


def _elementwise_shape(node: UOp) -> Shape:
    first: Shape = node.src[0]._shape
    for other in node.src[1:]:
        if other._shape != first and not same_shape(first, other._shape):
            raise ShapeError(
                f"{node.op.name}: operands must have equal shapes, got {first} and {other._shape}"
            )
    return first


def _movement_shape(node: UOp) -> Shape:
    old: Shape = node.src[0]._shape
    arg = node.marg
    match node.op:
        case Ops.RESHAPE:
            if not same_extent(prod(old), prod(arg)):
                raise ShapeError(
                    f"reshape: {old} has {prod(old)} elements, {arg} has {prod(arg)}"
                )
            return tuple(arg)
        case Ops.EXPAND:
            fits = len(old) == len(arg) and all(
                same_extent(a, 1) or same_extent(a, b) for a, b in zip(old, arg, strict=True)
            )
            if not fits:
                raise ShapeError(f"expand: {old} does not expand to {arg}: only axes of size 1 do")
            return tuple(arg)
        case Ops.PERMUTE:
            if sorted(arg) != list(range(len(old))):
                raise ShapeError(
                    f"permute: {arg} is not an order of the axes 0..{len(old) - 1} of {old}"
                )
            return tuple(old[axis] for axis in arg)
        case Ops.PAD:
            return tuple(as_size(b + s + a) for s, (b, a) in zip(old, arg, strict=True))
        case Ops.SHRINK:
            return tuple(as_size(end - begin) for begin, end in arg)
        case Ops.FLIP:
            return old
        case _:
            return tuple(
                node.arg.size if axis == node.arg.axis else extent
                for axis, extent in enumerate(old)
            )


def _gather_shape(node: UOp) -> Shape:
    source, indices, axes = node.src[0]._shape, node.src[1:], node.arg
    first: Shape = indices[0]._shape
    for other in indices[1:]:
        if not same_shape(first, other._shape):
            raise ShapeError(f"gather: indices must share a shape, got {first} and {other._shape}")
    if len(axes) != len(indices) or any(not 0 <= axis < len(source) for axis in axes):
        raise ShapeError(f"gather: axes {axes} with {len(indices)} indices into shape {source}")
    rest = tuple(extent for axis, extent in enumerate(source) if axis not in axes)
    return first + rest


def _tuple_item_shape(node: UOp) -> Shape:
    source = node.src[0]
    if source.op in {Ops.FUNCTION, Ops.TUPLE}:
        body = source.src[0] if source.op is Ops.FUNCTION else source
        return tuple(body.src[node.arg]._shape)
    if source.op is Ops.CUSTOM:
        return tuple(source.arg.results[node.arg][0])
    return tuple(source._shape)


def infer_devices(root: UOp) -> None:
    """Fills `_device` ("" for none) of `root` and of all that it needs.

    The device of its first source with one.
    """
    for node in toposort((root,), lambda n: n._device is None):
        if node._device is None:
            node._device = _device_of(node)


def _device_of(node: UOp) -> str | tuple[str, ...]:
    if node.op is Ops.BUFFER:
        device: str | tuple[str, ...] = node.arg.device
        return device
    if node.op is Ops.COPY:
        target: str | tuple[str, ...] = node.arg
        return target
    if node.op is Ops.PARAM and node.arg.device is not None:
        given: str | tuple[str, ...] = node.arg.device
        return given
    for source in node.src:
        if source._device:
            found: str | tuple[str, ...] = source._device
            return found
    return ""
