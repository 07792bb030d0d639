"""Symbolic sizes in the arguments of movement ops.

Kept in `src`, where rewrites reach them, named by `Symbol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tg_ir.graph.node_math import NodeMath
from tg_ir.graph.ops import Ops

if TYPE_CHECKING:
    from tg_ir.graph.uop import UOp


def split_symbolic(arg: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[UOp]]:
    """`arg` with each UOp replaced by its position `("sym".

    K)` in the returned list (as `src[k]`).
    """
    symbols: list[UOp] = []

    def plain(item: Any) -> Any:
        if isinstance(item, NodeMath):
            if item.op is Ops.CONST:
                return item.arg
            symbols.append(cast("UOp", item))
            return Symbol(len(symbols))
        if isinstance(item, tuple):
            return tuple(plain(part) for part in item)
        return int(item)

    return tuple(plain(item) for item in arg), symbols


class Symbol(int):
    """In the argument of a movement op: "the size is `src[k]`", k being this number.

    Never equal to an int.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and int(self) == int(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("symbol", int(self)))

    def __repr__(self) -> str:
        return f"src[{int(self)}]"


def fill_symbolic(arg: Any, src: tuple[UOp, ...]) -> Any:
    """`arg` with each `Symbol` replaced by the source that it names."""
    if isinstance(arg, Symbol):
        return src[int(arg)]
    if isinstance(arg, tuple):
        return tuple(fill_symbolic(item, src) for item in arg)
    return arg
