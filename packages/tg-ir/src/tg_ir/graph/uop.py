"""The node of every graph: `UOp`, immutable and hash-consed, with the derived facts kept on it.

Nothing here recurses: graphs of any depth work. Arithmetic on `index` values folds constants as it
is built; all other simplification is in `symbolic`. Shapes are in `shape`, bounds in `bounds`.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, cast

from tg_ir.dtype import DType, ImageDType, cast_scalar, dtypes
from tg_ir.graph import lazy
from tg_ir.graph.node_math import NodeMath, is_one, is_zero
from tg_ir.graph.ops import (
    AxisType,
    BufferArg,
    CallArg,
    Combine,
    ConstType,
    GroupOp,
    Ops,
    RangeArg,
    ReduceArg,
    VarArg,
)
from tg_ir.graph.symbolic_sizes import Symbol, fill_symbolic, split_symbolic
from tg_ir.graph.traversal import infer_ranges, substitute, toposort

__all__ = [
    "Symbol",
    "UOp",
    "as_index",
    "as_int",
    "is_one",
    "is_zero",
    "prod",
    "substitute",
    "toposort",
    "unique_number",
]

_Key = tuple[Any, ...]


class _InternedRef(weakref.ref["UOp"]):
    """A weak reference that knows its key, so that the table forgets dead nodes."""

    __slots__ = ("key",)
    key: _Key


_interned: dict[_Key, _InternedRef] = {}
_unique_numbers = itertools.count()


def _forget(ref: _InternedRef) -> None:
    if _interned.get(ref.key) is ref:
        del _interned[ref.key]


def unique_number() -> int:
    """A number that no other call in this process gets; for buffer ids and range axes."""
    return next(_unique_numbers)


class UOp(NodeMath):
    """One node: `op`, the `dtype` of its value, sources `src`, a plain value `arg`.

    Equal nodes are one object.
    """

    __slots__ = (
        "op",
        "dtype",
        "src",
        "arg",
        "_shape",
        "_ranges",
        "_bounds",
        "_device",
        "_key",
        "_simple",
        "__weakref__",
    )
    op: Ops
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    _shape: Any
    _ranges: frozenset[UOp] | None
    _bounds: tuple[ConstType, ConstType] | None
    _device: Any
    _key: bytes | None
    _simple: UOp | bool | None

    def __new__(
        cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None
    ) -> Self:
        """The node with these parts, made only if there is none yet."""
        # 0.0 == -0.0 and nan != nan: floats that compare unlike their bits get keys of their own
        if type(arg) is float and (arg == 0.0 or arg != arg):
            key: _Key = (op, dtype, src, repr(arg))
        else:
            key = (op, dtype, src, arg)
        ref = _interned.get(key)
        if ref is not None:
            known = ref()
            if known is not None:
                return cast("Self", known)
        node = object.__new__(cls)
        node.op = op
        node.dtype = dtype
        node.src = src
        node.arg = arg
        node._shape = None
        node._ranges = None
        node._bounds = None
        node._device = None
        node._key = None
        node._simple = None
        new_ref = _InternedRef(node, _forget)
        new_ref.key = key
        _interned[key] = new_ref
        return node

    def __reduce__(self) -> Any:
        from_text = "use tg_ir.graph.text.dump and parse to store a graph"
        raise TypeError(f"a UOp cannot be pickled: {from_text}")

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: Any) -> UOp:
        return self

    def __repr__(self) -> str:
        size = lazy.size_text(self)
        if size is not None:
            return size
        from_src = ", ".join(f"{s.op.name}" for s in self.src)
        arg = "" if self.arg is None else f" arg={self.arg!r}"
        return f"<UOp {self.op.name} {self.dtype}{arg} src=({from_src})>"

    def replace(self, **changes: Any) -> UOp:
        """This node with some of `op`, `dtype`, `src`, `arg` changed."""
        return UOp(
            changes.pop("op", self.op),
            changes.pop("dtype", self.dtype),
            changes.pop("src", self.src),
            changes.pop("arg", self.arg),
        )

    def with_sources(self, src: tuple[UOp, ...]) -> UOp:
        """This node over other sources."""
        return UOp(self.op, self.dtype, src, self.arg)

    # ---- traversal

    def toposort(self, enter: Callable[[UOp], bool] | None = None) -> dict[UOp, None]:
        """Every node below and including this one, sources first.

        Nodes for which `enter` is false are listed but their sources are not visited.
        """
        return toposort((self,), enter)

    def backward_slice(self) -> dict[UOp, None]:
        """Every node below this one, without itself."""
        order = self.toposort()
        order.pop(self)
        return order

    def substitute(
        self, mapping: dict[UOp, UOp], enter: Callable[[UOp], bool] | None = None
    ) -> UOp:
        """This graph with each key of `mapping` replaced by its value, which is not searched."""
        return substitute((self,), mapping, enter)[0]

    # ---- derived facts

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the value, a tuple of `int | UOp`.

        Raises:
            ShapeError: the sources do not fit this op; names both shapes.
        """
        if self._shape is None:
            lazy.infer_shapes(self)
        return cast("tuple[Any, ...]", self._shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements, `int | UOp`."""
        return prod(self.shape)

    @property
    def device(self) -> str | tuple[str, ...] | None:
        """The device that holds the value; None where there is none (constants, kernels)."""
        if self._device is None:
            lazy.infer_devices(self)
        return None if self._device == "" else cast("str | tuple[str, ...]", self._device)

    @property
    def ranges(self) -> frozenset[UOp]:
        """The RANGEs that the value of this node depends on and that no REDUCE.

        STAGE or END has closed.
        """
        if self._ranges is None:
            infer_ranges(self)
        return cast("frozenset[UOp]", self._ranges)

    @property
    def vmin(self) -> ConstType:
        """A lower bound of the value."""
        return (self._bounds or lazy.bounds(self))[0]

    @property
    def vmax(self) -> ConstType:
        """An upper bound of the value."""
        return (self._bounds or lazy.bounds(self))[1]

    @property
    def key(self) -> bytes:
        """A content hash of the graph: equal in every process for equal graphs."""
        if self._key is None:
            lazy.content_keys(self)
        return cast("bytes", self._key)

    @property
    def is_const(self) -> bool:
        """Whether this is a CONST."""
        return self.op is Ops.CONST

    @property
    def marg(self) -> Any:
        """The argument of a movement op, the symbolic sizes (kept in `src`) filled in."""
        if len(self.src) == 1 or self.op not in GroupOp.Movement:
            return self.arg
        return fill_symbolic(self.arg, self.src)

    # ---- building

    @staticmethod
    def const(dtype: DType, value: ConstType) -> UOp:
        """The constant `value` as `dtype` (cast like a run-time cast).

        A vector dtype gives equal lanes.
        """
        scalar = dtype.scalar()
        if scalar is dtypes.index:
            node = UOp(Ops.CONST, scalar, (), int(value))
        else:
            node = UOp(Ops.CONST, scalar, (), cast_scalar(value, scalar))
        return node if dtype.count == 1 else node.broadcast(dtype.count)

    def const_like(self, value: ConstType) -> UOp:
        """A constant of this node's dtype.

        Expanded to its shape where it is part of a tensor graph.
        """
        scalar = UOp.const(self.dtype, value)
        if self.dtype is dtypes.index or not self.shape:
            return scalar
        return scalar.reshape((1,) * len(self.shape)).expand(self.shape)

    @staticmethod
    def sink(*values: UOp, arg: Any = None) -> UOp:
        """A SINK of these values."""
        return UOp(Ops.SINK, dtypes.void, values, arg)

    @staticmethod
    def new_buffer(
        device: str | tuple[str, ...], size: int, dtype: DType, image: ImageDType | None = None
    ) -> UOp:
        """A new BUFFER of `size` elements, version 0; `image`: their layout in an image."""
        arg = BufferArg(unique_number(), size, device, 0, image)
        return UOp(Ops.BUFFER, dtype, (), arg)

    @staticmethod
    def variable(name: str, vmin: int, vmax: int) -> UOp:
        """A symbolic integer with `vmin <= value <= vmax`, dtype index."""
        return UOp(Ops.DEFINE_VAR, dtypes.index, (), VarArg(name, vmin, vmax))

    def bind(self, value: int) -> UOp:
        """This variable with a value.

        Raises:
            ValueError: the value is outside the variable's bounds.
        """
        if self.op is not Ops.DEFINE_VAR:
            raise TypeError(f"bind: expected a variable, got {self.op.name}")
        if not isinstance(value, int):
            raise TypeError(
                f"variable '{self.arg.name}' takes an int, got {type(value).__name__} {value!r}"
            )
        if not self.arg.vmin <= value <= self.arg.vmax:
            raise ValueError(
                f"variable '{self.arg.name}' takes {self.arg.vmin}..{self.arg.vmax}, got {value}"
            )
        return UOp(Ops.BIND, dtypes.index, (self, UOp.const(dtypes.index, value)))

    def unbind(self) -> tuple[UOp, int]:
        """The variable and the value of a BIND."""
        return self.src[0], int(self.src[1].arg)

    @staticmethod
    def range(bound: int | UOp, axis: int | tuple[int, ...], kind: AxisType) -> UOp:
        """A loop counter 0 .. bound-1."""
        axis_path = (axis,) if isinstance(axis, int) else axis
        return UOp(Ops.RANGE, dtypes.index, (as_index(bound),), RangeArg(axis_path, kind))

    def index(self, position: int | UOp, mask: UOp | None = None) -> UOp:
        """Element `position` of this buffer, not touched where `mask` is false."""
        where = as_index(position) if isinstance(position, int) else position
        src = (self, where) if mask is None else (self, where, mask)
        return UOp(Ops.INDEX, self.dtype, src)

    def load(self, other: UOp | None = None, dtype: DType | None = None) -> UOp:
        """The value at this INDEX, `other` (default 0) where its mask is false."""
        src = (self,) if other is None else (self, other)
        lanes = self.src[1].dtype.count
        default = self.dtype if lanes == 1 else self.dtype.vec(lanes)
        return UOp(Ops.LOAD, dtype or default, src)

    def store(self, value: UOp, arg: Ops | None = None) -> UOp:
        """A write of `value` at this INDEX, or into this tensor-graph target."""
        return UOp(Ops.STORE, dtypes.void, (self, value), arg)

    def end(self, *ranges: UOp) -> UOp:
        """This effect for all values of `ranges`, the first the outermost loop."""
        return UOp(Ops.END, dtypes.void, (self, *ranges)) if ranges else self

    def after(self, *effects: UOp) -> UOp:
        """The next version of this buffer: with `effects` done."""
        return UOp(Ops.AFTER, self.dtype, (self, *effects)) if effects else self

    def reduce(self, op: Ops, *ranges: UOp) -> UOp:
        """This value joined by `op` over `ranges` (kernel graph)."""
        arg = ReduceArg(Combine.of(op, self.dtype))
        return UOp(Ops.REDUCE, self.dtype, (self, *ranges), arg)

    def reduce_axis(self, op: Ops, axes: Iterable[int]) -> UOp:
        """This value joined by `op` along `axes`, which stay with size 1 (tensor graph)."""
        arg = ReduceArg(Combine.of(op, self.dtype), tuple(sorted(axes)))
        return UOp(Ops.REDUCE_AXIS, self.dtype, (self,), arg) if arg.axes else self

    def get_tuple(self, position: int, dtype: DType) -> UOp:
        """Result `position` of a node with several."""
        return UOp(Ops.GETTUPLE, dtype, (self,), position)

    def call(self, *args: UOp, name: str = "kernel", kind: str = "kernel") -> UOp:
        """A CALL that runs this SINK on `args`."""
        return UOp(Ops.CALL, dtypes.void, (self, *args), CallArg(name, kind))

    def broadcast(self, count: int) -> UOp:
        """`count` equal lanes."""
        return self if count == 1 else UOp(Ops.BROADCAST, self.dtype.vec(count), (self,))

    def gep(self, lane: int) -> UOp:
        """One lane."""
        return UOp(Ops.GEP, self.dtype.scalar(), (self,), lane)

    # ---- movement

    def _move(self, op: Ops, arg: tuple[Any, ...]) -> UOp:
        plain, symbols = split_symbolic(arg)
        return UOp(op, self.dtype, (self, *symbols), plain)

    def reshape(self, shape: Sequence[Any]) -> UOp:
        """The same elements, row-major, in another shape."""
        new_shape = tuple(shape)
        return self if new_shape == self.shape else self._move(Ops.RESHAPE, new_shape)

    def expand(self, shape: Sequence[Any]) -> UOp:
        """Axes of size 1 repeated."""
        new_shape = tuple(shape)
        return self if new_shape == self.shape else self._move(Ops.EXPAND, new_shape)

    def permute(self, axes: Sequence[int]) -> UOp:
        """Axes in another order."""
        order = tuple(axes)
        if order == tuple(range(len(order))):
            return self
        return UOp(Ops.PERMUTE, self.dtype, (self,), order)

    def pad(self, padding: Sequence[tuple[Any, Any]]) -> UOp:
        """Zeros before and after each axis."""
        arg = tuple((before, after) for before, after in padding)
        if all(is_zero(before) and is_zero(after) for before, after in arg):
            return self
        return self._move(Ops.PAD, arg)

    def shrink(self, bounds: Sequence[tuple[Any, Any]]) -> UOp:
        """The part `begin..end` of each axis."""
        arg = tuple((begin, end) for begin, end in bounds)
        if all(is_zero(b) and e is s for (b, e), s in zip(arg, self.shape, strict=True)):
            return self
        if all(is_zero(b) and _same(e, s) for (b, e), s in zip(arg, self.shape, strict=True)):
            return self
        return self._move(Ops.SHRINK, arg)

    def flip(self, flags: Sequence[bool]) -> UOp:
        """The flagged axes backwards."""
        arg = tuple(bool(flag) for flag in flags)
        return UOp(Ops.FLIP, self.dtype, (self,), arg) if any(arg) else self

    # ---- elementwise

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """`op` of this value and `others`; the dtype follows from the op."""
        src = (self, *others)
        if op is Ops.WHERE:
            dtype = others[0].dtype
        elif op in GroupOp.Comparison:
            dtype = dtypes.bool.vec(self.dtype.count) if self.dtype.count > 1 else dtypes.bool
        else:
            dtype = self.dtype
        if dtype is dtypes.index and all(s.op is Ops.CONST for s in src):
            return UOp(Ops.CONST, dtypes.index, (), lazy.fold_index(op, [s.arg for s in src]))
        return UOp(op, dtype, src)

    def cast(self, dtype: DType) -> UOp:
        """The value as `dtype`; rounded or wrapped as docs/reference/semantics.md says."""
        if dtype is self.dtype:
            return self
        if self.op is Ops.CONST and not self.shape:
            return UOp.const(dtype, self.arg)
        return UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        """The same bits as `dtype`."""
        return self if dtype is self.dtype else UOp(Ops.BITCAST, dtype, (self,))

    def contiguous(self) -> UOp:
        """The value in storage of its own."""
        return UOp(Ops.CONTIGUOUS, self.dtype, (self,))

    def detach(self) -> UOp:
        """The value without its gradient."""
        return UOp(Ops.DETACH, self.dtype, (self,))

    def copy_to_device(self, device: str | tuple[str, ...]) -> UOp:
        """The value on another device."""
        return UOp(Ops.COPY, self.dtype, (self,), device)

    __iter__: None  # a UOp is not a sequence, whatever __getitem__ says


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, UOp) or isinstance(right, UOp):
        return left is right
    return bool(left == right)


def as_index(value: int | UOp) -> UOp:
    """`value` as a UOp of dtype index."""
    return value if isinstance(value, UOp) else UOp(Ops.CONST, dtypes.index, (), int(value))


def as_int(value: int | UOp) -> int | UOp:
    """`value` as an int where it is constant."""
    return int(value.arg) if isinstance(value, UOp) and value.op is Ops.CONST else value


def as_size(value: int | UOp) -> int | UOp:
    """`value` as an int where it is constant, else simplified: equal sizes are one node."""
    return as_int(lazy.simplify(value)) if isinstance(value, UOp) else value


def prod(values: Iterable[Any]) -> Any:
    """The product of `int | UOp` values; an int where it is constant."""
    result: Any = 1
    for value in values:
        result = result * value
    return as_size(result)
