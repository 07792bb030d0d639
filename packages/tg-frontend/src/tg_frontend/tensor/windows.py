"""Convolution and pooling: windows over the last axes.

A window is EXPAND of a new axis and SKEW of it along the windowed one, so that forward and
gradient are affine in the loop counters: the gradient of SKEW is UNSKEW, its transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, overload

from tg_ir.dtype import DType, dtypes, to_dtype
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, SkewArg, UOp, prod

from tg_frontend.nodes.sizes import at_least_one, expect_plain_sizes, whole_number
from tg_frontend.tensor.core import expect_tensors
from tg_frontend.tensor.movement import windows_over
from tg_frontend.tensor.products import Products, positions_of, sum_of_products, widened_operands
from tg_frontend.tensor.reduction import reduced

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int, name: str, least: int | None = 1) -> tuple[int, ...]:
    """One number for each windowed axis.

    Raises:
        ArgumentError: one is no int.
        ShapeError: a sequence of another length, or a number below `least`.
    """
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(given) != count:
        raise ShapeError(f"{name}: expected {count} numbers, one an axis, got {given}")
    numbers = tuple(whole_number(number, name) for number in given)
    if least is not None and any(number < least for number in numbers):
        raise ShapeError(f"{name}: expected {least} or more, got {value}")
    return numbers


def padding_pairs(padding: Sizes, count: int) -> list[tuple[int, int]]:
    """`(before, after)` for each windowed axis.

    Of one number, one an axis, or a flat list last axis first.
    """
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * count:
        sides = [whole_number(number, "padding") for number in padding]
        return list(zip(sides[::2], sides[1::2], strict=True))[::-1]
    return [(p, p) for p in per_axis(padding, count, "padding", None)]


class Windows(Products):
    """Convolution and pooling."""

    __slots__ = ()

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        dtype: DType | str | None = None,
    ) -> Self:
        """Convolution over the axes after the second, however many.

        Args:
            weight: shape `(out channels, in channels / groups, *kernel)`.
            bias: shape `(out channels,)`.
            groups: in and out channels are split into so many independent parts.
            stride: distance of windows, one number or one an axis.
            dilation: distance of elements in a window.
            padding: zeros around: one number, one an axis, or `(left, right, top, bottom, ...)`.
            dtype: what to multiply and sum in and return.

        Raises:
            ShapeError: channels, axes or kernel do not fit; names both shapes.
        """
        count = self._check_convolution(weight, bias, groups, 1)
        kernel = weight.shape[2:]
        strides = per_axis(stride, count, "stride")
        dilations = per_axis(dilation, count, "dilation")
        pads = [(0, 0), (0, 0), *padding_pairs(padding, count)]
        x = self.uop.pad(pads)
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        if any(size < needed for size, needed in zip(x.shape[2:], reach, strict=True)):
            raise ShapeError(f"conv: weight {weight.shape} does not fit into input {self.shape} "
                             f"with padding {padding} and dilation {dilation}")
        x, w, result = widened_operands(x, weight.uop, None if dtype is None else to_dtype(dtype))
        batch, out_channels = x.shape[0], weight.shape[0]
        inner, outer = weight.shape[1], out_channels // groups
        # axes: batch, group, out in group, in in group, *positions, *kernel
        x = x.reshape((batch, groups, 1, inner, *x.shape[2:], *(1 for _ in kernel)))
        x = x.expand((batch, groups, outer, *x.shape[3 : 4 + count], *kernel))
        x = windows_over(x, 4, 4 + count, kernel, strides, dilations)
        w = w.reshape((1, groups, outer, inner, *(1 for _ in kernel), *kernel))
        summed = (3, *range(4 + count, 4 + 2 * count))
        total = sum_of_products(x, w, summed)
        positions = total.shape[4 : 4 + count]
        out = self._from_uop(total.reshape((batch, out_channels, *positions)).cast(result))
        return out if bias is None else out.add(bias.reshape((1, -1, *(1 for _ in kernel))))

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
    ) -> Self:
        """The transpose of `conv2d` as a map from its output to its input.

        Args:
            weight: shape `(in channels, out channels / groups, *kernel)`.
            bias: shape `(out channels,)`.
            groups: as in `conv2d`.
            stride: as in `conv2d`.
            dilation: as in `conv2d`.
            padding: what the convolution padded, cut off here.
            output_padding: added at the end of each axis.

        Raises:
            ShapeError: channels or axes do not fit; names both shapes.
        """
        count = self._check_convolution(weight, bias, groups, 0)
        kernel = weight.shape[2:]
        strides = per_axis(stride, count, "stride")
        dilations = per_axis(dilation, count, "dilation")
        extra = per_axis(output_padding, count, "output_padding", 0)
        cuts = padding_pairs(padding, count)
        x, w, result = widened_operands(self.uop, weight.uop, None)
        batch, outer, inner = x.shape[0], weight.shape[1], weight.shape[0] // groups
        # axes: batch, group, in in group, out in group, *positions, *kernel
        x = x.reshape((batch, groups, inner, 1, *x.shape[2:], *(1 for _ in kernel)))
        w = w.reshape((1, groups, inner, outer, *(1 for _ in kernel), *kernel))
        shape = (batch, groups, inner, outer, *self.shape[2:], *kernel)
        spread = x.expand(shape) * w.expand(shape)
        for axis in range(count):
            position = 4 + axis
            size = (shape[position] - 1) * strides[axis] + dilations[axis] * (kernel[axis] - 1) + 1
            arg = SkewArg(position, position + count, strides[axis], dilations[axis], size)
            spread = UOp(Ops.UNSKEW, spread.dtype, (spread,), arg)
        total = reduced(spread, Ops.ADD, (2, *range(4 + count, 4 + 2 * count)))
        full = total.reshape((batch, groups * outer, *total.shape[4 : 4 + count]))
        after = [(0, more) for more in extra]
        out = self._from_uop(full).pad([None, None, *after])
        bounds = [
            (before, size - behind)
            for size, (before, behind) in zip(out.shape[2:], cuts, strict=True)
        ]
        if any(begin < 0 or end < begin for begin, end in bounds):
            raise ShapeError(
                f"conv_transpose: padding {padding} cuts off more than the result of input "
                f"{self.shape} and weight {weight.shape} has: {out.shape}"
            )
        out = self._from_uop(out.shrink([None, None, *bounds]).uop.cast(result))
        return out if bias is None else out.add(bias.reshape((1, -1, *(1 for _ in kernel))))

    def _check_convolution(
        self, weight: Self, bias: Self | None, groups: int, channel_axis: int
    ) -> int:
        """The number of windowed axes.

        Raises:
            ArgumentError: weight or bias are no tensors.
            ShapeError: channels or axes do not fit; names both shapes.
        """
        expect_tensors("conv", weight)
        expect_plain_sizes(self.shape[2:], "conv")
        expect_plain_sizes(weight.shape, "conv")
        count = weight.ndim - 2
        shapes = f"input {self.shape} and weight {weight.shape}"
        if self.ndim != weight.ndim or count < 1:
            raise ShapeError(f"conv: {shapes} must both be (batch or out, channels, *axes)")
        if any(extent == 0 for extent in weight.shape[2:]):
            raise ShapeError(f"conv: weight {weight.shape} has an empty kernel")
        at_least_one(groups, "conv: groups")
        outputs = weight.shape[0] if channel_axis == 1 else weight.shape[1] * groups
        if bias is not None:
            expect_tensors("conv", bias)
            if bias.shape != (outputs,):
                raise ShapeError(
                    f"conv: a bias of shape {bias.shape} does not fit weight {weight.shape}; "
                    f"expected ({outputs},), one number an output channel"
                )
        per_group = weight.shape[channel_axis]
        expected = per_group * groups if channel_axis == 1 else per_group
        if self.shape[1] != expected or weight.shape[0] % groups:
            raise ShapeError(
                f"conv: {shapes} do not fit: {self.shape[1]} input channels, "
                f"the weight takes {expected} in {groups} groups"
            )
        return count

    # ---- pooling

    def _pooled_windows(
        self,
        kernel_size: Sizes,
        stride: Sizes | None,
        dilation: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        value: Any,
    ) -> tuple[UOp, int]:
        """Windows over the last axes, `(..., *windows, *kernel)`.

        And how many axes are windowed.
        """
        count = len(kernel_size) if isinstance(kernel_size, (tuple, list)) else 2
        kernel = per_axis(kernel_size, count, "kernel_size")
        if self.ndim < count:
            raise ShapeError(f"pooling over {count} axes of a tensor of shape {self.shape}")
        strides = kernel if stride is None else per_axis(stride, count, "stride")
        dilations = per_axis(dilation, count, "dilation")
        pads = padding_pairs(padding, count)
        expect_plain_sizes(self.shape[-count:], "pooling")
        if ceil_mode:
            pads = _room_for_last_window(self.shape[-count:], kernel, strides, dilations, pads)
        lead = self.ndim - count
        x = self.pad([None] * lead + list(pads), value=value).uop
        for axis, size in enumerate(kernel):
            reach = dilations[axis] * (size - 1) + 1
            if x.shape[lead + axis] < reach:
                raise ShapeError(
                    f"pooling: a window of {kernel} does not fit into {self.shape} "
                    f"with padding {padding}"
                )
        if strides == kernel and all(d == 1 for d in dilations):
            return _tiles(x, kernel), count
        x = x.reshape((*x.shape, *(1 for _ in kernel)))
        return windows_over(x, lead, lead + count, kernel, strides, dilations), count

    @overload
    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        return_indices: Literal[False] = False,
    ) -> Self: ...

    @overload
    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        *,
        return_indices: Literal[True],
    ) -> tuple[Self, Self]: ...

    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Self | tuple[Self, Self]:
        """The largest element of each window over the last axes; equal ones share the gradient.

        With `return_indices` also its place in the pooled axes, counted as if they were one, int32.
        """
        x, count = self._pooled_windows(
            kernel_size, stride, dilation, padding, ceil_mode, dtypes.min(self.dtype)
        )
        op = Ops.OR if self.dtype is dtypes.bool else Ops.MAX
        total = reduced(x, op, tuple(range(x.ndim - count, x.ndim)))
        largest = self._from_uop(total.reshape(total.shape[:-count]))
        if not return_indices:
            return largest
        steps = kernel_size if stride is None else stride
        strides = per_axis(steps, count, "stride")
        dilations = per_axis(dilation, count, "dilation")
        first = [before for before, _ in padding_pairs(padding, count)]
        in_window = self._from_uop(x).flatten(-count).argmax(-1).uop
        kernel, extents = x.shape[-count:], self.shape[-count:]
        place = in_window.const_like(0)
        for axis in range(count):
            inner = in_window // prod(kernel[axis + 1 :]) % kernel[axis]
            window = positions_of(in_window.shape, in_window.ndim - count + axis)
            along = window * strides[axis] + inner * dilations[axis] - first[axis]
            place = place * extents[axis] + along
        return largest, self._from_uop(place)

    def avg_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """The mean of each window over the last axes.

        Padding counts as zeros unless told otherwise.
        """

        def mean_of(source: Self, value_padding: Sizes, with_ceil: bool) -> Self:
            x, count = source._pooled_windows(
                kernel_size, stride, dilation, value_padding, with_ceil, 0
            )
            return source._from_uop(x).mean(tuple(range(x.ndim - count, x.ndim)))

        padded = padding if isinstance(padding, int) else tuple(padding)
        plain = padded == 0 or (not isinstance(padded, int) and not any(padded))
        if (count_include_pad or plain) and not ceil_mode:
            return mean_of(self, padding, False)
        inside = self._from_uop(self.uop.const_like(1))
        if count_include_pad:
            kernel = (kernel_size,) * 2 if isinstance(kernel_size, int) else kernel_size
            pairs = padding_pairs(padding, len(kernel))
            lead: list[tuple[int, int] | None] = [None] * (self.ndim - len(kernel))
            inside = inside.pad([*lead, *pairs], value=1)
            return mean_of(self, padding, True).div(mean_of(inside, 0, True))
        return mean_of(self, padding, ceil_mode).div(mean_of(inside, padding, ceil_mode))


def _tiles(x: UOp, kernel: tuple[int, ...]) -> UOp:
    """Windows that do not overlap: a reshape, what is left over at the end cut off."""
    lead = x.ndim - len(kernel)
    counts = [extent // size for extent, size in zip(x.shape[lead:], kernel, strict=True)]
    bounds = [(0, extent) for extent in x.shape[:lead]]
    bounds += [(0, count * size) for count, size in zip(counts, kernel, strict=True)]
    split = [part for pair in zip(counts, kernel, strict=True) for part in pair]
    tiled = x.shrink(bounds).reshape((*x.shape[:lead], *split))
    windows = [lead + 2 * k for k in range(len(kernel))]
    return tiled.permute([*range(lead), *windows, *(axis + 1 for axis in windows)])


def _room_for_last_window(
    extents: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Padding with enough at the end that a last, partial window counts, if it begins inside."""
    result = []
    for extent, size, stride, dilation, (before, after) in zip(
        extents, kernel, strides, dilations, pads, strict=True
    ):
        reach = dilation * (size - 1) + 1
        windows = -(-(extent + before + after - reach) // stride) + 1
        if (windows - 1) * stride >= extent + before:
            windows -= 1
        missing = (windows - 1) * stride + reach - (extent + before + after)
        result.append((before, after + max(0, missing)))
    return result
