"""How a realised value came about, kept where a gradient may ask for it.

A history is the expression with every value in it that was realised before replaced by its own
history. It is kept only while it leads to a tensor that is alive, so that a loop which feeds on
itself does not grow one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, UOp, toposort

from tg_frontend.live.registry import ValueHolder
from tg_frontend.live.walk import over_new_version

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
    """Decides for the values of one schedule whether their history is kept, and makes it.

    Args:
        holders: the tensors alive.
        plain: what tensors alive read and the schedule computed -> where it is afterwards.
    """

    def __init__(self, holders: Sequence[ValueHolder], plain: Mapping[UOp, UOp]) -> None:
        """Note what gradients may be asked for: the values of float tensors not excluded."""
        uops = [h.uop for h in holders if h._requires_grad is not False]
        self._targets = {uop for uop in uops if dtypes.is_float(uop.dtype)}
        canonical = with_histories(self._targets)
        self._targets |= {canonical[uop] for uop in self._targets}
        self._holders = holders
        self._plain = plain
        self._known_by_others: set[UOp] | None = None
        self._leads: dict[UOp, bool] = {}
        self._new: dict[UOp, UOp] = {}

    def of(self, value: UOp) -> UOp | None:
        """The history of `value`, or None where no gradient could go through or to it."""
        if value.op is Ops.BUFFER or not dtypes.is_float(value.dtype):
            return None
        return self._as_history(value) if self._is_kept(value) else None

    def _is_kept(self, value: UOp) -> bool:
        self._walk(value)
        if self._leads[value]:
            return True
        # a tensor that histories know as this expression has to stay recognisable
        return value in self._targets and value in self._in_older_histories()

    def _in_older_histories(self) -> set[UOp]:
        if self._known_by_others is None:
            realized = [place_below_movement(holder.uop) for holder in self._holders]
            histories = [node.src[1] for node in realized if node.op is Ops.REALIZED]
            self._known_by_others = set(toposort(histories))
        return self._known_by_others

    def _walk(self, value: UOp) -> None:
        stack: list[tuple[UOp, bool]] = [(value, False)]
        while stack:
            node, done = stack.pop()
            if node in self._leads:
                continue
            sources = differentiable_sources(node)
            if done:
                self._leads[node] = any(
                    self._leads[source] or source in self._targets for source in sources
                )
                continue
            stack.append((node, True))
            stack.extend((source, False) for source in sources)

    def _as_history(self, value: UOp) -> UOp:
        """The expression of `value` over what is still there."""
        order = toposort((value,), lambda n: n not in self._new and n.op is not Ops.REALIZED)
        for node in order:
            if node not in self._new:
                self._new[node] = self._rebuilt(node)
        return self._new[value]

    def _rebuilt(self, node: UOp) -> UOp:
        if node.op is Ops.REALIZED:
            self._walk(node)
            history = node.src[1]
            return history if self._leads[node] or history in self._targets else node.src[0]
        if node in self._plain and not (dtypes.is_float(node.dtype) and self._is_kept(node)):
            return self._plain[node]
        if node.op is Ops.AFTER and node not in self._plain:
            written = _whole_value(node)
            if written is not None:
                # its buffer is a temporary of this schedule: what was written says its contents
                return self._new[written].reshape(node.shape)
        if node.op is Ops.STORE:
            target = over_new_version(node.src[0], self._new)
            return UOp(node.op, node.dtype, (target, self._new[node.src[1]]), node.arg)
        src = tuple([self._new[source] for source in node.src])
        if node.op is Ops.AFTER and src[0].op not in GroupOp.Version:
            return self._write_to_expression(node, src[0])
        return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)

    def _write_to_expression(self, after: UOp, value: UOp) -> UOp:
        """`after` where what it writes to, once storage, is now said by the expression `value`."""
        written = _whole_value(after)
        if written is not None:
            return self._new[written].reshape(after.shape)
        held = value.contiguous()
        stores = []
        for store in after.src[1:]:
            places = {after.src[0]: held}
            places |= {index: self._new[index] for index in _index_tensors(store.src[0], after)}
            target = store.src[0].substitute(places)
            stores.append(UOp(store.op, store.dtype, (target, self._new[store.src[1]]), store.arg))
        return UOp(Ops.AFTER, after.dtype, (held, *stores), after.arg)


def _index_tensors(target: UOp, after: UOp) -> list[UOp]:
    """The index tensors of the GATHERs of a target."""
    found: list[UOp] = []
    while target is not after.src[0]:
        if target.op is Ops.GATHER:
            found.extend(target.src[1:])
        target = target.src[0]
    return found


def _whole_value(after: UOp) -> UOp | None:
    """The value that one write, of all elements in order, gives an AFTER."""
    if len(after.src) != 2 or after.src[1].arg is not None:
        return None
    target, value = after.src[1].src
    while target.op is Ops.RESHAPE:
        target = target.src[0]
    return value if target is after.src[0] else None


def place_below_movement(node: UOp) -> UOp:
    """The node below movement; a REALIZED is one."""
    while node.op in GroupOp.Movement:
        node = node.src[0]
    return node
