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
    for node in _order_with_targets(list(roots), mapping):
        found = mapping.get(node)
        if found is not None:
            new[node] = found
            continue
        if node.op is Ops.STORE:
            target, value = node.src
            src: tuple[UOp, ...] = (over_new_version(target, new), new.get(value, value))
        else:
            read = value_sources(node)
            if not any(source in new for source in read):
                continue
            src = tuple([new.get(source, source) for source in read]) + node.src[len(read) :]
        if src != node.src:
            new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new


def _order_with_targets(roots: list[UOp], mapping: Mapping[UOp, UOp]) -> list[UOp]:
    """`value_order` that stops at `mapping`, but sees the index tensors of every STORE's target."""
    order = value_order(roots, mapping)
    indices = [
        source
        for node in order
        if node.op is Ops.STORE and node not in mapping
        for source in _index_tensors(node.src[0])
    ]
    return value_order([*indices, *roots], mapping) if indices else order


def _target_steps(target: UOp) -> list[UOp]:
    """The movement and GATHERs of a STORE's target, outermost first."""
    steps = []
    while target.op in GroupOp.Movement or target.op is Ops.GATHER:
        steps.append(target)
        target = target.src[0]
    return steps


def _index_tensors(target: UOp) -> list[UOp]:
    steps = [step for step in _target_steps(target) if step.op is Ops.GATHER]
    return [source for step in steps for source in step.src[1:]]


def over_new_version(target: UOp, new: Mapping[UOp, UOp]) -> UOp:
    """The target of a STORE over what its version became.

    A value that a view of the version became is no place to write to.
    """
    steps = _target_steps(target)
    version = steps[-1].src[0] if steps else target
    result = new.get(version, version)
    for step in reversed(steps):
        others = tuple([new.get(source, source) for source in step.src[1:]])
        result = UOp(step.op, step.dtype, (result, *others), step.arg)
    return result


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
