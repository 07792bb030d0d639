"""Convolution layers: `Conv1d`, `Conv2d`, `ConvTranspose1d`, `ConvTranspose2d`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tg_frontend.nn.checks import check_sizes
from tg_frontend.nn.errors import LayerError
from tg_frontend.nodes.sizes import whole_number
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.core import expect_tensors

Extents = int | Sequence[int]


class Conv2d:
    """Cross-correlation of images with `out_channels` filters.

    Attributes:
        weight: shape `(out_channels, in_channels / groups, *kernel_size)`, uniform in +-1/sqrt(fan
        in).
        bias: shape `(out_channels,)`, likewise, or None.
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents | str = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        """Make the parameters.

        Args:
            in_channels: channels of the input.
            out_channels: channels of the result.
            kernel_size: one extent for all axes, or one for each.
            stride: step of the window.
            padding: zeros on each side; "same" keeps the size and "valid" adds none.
            dilation: distance of the elements of the window.
            groups: channels fall into that many groups that do not see each other.
            bias: whether to add one.

        Raises:
            LayerError: the sizes do not fit together.
        """
        kernel = per_axis("kernel_size", kernel_size, self.axes)
        check_sizes(type(self).__name__, in_channels, out_channels, *kernel)
        check_groups(type(self).__name__, in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.kernel_size = kernel
        self.stride = stride
        self.dilation = dilation
        self.groups = groups
        self.padding = self._padding(padding, kernel)
        scale = 1 / math.sqrt(in_channels // groups * math.prod(kernel))
        shape = (out_channels, in_channels // groups, *kernel)
        self.weight = Tensor.uniform(*shape, low=-scale, high=scale)
        self.bias = Tensor.uniform(out_channels, low=-scale, high=scale) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, in_channels, *size)` -> `(batch, out_channels, *new size)`.

        Raises:
            LayerError: the axes or the channels of `x` are others.
        """
        check_input(type(self).__name__, x, self.in_channels, self.axes)
        return x.conv2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding
        )

    def _padding(self, padding: Extents | str, kernel: tuple[int, ...]) -> Extents:
        if not isinstance(padding, str):
            return padding
        if padding == "valid":
            return 0
        strides = per_axis("stride", self.stride, self.axes)
        if padding != "same" or any(stride != 1 for stride in strides):
            raise LayerError(
                f"padding {padding!r} with stride {self.stride}; "
                'expected numbers, "valid", or "same" with stride 1'
            )
        totals = [
            dilation * (extent - 1)
            for extent, dilation in zip(
                kernel, per_axis("dilation", self.dilation, self.axes), strict=True
            )
        ]
        # as Tensor.pad takes it: the last axis first, and an odd zero goes behind
        return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]


class Conv1d(Conv2d):
    """Cross-correlation of sequences; shapes as in `Conv2d` with one axis instead of two."""

    axes = 1


class ConvTranspose2d:
    """The transpose of a convolution: the gradient of `Conv2d` with respect to its input.

    Attributes:
        weight: shape `(in_channels, out_channels / groups, *kernel_size)`.
        bias: shape `(out_channels,)`, or None.
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents = 0,
        output_padding: Extents = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        """Make the parameters; arguments as of `Conv2d`, and zeros added at the end of the result.

        Raises:
            LayerError: the sizes do not fit together.
        """
        kernel = per_axis("kernel_size", kernel_size, self.axes)
        check_sizes(type(self).__name__, in_channels, out_channels, *kernel)
        check_groups(type(self).__name__, in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.kernel_size = kernel
        self.stride = stride
        self.padding = padding
        self.output_padding = output_padding
        self.dilation = dilation
        self.groups = groups
        scale = 1 / math.sqrt(in_channels * math.prod(kernel))
        shape = (in_channels, out_channels // groups, *kernel)
        self.weight = Tensor.uniform(*shape, low=-scale, high=scale)
        self.bias = Tensor.uniform(out_channels, low=-scale, high=scale) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, in_channels, *size)` -> `(batch, out_channels, *larger size)`.

        Raises:
            LayerError: the axes or the channels of `x` are others.
        """
        check_input(type(self).__name__, x, self.in_channels, self.axes)
        return x.conv_transpose2d(
            self.weight,
            self.bias,
            self.groups,
            self.stride,
            self.dilation,
            self.padding,
            self.output_padding,
        )


class ConvTranspose1d(ConvTranspose2d):
    """The transpose of `Conv1d`."""

    axes = 1


def per_axis(what: str, extents: Extents, axes: int) -> tuple[int, ...]:
    """One extent for each axis.

    Raises:
        LayerError: another number of extents was given.
    """
    if not isinstance(extents, (tuple, list)):
        return (whole_number(extents, what),) * axes
    if len(extents) != axes:
        raise LayerError(f"{what} {tuple(extents)}: expected one number, or {axes}")
    return tuple(whole_number(extent, what) for extent in extents)


def check_groups(layer: str, in_channels: int, out_channels: int, groups: int) -> None:
    """Check that channels fall into groups evenly.

    Raises:
        LayerError: they do not.
    """
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise LayerError(
            f"{layer}: {in_channels} input and {out_channels} output channels "
            f"do not fall into {groups} groups of equal size"
        )


def check_input(layer: str, x: Tensor, channels: int, axes: int) -> None:
    """Check that `x` is a batch with these channels.

    Raises:
        LayerError: it is not.
    """
    expect_tensors(layer, x)
    if x.ndim != axes + 2 or x.shape[1] != channels:
        sizes = ("length",) if axes == 1 else ("height", "width")
        raise LayerError(
            f"{layer} of {channels} input channels got an input of shape {x.shape}; "
            f"expected (batch, {channels}, {', '.join(sizes)})"
        )
