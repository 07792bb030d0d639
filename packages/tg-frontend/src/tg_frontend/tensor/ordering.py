"""Sorting, by a bitonic network, and what is made of it: argsort, topk, random permutations.

NaN comes last, as in numpy (first if descending); equal elements keep their order.
"""

from __future__ import annotations

from typing import Self

from tg_ir.dtype import dtypes
from tg_ir.errors import ShapeError
from tg_ir.graph import UOp

from tg_frontend.nodes.broadcasting import existing_axis, filled, positions, resolve_axis
from tg_frontend.nodes.sizes import as_new_shape, whole_number
from tg_frontend.tensor.creation import DeviceName, DTypeLike
from tg_frontend.tensor.joining import concatenated
from tg_frontend.tensor.random import random_bits
from tg_frontend.tensor.resampling import Resampling

_PLACE = dtypes.int32
_Pair = tuple[UOp, UOp]


class Ordering(Resampling):
    """Sorting."""

    __slots__ = ()

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions that sort an axis, int32."""
        if self.ndim == 0:
            resolve_axis(dim, 0)
            return self._from_uop(UOp.const(_PLACE, 0))
        axis = resolve_axis(dim, self.ndim)
        order = [*(k for k in range(self.ndim) if k != axis), axis]
        back = sorted(range(self.ndim), key=order.__getitem__)
        places = _sorted_places(self.uop.detach().permute(order), descending)
        return self._from_uop(places.permute(back))

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements of an axis in order, and their positions."""
        places = self.argsort(dim, descending)
        if self.ndim == 0:
            return self._from_uop(self.uop), places
        return self.gather(dim, places), places

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """The `k` largest (or smallest) elements of an axis in order, and their positions.

        Raises:
            ShapeError: the axis has fewer than `k`.
        """
        if not sorted_:
            raise ValueError("topk: only sorted results are offered; leave sorted_ at True")
        axis = existing_axis(dim, self.shape, "topk")
        if not 0 <= whole_number(k, "topk: k") <= self.shape[axis]:
            raise ShapeError(f"topk: {k} of axis {axis} of shape {self.shape}")
        places = self.argsort(axis, descending=largest)._narrow(axis, 0, k)
        return self.gather(axis, places), places

    @classmethod
    def randperm(
        cls, n: int, device: DeviceName = None, dtype: DTypeLike = None
    ) -> Self:
        """The numbers 0 to n-1 in random order, int32."""
        keys = cls._drawn(random_bits(as_new_shape((n,), "randperm")), device, None)
        order = keys.argsort()
        return order if dtype is None else order.cast(dtype)


def _sorted_places(values: UOp, descending: bool) -> UOp:
    """The positions that sort the last axis."""
    size = int(values.shape[-1])
    lead = values.shape[:-1]
    if size <= 1:
        return filled(_PLACE, 0, values.shape)
    width = 1 << (size - 1).bit_length()
    rows = 1
    for extent in lead:
        rows *= int(extent)
    # one row each; places from `size` on are padding and sort behind everything
    flat = values.reshape((rows, size)).pad(((0, 0), (0, width - size)))
    pair = (flat, positions((rows, width), 1, _PLACE))
    half = 1
    while half < width:
        pair = _merge(pair, half, size, descending)
        half *= 2
    return pair[1].shrink(((0, rows), (0, size))).reshape(values.shape)


def _merge(pair: _Pair, half: int, size: int, descending: bool) -> _Pair:
    """Sorted runs of `half` elements made sorted runs of twice as many."""
    # the second run is reversed for the first comparison, so that every comparison sorts upwards
    pair = _compare_halves(pair, half, size, descending, is_reversed=True)
    distance = half // 2
    while distance:
        pair = _compare_halves(pair, distance, size, descending, is_reversed=False)
        distance //= 2
    return pair


def _compare_halves(
    pair: _Pair, half: int, size: int, descending: bool, is_reversed: bool
) -> _Pair:
    rows, width = pair[0].shape
    blocks = width // (2 * half)

    def part(node: UOp, which: int) -> UOp:
        split = node.reshape((rows, blocks, 2, half))
        bounds = ((0, rows), (0, blocks), (which, which + 1), (0, half))
        picked = split.shrink(bounds)
        return picked.flip((False, False, False, True)) if is_reversed and which else picked

    def joined(low: UOp, high: UOp) -> UOp:
        back = high.flip((False, False, False, True)) if is_reversed else high
        return concatenated([low, back], 2).reshape((rows, width)).contiguous()

    first = (part(pair[0], 0), part(pair[1], 0))
    second = (part(pair[0], 1), part(pair[1], 1))
    swap = _comes_before(second, first, size, descending)
    lows = [swap.where(b, a) for a, b in zip(first, second, strict=True)]
    highs = [swap.where(a, b) for a, b in zip(first, second, strict=True)]
    return joined(lows[0], highs[0]), joined(lows[1], highs[1])


def _comes_before(left: _Pair, right: _Pair, size: int, descending: bool) -> UOp:
    """Whether the element `left` belongs before `right`; places decide between equal ones."""
    (a, place_a), (b, place_b) = left, right
    before, after = (b < a, a < b) if descending else (a < b, b < a)
    if dtypes.is_float(a.dtype):
        a_is_nan, b_is_nan = a.ne(a), b.ne(b)
        first, last = (a_is_nan, b_is_nan) if descending else (b_is_nan, a_is_nan)
        before = before | (first & last.logical_not())
        after = after | (last & first.logical_not())
    by_place = place_a < place_b
    decided = before.where(before, after.where(after.logical_not(), by_place))
    # padding has the largest places, so among it and against it the place decides
    is_padding = (place_a < size).logical_not() | (place_b < size).logical_not()
    return is_padding.where(by_place, decided)
