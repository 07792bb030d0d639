"""When a write may take place while its value is computed.

Only if what it reads of the overwritten buffer is the very element that it writes. Otherwise the
value is realised first, or only the reductions in it.
"""

from __future__ import annotations

from tg_ir.graph import AxisType, GroupOp, Ops, UOp, is_one

from tg_codegen.schedule.facts import FactsWalk
from tg_codegen.schedule.movement_index import ZERO, Index
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.tensor_order import (
    ADDRESSING,
    TRANSPARENT,
    addressing_base,
    strip_transparent,
)


def store_values_first(after: UOp, storage: Storage, facts: FactsWalk) -> None:
    """Stores whatever the writes of `after` would read too late, or marks it for a copy."""
    for value in _values_read_too_late(after, storage, facts):
        node = strip_transparent(value)
        is_version = node.op is Ops.BUFFER or (
            node in storage.buffers and node.op not in ADDRESSING
        )
        if is_version:
            storage.reads_copied[after] = None
        else:
            storage.allocate(node)


def _values_read_too_late(after: UOp, storage: Storage, facts: FactsWalk) -> list[UOp]:
    """The values and index tensors of `after` that must be stored before its first write."""
    buffer = storage.buffers[after]
    found: list[UOp] = []
    for number, store in enumerate(after.src[1:]):
        target, value = store.src
        scattered = False
        for tensor in _index_tensors(target):
            scattered = True
            if buffer.arg.id in facts.as_read(tensor).leaves:
                found.append(tensor)
        if buffer.arg.id not in facts.as_read(value).leaves:
            continue
        if number > 0 or scattered:
            found.append(value)
        else:
            found.extend(_read_beside_its_element(store, buffer.arg.id, storage, facts))
    return found


def _index_tensors(target: UOp) -> list[UOp]:
    found: list[UOp] = []
    node = target
    while node.op in GroupOp.Movement or node.op is Ops.GATHER:
        if node.op is Ops.GATHER:
            found.extend(node.src[1:])
        node = node.src[0]
    return found


def _read_beside_its_element(
    store: UOp, buffer_id: int, storage: Storage, facts: FactsWalk
) -> list[UOp]:
    """What to store first.

    Nothing where elementwise ops read just that; the reductions where they alone read more; else
    the value.
    """
    target, value = store.src
    index = _plain_index(target)
    place = storage.target_address(target, index)
    found: dict[UOp, None] = {}
    seen: set[UOp] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if node in seen or buffer_id not in facts.as_read(node).leaves:
            continue
        seen.add(node)
        if node.op in GroupOp.Elementwise or node.op in TRANSPARENT:
            if node not in storage.buffers:
                stack.extend(node.src[:1] if node.op in TRANSPARENT else node.src)
                continue
        base = node if node in storage.buffers else addressing_base(node)
        if base in storage.buffers or base.op is Ops.BUFFER:
            if storage.address(node, index) != place:
                return [value]
        elif base.op is Ops.REDUCE_AXIS:
            found[base] = None
        else:
            return [value]
    return list(found)


def _plain_index(value: UOp) -> Index:
    return tuple(
        ZERO if is_one(extent) else UOp.range(extent, axis, AxisType.GLOBAL)
        for axis, extent in enumerate(value.shape)
    )
