"""Positions of extremes and running results: reductions over a tuple of states, and scans."""

from __future__ import annotations

from functools import cache
from typing import Self

from tg_ir.dtype import DType, dtypes, sum_accumulator
from tg_ir.graph import Combine, ConstType, Ops, ReduceArg, UOp, same_extent

from tg_frontend.nodes.broadcasting import filled, positions, resolve_axes, resolve_axis
from tg_frontend.nodes.sizes import expect_plain_sizes
from tg_frontend.tensor.keyword_names import also_called
from tg_frontend.tensor.reduction import Axes, Reduction, without_axes

_POSITION = dtypes.int32


@cache
def first_extreme(dtype: DType, largest: bool) -> Combine:
    """How (value, position) states join.

    The more extreme value, NaN before all, the first of equals.
    """
    name = "argmax" if largest else "argmin"
    worst: ConstType = dtypes.min(dtype) if largest else dtypes.max(dtype)
    old_value, new_value = (UOp(Ops.STATE, dtype, (), (side, 0)) for side in (0, 1))
    old_place, new_place = (UOp(Ops.STATE, _POSITION, (), (side, 1)) for side in (0, 1))
    better = old_value < new_value if largest else new_value < old_value
    tie = old_value.eq(new_value)
    if dtypes.is_float(dtype):
        old_is_nan, new_is_nan = old_value.ne(old_value), new_value.ne(new_value)
        better = better | (new_is_nan & old_is_nan.logical_not())
        tie = tie | (new_is_nan & old_is_nan)
    taken = better | (tie & (new_place < old_place))
    body = (taken.where(new_value, old_value), taken.where(new_place, old_place))
    return Combine(f"{name}_{dtype.name}", (worst, int(dtypes.max(_POSITION))), body)


class Scanning(Reduction):
    """Positions of extremes, running sums, products and maxima."""

    __slots__ = ()

    @also_called("dim", "axis")
    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position of the largest element, the first of equals.

        Of the first NaN if there is one.

        Raises:
            EmptyReductionError: the axis is empty.
        """
        return self._position(axis, keepdim, True)

    @also_called("dim", "axis")
    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position of the smallest element, the first of equals.

        Of the first NaN if there is one.

        Raises:
            EmptyReductionError: the axis is empty.
        """
        return self._position(axis, keepdim, False)

    def _position(self, axis: int | None, keepdim: bool, largest: bool) -> Self:
        if axis is None:
            result = self.flatten()._position(0, False, largest)
            return result.reshape((1,) * self.ndim) if keepdim else result
        x = self.cast(dtypes.uint8) if self.dtype is dtypes.bool else self
        if self.ndim == 0:
            resolve_axis(axis, 0)
            return x._from_uop(UOp.const(_POSITION, 0))
        number = resolve_axis(axis, self.ndim)
        self._refuse_empty("argmax" if largest else "argmin", number)
        if same_extent(x.shape[number], 1):
            shape = x.shape if keepdim else without_axes(x.shape, (number,))
            return x._from_uop(filled(_POSITION, 0, shape))
        places = positions(x.shape, number, _POSITION)
        arg = ReduceArg(first_extreme(x.dtype, largest), (number,))
        both = UOp(Ops.REDUCE_AXIS, x.dtype, (x.uop, places), arg)
        return self._finish(both.get_tuple(1, _POSITION), (number,), keepdim)

    def _scan(self, op: Ops, axis: int) -> Self:
        if self.ndim == 0:
            resolve_axis(axis, 0)
            return self._from_uop(self.uop)
        number = resolve_axis(axis, self.ndim)
        if same_extent(self.shape[number], 0):
            return self._from_uop(self.uop)
        arg = ReduceArg(Combine.of(op, self.dtype), (number,))
        return self._from_uop(UOp(Ops.SCAN_AXIS, self.dtype, (self.uop,), arg))

    def _accumulating_scan(self, op: Ops, axis: int) -> Self:
        wide = self.cast(sum_accumulator(self.dtype))
        result = wide._scan(op, axis)
        return result.cast(self.dtype) if self.is_floating_point() else result

    @also_called("dim", "axis")
    def cumsum(self, axis: int = 0) -> Self:
        """The sums of all elements up to each one; dtypes as in `sum`."""
        return self._accumulating_scan(Ops.ADD, axis)

    @also_called("dim", "axis")
    def cumprod(self, axis: int = 0) -> Self:
        """The products of all elements up to each one."""
        return self._accumulating_scan(Ops.MUL, axis)

    @also_called("dim", "axis")
    def cummax(self, axis: int = 0) -> Self:
        """The largest of all elements up to each one; NaN from the first NaN on."""
        return self._scan(Ops.OR if self.dtype is dtypes.bool else Ops.MAX, axis)

    @also_called("dim", "axis")
    def cummin(self, axis: int = 0) -> Self:
        """The smallest of all elements up to each one."""
        if self.is_floating_point():
            return self.neg()._scan(Ops.MAX, axis).neg()
        return self.bitwise_not().cummax(axis).bitwise_not()

    @also_called("dim", "axis")
    def logcumsumexp(self, axis: int = 0) -> Self:
        """The logarithm of the running sum of exponentials, without overflow or loss.

        By doubling (Hillis and Steele, 1986): each step joins every element with that as far
        before it as two steps of the last one reach, so that each pair has a maximum of its own.
        """
        x = self._statistics_operand()
        if self.ndim == 0:
            return self._statistics_result(x)
        number = resolve_axis(axis, self.ndim)
        expect_plain_sizes(self.shape, "logcumsumexp")
        extent = int(self.shape[number])
        distance = 1
        while distance < extent:
            first = x._narrow(number, 0, distance)
            joined = x._narrow(number, distance, extent).logaddexp(
                x._narrow(number, 0, extent - distance)
            )
            x = first.cat(joined, dim=number).contiguous()
            distance *= 2
        return self._statistics_result(x)

    # ---- softmax

    def _exponentials(self, axis: int) -> tuple[Self, Self, Self]:
        """`x - max`, its exponential and the sum of that, in the accumulator dtype."""
        x = self._statistics_operand()
        if self.ndim == 0:
            shifted = x.sub(x.detach())
            return shifted, shifted.exp(), shifted.exp()
        if same_extent(self.shape[resolve_axis(axis, self.ndim)], 0):
            return x, x, x  # no element to divide
        largest = x.max(axis, keepdim=True).detach()
        shifted = x.sub(largest)
        exponential = shifted.exp()
        return shifted, exponential, exponential.sum(axis, keepdim=True)

    @also_called("dim", "axis")
    def softmax(self, axis: int = -1, dtype: DType | None = None) -> Self:
        """Exponentials divided by their sum along an axis, without overflow."""
        x = self if dtype is None else self.cast(dtype)
        _, exponential, total = x._exponentials(axis)
        return x._statistics_result(exponential.div(total))

    @also_called("dim", "axis")
    def log_softmax(self, axis: int = -1, dtype: DType | None = None) -> Self:
        """The logarithm of the softmax, without overflow."""
        x = self if dtype is None else self.cast(dtype)
        shifted, _, total = x._exponentials(axis)
        return x._statistics_result(shifted.sub(total.log()))

    @also_called("dim", "axis")
    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The logarithm of the sum of exponentials, without overflow; -inf over an empty axis."""
        x = self._statistics_operand()
        axes = resolve_axes(axis, self.ndim)
        if any(same_extent(self.shape[number], 0) for number in axes):
            return self._statistics_result(x.exp().sum(axis, keepdim).log())
        largest = x.max(axis, keepdim=True).detach()
        base = largest.isfinite().where(largest, 0.0)
        total = x.sub(base).exp().sum(axis, keepdim=True).log().add(base)
        return self._statistics_result(self._finish(total.uop, axes, keepdim))

    @also_called("dim", "axis")
    def softmin(self, axis: int = -1, dtype: DType | None = None) -> Self:
        """The softmax of the negation."""
        x = self if dtype is None else self.cast(dtype)
        return x._floating().neg().softmax(axis)

