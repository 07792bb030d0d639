"""Walks over graphs: `toposort`, `substitute`, and the open ranges of nodes.

Iterative, so any depth works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from tg_ir.graph.ops import Ops

if TYPE_CHECKING:
    from tg_ir.graph.uop import UOp


def toposort(
    roots: Iterable[UOp], enter: Callable[[UOp], bool] | None = None
) -> dict[UOp, None]:
    """Every node reachable from `roots`, sources before users, in a fixed order."""
    order: dict[UOp, None] = {}
    for root in roots:
        if root in order:
            continue
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if node in order:
                continue
            if done or not node.src or (enter is not None and not enter(node)):
                order[node] = None
                continue
            stack.append((node, True))
            stack.extend((s, False) for s in reversed(node.src) if s not in order)
    return order


def substitute(
    roots: Iterable[UOp],
    mapping: dict[UOp, UOp],
    enter: Callable[[UOp], bool] | None = None,
) -> tuple[UOp, ...]:
    """`roots` with each key of `mapping` replaced by its value.

    Cost is linear in the nodes visited.
    """
    root_list = tuple(roots)

    def visit(node: UOp) -> bool:
        return node not in mapping and (enter is None or enter(node))

    new: dict[UOp, UOp] = {}
    for node in toposort(root_list, visit):
        if node in mapping:
            new[node] = mapping[node]
            continue
        if enter is not None and not enter(node):
            new[node] = node
            continue
        src = tuple([new[s] for s in node.src])
        new[node] = node if src == node.src else node.with_sources(src)
    return tuple(new[root] for root in root_list)


_CLOSING = frozenset({Ops.REDUCE, Ops.STAGE, Ops.END})


def infer_ranges(root: UOp) -> None:
    """Fills `_ranges` of `root` and of everything below it."""
    for node in toposort((root,), lambda n: n._ranges is None):
        if node._ranges is not None:
            continue
        if node.op is Ops.RANGE:
            node._ranges = frozenset({node}) | node.src[0].ranges
            continue
        # sharing the set of a source keeps a chain of n nodes at one set
        merged: frozenset[UOp] = frozenset()
        for source in node.src:
            found = cast("frozenset[UOp]", source._ranges)
            if not found <= merged:
                merged = found if merged <= found else merged | found
        if node.op in _CLOSING:
            # a loop counter may also be a value that is reduced
            values = len(node.arg.combine.init) if node.op is Ops.REDUCE else 1
            merged = merged.difference(s for s in node.src[values:] if s.op is Ops.RANGE)
        node._ranges = merged
