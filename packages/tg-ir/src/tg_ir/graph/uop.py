"""The node of every graph: `UOp`, immutable and hash-consed, with the derived facts kept on it.

Nothing here recurses: graphs of any depth work. Arithmetic on `index` values folds constants as it
is built; all other simplification is in `symbolic`. Shapes are in `shape`, bounds in `bounds`.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Self, cast

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.node_math import NodeMath, is_one, is_zero
from tg_ir.graph.ops import (
    ConstType,
    Ops,
)
from tg_ir.graph.symbolic_sizes import Symbol
from tg_ir.graph.traversal import substitute, toposort

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
    """One node:

    `op`, `dtype` of its value, sources `src`, plain value `arg`. Equal nodes are one object.
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
        # 0.0 == -0.0 and nan != nan, so floats that compare unlike their bits get a key of their own
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
