"""`size_text`: a symbolic size as people write it, such as `n=4` or `n*64 + 1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops, VarArg

if TYPE_CHECKING:
    from tg_ir.graph.uop import UOp

_SIGNS = {Ops.ADD: "+", Ops.MUL: "*", Ops.FLOORDIV: "//", Ops.FLOORMOD: "%", Ops.CMPLT: "<"}
_LEAVES = frozenset({Ops.DEFINE_VAR, Ops.BIND})
_MOST_NODES = 50  # a longer text says no more than the kind of node does


def size_text(root: UOp) -> str | None:
    """The text of an expression over variables; None for other nodes, and for long ones.

    A variable that is bound shows its value: `n=4`.
    """
    if root.op not in _LEAVES and root.op not in _SIGNS:
        return None
    order = root.toposort(lambda node: node.op in _SIGNS or node.op is Ops.BIND)
    if len(order) > _MOST_NODES or not all(_is_part(node) for node in order):
        return None
    texts: dict[UOp, str] = {}
    for node in order:
        texts[node] = _text(node, texts)
    return texts[root]


def _is_part(node: UOp) -> bool:
    # a node that no spec would accept is shown, too: by its parts
    match node.op:
        case Ops.CONST:
            return node.dtype is dtypes.index
        case Ops.DEFINE_VAR:
            return isinstance(node.arg, VarArg)
        case Ops.BIND:
            return [source.op for source in node.src] == [Ops.DEFINE_VAR, Ops.CONST]
    return len(node.src) == 2 and node.src[0].dtype is dtypes.index


def _text(node: UOp, texts: dict[UOp, str]) -> str:
    match node.op:
        case Ops.CONST:
            return str(node.arg)
        case Ops.DEFINE_VAR:
            return str(node.arg.name)
        case Ops.BIND:
            return f"{node.src[0].arg.name}={node.src[1].arg}"
    left, right = node.src
    if node.op is Ops.ADD:
        negated = _negated(right, texts)
        if negated is not None:
            return f"{texts[left]} - {negated}"
        return f"{texts[left]} + {texts[right]}"
    sign = _SIGNS[node.op]
    return f"{_inside(left, texts)} {sign} {_inside(right, texts)}".replace(" * ", "*")


def _negated(node: UOp, texts: dict[UOp, str]) -> str | None:
    """The text of `-node` where that is shorter than the text of `node`."""
    if node.op is Ops.CONST and node.arg < 0:
        return str(-node.arg)
    if node.op is Ops.MUL and node.src[1].op is Ops.CONST and node.src[1].arg == -1:
        return _inside(node.src[0], texts)
    return None


def _inside(node: UOp, texts: dict[UOp, str]) -> str:
    return texts[node] if node.op in {Ops.CONST, Ops.DEFINE_VAR} else f"({texts[node]})"
