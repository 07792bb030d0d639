"""Gradients of reductions and scans."""

from __future__ import annotations

from collections.abc import Iterator

from tg_ir.dtype import dtypes
from tg_ir.graph import Combine, Ops, ReduceArg, UOp, prod

from tg_frontend.autograd.rules import Contribution, gradient_of
from tg_frontend.autograd.scattered import scatter_add
from tg_frontend.autograd.structural_zeros import divided, moved, selected
from tg_frontend.errors import GradientError
from tg_frontend.nodes.broadcasting import positions


@gradient_of(Ops.REDUCE_AXIS)
def gradient_of_reduction(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Of a sum: to every element.

    Of an extreme: shared by those equal to it. Of a product: the others'.
    """
    source, op = node.src[0], node.arg.combine.op
    if op is Ops.ADD:
        yield source, moved(gradient, lambda value: value.expand(source.shape))
    elif op is Ops.MAX:
        yield source, _of_maximum(node, gradient)
    elif op is Ops.MUL:
        yield source, gradient.expand(source.shape) * _product_of_others(source, node.arg.axes)
    else:
        raise GradientError(
            f"no gradient rule for a reduction by '{node.arg.combine.name}'; detach() its result"
        )


def _of_maximum(node: UOp, gradient: UOp) -> UOp:
    source = node.src[0]
    hit = source.eq(node.expand(source.shape))
    one = source.const_like(1).cast(dtypes.float32)
    count = hit.where(one, one.const_like(0)).reduce_axis(Ops.ADD, node.arg.axes)
    share = divided(gradient, count.cast(gradient.dtype))
    return selected(hit, moved(share, lambda value: value.expand(source.shape)))


def _product_of_others(source: UOp, axes: tuple[int, ...]) -> UOp:
    """For each element the product of all others along `axes`; right where some are zero."""
    kept = [axis for axis in range(source.ndim) if axis not in axes]
    order = [*kept, *axes]
    lead = tuple(source.shape[axis] for axis in kept)
    length = prod(source.shape[axis] for axis in axes)
    line = source.permute(order).reshape((*lead, length))
    others = _product_before(line) * _flipped(_product_before(_flipped(line)))
    back = sorted(range(source.ndim), key=order.__getitem__)
    moved_shape = tuple(source.shape[axis] for axis in order)
    return others.reshape(moved_shape).permute(back)


def _flipped(line: UOp) -> UOp:
    return line.flip([axis == line.ndim - 1 for axis in range(line.ndim)])


def _product_before(line: UOp) -> UOp:
    """The product of the elements before each one, along the last axis."""
    axis = line.ndim - 1
    bounds = [(0, extent) for extent in line.shape]
    bounds[axis] = (0, line.shape[axis] - 1)
    padding: list[tuple[int, int]] = [(0, 0)] * axis + [(1, 0)]
    shifted = running(line, Ops.MUL, axis).shrink(bounds).pad(padding)
    first = positions(line.shape, axis, dtypes.int32).eq(
        positions(line.shape, axis, dtypes.int32).const_like(0)
    )
    return first.where(line.const_like(1), shifted)


def running(uop: UOp, op: Ops, axis: int, backwards: bool = False) -> UOp:
    """The running result of `op` along an axis, from the front or from the back."""
    flags = [k == axis for k in range(uop.ndim)]
    arg = ReduceArg(Combine.of(op, uop.dtype), (axis,))
    source = uop.flip(flags) if backwards else uop
    result = UOp(Ops.SCAN_AXIS, uop.dtype, (source,), arg)
    return result.flip(flags) if backwards else result


@gradient_of(Ops.SCAN_AXIS)
def gradient_of_scan(node: UOp, gradient: UOp) -> Iterator[Contribution]:
    """Of a running sum: the running sum from the back.

    Of a running extreme: to the last element that set it.
    """
    source, op, axis = node.src[0], node.arg.combine.op, node.arg.axes[0]
    if op is Ops.ADD:
        yield source, running(gradient, Ops.ADD, axis, backwards=True)
    elif op is Ops.MAX:
        place = positions(source.shape, axis, dtypes.int32)
        setters = source.eq(node).where(place, place.const_like(-1))
        latest = running(setters, Ops.MAX, axis)
        indices = [
            latest if k == axis else positions(source.shape, k, dtypes.int32)
            for k in range(source.ndim)
        ]
        yield source, scatter_add(source, indices, tuple(range(source.ndim)), gradient)
    elif op is Ops.MUL:
        yield source, _of_running_product(node, gradient, axis)
    else:
        raise GradientError(
            f"no gradient rule for a scan by '{node.arg.combine.name}'; detach() its result"
        )


def _of_running_product(node: UOp, gradient: UOp, axis: int) -> UOp:
    """Before the first zero by division, at it with it left out, after it nothing."""
    source = node.src[0]
    is_zero = source.eq(source.const_like(0))
    zeros_so_far = running(is_zero.cast(dtypes.int32), Ops.ADD, axis)
    before = zeros_so_far.eq(zeros_so_far.const_like(0))
    at_first = is_zero & zeros_so_far.eq(zeros_so_far.const_like(1))
    one, zero = source.const_like(1), source.const_like(0)
    filled = running(at_first.where(one, source), Ops.MUL, axis)
    tail = running(gradient * node, Ops.ADD, axis, backwards=True)
    tail_without = running(gradient * filled, Ops.ADD, axis, backwards=True)
    quotient = tail / before.where(source, one)
    return before.where(quotient, at_first.where(tail_without, zero))


