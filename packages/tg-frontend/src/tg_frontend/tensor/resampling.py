"""Rearranging by formula, resizing images, drawing by weight, scatter with other reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

from tg_ir.dtype import dtypes
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, prod

from tg_frontend.errors import ArgumentError
from tg_frontend.nodes.broadcasting import filled, iota, resolve_axis
from tg_frontend.nodes.sizes import as_new_shape, at_least_one, expect_plain_sizes
from tg_frontend.nodes.special_functions import floor, minimum
from tg_frontend.tensor.networks import Networks
from tg_frontend.tensor.windows import Sizes, padding_pairs, per_axis


class Resampling(Networks):
    """Resizing, rearranging, drawing."""

    __slots__ = ()

    def sequential(self, functions: Sequence[Callable[[Any], Any]]) -> Any:
        """The functions applied one after the other."""
        result: Any = self
        for function in functions:
            result = function(result)
        return result

    def interpolate(
        self, size: Sequence[int], mode: str = "linear", align_corners: bool = False
    ) -> Self:
        """The last axes resized.

        Args:
            size: new extents of the last axes.
            mode: "linear", "nearest" or "nearest-exact".
            align_corners: with "linear", the corner elements keep their values.

        Raises:
            ValueError: another mode.
            ShapeError: more sizes than axes.
        """
        if mode not in ("linear", "nearest", "nearest-exact"):
            raise ValueError(
                f"interpolate: mode is linear, nearest or nearest-exact, got {mode!r}"
            )
        size = as_new_shape((size,), "interpolate")
        if len(size) > self.ndim:
            raise ShapeError(f"interpolate: {len(size)} sizes for shape {self.shape}")
        result = self
        for offset, extent in enumerate(size):
            axis = self.ndim - len(size) + offset
            result = result._resized(axis, int(extent), mode, align_corners)
        return result

    def _resized(self, axis: int, extent: int, mode: str, align_corners: bool) -> Self:
        expect_plain_sizes(self.shape, "interpolate")
        old = int(self.shape[axis])
        place = iota(extent, dtypes.int32).cast(dtypes.float32)
        if mode == "nearest":
            return self._taken(axis, floor(place * (old / extent)).cast(dtypes.int32))
        if mode == "nearest-exact":
            return self._taken(axis, floor((place + 0.5) * (old / extent)).cast(dtypes.int32))
        if align_corners:
            source = place * ((old - 1) / max(1, extent - 1))
        else:
            source = ((place + 0.5) * (old / extent) - 0.5).maximum(place.const_like(0))
        source = minimum(source, source.const_like(old - 1))
        low = floor(source)
        high = minimum(low + 1.0, low.const_like(old - 1))
        shape = tuple(extent if k == axis else 1 for k in range(self.ndim))
        weight = self._from_uop((source - low).reshape(shape))
        first = self._taken(axis, low.cast(dtypes.int32))
        return first.lerp(self._taken(axis, high.cast(dtypes.int32)), weight)

    def _taken(self, axis: int, index: UOp) -> Self:
        """The elements of an axis at a vector of positions."""
        picked = UOp(Ops.GATHER, self.dtype, (self.uop, index), (axis,))
        order = list(range(1, self.ndim))
        order.insert(axis, 0)
        return self._from_uop(picked.permute(order))

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """The elements put back where `max_pool2d` found them, zeros elsewhere.

        Args:
            indices: what `max_pool2d(..., return_indices=True)` gave, of this shape.
            kernel_size: as in the pool.
            stride: as in the pool.
            dilation: as in the pool.
            padding: as in the pool.
            output_size: extents of the pooled axes; None takes the least that give this shape.

        Raises:
            ShapeError: the shapes differ.
        """
        if indices.shape != self.shape:
            raise ShapeError(f"max_unpool2d: indices {indices.shape} for values {self.shape}")
        count = len(kernel_size) if isinstance(kernel_size, (tuple, list)) else 2
        kernel = per_axis(kernel_size, count, "kernel_size")
        strides = kernel if stride is None else per_axis(stride, count, "stride")
        dilations = per_axis(dilation, count, "dilation")
        extents = [] if output_size is None else list(output_size)[-count:]
        if output_size is None:
            for axis, (before, after) in enumerate(padding_pairs(padding, count)):
                reach = dilations[axis] * (kernel[axis] - 1) + 1
                between = (self.shape[axis - count] - 1) * strides[axis]
                extents.append(between + reach - before - after)
        lead = self.shape[:-count]
        empty = self._from_uop(filled(self.dtype, 0, (*lead, prod(extents))))
        source, places = self.flatten(-count), indices.flatten(-count)
        return empty.scatter(-1, places, source).reshape((*lead, *extents))

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Axes named, split, joined and reordered, as `"b (h w) c -> b c h w"` with `h=4`.

        Raises:
            ShapeError: the formula does not fit the shape.
        """
        if not isinstance(formula, str):
            raise ArgumentError(
                f"rearrange: expected a formula such as 'a b -> b a', got {formula!r}"
            )
        left, arrow, right = formula.partition("->")
        groups, wanted = _groups(left), _groups(right)
        if not arrow or len(groups) != self.ndim:
            raise ShapeError(f"rearrange '{formula}' does not fit shape {self.shape}")
        split: list[Any] = []
        for group, extent in zip(groups, self.shape, strict=True):
            split += _sizes_of(group, extent, sizes, formula)
        names = [name for group in groups for name in group]
        order = [name for group in wanted for name in group]
        if sorted(names) != sorted(order):
            raise ShapeError(f"rearrange '{formula}': both sides name the same axes")
        moved = self.reshape(split).permute([names.index(name) for name in order])
        of_name = dict(zip(names, split, strict=True))
        return moved.reshape([prod(of_name[n] for n in group) for group in wanted])

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Positions drawn with the probability of their weights, int32.

        Raises:
            ShapeError: this has not one or two axes, or weights run out without replacement.
        """
        at_least_one(num_samples, "multinomial: the number of samples")
        if self.ndim not in (1, 2):
            raise ShapeError(f"multinomial takes one or two axes, got shape {self.shape}")
        if self.ndim == 1:
            return self.unsqueeze(0).multinomial(num_samples, replacement).squeeze(0)
        rows, count = self.shape
        if not replacement:
            if num_samples > count:
                raise ShapeError(f"multinomial: {num_samples} of {count} without replacement")
            # the largest of log(u) / weight, which decide like drawing one by one
            keys = self.rand(rows, count, device=str(self.device)).log().div(self)
            return keys.topk(num_samples, dim=1)[1]
        ends = self.cast(dtypes.float32).cumsum(1)
        total = ends._narrow(1, count - 1, count)
        drawn = self.rand(rows, num_samples, 1, device=str(self.device)).mul(total.unsqueeze(1))
        found = drawn.ge(ends.unsqueeze(1)).sum(2)
        return found.minimum(count - 1).cast(dtypes.int32)

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """Given by the class that sorts."""
        raise NotImplementedError

    def allclose(
        self, other: Self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> bool:
        """Whether every element is close; see `isclose`."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    def contiguous_backward(self) -> Self:
        """The same; where gradients are stored is the scheduler's choice."""
        return self

    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True
    ) -> Self:
        """A copy with the elements of `src` joined to where `index` says.

        Args:
            dim: the axis that `index` is for.
            index: int tensor.
            src: at least as large as `index`.
            reduce: "sum" or "mean".
            include_self: whether the old elements take part.

        Raises:
            NotImplementedError: "prod", "amax" or "amin".
            ValueError: another reduction.
        """
        axis = resolve_axis(dim, self.ndim)
        taken = src.shrink([(0, extent) for extent in index.shape])
        if reduce in ("prod", "amax", "amin"):
            raise NotImplementedError(
                f"scatter_reduce: {reduce!r} is not built yet, since it would loop over the "
                "indexed axis; sum and mean are there"
            )
        if reduce not in ("sum", "mean"):
            raise ValueError(f"scatter_reduce: reduce is sum or mean, got {reduce!r}")
        return self._scattered_sum(axis, index, taken, reduce == "mean", include_self)

    def _scattered_sum(
        self, axis: int, index: Self, src: Self, is_mean: bool, include_self: bool
    ) -> Self:
        zeros = self._from_uop(self.uop.const_like(0))
        ones = self._from_uop(filled(dtypes.int32, 1, src.shape))
        nothing = self._from_uop(filled(dtypes.int32, 0, self.shape))
        counts = nothing.scatter(axis, index, ones, reduce="add")
        start = self if include_self else counts.gt(0).where(zeros, self)
        total = start.scatter(axis, index, src, reduce="add")
        if not is_mean:
            return total
        divisor = counts.add(1) if include_self else counts.maximum(1)
        return total.div(divisor.cast(self.dtype)).cast(self.dtype)


def _groups(side: str) -> list[list[str]]:
    """`"a (b c)"` as `[["a"], ["b", "c"]]`."""
    groups: list[list[str]] = []
    inside = False
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            groups.append([])
            inside = True
        elif word == ")":
            inside = False
        elif inside:
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def _sizes_of(group: list[str], extent: Any, sizes: dict[str, int], formula: str) -> list[Any]:
    """The extents of the names of a group, one of which may follow from the others."""
    if len(group) == 1 and group[0] not in sizes:
        return [extent]
    expect_plain_sizes((extent,), f"rearrange '{formula}'")
    unknown = [name for name in group if name not in sizes]
    known = math.prod(sizes[name] for name in group if name in sizes)
    if len(unknown) > 1 or known == 0 or extent % known or (not unknown and known != extent):
        raise ShapeError(f"rearrange '{formula}': an axis of {extent} is not {' * '.join(group)}")
    return [sizes.get(name, extent // known) for name in group]
