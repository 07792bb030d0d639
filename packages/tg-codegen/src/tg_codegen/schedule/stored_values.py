"""Decides, leaves up, what gets a buffer of its own, apart from what fusion adds later.

What was asked for, what is written to, what the limits of a kernel demand, and what a write would
overwrite too early.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.graph import GroupOp, Ops, UOp

from tg_codegen.schedule.facts import FactsWalk
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.tensor_order import (
    LEAVES,
    STORED,
    TRANSPARENT,
    addressing_base,
    is_transfer,
    strip_transparent,
    value_sources,
)
from tg_codegen.schedule.transfers import contiguous_part
from tg_codegen.schedule.writes import store_values_first


def decide_storage(
    requested: Sequence[UOp], order: Sequence[UOp]
) -> tuple[Storage, FactsWalk, set[UOp]]:
    """Storage for all that must be stored.

    What is asked for, what is written, what limits and writes demand.
    """
    storage = Storage(_some_device(order))
    targets = {_realise_target(value) for value in requested}
    consumers = _count_consumers(order)
    facts = FactsWalk(storage, consumers)
    required: set[UOp] = set()
    for node in order:
        facts.visit(node, value_sources(node))
        if node.op is Ops.AFTER:
            _store_write(node, storage, facts, required)
        elif node.op in STORED or node in targets:
            if node.op is not Ops.BUFFER:
                storage.allocate(node)
                required.add(node)
            if is_transfer(node):
                _store_copy_source(node, storage, required)
    return storage, facts, required


def _store_write(node: UOp, storage: Storage, facts: FactsWalk, required: set[UOp]) -> None:
    version = strip_transparent(node.src[0])
    base = addressing_base(version)
    if base.op is not Ops.BUFFER and base not in storage.buffers:
        storage.allocate(base)
        required.add(base)
    storage.add_write(node)
    required.add(node)
    store_values_first(node, storage, facts)


def _store_copy_source(node: UOp, storage: Storage, required: set[UOp]) -> None:
    source = node.src[0]
    if contiguous_part(source, storage) is None:
        storage.allocate(source)
        required.add(source)


def _some_device(order: Sequence[UOp]) -> str | tuple[str, ...] | None:
    for node in order:
        if node.op is Ops.BUFFER or node.op is Ops.COPY:
            return node.device
    return None


def _count_consumers(order: Sequence[UOp]) -> dict[UOp, int]:
    counts: dict[UOp, int] = {}
    for node in order:
        for source in value_sources(node):
            counts[source] = counts.get(source, 0) + 1
    return counts


def _realise_target(value: UOp) -> UOp:
    """The node to store for a requested value: itself, or what it is only a view of."""
    base = addressing_base(value)
    if base.op is Ops.BUFFER or base.op in STORED or base.op is Ops.AFTER:
        return base
    node = value
    while node.op is Ops.RESHAPE or node.op in TRANSPARENT:
        node = node.src[0]
    return value if node.op in LEAVES or node.op in GroupOp.Movement else node
