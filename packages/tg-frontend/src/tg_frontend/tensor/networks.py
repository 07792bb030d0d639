"""What layers are made of: normalisation, dropout, attention, losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Self

from tg_ir.dtype import dtypes, least_upper_dtype, sum_accumulator
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import prod

from tg_frontend.nodes.broadcasting import filled, resolve_axes
from tg_frontend.tensor.core import Operand, TensorCore, expect_tensors
from tg_frontend.tensor.random import Random


@contextmanager
def training_mode(tensor_class: type[TensorCore], mode: bool) -> Iterator[None]:
    """`training` of a class set for a while."""
    before = tensor_class.training
    tensor_class.training = mode
    try:
        yield
    finally:
        tensor_class.training = before


class Networks(Random):
    """Normalisation, dropout, attention, losses."""

    __slots__ = ()

    # ---- normalisation

    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | Sequence[int] = 1,
    ) -> Self:
        """`(self - mean) * invstd * weight + bias`, the four given along `axis`."""
        axes = resolve_axes(axis, self.ndim)
        extents = tuple(self.shape[k] for k in axes)
        given = {"weight": weight, "bias": bias, "mean": mean, "invstd": invstd}
        for name, part in given.items():
            if part is None:
                continue
            expect_tensors("batchnorm", part)
            if part.numel() != prod(extents) and part is not invstd:
                raise ShapeError(
                    f"batchnorm: {name} {part.shape} does not fit axis {axis} of {self.shape}"
                )
        shape = tuple(extent if k in axes else 1 for k, extent in enumerate(self.shape))
        scale = invstd.reshape(shape) if invstd.ndim == len(axes) else invstd
        if weight is not None:
            scale = scale.mul(weight.reshape(shape))
        result = self.sub(mean.reshape(shape)).mul(scale)
        return result if bias is None else result.add(bias.reshape(shape))

    def layernorm(self, axis: int | Sequence[int] = -1, eps: float = 1e-5) -> Self:
        """Zero mean and unit variance along the axes."""
        x = self._statistics_operand()
        centred = x.sub(x.mean(axis, keepdim=True))
        variance = centred.square().mean(axis, keepdim=True)
        return self._statistics_result(centred.mul(variance.add(eps).rsqrt()))

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Divided by the p-norm along an axis."""
        return self.div(self.norm(p, dim, keepdim=True).maximum(eps))

    # ---- dropout

    @classmethod
    def train(cls, mode: bool = True) -> AbstractContextManager[None]:
        """A context (and decorator) in which `Tensor.training` is `mode`."""
        # on the class that the program sets it on: an attribute of a subclass hides that of its
        # base
        return training_mode(cls, mode)

    def dropout(self, p: float = 0.5) -> Self:
        """While `Tensor.training`, zeros with probability `p` and the rest scaled up.

        Raises:
            ValueError: `p` is no probability.
        """
        if not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise ValueError(f"dropout: p is a probability from 0 to 1, got {p!r}")
        if not self.training or p == 0:
            return self._from_uop(self.uop)
        if p == 1:
            return self.mul(0)
        kept = self.rand_like(dtype=dtypes.float32).ge(p)
        return kept.where(self.mul(1 / (1 - p)), 0)

    # ---- attention

    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """Softmax of `self @ key.T / sqrt(d)`, masked, times `value`.

        Args:
            key: shape `(..., keys, d)`, where this is `(..., queries, d)`.
            value: shape `(..., keys, e)`.
            attn_mask: bool (false: not attended) or added to the scores.
            dropout_p: probability of dropping a weight while training.
            is_causal: attend only to keys not after the query.
            enable_gqa: repeat the heads of key and value to those of the query.

        Raises:
            ValueError: both `is_causal` and `attn_mask`.
        """
        expect_tensors("scaled_dot_product_attention", key, value)
        if min(self.ndim, key.ndim, value.ndim) < (3 if enable_gqa else 2):
            raise ShapeError(
                f"attention: queries {self.shape}, keys {key.shape} and values {value.shape} need "
                f"{'heads, ' if enable_gqa else ''}positions and features as their last axes"
            )
        if enable_gqa:
            heads = self.shape[-3]
            key = key.repeat_interleave(heads // key.shape[-3], dim=-3)
            value = value.repeat_interleave(heads // value.shape[-3], dim=-3)
        accumulator = sum_accumulator(least_upper_dtype(self.dtype, key.dtype))
        scores = self.matmul(key.transpose(-2, -1), dtype=accumulator)
        scores = scores.div(math.sqrt(self.shape[-1]))
        if is_causal:
            if attn_mask is not None:
                raise ValueError("attention: give attn_mask or is_causal, not both")
            attn_mask = self._from_uop(filled(dtypes.bool, True, scores.shape[-2:])).tril()
        if attn_mask is not None and attn_mask.dtype is dtypes.bool:
            scores = attn_mask.where(scores, -math.inf)
        elif attn_mask is not None:
            scores = scores.add(attn_mask)
        weights = scores.softmax(-1).cast(self.dtype).dropout(dropout_p)
        return weights.matmul(value)

    # ---- losses

    def _reduced_loss(self, reduction: str, count: Self | None = None) -> Self:
        """The losses of all items: each, their sum, or their mean over `count`."""
        if reduction == "none":
            return self
        if reduction == "sum":
            return self.sum()
        if reduction == "mean":
            return self.mean() if count is None else self.sum().div(count)
        raise ValueError(f"reduction is 'mean', 'sum' or 'none', got {reduction!r}")

    def cross_entropy(
        self, Y: Self, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> Self:
        """Cross entropy of logits along axis 1 and classes, given as numbers or as probabilities.

        The loss of a class number that does not exist is 0: an index tensor reads 0 outside.

        Args:
            Y: class numbers of this shape without axis 1, or probabilities of this shape.
            reduction: "mean", "sum" or "none".
            label_smoothing: part of the probability that is spread over all classes.

        Raises:
            ShapeError: `Y` has neither shape.
            DTypeError: class numbers that are floats.
        """
        expect_tensors("cross_entropy", Y)
        self._check_smoothing(label_smoothing)
        axis = 1 if self.ndim > 1 else 0
        classes = self.shape[axis]
        log_probabilities = self._statistics_operand().log_softmax(axis)
        if Y.shape == self.shape:
            likelihood = log_probabilities.mul(Y).sum(axis)
        elif Y.shape == self.shape[:axis] + self.shape[axis + 1 :]:
            # chosen and not multiplied: the logarithm of another class may be -inf
            _expect_class_numbers("cross_entropy", Y)
            hit = Y._classes_along(axis, classes)
            likelihood = hit.where(log_probabilities, 0).sum(axis)
        else:
            raise ShapeError(f"cross_entropy: logits {self.shape} and targets {Y.shape} do not fit")
        if label_smoothing:
            everywhere = log_probabilities.mean(axis).mul(label_smoothing)
            likelihood = likelihood.mul(1 - label_smoothing).add(everywhere)
        return self._statistics_result(likelihood.neg()._reduced_loss(reduction))

    def _classes_along(self, axis: int, classes: int) -> Self:
        """One-hot, the classes as a new axis at `axis`."""
        mask = self._from_uop(self._one_hot_mask(classes))
        order = list(range(self.ndim))
        order.insert(axis, self.ndim)
        return mask.permute(order)

    @staticmethod
    def _check_smoothing(label_smoothing: float) -> None:
        if not isinstance(label_smoothing, (int, float)) or not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing is from 0 to 1, got {label_smoothing!r}")

    def sparse_categorical_crossentropy(
        self,
        Y: Self,
        ignore_index: int = -1,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Self:
        """Cross entropy of logits along the last axis and class numbers.

        The loss of a class number that does not exist is 0: an index tensor reads 0 outside. Where
        labels come from a file, check that `Y.max().item()` is below the number of classes.

        Args:
            Y: class numbers, of this shape without the last axis.
            ignore_index: items of this class do not count.
            label_smoothing: part of the probability that is spread over all classes.
            reduction: "mean" (over the items that count), "sum" or "none".

        Raises:
            ShapeError: `Y` has another shape.
            DTypeError: `Y` holds floats.
        """
        expect_tensors("sparse_categorical_crossentropy", Y)
        _expect_class_numbers("sparse_categorical_crossentropy", Y)
        self._check_smoothing(label_smoothing)
        if Y.shape != self.shape[:-1]:
            raise ShapeError(
                f"sparse_categorical_crossentropy: logits {self.shape} need targets of shape "
                f"{self.shape[:-1]}, got {Y.shape}"
            )
        log_probabilities = self.log_softmax(-1)
        hit = self._from_uop(Y._one_hot_mask(self.shape[-1]))
        of_class = hit.where(log_probabilities, 0).sum(-1)
        if label_smoothing:
            everywhere = log_probabilities.mean(-1)
            of_class = of_class.mul(1 - label_smoothing).add(everywhere.mul(label_smoothing))
        counts = Y.ne(ignore_index)
        losses = counts.where(of_class.neg(), 0)
        return losses._reduced_loss(reduction, counts.sum().cast(losses.dtype))

    def nll_loss(
        self,
        Y: Self,
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> Self:
        """Negative log likelihood of class numbers, this being log probabilities along axis 1.

        The loss of a class number that does not exist is 0: an index tensor reads 0 outside.

        Args:
            Y: class numbers, of this shape without axis 1.
            weight: of each class.
            ignore_index: items of this class do not count.
            reduction: "mean" (weighted), "sum" or "none".

        Raises:
            ShapeError: `Y` has another shape.
            DTypeError: `Y` holds floats.
        """
        expect_tensors("nll_loss", Y, *(() if weight is None else (weight,)))
        _expect_class_numbers("nll_loss", Y)
        if self.ndim < 2 or Y.shape != (self.shape[0], *self.shape[2:]):
            raise ShapeError(
                f"nll_loss: log probabilities {self.shape} and classes {Y.shape} do not fit; "
                "the classes lack axis 1"
            )
        classes = self.shape[1]
        hit = Y._classes_along(1, classes)
        of_class = hit.where(self, 0).sum(1).neg()
        if weight is None:
            weights = self._from_uop(filled(of_class.dtype, 1, of_class.shape))
        else:
            weights = hit.where(weight.reshape((1, -1, *(1 for _ in self.shape[2:]))), 0).sum(1)
        if ignore_index is not None:
            weights = Y.ne(ignore_index).where(weights, 0)
        return of_class.mul(weights)._reduced_loss(reduction, weights.sum())

    def binary_crossentropy(self, Y: Operand, reduction: str = "mean") -> Self:
        """Binary cross entropy of probabilities and targets from 0 to 1.

        Logarithms are at least -100, so that the loss of a certain and right answer is 0.
        """
        target = self._from_uop(self._operand_uop(Y))
        positive = self.log().maximum(-100)
        negative = self.neg().add(1).log().maximum(-100)
        losses = target.mul(positive).add(target.neg().add(1).mul(negative))
        return losses.neg()._reduced_loss(reduction)

    def binary_crossentropy_logits(
        self,
        Y: Operand,
        reduction: str = "mean",
        pos_weight: Self | None = None,
    ) -> Self:
        """Binary cross entropy of logits and targets from 0 to 1, without overflow.

        Args:
            Y: targets.
            reduction: "mean", "sum" or "none".
            pos_weight: weight of positive targets, one a class.
        """
        target = self._from_uop(self._operand_uop(Y))
        positive = self.logsigmoid().mul(target)
        if pos_weight is not None:
            positive = positive.mul(pos_weight)
        negative = self.neg().logsigmoid().mul(target.neg().add(1))
        return positive.add(negative).neg()._reduced_loss(reduction)

    def mse_loss(self, target: Self, reduction: str = "mean") -> Self:
        """The square of the difference."""
        return self.sub(target).square()._reduced_loss(reduction)


def _expect_class_numbers(what: str, targets: TensorCore) -> None:
    if dtypes.is_float(targets.dtype):
        raise DTypeError(
            f"{what}: expected class numbers, which are ints, got {targets.dtype.name} of shape "
            f"{targets.shape}; make them ints with .int()"
        )
