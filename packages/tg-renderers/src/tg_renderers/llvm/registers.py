"""Which elements of DEFINE_REG become SSA values, and the values they have at each point.

Without LLVM's pass pipeline nothing promotes memory to registers, so that is done here. Control flow is structured
(RANGE ... END, IF ... ENDIF), so no dominance is computed: what a region stores is known when it is
entered, and each such element gets a phi at the head of a loop, or behind a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tg_ir.graph.ops import Ops
from tg_ir.graph.uop import UOp

Slot: TypeAlias = tuple[UOp, int]
"""A DEFINE_REG and the element in it."""


def buffer_of(node: UOp) -> UOp:
    """The buffer that an INDEX, or any AFTER around a buffer, is about."""
    while node.op in (Ops.INDEX, Ops.AFTER):
        node = node.src[0]
    return node


def slot_of(index: UOp) -> Slot | None:
    """The element that an INDEX with a constant position means; None for any other INDEX."""
    position = index.src[1]
    if position.op is not Ops.CONST:
        return None
    return buffer_of(index), int(position.arg)


def find_register_buffers(kernel: Sequence[UOp]) -> frozenset[UOp]:
    """The DEFINE_REGs all of whose accesses are whole elements at constant positions."""
    registers = {node for node in kernel if node.op is Ops.DEFINE_REG}
    if not registers:
        return frozenset()
    accesses: dict[UOp, list[UOp]] = {}
    for node in kernel:
        if node.op in (Ops.LOAD, Ops.STORE):
            accesses.setdefault(buffer_of(node.src[0]), []).append(node)
    for buffer in tuple(registers):
        if not all(_is_whole_element(node, buffer) for node in accesses.get(buffer, ())):
            registers.remove(buffer)
    return frozenset(registers)


def _is_whole_element(access: UOp, buffer: UOp) -> bool:
    slot = slot_of(access.src[0])
    value_dtype = access.dtype if access.op is Ops.LOAD else access.src[1].dtype
    if slot is None or value_dtype is not buffer.dtype:
        return False
    mask = access.src[0].src[2:]
    return 0 <= slot[1] < buffer.arg.size and (not mask or mask[0].dtype.count == 1)


def closed_ranges(end: UOp) -> tuple[UOp, ...]:
    """The RANGEs that an END closes, innermost first."""
    return tuple(source for source in reversed(end.src) if source.op is Ops.RANGE)


@dataclass
class _Region:
    opener: UOp
    stored: dict[Slot, None] = field(default_factory=dict)


def find_stores_of_regions(
    kernel: Sequence[UOp], registers: frozenset[UOp]
) -> dict[UOp, tuple[Slot, ...]]:
    """For each RANGE and IF: the register elements stored inside, in a fixed order."""
    found: dict[UOp, tuple[Slot, ...]] = {}
    open_regions: list[_Region] = []

    def close(opener: UOp) -> None:
        region = open_regions.pop()
        if region.opener is not opener:
            raise ValueError(f"{region.opener!r} is open where {opener!r} is closed")
        found[opener] = tuple(region.stored)
        if open_regions:
            open_regions[-1].stored.update(region.stored)

    for node in kernel:
        if node.op in (Ops.RANGE, Ops.IF):
            open_regions.append(_Region(node))
        elif node.op is Ops.END:
            for opener in closed_ranges(node):
                close(opener)
        elif node.op is Ops.ENDIF:
            close(node.src[0])
        elif node.op is Ops.STORE and open_regions:
            slot = slot_of(node.src[0])
            if slot is not None and slot[0] in registers:
                open_regions[-1].stored[slot] = None
    if open_regions:
        raise ValueError(f"{open_regions[-1].opener!r} is never closed")
    return found

