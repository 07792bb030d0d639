"""Operators that only rearrange elements: reshape, permute, expand, shrink, flip, windows.

The result of most is a view: it remembers the tensor that it looks into, so that writing to it
writes there (see `writes`). Joining and padding are in `joining`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tg_ir.errors import ShapeError
from tg_ir.graph import GroupOp, Ops, SkewArg, UOp, as_size, prod, same_extent

from tg_frontend.nodes.broadcasting import existing_axis, resolve_axis
from tg_frontend.nodes.sizes import (
    Shape,
    as_new_shape,
    as_shape,
    at_least_one,
    expect_plain_sizes,
    whole_number,
)
from tg_frontend.tensor.core import ViewLink
from tg_frontend.tensor.inverse_functions import InverseFunctions

# what reads each element of its source at one place only, or at several in the case of EXPAND
_VIEW_OPS = GroupOp.Movement - {Ops.PAD, Ops.UNSKEW}


class Movement(InverseFunctions):
    """Movement operators."""

    __slots__ = ()

    # ---- views

    def _moved(self, uop: UOp) -> Self:
        """The tensor of a node made of this one by movement ops, with what it looks into.

        Always a new one: where nothing moved, a later write to this tensor still must not show in
            the result.
        """
        made = self._from_uop(uop)
        steps = []
        node = uop
        while node is not self.uop:
            if node.op not in _VIEW_OPS:
                return made
            steps.append((node.op, node.src[1:], node.arg))
            node = node.src[0]
        steps.reverse()
        link = self._view
        if link is None or (base := link.base()) is None:
            made._view = ViewLink(self, tuple(steps), self._writes)
        else:
            made._view = ViewLink(base, tuple(steps), link.writes, link)
        return made

    # ---- the elementary movements

    def reshape(self, *shape: Any) -> Self:
        """The elements in the same order in another shape; one size may be -1, None keeps one.

        Raises:
            ShapeError: the numbers of elements differ; names both shapes.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        kept = [k for k, size in enumerate(given) if size is None]
        if kept and kept[-1] >= self.ndim:
            raise ShapeError(
                f"reshape: None at place {kept[-1]} of {tuple(given)} keeps an axis "
                f"that shape {self.shape} does not have"
            )
        wanted = as_shape([self.shape[k] if s is None else s for k, s in enumerate(given)])
        return self._moved(self.uop.reshape(_infer_size(self.shape, wanted)))

    def view(self, *shape: Any) -> Self:
        """Alias of `reshape`."""
        return self.reshape(*shape)

    def expand(self, *shape: Any) -> Self:
        """Axes of size 1 repeated to the sizes given; -1 or None keeps one; new axes come first.

        Raises:
            ShapeError: an axis that is not 1 would change.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        missing = len(given) - self.ndim
        if missing < 0:
            raise ShapeError(f"expand: {self.shape} has more axes than {tuple(given)}")
        aligned = (1,) * missing + self.shape
        kept = [
            old if new is None or (isinstance(new, int) and new == -1) else new
            for old, new in zip(aligned, given, strict=True)
        ]
        return self._moved(self.uop.reshape(aligned).expand(as_new_shape(kept, "expand")))

    def permute(self, *order: Any) -> Self:
        """The axes in another order.

        Raises:
            ShapeError: `order` does not name each axis once.
        """
        axes = tuple(resolve_axis(axis, self.ndim) for axis in as_shape(order, "permute"))
        if sorted(axes) != list(range(self.ndim)):
            raise ShapeError(
                f"permute: {axes} does not name each axis 0..{self.ndim - 1} of {self.shape} once"
            )
        return self._moved(self.uop.permute(axes))

    def flip(self, *axes: Any) -> Self:
        """The elements in reverse order along the axes."""
        flipped = {resolve_axis(axis, self.ndim) for axis in as_shape(axes)}
        return self._moved(self.uop.flip([axis in flipped for axis in range(self.ndim)]))

    def shrink(self, arg: Sequence[tuple[Any, Any] | None]) -> Self:
        """For each axis the elements `begin` to `end`; None keeps an axis.

        Raises:
            ShapeError: bounds outside the axis, or not one pair an axis.
        """
        pairs = isinstance(arg, (tuple, list)) and all(
            pair is None or (isinstance(pair, (tuple, list)) and len(pair) == 2) for pair in arg
        )
        if not pairs:
            raise ShapeError(
                f"shrink: expected a pair (begin, end) or None for each axis of {self.shape}, "
                f"got {arg!r}"
            )
        if len(arg) != self.ndim:
            raise ShapeError(f"shrink: {len(arg)} pairs of bounds for {self.ndim} axes")
        bounds = [(0, s) if b is None else b for s, b in zip(self.shape, arg, strict=True)]
        for extent, (begin, end) in zip(self.shape, bounds, strict=True):
            known = all(isinstance(value, int) for value in (extent, begin, end))
            if known and not 0 <= begin <= end <= extent:
                raise ShapeError(f"shrink: bounds {(begin, end)} outside an axis of {extent}")
        return self._moved(self.uop.shrink(bounds))

    def shrink_to(self, *shape: Any) -> Self:
        """The first elements of each axis, as many as the shape says; None keeps an axis.

        Raises:
            ShapeError: not one extent an axis, or a larger one.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self.shrink([None if extent is None else (0, extent) for extent in given])

    # ---- made of them

    @property
    def T(self) -> Self:
        """The last two axes exchanged."""
        return self.transpose() if self.ndim > 1 else self._moved(self.uop)

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes exchanged."""
        order = list(range(self.ndim))
        first, second = resolve_axis(dim0, self.ndim), resolve_axis(dim1, self.ndim)
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    def swapaxes(self, dim0: int, dim1: int) -> Self:
        """Alias of `transpose`."""
        return self.transpose(dim0, dim1)

    def squeeze(self, dim: int | None = None) -> Self:
        """Without the axes of size 1, or without that one if its size is 1."""
        if dim is None:
            return self.reshape(tuple(s for s in self.shape if not same_extent(s, 1)))
        if self.ndim == 0:
            resolve_axis(dim, 0)
            return self._moved(self.uop)
        axis = resolve_axis(dim, self.ndim)
        if not same_extent(self.shape[axis], 1):
            return self._moved(self.uop)
        return self.reshape(self.shape[:axis] + self.shape[axis + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        """With a new axis of size 1 at `dim`."""
        axis = resolve_axis(dim, self.ndim, extra=1)
        return self.reshape(self.shape[:axis] + (1,) + self.shape[axis:])

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """The axes from `start_dim` to `end_dim` made one."""
        if self.ndim == 0:
            return self.reshape((1,))
        start, end = resolve_axis(start_dim, self.ndim), resolve_axis(end_dim, self.ndim)
        if start > end:
            raise ShapeError(
                f"flatten: axis {start_dim} comes after axis {end_dim} in shape {self.shape}"
            )
        joined = prod(self.shape[start : end + 1])
        return self.reshape(self.shape[:start] + (joined,) + self.shape[end + 1 :])

    def unflatten(self, dim: int, sizes: Sequence[Any]) -> Self:
        """One axis split into several; one size may be -1."""
        axis = existing_axis(dim, self.shape, "unflatten")
        inner = _infer_size((self.shape[axis],), as_shape((sizes,), "unflatten"))
        return self.reshape(self.shape[:axis] + inner + self.shape[axis + 1 :])

    def repeat(self, *repeats: Any) -> Self:
        """The tensor tiled, as numpy's `tile`."""
        counts = as_new_shape(repeats, "repeat")
        base = (1,) * (len(counts) - self.ndim) + self.shape
        counts = (1,) * (len(base) - len(counts)) + counts
        split = tuple(size for extent in base for size in (1, extent))
        tiled = tuple(s for pair in zip(counts, base, strict=True) for s in pair)
        final = tuple(count * extent for count, extent in zip(counts, base, strict=True))
        return self.reshape(split).expand(tiled).reshape(final)

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element `repeats` times in a row, along one axis or flattened."""
        if whole_number(repeats, "repeat_interleave") < 0:
            raise ShapeError(f"repeat_interleave: expected 0 or more repeats, got {repeats}")
        x, axis = (self.flatten(), 0) if dim is None else (self, resolve_axis(dim, self.ndim))
        before, extent, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        spread = x.reshape(before + (extent, 1) + after).expand(before + (extent, repeats) + after)
        return spread.reshape(before + (extent * repeats,) + after)

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Pieces of the sizes given, or of one size with a smaller last one.

        Raises:
            ShapeError: the sizes do not add up to the axis.
        """
        axis = existing_axis(dim, self.shape, "split")
        expect_plain_sizes(self.shape[axis : axis + 1], "split")
        extent = int(self.shape[axis])
        if not isinstance(sizes, (tuple, list)):
            size = at_least_one(sizes, "split: the size of a piece")
            starts = range(0, max(1, extent), size)
            sizes = [min(size, extent - start) for start in starts]
        if sum(sizes) != extent:
            raise ShapeError(
                f"split: sizes {tuple(sizes)} do not add up to axis {axis} of {self.shape}"
            )
        pieces = []
        start = 0
        for size in sizes:
            pieces.append(self._narrow(axis, start, start + size))
            start += size
        return tuple(pieces)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """At most `chunks` equal pieces, the last perhaps smaller."""
        axis = existing_axis(dim, self.shape, "chunk")
        expect_plain_sizes(self.shape[axis : axis + 1], "chunk")
        extent = int(self.shape[axis])
        size = max(1, -(-extent // at_least_one(chunks, "chunk: the number of chunks")))
        return list(self.split(size, dim))

    def _narrow(self, axis: int, begin: Any, end: Any) -> Self:
        """The elements `begin` to `end` of one axis."""
        bounds = [(0, s) for s in self.shape]
        bounds[axis] = (begin, end)
        return self._moved(self.uop.shrink(bounds))

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """All windows of `size` along an axis, `step` apart; the window is a new last axis."""
        axis = existing_axis(dim, self.shape, "unfold")
        expect_plain_sizes(self.shape[axis : axis + 1], "unfold")
        extent = self.shape[axis]
        at_least_one(size, "unfold: the size of a window")
        at_least_one(step, "unfold: the step")
        if size > extent:
            raise ShapeError(f"unfold: a window of {size} does not fit axis {axis} of {self.shape}")
        windows = windowed(self.uop.reshape((*self.shape, 1)), axis, self.ndim, size, step, 1)
        return self._from_uop(windows)


def windowed(
    uop: UOp, axis: int, window_axis: int, size: int, stride: int, dilation: int
) -> UOp:
    """Windows over `axis`: `window_axis`, of extent 1, becomes the place in the window.

    Requires: the window fits. Ensures: `axis` counts the windows.
    """
    return windows_over(uop, axis, window_axis, (size,), (stride,), (dilation,))


def windows_over(
    uop: UOp,
    first: int,
    first_window: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> UOp:
    """Windows over the axes from `first` on.

    The axes from `first_window` on become the places in them.

    All are expanded at once, so that the gradient is one sum over them.

    Requires: the windows fit; a window axis has extent 1 or its size. Ensures: the axes count the
    windows.
    """
    shape = list(uop.shape)
    shape[first_window : first_window + len(sizes)] = sizes
    uop = uop.expand(shape)
    for place, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        count = (uop.shape[first + place] - dilation * (size - 1) - 1) // stride + 1
        arg = SkewArg(first + place, first_window + place, stride, dilation, count)
        uop = UOp(Ops.SKEW, uop.dtype, (uop,), arg)
    return uop


def every_nth(uop: UOp, axis: int, step: int) -> UOp:
    """Elements 0, step, 2 step, ... of an axis: windows of one element."""
    if step == 1 or same_extent(uop.shape[axis], 0):
        return uop
    shape = uop.shape
    picked = windowed(uop.reshape((*shape, 1)), axis, len(shape), 1, step, 1)
    return picked.reshape(picked.shape[:-1])


def _infer_size(old: Shape, wanted: Shape) -> Shape:
    """`wanted` with its -1 replaced.

    Raises:
        ShapeError: more than one -1, or the numbers of elements differ.
    """
    unknown = [k for k, size in enumerate(wanted) if isinstance(size, int) and size == -1]
    total = prod(old)
    if any(isinstance(size, int) and size < -1 for size in wanted):
        raise ShapeError(f"reshape: sizes are 0 or more, or -1 for the rest; got {wanted}")
    if len(unknown) > 1:
        raise ShapeError(f"reshape: {wanted} has more than one -1")
    if unknown:
        rest = prod(size for k, size in enumerate(wanted) if k != unknown[0])
        divides = not isinstance(rest, int) or not isinstance(total, int) or (
            rest != 0 and total % rest == 0
        )
        if not divides:
            raise ShapeError(f"reshape: {old} has {total} elements, which {wanted} does not divide")
        inferred = as_size(total // rest)
        return tuple(inferred if k == unknown[0] else size for k, size in enumerate(wanted))
    if not same_extent(total, prod(wanted)):
        raise ShapeError(f"reshape: {old} has {total} elements, {wanted} has {prod(wanted)}")
    return wanted
