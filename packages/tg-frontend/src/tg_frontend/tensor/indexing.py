"""Reading parts of a tensor: brackets, gather, embedding-like lookups, one-hot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import Ops, UOp

from tg_frontend.errors import DataError, IndexOutOfRangeError
from tg_frontend.lazy import array_of
from tg_frontend.nodes.broadcasting import filled, iota, positions, resolve_axis
from tg_frontend.nodes.sizes import at_least_one
from tg_frontend.tensor.core import TensorCore, expect_tensors
from tg_frontend.tensor.index_keys import ParsedKey, check_index_dtype, parse_key
from tg_frontend.tensor.windows import Windows


class Indexing(Windows):
    """Reading parts of a tensor."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Self:
        """The elements that ints, slices, None, Ellipsis, int and bool tensors choose, as in numpy.

        But for an int beside index tensors: it is taken before them, as in torch.

        Ints and slices give a view: writing to it writes here. A bool tensor is counted at once,
        since its result has as many elements as it is true. An int tensor may point outside: that
        reads 0.

        Raises:
            IndexOutOfRangeError: a Python int outside its axis, or more indices than axes.
        """
        parsed = self._parsed_key(key)
        return self._moved(parsed.select(self.uop))

    def __iter__(self) -> Iterator[Self]:
        """The parts along the first axis.

        Raises:
            TypeError: there is no axis.
        """
        if not self.shape:
            raise TypeError("iteration over a tensor without axes; it holds one: use .item()")
        return iter([self[k] for k in range(len(self))])

    def _parsed_key(self, key: Any) -> ParsedKey:
        given = key if isinstance(key, tuple) else (key,)
        items: list[Any] = []
        axis = 0
        for number, item in enumerate(given):
            if item is Ellipsis:
                items.append(item)
                axis = self.ndim - sum(self._axes_of_item(other) for other in given[number + 1 :])
                continue
            parts = self._key_items(item, axis)
            items += parts
            axis += len(parts) if item is not None else 0
        return parse_key(items, self.shape)

    def _axes_of_item(self, item: Any) -> int:
        """How many axes an item between the brackets takes."""
        if item is None:
            return 0
        if isinstance(item, TensorCore) and item.dtype is dtypes.bool:
            return item.ndim
        if hasattr(item, "dtype") and not isinstance(item, (UOp, TensorCore)):
            return int(item.ndim) if item.dtype.name == "bool" else 1
        return 1

    def _key_items(self, item: Any, axis: int) -> list[Any]:
        """An item as what `parse_key` takes: lists, arrays and tensors become index nodes."""
        if isinstance(item, (list, tuple)):
            item = _array_of_key(item)
        if hasattr(item, "dtype") and not isinstance(item, (UOp, TensorCore)):
            if item.dtype.kind not in "iub":
                raise DTypeError(
                    f"cannot index with elements of type {item.dtype.name}; "
                    "expected ints, slices, None, Ellipsis, or int and bool tensors"
                )
            if not item.shape and item.dtype.name != "bool":
                return [int(item)]
            self._check_range(item, axis)
            item = self._from_uop(self._operand_uop(item))
        if not isinstance(item, TensorCore):
            return [item]
        if item.dtype is dtypes.bool:
            return self._nonzero_of_mask(item, axis)
        return [check_index_dtype(item.uop)]

    def _check_range(self, array: Any, axis: int) -> None:
        """Refuse numbers of the host outside the axis at once."""
        if array.dtype.name == "bool" or not array.size or axis >= self.ndim:
            return
        extent = self.shape[axis]
        low, high = int(array.min()), int(array.max())
        if isinstance(extent, int) and (low < -extent or high >= extent):
            wrong = low if low < -extent else high
            raise IndexOutOfRangeError(
                f"index {wrong} is out of range for axis {axis} of shape {self.shape}; "
                f"expected {-extent}..{extent - 1}"
            )

    def _nonzero_of_mask(self, mask: TensorCore, axis: int) -> list[Any]:
        """The positions where a mask is true, one index node an axis of it.

        Raises:
            ShapeError: the mask has not the shape of the axes it stands for.
        """
        if mask.ndim == 0:
            raise DTypeError(
                "cannot index with a single bool; "
                "expected ints, slices, None, Ellipsis, or int and bool tensors with axes"
            )
        covered = self.shape[axis : axis + mask.ndim]
        if mask.shape != covered:
            raise ShapeError(
                f"a mask of shape {mask.shape} does not fit axes {axis}.. of shape {self.shape}"
            )
        places = self._from_uop(mask.uop).host_array("indexing by a bool tensor").nonzero()
        return [self._operand_uop(place.astype("int32")) for place in places]

    def host_array(self, what: str) -> Any:
        """The elements as a numpy array, for keys whose result shape depends on values."""
        raise NotImplementedError(f"{what}: given by the class that reads values")

    # ---- gather and one-hot

    def gather(self, dim: int, index: Self) -> Self:
        """`self[..., index[i, j, k] at dim, ...]` for each place (i, j, k) of `index`.

        Raises:
            ShapeError: `index` has other axes, or is larger in an axis other than `dim`.
        """
        expect_tensors("gather", index)
        axis = resolve_axis(dim, self.ndim)
        return self._from_uop(self._gather_node(self.uop, axis, index))

    def _gather_node(self, uop: UOp, axis: int, index: TensorCore) -> UOp:
        larger = index.ndim != self.ndim or any(
            k != axis and wanted > extent
            for k, (wanted, extent) in enumerate(zip(index.shape, self.shape, strict=False))
        )
        if larger:
            raise ShapeError(
                f"an index of shape {index.shape} does not fit into {self.shape}: "
                f"as many axes are expected, none larger except axis {axis}"
            )
        places = [
            check_index_dtype(index.uop) if k == axis else positions(index.shape, k, dtypes.int32)
            for k in range(self.ndim)
        ]
        return UOp(Ops.GATHER, uop.dtype, (uop, *places), tuple(range(self.ndim)))

    def one_hot(self, num_classes: int) -> Self:
        """For each class number a row with a one there and zeros elsewhere, int32."""
        at_least_one(num_classes, "one_hot: the number of classes")
        check_index_dtype(self.uop)
        return self._from_uop(self._one_hot_mask(num_classes)).where(1, 0)

    def _one_hot_mask(self, num_classes: int) -> UOp:
        shape = (*self.shape, num_classes)
        classes = iota(num_classes, dtypes.int32).reshape((1,) * self.ndim + (num_classes,))
        wanted = self.uop.cast(dtypes.int32).reshape((*self.shape, 1))
        return classes.expand(shape).eq(wanted.expand(shape))

    def masked_select(self, mask: Self) -> Self:
        """The elements where `mask`, which broadcasts, is true, in order."""
        expect_tensors("masked_select", mask)
        everywhere = self._from_uop(mask.uop.cast(dtypes.bool)).expand(self.shape)
        return self[everywhere]

    def nonzero(self) -> Self:
        """The positions of the elements that are not zero, one row each."""
        if not self.shape:
            raise ShapeError("nonzero: a tensor without axes has no positions; reshape it first")
        places = self._from_uop(self.uop).host_array("nonzero()").nonzero()
        columns = [self._from_uop(self._operand_uop(place.astype("int32"))) for place in places]
        if not columns:
            return self._from_uop(filled(dtypes.int32, 0, (0, 0)))
        return columns[0].stack(*columns[1:], dim=-1)


def _array_of_key(items: Any) -> Any:
    """The numpy array of a list between the brackets.

    Raises:
        DataError: the lists in it differ in length, or hold what is no number.
    """
    if not len(items):
        return array_of(items).astype("int32")
    try:
        return array_of(items)
    except (ValueError, TypeError):
        raise DataError(
            f"cannot index with {items!r}; expected ints, in lists of one length"
        ) from None
