"""Which elements of DEFINE_REG become SSA values, and the values they have at each point.

Without LLVM's pass pipeline nothing promotes memory to registers, so that is done here. Control
flow is structured (RANGE ... END, IF ... ENDIF), so no dominance is computed: what a region stores
is known when it is entered, and each such element gets a phi at the head of a loop, or behind a
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tg_ir.graph import Ops, UOp

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


class _OpenRegions:
    """The regions around the node that is looked at, innermost last, and those closed before."""

    def __init__(self) -> None:
        self.closed: dict[UOp, tuple[Slot, ...]] = {}
        self._open: list[_Region] = []

    def open(self, opener: UOp) -> None:
        self._open.append(_Region(opener))

    def close(self, opener: UOp) -> None:
        if not self._open or self._open[-1].opener is not opener:
            raise ValueError(f"{opener!r} is closed where another region is open")
        region = self._open.pop()
        self.closed[opener] = tuple(region.stored)
        if self._open:
            self._open[-1].stored.update(region.stored)

    def store(self, slot: Slot | None) -> None:
        if slot is not None and self._open:
            self._open[-1].stored[slot] = None

    def check_all_closed(self) -> None:
        if self._open:
            raise ValueError(f"{self._open[-1].opener!r} is never closed")


def find_stores_of_regions(
    kernel: Sequence[UOp], registers: frozenset[UOp]
) -> dict[UOp, tuple[Slot, ...]]:
    """For each RANGE and IF: the register elements stored inside, in a fixed order.

    Raises:
        ValueError: loops and conditions do not nest.
    """
    regions = _OpenRegions()
    for node in kernel:
        match node.op:
            case Ops.RANGE | Ops.IF:
                regions.open(node)
            case Ops.END:
                for opener in closed_ranges(node):
                    regions.close(opener)
            case Ops.ENDIF:
                regions.close(node.src[0])
            case Ops.STORE if buffer_of(node.src[0]) in registers:
                regions.store(slot_of(node.src[0]))
            case _:
                pass
    regions.check_all_closed()
    return regions.closed
