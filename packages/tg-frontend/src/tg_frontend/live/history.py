"""How a realised value came about, kept where a gradient may ask for it.

A history is the expression with every value in it that was realised before replaced by its own
history. It is kept only while it leads to a tensor that is alive, so that a loop which feeds on
itself does not grow one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, UOp, toposort

from tg_frontend.live.registry import ValueHolder

_FIRST_SOURCE = GroupOp.Movement | {Ops.GATHER, Ops.REALIZED}


def differentiable_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources that a gradient which reaches `node` may go on to."""
    if node.op is Ops.TUPLE:
        return node.src
    if node.op is Ops.AFTER:
        written = tuple([store.src[1] for store in node.src[1:]])
        return written if replaces_all(node) else (node.src[0], *written)
    if node.op is Ops.DETACH or not (
        dtypes.is_float(node.dtype) or node.op in (Ops.REDUCE_AXIS, Ops.FUNCTION, Ops.CUSTOM)
    ):
        return ()
    if node.op in _FIRST_SOURCE:
        return node.src[1:2] if node.op is Ops.REALIZED else node.src[:1]
    return node.src


def replaces_all(after: UOp) -> bool:
    """Whether one of the writes of an AFTER gives every element a new value."""
    return any(
        store.arg is None and _is_whole(store.src[0], after.src[0]) for store in after.src[1:]
    )


def _is_whole(target: UOp, version: UOp) -> bool:
    while target is not version and target.op in (Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP):
        target = target.src[0]
    return target is version


def with_histories(roots: Iterable[UOp]) -> dict[UOp, UOp]:
    """For each node below `roots` the same node without REALIZED: histories in their place."""
    new: dict[UOp, UOp] = {}
    for node in toposort(roots, lambda n: n.op is not Ops.REALIZED):
        if node.op is Ops.REALIZED:
            new[node] = node.src[1]
            continue
        src = tuple([new[source] for source in node.src])
        new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new


class Histories:
    """Decides for the values of one graph whether their history is kept, and makes it.

    Args:
        holders: the tensors alive.
    """

    def __init__(self, holders: Iterable[ValueHolder]) -> None:
        """Note what gradients may be asked for.

        The values of float tensors not excluded from them.
        """
        uops = [h.uop for h in holders if h._requires_grad is not False]
        self._targets = {uop for uop in uops if dtypes.is_float(uop.dtype)}
        canonical = with_histories(self._targets)
        self._targets |= {canonical[uop] for uop in self._targets}
        self._leads: dict[UOp, bool] = {}
        self._new: dict[UOp, UOp] = {}

    def of(self, value: UOp) -> UOp | None:
        """The history of `value`, or None where no gradient could go through it."""
        self._walk(value)
        return self._new_node(value) if self._leads[value] else None

    def _walk(self, value: UOp) -> None:
        order: dict[UOp, None] = {}
        stack: list[tuple[UOp, bool]] = [(value, False)]
        while stack:
            node, done = stack.pop()
            if node in self._leads or node in order:
                continue
            if done:
                order[node] = None
                self._leads[node] = any(
                    self._leads[source] or source in self._targets
                    for source in differentiable_sources(node)
                )
                continue
            stack.append((node, True))
            stack.extend((source, False) for source in differentiable_sources(node))

    def _new_node(self, value: UOp) -> UOp:
        for node in toposort((value,), lambda n: n not in self._new and n.op is not Ops.REALIZED):
            if node in self._new:
                continue
            if node.op is Ops.REALIZED:
                self._walk(node)
                history = node.src[1]
                kept = self._leads[node] or history in self._targets
                self._new[node] = history if kept else node.src[0]
                continue
            src = tuple([self._new[source] for source in node.src])
            self._new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        return self._new[value]
