"""`ReaderGuard`: before buffers are overwritten, gives tensors that still read them a copy."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable

from tg_ir.graph import UOp

from tg_frontend.jit.inputs import private_copy
from tg_frontend.live.registry import live_holders
from tg_frontend.live.walk import replaced_values, value_order


class ReaderGuard:
    """Remembers values that do not read the storages in question: they never will."""

    def __init__(self) -> None:
        """Know of none."""
        self._harmless: weakref.WeakSet[UOp] = weakref.WeakSet()
        self._storages: frozenset[int] = frozenset()

    def save(self, overwritten: Iterable[UOp], showing: Collection[int]) -> None:
        """Give every live tensor that reads one of these BUFFERs a copy of it to read.

        Args:
            overwritten: current versions.
            showing: ids of tensors that will be pointed at the new contents anyway.
        """
        nodes = set(overwritten)
        if not nodes:
            return
        storages = frozenset(node.arg.id for node in nodes)
        if storages != self._storages:
            self._harmless.clear()
            self._storages = storages
        readers = []
        read: dict[UOp, None] = {}
        for holder in live_holders():
            if id(holder) in showing or holder.uop in self._harmless:
                continue
            found = nodes.intersection(value_order((holder.uop,)))
            if found:
                readers.append(holder)
                read.update(dict.fromkeys(found))
            else:
                self._harmless.add(holder.uop)
        if not readers:
            return
        copies = {node: private_copy(node) for node in read}
        new = replaced_values((holder.uop for holder in readers), copies)
        for holder in readers:
            holder.uop = new[holder.uop]
