"""Pointers to elements of buffers: what is computed once, and what folds into an instruction.

A constant part of an index is added last, so that it becomes the displacement of the access, and
accesses that differ only in it share the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.lane_constants import LaneConstants
from tg_renderers.llvm.registers import buffer_of
from tg_renderers.llvm.types import is_unsigned, memory_type, value_type, vector_of

_ALWAYS_NEEDED = frozenset(
    {Ops.STORE, Ops.RANGE, Ops.END, Ops.IF, Ops.ENDIF, Ops.BARRIER}
)
# Only in these may a sum be split: bounds of index arithmetic are proved, so that it does not wrap.
_INDEX_TYPES = frozenset({dtypes.int64, dtypes.index})


def split_offset(index: UOp) -> tuple[UOp | None, int]:
    """`index` as `rest + constant`; the rest is None where nothing else is left."""
    offset = 0
    while index.op is Ops.ADD and index.dtype in _INDEX_TYPES:
        left, right = index.src
        if right.op is Ops.CONST:
            offset += int(right.arg)
            index = left
        elif left.op is Ops.CONST:
            offset += int(left.arg)
            index = right
        else:
            break
    if index.op is Ops.CONST:
        return None, offset + int(index.arg)
    return index, offset


def find_needed(kernel: Sequence[UOp], constants: LaneConstants) -> frozenset[UOp]:
    """The nodes whose value some effect needs, once constants have moved out of indices."""
    needed: set[UOp] = set()
    for node in reversed(kernel):
        if node.op in _ALWAYS_NEEDED or node in needed:
            needed.update(_needed_sources(node, constants))
            needed.add(node)
    return frozenset(needed)


def _needed_sources(node: UOp, constants: LaneConstants) -> Iterable[UOp]:
    if constants.of(node) is not None:
        return ()
    if node.op not in (Ops.LOAD, Ops.STORE):
        return node.src
    index = node.src[0]
    position = index.src[1]
    return (buffer_of(index), *index.src[2:], *node.src[1:], *_position_parts(position, constants))


def _position_parts(position: UOp, constants: LaneConstants) -> Iterable[UOp]:
    """What addresses are made from: the base of a row, and for a gather the vector itself."""
    if position.dtype.count == 1:
        rest, _ = split_offset(position)
        return () if rest is None else (rest,)
    spread = constants.spread(position)
    bases = () if spread is None else spread.bases
    rests = [split_offset(base)[0] for base in bases]
    return (position, *[rest for rest in rests if rest is not None])


class Addresses:
    """Makes the pointers of a kernel, each `buffer + rest` once a region.

    Regions nest as the control flow does: a pointer made in an outer one is visible in an inner
    one. No pointer is marked `inbounds`: the rest alone, or a masked-off position, may lie
    outside.
    """

    def __init__(self, text: FunctionText, operand: Callable[[UOp], Operand]) -> None:
        """Write to `text`; `operand` gives the value of a node that was rendered before."""
        self._text = text
        self._operand = operand
        self._regions: list[dict[tuple[UOp, UOp], Operand]] = [{}]

    def enter_region(self) -> None:
        """From here on new pointers belong to a new inner region."""
        self._regions.append({})

    def leave_region(self) -> None:
        """Forget the pointers of the innermost region."""
        self._regions.pop()

    def pointer(self, index: UOp) -> Operand:
        """The address of the element that an INDEX with a scalar position means."""
        return self.pointer_at(buffer_of(index), (index.src[1],), 0)

    def pointer_at(self, buffer: UOp, positions: Sequence[UOp], offset: int) -> Operand:
        """The address of the element at the sum of `positions` and `offset`."""
        pointer = self._operand(buffer)
        element = memory_type(buffer.dtype)
        shared = True
        for position in positions:
            rest, more = split_offset(position)
            offset += more
            if rest is None:
                continue
            if shared:
                pointer = self._shared_pointer(buffer, rest)
                shared = False
            else:
                kind, value = self._as_address(rest)
                pointer = self._text.emit(
                    f"getelementptr {element}, ptr {pointer}, {kind} {value}"
                )
        if offset == 0:
            return pointer
        return self._text.emit(f"getelementptr {element}, ptr {pointer}, i64 {offset}")

    def pointers(self, index: UOp) -> tuple[str, Operand]:
        """Type and value of the addresses that an INDEX with a vector position means."""
        buffer, position = buffer_of(index), index.src[1]
        kind, value = self._as_address(position)
        base = self._operand(buffer)
        element = memory_type(buffer.dtype)
        pointers = self._text.emit(f"getelementptr {element}, ptr {base}, {kind} {value}")
        return vector_of("ptr", position.dtype.count), pointers

    def _shared_pointer(self, buffer: UOp, rest: UOp) -> Operand:
        key = (buffer, rest)
        for region in reversed(self._regions):
            if key in region:
                return region[key]
        kind, value = self._as_address(rest)
        element = memory_type(buffer.dtype)
        pointer = self._text.emit(
            f"getelementptr {element}, ptr {self._operand(buffer)}, {kind} {value}"
        )
        self._regions[-1][key] = pointer
        return pointer

    def _as_address(self, position: UOp) -> tuple[str, Operand]:
        """Type and value of a position, widened to 64 bits by its own sign."""
        value, kind = self._operand(position), value_type(position.dtype)
        if position.dtype.bits == 64:
            return kind, value
        wide = vector_of("i64", position.dtype.count)
        extension = "zext" if is_unsigned(position.dtype) else "sext"
        return wide, self._text.emit(f"{extension} {kind} {value} to {wide}")
