"""Reductions along axes: sum, product, extremes, truth, and the statistics made of them.

Sums and products are carried out in the accumulator dtype of SEMANTICS 11 and rounded once at the
end. Positions of extremes and running results are in `scanning`, softmax and norms in
`normalization`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from tg_ir.dtype import DType, dtypes, sum_accumulator, to_dtype
from tg_ir.graph import Ops, UOp, identity_element, prod, same_extent

from tg_frontend.errors import ArgumentError, EmptyReductionError
from tg_frontend.nodes import special_functions as special
from tg_frontend.nodes.broadcasting import Shape, filled, resolve_axes
from tg_frontend.tensor.joining import Joining
from tg_frontend.tensor.keyword_names import also_called

Axes = int | Sequence[int] | None
"""One axis, several, or None for all."""


def reduced(uop: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """`uop` joined by `op` along `axes`, which stay with size 1.

    The identity over an empty axis.
    """
    shape = uop.shape
    if any(same_extent(shape[axis], 0) for axis in axes):
        result = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        return filled(uop.dtype, identity_element(op, uop.dtype), result)
    return uop.reduce_axis(op, [axis for axis in axes if not same_extent(shape[axis], 1)])


def without_axes(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """`shape` with `axes` left out."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


class Reduction(Joining):
    """Reductions. `axis` is one axis, several or None for all.

    With `keepdim` they stay with size 1.
    """

    __slots__ = ()

    def _finish(self, uop: UOp, axes: tuple[int, ...], keepdim: bool) -> Self:
        made = uop if keepdim else uop.reshape(without_axes(uop.shape, axes))
        return self._from_uop(made)

    def _reduce(self, op: Ops, axis: Axes, keepdim: bool) -> Self:
        axes = resolve_axes(axis, self.ndim)
        return self._finish(reduced(self.uop, op, axes), axes, keepdim)

    def _accumulate(self, op: Ops, axis: Axes, keepdim: bool, dtype: DType | str | None) -> Self:
        chosen = None if dtype is None else to_dtype(dtype)
        accumulator = sum_accumulator(self.dtype) if chosen is None else chosen
        result = self.cast(accumulator)._reduce(op, axis, keepdim)
        # ints stay as wide as they were summed; floats return to their own width
        return result.cast(self.dtype) if chosen is None and self.is_floating_point() else result

    @also_called("dim", "axis")
    def sum(
        self, axis: Axes = None, keepdim: bool = False, dtype: DType | str | None = None
    ) -> Self:
        """The sum. Ints of 8 and 16 bits and bools give 32.

        `dtype` chooses what to sum in and return.
        """
        return self._accumulate(Ops.ADD, axis, keepdim, dtype)

    @also_called("dim", "axis")
    def prod(
        self, axis: Axes = None, keepdim: bool = False, dtype: DType | str | None = None
    ) -> Self:
        """The product; dtypes as in `sum`."""
        return self._accumulate(Ops.MUL, axis, keepdim, dtype)

    @also_called("dim", "axis")
    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The largest element; NaN if there is one. Equal ones share the gradient.

        Raises:
            EmptyReductionError: an axis is empty.
        """
        self._refuse_empty("max", axis)
        return self._reduce(Ops.OR if self.dtype is dtypes.bool else Ops.MAX, axis, keepdim)

    @also_called("dim", "axis")
    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The smallest element; NaN if there is one. Equal ones share the gradient.

        Raises:
            EmptyReductionError: an axis is empty.
        """
        self._refuse_empty("min", axis)
        if self.dtype is dtypes.bool:
            return self._reduce(Ops.AND, axis, keepdim)
        if self.is_floating_point():
            return self.neg()._reduce(Ops.MAX, axis, keepdim).neg()
        return self.bitwise_not()._reduce(Ops.MAX, axis, keepdim).bitwise_not()

    def _refuse_empty(self, name: str, axis: Axes) -> None:
        for number in resolve_axes(axis, self.ndim):
            if same_extent(self.shape[number], 0):
                raise EmptyReductionError(
                    f"{name} over axis {number} of shape {self.shape}, which is empty; "
                    "there is no such element"
                )

    @also_called("dim", "axis")
    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether one element is not zero."""
        return self.cast(dtypes.bool)._reduce(Ops.OR, axis, keepdim)

    @also_called("dim", "axis")
    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether no element is zero."""
        return self.cast(dtypes.bool)._reduce(Ops.AND, axis, keepdim)

    # ---- statistics

    def _statistics_operand(self) -> Self:
        """This in the dtype in which means and variances are computed."""
        return self.cast(sum_accumulator(special.as_float(self.uop).dtype))

    def _statistics_result(self, result: Self) -> Self:
        return result.cast(self.dtype if self.is_floating_point() else dtypes.default_float)

    def _count(self, axis: Axes) -> UOp:
        """How many elements the axes have, as a float scalar."""
        count = prod(self.shape[number] for number in resolve_axes(axis, self.ndim))
        dtype = self._statistics_operand().dtype
        return count.cast(dtype) if isinstance(count, UOp) else UOp.const(dtype, count)

    @also_called("dim", "axis")
    def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The mean; of ints in the default float."""
        total = self._statistics_operand()._reduce(Ops.ADD, axis, keepdim)
        return self._statistics_result(total.div(self._from_uop(self._count(axis))))

    @also_called("dim", "axis")
    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The variance, of the distances from the mean.

        The divisor is the count less `correction`.
        """
        return self._statistics_result(self._variance(axis, keepdim, correction))

    def _variance(self, axis: Axes, keepdim: bool, correction: int) -> Self:
        x = self._statistics_operand()
        distance = x.sub(x.mean(axis, keepdim=True))
        count = self._from_uop(self._count(axis))
        divisor = count.sub(correction).maximum(0)
        return distance.square()._reduce(Ops.ADD, axis, keepdim).div(divisor)

    @also_called("dim", "axis")
    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The square root of the variance; of equal elements it has the gradient 0."""
        variance = self._variance(axis, keepdim, correction)
        return self._statistics_result(variance._root(0.5))

    def _root(self, exponent: float) -> Self:
        """This, not negative, to a power; at 0, where a root is vertical, with the gradient 0."""
        is_zero = self.eq(0)
        above = is_zero.where(1.0, self)
        return is_zero.where(0.0, above.sqrt() if exponent == 0.5 else above.pow(exponent))

    @also_called("dim", "axis")
    def var_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1
    ) -> tuple[Self, Self]:
        """Variance and mean."""
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    @also_called("dim", "axis")
    def std_mean(
        self, axis: Axes = None, keepdim: bool = False, correction: int = 1
    ) -> tuple[Self, Self]:
        """Standard deviation and mean."""
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

    @also_called("dim", "axis")
    def norm(self, p: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Self:
        """The p-norm, scaled so that squares neither overflow nor vanish.

        Raises:
            ArgumentError: `p` is no number.
            ValueError: `p` is 0.
        """
        if not isinstance(p, (int, float)):
            raise ArgumentError(f"norm: p is a number, got {type(p).__name__} {p!r}")
        if p == 0:
            raise ValueError("norm: p is 0, which gives no norm; count with x.ne(0).sum()")
        magnitude = self._statistics_operand().abs()
        if p == float("inf"):
            return self._statistics_result(magnitude.max(axis, keepdim))
        if p == 1:
            return self._statistics_result(magnitude.sum(axis, keepdim))
        if prod(self.shape) == 0:
            return self._statistics_result(magnitude.sum(axis, keepdim))
        largest = magnitude.max(axis, keepdim=True).detach()
        usable = largest.isfinite().bitwise_and(largest.gt(0))
        scale = usable.where(largest, 1.0)
        scaled = magnitude.div(scale)
        powers = scaled.square() if p == 2 else scaled.pow(p)
        total = powers._reduce(Ops.ADD, axis, True)
        root = total._root(1.0 / p)
        axes = resolve_axes(axis, self.ndim)
        return self._statistics_result(self._finish(root.mul(scale).uop, axes, keepdim))
