"""Tensors made of nothing: constants, ranges, and the shapes of others.

A float filled with one value gets storage of its own, since it may become a parameter: two
constants of one value would be one node, and gradients could not tell them apart.
"""

from __future__ import annotations

import math
from typing import Any, Self

from tg_ir.dtype import DType, check_literal, dtypes, to_dtype
from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, as_index, as_size, prod

from tg_frontend.device import Device
from tg_frontend.errors import ArgumentError
from tg_frontend.nodes.broadcasting import broadcast_to, filled, iota, positions, resolve_axis
from tg_frontend.nodes.sizes import as_new_shape, as_shape, whole_number
from tg_frontend.storage import new_buffer
from tg_frontend.tensor.conversion import Conversion
from tg_frontend.tensor.core import Scalar
from tg_frontend.tensor.data import one_device, own_storage

DeviceName = str | tuple[str, ...] | None
DTypeLike = DType | str | None


def _symbolic_line(start: Any, stop: Any, step: Any, dtype: DTypeLike) -> UOp:
    """`start`, `start + 1`, ... below `stop`.

    Raises:
        ArgumentError: the step is not 1, or one of the others is no int.
        ShapeError: `stop` may be less than `start`.
    """
    ends = as_shape((start, stop), "arange")
    if type(step) is not int or step != 1:
        raise ArgumentError(f"arange: between symbolic bounds the step is 1, got {step!r}")
    length = as_size(ends[1] - ends[0])
    least = length.vmin if isinstance(length, UOp) else length
    if least < 0:
        raise ShapeError(f"arange: from {start} to {stop} there may be {least} numbers")
    element = to_dtype(dtype or dtypes.default_int)
    first = broadcast_to(as_index(ends[0]).cast(element), (length,))
    return iota(length, dtypes.int32).cast(element) + first


def _check_numbers(what: str, *values: Any) -> None:
    """Check that all are finite Python numbers.

    Raises:
        ArgumentError: one is of another type.
        ValueError: one is infinite or NaN.
    """
    for value in values:
        if not isinstance(value, (int, float)) and not hasattr(type(value), "__index__"):
            raise ArgumentError(
                f"{what}: expected numbers, got {type(value).__name__} {value!r}"
            )
        if not math.isfinite(value):
            raise ValueError(f"{what}: expected finite numbers, got {value!r}")


class Creation(Conversion):
    """Creation of tensors."""

    __slots__ = ()

    @classmethod
    def _created(cls, uop: UOp, device: DeviceName, requires_grad: bool | None) -> Self:
        """A tensor of a constant expression.

        With an identity of its own if it can have a gradient.
        """
        known = all(isinstance(extent, int) for extent in uop.shape)
        name = Device.DEFAULT if isinstance(device, tuple) else one_device(device)
        if dtypes.is_float(uop.dtype) and known and uop.size:
            uop = own_storage(uop, name)
        elif name != Device.DEFAULT:
            uop = uop.copy_to_device(name)
        if isinstance(device, tuple):
            uop = uop.copy_to_device(Device.canonicalize_all(device))
        return cls._from_uop(uop).requires_grad_(requires_grad)

    @classmethod
    def empty(
        cls,
        *shape: Any,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Storage whose contents are not defined."""
        sizes = as_new_shape(shape, "empty")
        element = dtypes.default_float if dtype is None else to_dtype(dtype)
        if prod(sizes) == 0:
            return cls._from_uop(filled(element, 0, sizes)).requires_grad_(requires_grad)
        buffer = new_buffer(one_device(device), int(prod(sizes)), element)
        return cls._from_uop(buffer.reshape(sizes)).requires_grad_(requires_grad)

    @classmethod
    def full(
        cls,
        shape: Any,
        fill_value: Scalar,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """One value everywhere; the dtype follows from it unless given.

        Raises:
            LiteralError: the value does not fit `dtype`.
        """
        if not isinstance(fill_value, (bool, int, float)):
            raise ArgumentError(
                f"full: expected a number to fill with, got {type(fill_value).__name__} "
                f"{fill_value!r}"
            )
        element = dtypes.from_py(fill_value) if dtype is None else to_dtype(dtype)
        if not isinstance(fill_value, bool):
            check_literal(fill_value, element)
        sizes = as_new_shape(shape if isinstance(shape, (tuple, list)) else (shape,), "full")
        return cls._created(filled(element, fill_value, sizes), device, requires_grad)

    @classmethod
    def zeros(
        cls,
        *shape: Any,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Zeros, of the default float unless `dtype` is given."""
        element = dtypes.default_float if dtype is None else to_dtype(dtype)
        return cls.full(as_new_shape(shape, "zeros"), 0, device, element, requires_grad)

    @classmethod
    def ones(
        cls,
        *shape: Any,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Ones, of the default float unless `dtype` is given."""
        element = dtypes.default_float if dtype is None else to_dtype(dtype)
        return cls.full(as_new_shape(shape, "ones"), 1, device, element, requires_grad)

    @classmethod
    def arange(
        cls,
        start: Scalar,
        stop: Scalar | None = None,
        step: Scalar = 1,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """`start`, `start + step`, ... below `stop`; with one argument from 0 to it.

        Both may be symbolic, with step 1.

        Raises:
            ValueError: `step` is 0, or a number is not finite.
            ArgumentError: one is no number.
        """
        if stop is None:
            start, stop = 0, start
        if isinstance(start, UOp) or isinstance(stop, UOp):
            line = _symbolic_line(start, stop, step, dtypes.default_int if dtype is None else dtype)
            return cls._created(line, device, requires_grad)
        _check_numbers("arange", start, stop, step)
        if step == 0:
            raise ValueError("arange: step is 0; expected a number that leads from start to stop")
        given = (start, stop, step)
        has_float = any(isinstance(value, float) for value in given)
        chosen = dtypes.default_float if has_float else dtypes.default_int
        element = chosen if dtype is None else to_dtype(dtype)
        length = int(max(0, -(-(stop - start) // step)))
        as_new_shape((length,), "arange")
        if not dtypes.is_float(element):
            for value in (start, start + (length - 1) * step if length else start):
                check_literal(value, element)
            line = iota(length, element)
            return cls._created(line * step + start, device, requires_grad)
        line = iota(length, dtypes.int32).cast(element)
        return cls._created(line * step + start, device, requires_grad)

    @classmethod
    def linspace(
        cls,
        start: Scalar,
        stop: Scalar,
        steps: int,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """`steps` values from `start` to `stop`, both included, evenly spaced.

        Raises:
            ValueError: `steps` is negative.
        """
        _check_numbers("linspace", start, stop)
        if whole_number(steps, "linspace: steps") < 0:
            raise ValueError(f"linspace: steps is {steps}; expected 0 or more")
        element = dtypes.default_float if dtype is None else to_dtype(dtype)
        wide = dtypes.float64 if element is dtypes.float64 else dtypes.float32
        if steps == 1:
            return cls.full((1,), start, device, element, requires_grad)
        line = iota(steps, dtypes.int32).cast(wide)
        # from both ends, so that the last value is `stop` exactly
        step = (stop - start) / (steps - 1) if steps else 0.0
        first_half = line * step + start
        second_half = (line - (steps - 1)) * step + stop
        values = (line < (steps - 1) / 2).where(first_half, second_half)
        return cls._created(values.cast(element), device, requires_grad)

    @classmethod
    def eye(
        cls,
        n: int,
        m: int | None = None,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Ones on the diagonal of a matrix of `n` rows and `m` (default `n`) columns."""
        shape = as_new_shape((n, n if m is None else m), "eye")
        element = dtypes.default_float if dtype is None else to_dtype(dtype)
        on_diagonal = positions(shape, 0, dtypes.int32).eq(positions(shape, 1, dtypes.int32))
        return cls._created(on_diagonal.cast(element), device, requires_grad)

    # ---- like another

    def full_like(
        self,
        fill_value: Scalar,
        dtype: DTypeLike = None,
        device: DeviceName = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """One value everywhere, in this tensor's shape, dtype and device unless given."""
        element = self.dtype if dtype is None else to_dtype(dtype)
        return self.full(self.shape, fill_value, device or self.device, element, requires_grad)

    def zeros_like(self, **options: Any) -> Self:
        """Zeros in this tensor's shape; options as in `full_like`."""
        return self.full_like(0, **options)

    def ones_like(self, **options: Any) -> Self:
        """Ones in this tensor's shape; options as in `full_like`."""
        return self.full_like(1, **options)

    def empty_like(self, **options: Any) -> Self:
        """Storage of this tensor's shape whose contents are not defined."""
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        return self.empty(*self.shape, **options)

    @classmethod
    def from_blob(
        cls, data: Any, shape: tuple[int, ...], dtype: DTypeLike = None, device: DeviceName = None
    ) -> Self:
        """A copy of bytes as a tensor of a shape."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ArgumentError(f"from_blob: expected bytes, got {type(data).__name__}")
        return cls(bytes(data), device, dtype or dtypes.default_float).reshape(shape)

    def diag(self) -> Self:
        """A matrix with this vector on its diagonal.

        Raises:
            ShapeError: this is no vector.
        """
        if self.ndim != 1:
            raise ShapeError(f"diag: expected a vector, got shape {self.shape}")
        n = self.shape[0]
        shape = (n, n)
        on_diagonal = positions(shape, 0, dtypes.int32).eq(positions(shape, 1, dtypes.int32))
        return self._from_uop(on_diagonal).where(self.unsqueeze(1), 0)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """A diagonal of two axes, as a new last axis.

        Args:
            offset: how far right of (or, negative, below) the main one.
            dim1: the axis of rows.
            dim2: the axis of columns.

        Raises:
            ShapeError: there are less than two axes, or both are the same.
        """
        if self.ndim < 2:
            raise ShapeError(f"diagonal: expected two axes or more, got shape {self.shape}")
        first, second = resolve_axis(dim1, self.ndim), resolve_axis(dim2, self.ndim)
        if first == second:
            raise ShapeError(f"diagonal: axes {dim1} and {dim2} of shape {self.shape} are one")
        rows, columns = self.shape[first], self.shape[second]
        row, column = max(0, -offset), max(0, offset)
        count = max(0, min(rows - row, columns - column))
        rest = [axis for axis in range(self.ndim) if axis not in (first, second)]
        if count == 0:
            return self._from_uop(
                filled(self.dtype, 0, (*(self.shape[axis] for axis in rest), 0))
            )
        line = iota(count, dtypes.int32)
        source = self.uop.permute([*rest, first, second])
        axes = (self.ndim - 2, self.ndim - 1)
        picked = UOp(Ops.GATHER, self.dtype, (source, line + row, line + column), axes)
        return self._from_uop(picked.permute([*range(1, picked.ndim), 0]))
