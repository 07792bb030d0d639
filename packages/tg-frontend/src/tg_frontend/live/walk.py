"""Walks over what tensors hold: values only, not the histories that only gradients look at."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from tg_ir.graph import GroupOp, Ops, UOp

_PLACES = GroupOp.Movement | {Ops.REALIZED, Ops.DETACH}


def value_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources that the value of `node` depends on."""
    return node.src[:1] if node.op is Ops.REALIZED else node.src


def value_order(roots: Iterable[UOp], stop: Container[UOp] = ()) -> list[UOp]:
    """Every node below `roots`, sources first; below those in `stop` nothing is visited."""
    order: dict[UOp, None] = {}
    for root in roots:
        if root in order:
            continue
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if node in order:
                continue
            if done or not node.src or node in stop:
                order[node] = None
                continue
            stack.append((node, True))
            stack.extend((s, False) for s in reversed(value_sources(node)) if s not in order)
    return list(order)


def replaced_values(roots: Iterable[UOp], mapping: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
    """For each node below `roots` that one of `mapping` replaces or lies above, the new node."""
    new: dict[UOp, UOp] = {}
    for node in value_order(roots, mapping):
        found = mapping.get(node)
        if found is not None:
            new[node] = found
            continue
        read = value_sources(node)
        if not any(source in new for source in read):
            continue
        src = tuple([new.get(source, source) for source in read]) + node.src[len(read) :]
        new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new


def place_of(node: UOp) -> UOp:
    """What `node` is a view of: the node below all movement."""
    while node.op in _PLACES:
        node = node.src[0]
    return node


def is_view_of_storage(node: UOp) -> bool:
    """Whether `node` only rearranges a BUFFER, so that there is nothing to compute."""
    while node.op in _PLACES and node.op is not Ops.PAD and node.op is not Ops.UNSKEW:
        node = node.src[0]
    return node.op is Ops.BUFFER
