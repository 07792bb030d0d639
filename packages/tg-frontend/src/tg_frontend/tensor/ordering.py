"""Sorting, and what is made of it: argsort, topk, random permutations.

NaN comes last, as in numpy (first if descending); equal elements keep their order.
"""

from __future__ import annotations

from typing import Self

from tg_ir.errors import ShapeError
from tg_ir.graph import UOp

from tg_frontend.nodes.broadcasting import existing_axis, resolve_axis
from tg_frontend.nodes.sizes import as_new_shape, expect_plain_sizes, whole_number
from tg_frontend.nodes.sorting_network import PLACE, sorted_places
from tg_frontend.tensor.creation import DeviceName, DTypeLike
from tg_frontend.tensor.random import random_bits
from tg_frontend.tensor.resampling import Resampling


class Ordering(Resampling):
    """Sorting."""

    __slots__ = ()

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The positions that sort an axis, int32."""
        if self.ndim == 0:
            resolve_axis(dim, 0)
            return self._from_uop(UOp.const(PLACE, 0))
        expect_plain_sizes(self.shape, "sort")
        axis = resolve_axis(dim, self.ndim)
        order = [*(k for k in range(self.ndim) if k != axis), axis]
        back = sorted(range(self.ndim), key=order.__getitem__)
        places = sorted_places(self.uop.detach().permute(order), descending)
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
        expect_plain_sizes(self.shape, "topk")
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
