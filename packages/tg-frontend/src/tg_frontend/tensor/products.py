"""Sums of products: matmul, linear, einsum; triangles.

Operands are widened to the accumulator dtype before they are multiplied, summed there and rounded
once. The graph is a product of two expanded views and one REDUCE_AXIS, which the scheduler knows
as a contraction.
"""

from __future__ import annotations

from typing import Any, Self

from tg_ir.dtype import DType, dtypes, least_upper_dtype, sum_accumulator, to_dtype
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, same_extent

from tg_frontend.errors import ArgumentError
from tg_frontend.nodes.broadcasting import broadcast_shape, broadcast_to
from tg_frontend.nodes.sizes import Shape, whole_number
from tg_frontend.tensor.core import expect_tensors
from tg_frontend.tensor.reduction import reduced
from tg_frontend.tensor.scanning import Scanning


def widened_operands(
    left: UOp, right: UOp, dtype: DType | None
) -> tuple[UOp, UOp, DType]:
    """Both operands in the accumulator dtype, and the dtype of the result."""
    common = least_upper_dtype(left.dtype, right.dtype)
    result = common if dtype is None else dtype
    accumulator = sum_accumulator(common) if dtype is None else dtype
    return left.cast(accumulator), right.cast(accumulator), result


def sum_of_products(left: UOp, right: UOp, axes: tuple[int, ...]) -> UOp:
    """The products of two nodes that broadcast, summed along `axes`, which stay with size 1."""
    shape = broadcast_shape(left.shape, right.shape)
    op = Ops.AND if left.dtype is dtypes.bool else Ops.MUL
    product = broadcast_to(left, shape).alu(op, broadcast_to(right, shape))
    return reduced(product, Ops.OR if left.dtype is dtypes.bool else Ops.ADD, axes)


class Products(Scanning):
    """Products summed along an axis."""

    __slots__ = ()

    def dot(self, w: Self, dtype: DType | str | None = None) -> Self:
        """The matrix product, as numpy's `matmul`: leading axes broadcast, vectors are allowed.

        Args:
            w: shape `(..., k, m)` or `(k,)`, where this is `(..., n, k)` or `(k,)`.
            dtype: what to multiply and sum in and return; None widens and rounds back.

        Raises:
            ShapeError: the inner extents differ, or one has no axes; names both shapes.
        """
        x, y = self.uop, self._operand_uop(w)
        if x.ndim > 2 and y.ndim > 2:
            self._check_leading_axes(x.shape, y.shape)
        if not x.shape or not y.shape:
            raise ShapeError(f"matmul takes tensors with axes, got shapes {x.shape} and {y.shape}")
        inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
        if not same_extent(x.shape[-1], inner):
            raise ShapeError(
                f"matmul: shapes {x.shape} and {y.shape} do not fit: "
                f"the inner extents {x.shape[-1]} and {inner} differ"
            )
        x, y, result = widened_operands(x, y, None if dtype is None else to_dtype(dtype))
        if y.ndim > 1:
            order = (*range(y.ndim - 2), y.ndim - 1, y.ndim - 2)
            y = y.permute(order)
            x = x.reshape((*x.shape[:-1], 1, x.shape[-1]))
            if self.ndim > 1:
                y = y.reshape((*y.shape[:-2], 1, *y.shape[-2:]))
        total = sum_of_products(x, y, (len(broadcast_shape(x.shape, y.shape)) - 1,))
        return self._from_uop(total.reshape(total.shape[:-1]).cast(result))

    def _check_leading_axes(self, left: Shape, right: Shape) -> None:
        try:
            broadcast_shape(left[:-2], right[:-2])
        except ShapeError:
            raise ShapeError(
                f"matmul: shapes {left} and {right} do not fit: the leading axes {left[:-2]} and "
                f"{right[:-2]} do not broadcast"
            ) from None

    def matmul(self, x: Self, reverse: bool = False, dtype: DType | str | None = None) -> Self:
        """`dot`, or with `reverse` the other way round."""
        other = x if isinstance(x, Products) else self._from_uop(self._operand_uop(x))
        return other.dot(self, dtype) if reverse else self.dot(other, dtype)

    def __matmul__(self, x: Self) -> Self:
        return self.matmul(x)

    def __rmatmul__(self, x: Self) -> Self:
        return self.matmul(x, True)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DType | None = None) -> Self:
        """`self @ weight + bias`, `weight` of shape `(in, out)`."""
        expect_tensors("linear", weight, *(() if bias is None else (bias,)))
        if dtype is not None:
            cast_bias = None if bias is None else bias.cast(dtype)
            return self.cast(dtype).linear(weight.cast(dtype), cast_bias)
        product = self.mul(weight) if weight.ndim == 1 else self.dot(weight)
        return product if bias is None else product.add(bias)

    @classmethod
    def einsum(cls, formula: str, *operands: Self, dtype: DType | str | None = None) -> Self:
        """Einstein summation: axes that the result does not name are summed.

        Raises:
            ShapeError: the formula and the shapes do not fit.
            ArgumentError: the formula is no text, or an operand no tensor.
        """
        if not isinstance(formula, str):
            raise ArgumentError(
                f"einsum: expected a formula such as 'ij,jk->ik' first, got {formula!r}"
            )
        listed: Any = operands[0] if len(operands) == 1 else operands
        tensors: list[Self] = list(listed if isinstance(listed, (list, tuple)) else operands)
        expect_tensors("einsum", *tensors)
        inputs, output = _parse_formula(formula, [tensor.ndim for tensor in tensors])
        extents = _extents_of_labels(formula, inputs, [tensor.shape for tensor in tensors])
        order = output + "".join(sorted(label for label in extents if label not in output))
        common = least_upper_dtype(*(tensor.dtype for tensor in tensors))
        wanted = None if dtype is None else to_dtype(dtype)
        accumulator = wanted or sum_accumulator(common)
        factors = [
            _aligned(_diagonal(tensor.uop.cast(accumulator), labels), order)
            for labels, tensor in zip(inputs, tensors, strict=True)
        ]
        shape = broadcast_shape(*(factor.shape for factor in factors))
        product = broadcast_to(factors[0], shape)
        for factor in factors[1:]:
            product = product * broadcast_to(factor, shape)
        total = reduced(product, Ops.ADD, tuple(range(len(output), len(order))))
        return cls._from_uop(total.reshape(shape[: len(output)]).cast(wanted or common))

    def tril(self, diagonal: int = 0) -> Self:
        """The lower triangle of the last two axes, zeros above."""
        return self._triangle(diagonal, lower=True)

    def triu(self, diagonal: int = 0) -> Self:
        """The upper triangle of the last two axes, zeros below."""
        return self._triangle(diagonal, lower=False)

    def _triangle(self, diagonal: int, lower: bool) -> Self:
        if self.ndim < 2:
            raise ShapeError(f"a triangle needs two axes, got shape {self.shape}")
        whole_number(diagonal, "diagonal")
        rows, columns = self.shape[-2:]
        grid = (rows, columns)
        row = positions_of(grid, 0)
        column = positions_of(grid, 1)
        limit = row + (diagonal + 1 if lower else diagonal)
        kept = column < limit if lower else (column < limit).logical_not()
        zero = self._from_uop(self.uop.const_like(0))
        return self._from_uop(kept).where(self, zero)


def positions_of(shape: tuple[object, ...], axis: int) -> UOp:
    """The int32 index along `axis` for each element of `shape`."""
    from_axis = tuple(extent if k == axis else 1 for k, extent in enumerate(shape))
    length = shape[axis]
    size = (length,) if isinstance(length, UOp) else ()
    line = UOp(Ops.IOTA, dtypes.int32, size, None if size else length)
    return line.reshape(from_axis).expand(shape)


def _parse_formula(formula: str, ndims: list[int]) -> tuple[list[str], str]:
    """One label an axis, for each operand and for the result.

    An ellipsis becomes upper-case labels.
    """
    compact = formula.replace(" ", "")
    left, arrow, right = compact.partition("->")
    parts = left.split(",")
    if len(parts) != len(ndims):
        raise ShapeError(
            f"einsum '{formula}' is for {len(parts)} tensors, {len(ndims)} were given"
        )
    hidden = max(
        (ndim - len(part.replace("...", "")) for part, ndim in zip(parts, ndims, strict=True)
         if "..." in part),
        default=0,
    )
    spare = [chr(code) for code in range(ord("A"), ord("Z") + 1) if chr(code) not in compact]
    names = "".join(spare[:hidden])
    inputs = []
    for part, ndim in zip(parts, ndims, strict=True):
        count = ndim - len(part.replace("...", ""))
        labels = part.replace("...", names[len(names) - count :] if count > 0 else "")
        if len(labels) != ndim:
            raise ShapeError(f"einsum '{formula}': '{part}' names {len(labels)} axes of {ndim}")
        if labels and not labels.isalpha():
            raise ShapeError(f"einsum '{formula}': '{part}' is not of letters, one an axis")
        inputs.append(labels)
    if arrow:
        output = right.replace("...", names)
        wrong = [c for c in output if c not in "".join(inputs) or output.count(c) > 1]
        if wrong:
            raise ShapeError(
                f"einsum '{formula}': the result names axis {wrong[0]}, which has to be one of "
                "the operands' and to be there once"
            )
        return inputs, output
    everything = "".join(inputs)
    once = sorted(c for c in set(everything) if everything.count(c) == 1 and c not in names)
    return inputs, names + "".join(once)


def _extents_of_labels(
    formula: str, inputs: list[str], shapes: list[Shape]
) -> dict[str, object]:
    """The extent of each label; those that stand for an ellipsis broadcast.

    Raises:
        ShapeError: two extents of one label differ.
    """
    extents: dict[str, object] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            before = extents.setdefault(label, extent)
            is_hidden = label not in formula
            if is_hidden and same_extent(before, 1):
                extents[label] = extent
            elif not same_extent(before, extent) and not (is_hidden and same_extent(extent, 1)):
                shown = ", ".join(str(shape) for shape in shapes)
                raise ShapeError(
                    f"einsum '{formula}': axis {label} is {before} and {extent} in shapes {shown}"
                )
    return extents


def _diagonal(uop: UOp, labels: str) -> tuple[UOp, str]:
    """`uop` with axes of one label made one: its diagonal."""
    seen = ""
    for label in labels:
        if label in seen:
            first, second = seen.index(label), len(seen)
            size = uop.shape[first]
            row, column = positions_of((size, size), 0), positions_of((size, size), 1)
            aligned = tuple(size if k in (first, second) else 1 for k in range(uop.ndim))
            mask = broadcast_to(row.eq(column).reshape(aligned), uop.shape)
            total = reduced(mask.where(uop, uop.const_like(0)), Ops.ADD, (second,))
            uop = total.reshape(tuple(s for k, s in enumerate(total.shape) if k != second))
        else:
            seen += label
    return uop, seen


def _aligned(factor: tuple[UOp, str], order: str) -> UOp:
    """A factor with its axes in `order`, those it lacks of size 1."""
    uop, labels = factor
    present = [label for label in order if label in labels]
    moved = uop.permute([labels.index(label) for label in present])
    sizes = dict(zip(present, moved.shape, strict=True))
    return moved.reshape(tuple(sizes.get(label, 1) for label in order))
