"""Replaces every FUNCTION by its body, the arguments in place of the PARAMs.

Ensures: no FUNCTION remains. A body that holds further FUNCTIONs is inlined in turn, outermost
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tg_ir.graph import Ops, UOp

from tg_codegen.schedule.errors import ScheduleError
from tg_codegen.schedule.tensor_order import order_by


def inline_functions(order: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each node of `order` to the node that computes the same without FUNCTIONs.

    Empty if there are none.
    """
    if not any(node.op is Ops.FUNCTION for node in order):
        return {}
    result: dict[UOp, UOp] = {}
    roots = [node for node in order if node.op is not Ops.FUNCTION]
    current = dict(zip(roots, roots, strict=True))
    while True:
        nodes = _nodes_outside_bodies(current.values())
        if not any(node.op is Ops.FUNCTION for node in nodes):
            result.update(current)
            return result
        new = _inline_once(nodes)
        current = {root: new[now] for root, now in current.items() if now in new}


def _outside_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources of a node, without history and without the body of a FUNCTION.

    The PARAMs of the body mean something only inside.
    """
    if node.op is Ops.FUNCTION:
        return node.src[1:]
    return node.src[:1] if node.op is Ops.REALIZED else node.src


def _nodes_outside_bodies(roots: Iterable[UOp]) -> list[UOp]:
    return order_by(roots, _outside_sources)


def _inline_once(nodes: Sequence[UOp]) -> dict[UOp, UOp]:
    """Inlines the FUNCTIONs among `nodes`; those inside their bodies remain."""
    new: dict[UOp, UOp] = {}
    results: dict[UOp, tuple[UOp, ...]] = {}
    for node in nodes:
        if node.op is Ops.FUNCTION:
            results[node] = _instantiated(node, tuple(new[arg] for arg in node.src[1:]))
            new[node] = node
        elif node.op is Ops.GETTUPLE and node.src[0].op is Ops.FUNCTION:
            new[node] = results[node.src[0]][node.arg]
        else:
            new[node] = over(node, new)
    return new


def _instantiated(function: UOp, args: Sequence[UOp]) -> tuple[UOp, ...]:
    body = function.src[0].src
    new: dict[UOp, UOp] = {}
    for node in _nodes_outside_bodies(body):
        if node.op is Ops.PARAM:
            if node.arg.slot >= len(args):
                raise ScheduleError(
                    f"function '{function.arg.name}' takes PARAM {node.arg.slot} and was given "
                    f"{len(args)} arguments; pass one for each PARAM of its body"
                )
            new[node] = args[node.arg.slot]
        elif node.op is Ops.FUNCTION:
            src = (node.src[0], *(new[source] for source in node.src[1:]))
            new[node] = UOp(node.op, node.dtype, src, node.arg)
        else:
            new[node] = over(node, new)
    return tuple(new[value] for value in body)


def over(node: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """`node` over the new sources; sources without an entry stay."""
    src = tuple([new.get(source, source) for source in node.src])
    return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
