"""Layers that normalise: over the batch, over the last axes, over groups of channels."""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import dtypes

from tg_frontend.nn.checks import check_sizes
from tg_frontend.nn.errors import LayerError
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.core import expect_tensors


class BatchNorm:
    """Normalise each channel over batch and positions, then scale and shift it.

    While `Tensor.training` is set the statistics are those of the batch, and the running ones move
    towards them; otherwise the running ones are used.

    Attributes:
        weight: shape `(sz,)`, ones at first; None without `affine`.
        bias: shape `(sz,)`, zeros at first; None without `affine`.
        running_mean: shape `(sz,)`, zeros at first; only with `track_running_stats`.
        running_var: shape `(sz,)`, ones at first, of the unbiased variance; likewise.
        num_batches_tracked: how many batches have moved them; likewise.
    """

    def __init__(
        self,
        sz: int,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float = 0.1,
    ) -> None:
        """Make parameters and statistics.

        Args:
            sz: number of channels, the second axis of the input.
            eps: added to the variance.
            affine: whether to scale and shift.
            track_running_stats: whether to keep running statistics; without, those of the batch are
                always used.
            momentum: how far the running statistics move with each batch, 0 to 1.
        """
        check_sizes("BatchNorm", sz)
        self.sz = sz
        self.eps = eps
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        if track_running_stats:
            self.num_batches_tracked = Tensor.zeros(dtype=dtypes.int64)
            self.num_batches_tracked.requires_grad = False
            self.running_mean = Tensor.zeros(sz).requires_grad_(False)
            self.running_var = Tensor.ones(sz).requires_grad_(False)

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and biased variance of each channel that this call uses, both of shape `(sz,)`."""
        if self.track_running_stats and not Tensor.training:
            return self.running_mean, self.running_var
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        mean = x.mean(axes)
        centred = x - mean.detach().reshape(self._per_channel(x))
        return mean, centred.square().mean(axes)

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, sz, *size)` -> the same.

        Raises:
            LayerError: the second axis of `x` is not `sz`.
        """
        expect_tensors("BatchNorm", x)
        if x.ndim < 2 or x.shape[1] != self.sz:
            raise LayerError(
                f"BatchNorm({self.sz}) got an input of shape {x.shape}; expected (batch, "
                f"{self.sz}, ...)"
            )
        mean, variance = self.calc_stats(x)
        if self.track_running_stats and Tensor.training:
            self._move_statistics(x, mean.detach(), variance.detach())
        return x.batchnorm(self.weight, self.bias, mean, (variance + self.eps).rsqrt())

    def _move_statistics(self, x: Tensor, mean: Tensor, variance: Tensor) -> None:
        count = x.numel() // self.sz
        # of one value there is no unbiased variance; the biased one, 0, is the best guess
        unbiased = variance * (count / max(count - 1, 1))
        kept = 1 - self.momentum
        self.running_mean.assign(kept * self.running_mean.detach() + self.momentum * mean)
        self.running_var.assign(kept * self.running_var.detach() + self.momentum * unbiased)
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)

    @staticmethod
    def _per_channel(x: Tensor) -> tuple[int, ...]:
        return (1, x.shape[1], *(1,) * (x.ndim - 2))


BatchNorm2d = BatchNorm
BatchNorm3d = BatchNorm


class LayerNorm:
    """Normalise over the last axes, then scale and shift.

    Attributes:
        weight: shape `normalized_shape`, ones at first; None without `elementwise_affine`.
        bias: shape `normalized_shape`, zeros at first; likewise.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
    ) -> None:
        """Make the parameters."""
        one_axis = isinstance(normalized_shape, int)
        self.normalized_shape: tuple[int, ...] = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        if not one_axis and not self.normalized_shape:
            raise LayerError("LayerNorm(()): expected the extents of at least one axis")
        self.axis = tuple(range(-len(self.normalized_shape), 0))
        self.eps = eps
        self.weight = Tensor.ones(*self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(*self.normalized_shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(..., *normalized_shape)` -> the same.

        Raises:
            LayerError: the last axes of `x` are others.
        """
        if tuple(x.shape[-len(self.normalized_shape) :]) != self.normalized_shape:
            raise LayerError(
                f"LayerNorm({self.normalized_shape}) got an input of shape {x.shape}; "
                f"its last axes have to be {self.normalized_shape}"
            )
        normalized = x.layernorm(eps=self.eps, axis=self.axis)
        if self.weight is None or self.bias is None:
            return normalized
        return normalized * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """`LayerNorm` over the channels of images; shape `(batch, channels, height, width)`."""

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, channels, height, width)` -> the same."""
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class GroupNorm:
    """Normalise groups of channels of one item, then scale and shift each channel.

    Attributes:
        weight: shape `(num_channels,)`, ones at first; None without `affine`.
        bias: shape `(num_channels,)`, zeros at first; likewise.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True
    ) -> None:
        """Make the parameters.

        Raises:
            LayerError: the channels do not fall into groups evenly.
        """
        if num_groups < 1 or num_channels % num_groups:
            raise LayerError(
                f"GroupNorm: {num_channels} channels do not fall into {num_groups} groups of equal "
                "size"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(batch, num_channels, *size)` -> the same.

        Raises:
            LayerError: the second axis of `x` is not `num_channels`.
        """
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise LayerError(
                f"{type(self).__name__} of {self.num_channels} channels got an input of shape "
                f"{x.shape}; "
                f"expected (batch, {self.num_channels}, ...)"
            )
        grouped = x.reshape(x.shape[0], self.num_groups, -1)
        normalized = grouped.layernorm(eps=self.eps).reshape(x.shape)
        if self.weight is None or self.bias is None:
            return normalized
        per_channel = (1, self.num_channels, *(1,) * (x.ndim - 2))
        return normalized * self.weight.reshape(per_channel) + self.bias.reshape(per_channel)


class InstanceNorm(GroupNorm):
    """Normalise each channel of one item by itself."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        """Make the parameters."""
        super().__init__(num_features, num_features, eps, affine)


class RMSNorm:
    """Divide by the root mean square over the last axis, then scale.

    Attributes:
        weight: shape `(dim,)`, ones at first; None without `elementwise_affine`.
    """

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        """Make the parameter."""
        self.dim = dim
        self.eps = eps
        self.weight = Tensor.ones(dim) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(..., dim)` -> the same; computed in fp32 at least.

        Raises:
            LayerError: the last axis of `x` is not `dim`.
        """
        if not x.shape or x.shape[-1] != self.dim:
            raise LayerError(
                f"RMSNorm({self.dim}) got an input of shape {x.shape}; its last axis has to be "
                f"{self.dim}"
            )
        wide = x if x.dtype is dtypes.float64 else x.float()
        scale = (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        normalized = (wide * scale).cast(x.dtype)
        return normalized if self.weight is None else normalized * self.weight
