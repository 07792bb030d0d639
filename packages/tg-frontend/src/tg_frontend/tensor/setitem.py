"""Writing: assign, brackets on the left, in-place operators, scatter.

A write makes a new version of the storage and rebinds the tensor to it; every other tensor keeps
the node it had, so that it reads what it read before. Writing to a view also rebinds the tensor
that it looks into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from tg_ir.dtype import check_literal, dtypes
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import Ops, UOp

from tg_frontend.errors import WriteError
from tg_frontend.nodes.broadcasting import Shape, broadcast_to, resolve_axis
from tg_frontend.tensor.core import Operand, TensorCore, expect_tensors
from tg_frontend.tensor.index_keys import ParsedKey
from tg_frontend.tensor.indexing import Indexing

_Step = tuple[Ops, tuple[UOp, ...], Any]
_Place = Callable[[UOp], UOp]
_VERSIONS = frozenset({Ops.BUFFER, Ops.CONTIGUOUS, Ops.AFTER, Ops.REALIZED})
# movement in which each element of the source appears at most once
_ONE_TO_ONE = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP})


def _same(uop: UOp) -> UOp:
    return uop


def replayed(steps: Sequence[_Step], uop: UOp) -> UOp:
    """The movement `steps` done on `uop`."""
    for op, others, arg in steps:
        uop = UOp(op, uop.dtype, (uop, *others), arg)
    return uop


class SetItem(Indexing):
    """Writing."""

    __slots__ = ()

    # ---- how a write is done

    def _write(self, target_of: _Place, value_of: _Place) -> None:
        """Write to the part `target_of` of this tensor, and of the one that this is a view of.

        Args:
            target_of: from the tensor to the part that is written.
            value_of: from what that part holds to what is written.

        Raises:
            WriteError: this is an expanded view, in which several elements are one.
        """
        link = self._view
        if link is None:
            self._write_here(target_of, value_of)
            return
        steps = link.steps
        if any(op is Ops.EXPAND for op, _, _ in steps):
            raise WriteError(
                f"cannot write to a tensor of shape {self.shape} that is an expanded view: "
                "several of its elements are one in storage; write to a clone()"
            )
        base = link.base()
        if not isinstance(base, SetItem):
            self._write_here(target_of, value_of)
            return
        is_current = base._writes == link.writes
        base._write_here(lambda uop: target_of(replayed(steps, uop)), value_of)
        if is_current:
            self.uop = replayed(steps, base.uop)
            self._writes += 1
            link.writes = base._writes
        else:
            self._write_here(target_of, value_of)

    def _write_here(self, target_of: _Place, value_of: _Place) -> None:
        version = self.uop
        steps: list[_Step] = []
        while version.op in _ONE_TO_ONE:
            steps.append((version.op, version.src[1:], version.arg))
            version = version.src[0]
        steps.reverse()
        if version.op not in _VERSIONS:
            version, steps = self.uop.contiguous(), []
        target = target_of(replayed(steps, version))
        self.uop = replayed(steps, version.after(target.store(value_of(target))))
        self._writes += 1

    def _is_stored(self) -> bool:
        """Whether a whole write should keep the storage."""
        version = self.uop
        while version.op in _ONE_TO_ONE:
            version = version.src[0]
        return version.op in _VERSIONS and version.op is not Ops.CONTIGUOUS

    # ---- assign

    def assign(self, x: Operand) -> Self:
        """Give this tensor the value `x`, in the storage that it has, and return it.

        Raises:
            DTypeError: `x` has another dtype.
            ShapeError: `x` does not broadcast to this shape.
        """
        value = self._assigned_uop(x, "assign")
        if value is self.uop and self._view is None:
            return self  # a view may lag behind its base, to which this writes
        if self._view is None and not self._is_stored():
            self.uop = value
            self._writes += 1
        else:
            self._write(_same, lambda _: value)
        return self

    def replace(self, x: Self) -> Self:
        """Give this tensor the value of `x`, which has the same shape, and the storage of it."""
        expect_tensors("replace", x)
        if x.shape != self.shape:
            raise ShapeError(f"replace: shapes {self.shape} and {x.shape} differ")
        self.uop = x.uop
        self._writes += 1
        return self

    def _assigned_uop(self, x: Operand, what: str, shape: Shape | None = None) -> UOp:
        """The node of a value written to this tensor, of its dtype.

        Device and the target's shape.
        """
        wanted = self.shape if shape is None else shape
        if isinstance(x, (bool, int, float)):
            if not isinstance(x, bool):
                check_literal(x, self.dtype)
            return broadcast_to(UOp.const(self.dtype, x), wanted)
        value = self._operand_uop(x, None if isinstance(x, TensorCore) else self.dtype)
        if value.dtype is not self.dtype:
            raise DTypeError(
                f"{what}: the value is {value.dtype.name}, the tensor {self.dtype.name}; "
                f"cast the value to {self.dtype.name} first"
            )
        if value.device is not None and value.device != self.device:
            value = value.copy_to_device(self.device)
        while value.ndim > len(wanted) and value.shape[0] == 1:
            value = value.reshape(value.shape[1:])
        try:
            return broadcast_to(value, wanted)
        except ShapeError:
            raise ShapeError(
                f"{what}: a value of shape {value.shape} does not broadcast to {wanted}"
            ) from None

    # ---- brackets

    def __setitem__(self, key: Any, value: Operand) -> None:
        """Write to the elements that `key` chooses; of doubles the last wins.

        Raises:
            IndexOutOfRangeError: a Python int outside its axis.
            ShapeError: `value` does not broadcast to what was chosen.
        """
        operand = value.cast(self.dtype) if isinstance(value, Indexing) else value
        if self._write_by_mask(key, operand):
            return
        parsed = self._parsed_key(key)
        chosen = parsed.select(self.uop)
        written = self._assigned_uop(operand, "setitem", chosen.shape)
        if written is chosen or chosen.size == 0:
            return  # `x[key] += y` comes back here with what it has written
        self._write(parsed.select, lambda _: written)

    def _write_by_mask(self, key: Any, value: Operand) -> bool:
        """Write where a bool tensor, the only one of the key, is true, without counting it.

        False if not so.
        """
        items = list(key) if isinstance(key, tuple) else [key]
        masks = [k for k, item in enumerate(items) if _is_mask(item)]
        others = [item for k, item in enumerate(items) if k not in masks]
        plain = all(isinstance(i, (int, slice, type(None), type(Ellipsis))) for i in others)
        if len(masks) != 1 or not plain:
            return False
        mask = self._operand_uop(items[masks[0]]).cast(dtypes.bool)
        items[masks[0] : masks[0] + 1] = [slice(None)] * mask.ndim
        parsed = self._parsed_key(tuple(items))
        axis = _view_axis(parsed, items, masks[0], mask.ndim)
        view = parsed.view(self.uop)
        if mask.shape != view.shape[axis : axis + mask.ndim]:
            return False
        rest = view.shape[axis + mask.ndim :]
        operand_shape = _shape_of(value)
        if len(operand_shape) > len(rest):
            return False
        written = broadcast_to(self._assigned_uop(value, "setitem", rest), view.shape)
        where = mask.reshape((1,) * axis + mask.shape + (1,) * len(rest)).expand(view.shape)
        self._write(parsed.view, lambda current: where.where(written, current))
        return True

    # ---- scatter

    def scatter(
        self, dim: int, index: Self, src: Operand, reduce: str | None = None
    ) -> Self:
        """A copy with `src[i, j, k]` written to `[..., index[i, j, k] at dim, ...]`.

        Outside is dropped.

        Args:
            dim: the axis that `index` is for.
            index: int tensor.
            src: a tensor at least as large as `index`, or a number.
            reduce: None to overwrite (of doubles the last wins), "add" to add.

        Raises:
            ShapeError: index and source do not fit.
        """
        if reduce not in (None, "add"):
            raise ValueError(f"scatter: reduce is None or 'add', got {reduce!r}")
        expect_tensors("scatter", index)
        axis = resolve_axis(dim, self.ndim)
        shape = index.shape
        if isinstance(src, (bool, int, float)):
            value = self._assigned_uop(src, "scatter", shape)
        else:
            source = self._operand_uop(src).cast(self.dtype)
            if source.ndim != len(shape) or any(
                given < wanted for given, wanted in zip(source.shape, shape, strict=True)
            ):
                raise ShapeError(f"scatter: source {source.shape} is smaller than index {shape}")
            value = source.shrink([(0, extent) for extent in shape])
        version = self.uop.contiguous()
        target = self._gather_node(version, axis, index)
        return self._from_uop(version.after(target.store(value, Ops.ADD if reduce else None)))

    # ---- in-place operators

    def _in_place(self, result: Self) -> Self:
        """Assign what an operator gave; a float does not fit an int tensor.

        Raises:
            DTypeError: the result is of another kind of number.
        """
        same_kind = result.dtype.kind == self.dtype.kind
        return self.assign(result.cast(self.dtype) if same_kind else result)

    def __iadd__(self, x: Operand) -> Self:
        return self._in_place(self.add(x))

    def __isub__(self, x: Operand) -> Self:
        return self._in_place(self.sub(x))

    def __imul__(self, x: Operand) -> Self:
        return self._in_place(self.mul(x))

    def __itruediv__(self, x: Operand) -> Self:
        return self._in_place(self.div(x))

    def __ifloordiv__(self, x: Operand) -> Self:
        return self._in_place(self.floordiv(x))

    def __imod__(self, x: Operand) -> Self:
        return self._in_place(self.mod(x))

    def __ipow__(self, x: Operand) -> Self:
        return self._in_place(self.pow(x))

    def __imatmul__(self, x: Self) -> Self:
        return self._in_place(self.matmul(x))

    def __iand__(self, x: Operand) -> Self:
        return self._in_place(self.bitwise_and(x))

    def __ior__(self, x: Operand) -> Self:
        return self._in_place(self.bitwise_or(x))

    def __ixor__(self, x: Operand) -> Self:
        return self._in_place(self.bitwise_xor(x))

    def __ilshift__(self, x: Operand) -> Self:
        return self._in_place(self.lshift(x))

    def __irshift__(self, x: Operand) -> Self:
        return self._in_place(self.rshift(x))


def _is_mask(item: Any) -> bool:
    if isinstance(item, TensorCore):
        return item.dtype is dtypes.bool
    return hasattr(item, "dtype") and not isinstance(item, UOp) and item.dtype.name == "bool"


def _shape_of(value: Operand) -> Shape:
    if isinstance(value, (bool, int, float)):
        return ()
    shape = getattr(value, "shape", None)
    return (0,) * 99 if shape is None else tuple(shape)


def _view_axis(parsed: ParsedKey, items: list[Any], place: int, ndim: int) -> int:
    """The axis of the view at which the slices that stand for a mask begin."""
    after = items[place + ndim :]
    if Ellipsis in items[:place]:
        taken = sum(item is None or isinstance(item, slice) for item in after)
        return len(parsed.layout) - taken - ndim
    return sum(item is None or isinstance(item, slice) for item in items[:place])
