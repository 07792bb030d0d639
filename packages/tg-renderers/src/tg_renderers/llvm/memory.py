"""LOAD and STORE: scalar, a row of elements, or gathered; masked or not.

A masked-off element is never touched: vectors use LLVM's masked operations, and a masked scalar
goes to a private cell instead, which keeps the code free of branches.
"""

from __future__ import annotations

from collections.abc import Callable

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

from tg_renderers.llvm.addresses import Addresses
from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.lane_constants import LaneConstants, Row, SpreadIndex, find_row
from tg_renderers.llvm.registers import buffer_of
from tg_renderers.llvm.spread_access import LaneMask, load_row, store_row
from tg_renderers.llvm.types import literal, memory_type, suffix, value_type, vector_of, with_lanes

_MOST_SHARED_MASKS = 4


class MemoryAccess:
    """Writes the loads and stores of a kernel to buffers that are really in memory."""

    def __init__(
        self,
        text: FunctionText,
        operand: Callable[[UOp], Operand],
        addresses: Addresses,
        constants: LaneConstants,
    ) -> None:
        """Write to `text`; `operand` gives the value of a node that was rendered before."""
        self._text = text
        self._operand = operand
        self._addresses = addresses
        self._constants = constants
        self._zero_cell: Operand | None = None
        self._sink_cell: Operand | None = None

    def load(self, node: UOp) -> Operand:
        """The value of a LOAD."""
        index = node.src[0]
        other = self._to_memory(node.src[1], node.dtype) if len(node.src) > 1 else None
        mask = self._mask(index)
        if index.src[1].dtype.count > 1:
            loaded = self._load_lanes(node, index, mask, other)
        elif mask is None:
            kind, align = memory_type(node.dtype), _alignment(index)
            pointer = self._addresses.pointer(index)
            loaded = self._text.emit(f"load {kind}, ptr {pointer}, align {align}")
        elif node.dtype.count > 1:
            loaded = self._load_masked_row(node, index, mask, other)
        else:
            loaded = self._load_masked_scalar(node, index, self._operand(mask), other)
        return self._from_memory(loaded, node.dtype)

    def store(self, node: UOp) -> None:
        """A STORE."""
        index, value = node.src
        lanes = max(value.dtype.count, index.src[1].dtype.count)
        dtype = with_lanes(value.dtype, lanes)
        stored, kind = self._to_memory(value, dtype), memory_type(dtype)
        mask = self._mask(index)
        if index.src[1].dtype.count > 1:
            self._store_lanes(index, dtype, stored, mask)
            return
        pointer, align = self._addresses.pointer(index), _alignment(index)
        if mask is not None and lanes > 1:
            mask_kind, lane_mask = self._lane_mask(mask, lanes)
            place = [("ptr", pointer), ("i32", str(align))]
            arguments = [(kind, stored), *place, (mask_kind, lane_mask)]
            self._text.call(f"llvm.masked.store.{suffix(kind)}.p0", "void", arguments)
            return
        if mask is not None:
            cell = self._get_sink_cell()
            pointer = self._text.emit(
                f"select i1 {self._operand(mask)}, ptr {pointer}, ptr {cell}"
            )
        self._text.effect(f"store {kind} {stored}, ptr {pointer}, align {align}")

    # ---- one position

    def _load_masked_scalar(
        self, node: UOp, index: UOp, mask: Operand, other: Operand | None
    ) -> Operand:
        kind, align = memory_type(node.dtype), _alignment(index)
        pointer = self._addresses.pointer(index)
        cell = self._get_zero_cell()
        chosen = self._text.emit(f"select i1 {mask}, ptr {pointer}, ptr {cell}")
        loaded = self._text.emit(f"load {kind}, ptr {chosen}, align {align}")
        if other is None:
            return loaded
        return self._text.emit(f"select i1 {mask}, {kind} {loaded}, {kind} {other}")

    def _load_masked_row(
        self, node: UOp, index: UOp, mask: UOp, other: Operand | None
    ) -> Operand:
        kind = memory_type(node.dtype)
        lanes, lane_mask = self._lane_mask(mask, node.dtype.count)
        arguments = [
            ("ptr", self._addresses.pointer(index)),
            ("i32", str(_alignment(index))),
            (lanes, lane_mask),
            (kind, other or "zeroinitializer"),
        ]
        return self._text.call(f"llvm.masked.load.{suffix(kind)}.p0", kind, arguments)

    # ---- a position a lane

    def _load_lanes(
        self, node: UOp, index: UOp, mask: UOp | None, other: Operand | None
    ) -> Operand:
        found = self._row_of(index, mask)
        if found is None:
            return self._gather(node, index, mask, other)
        spread, row = found
        element = memory_type(buffer_of(index).dtype)
        pointer = self._pointer_to_row(index, spread, row)
        lane_mask = self._mask_of_lanes(mask, node.dtype.count)
        align = _alignment(index)
        loaded = load_row(self._text, row, pointer, element, align, lane_mask)
        if mask is None or (other is None and not row.has_repeats):
            return loaded
        kind = memory_type(node.dtype)
        lanes, value = self._lane_mask(mask, node.dtype.count)
        otherwise = other or "zeroinitializer"
        return self._text.emit(
            f"select {lanes} {value}, {kind} {loaded}, {kind} {otherwise}"
        )

    def _store_lanes(self, index: UOp, dtype: DType, stored: Operand, mask: UOp | None) -> None:
        found = self._row_of(index, mask)
        if found is None or found[1].has_repeats:
            self._scatter(index, memory_type(dtype), stored, mask)
            return
        spread, row = found
        element = memory_type(buffer_of(index).dtype)
        pointer = self._pointer_to_row(index, spread, row)
        lane_mask = self._mask_of_lanes(mask, dtype.count)
        store_row(self._text, row, pointer, element, _alignment(index), stored, lane_mask)

    def _row_of(self, index: UOp, mask: UOp | None) -> tuple[SpreadIndex, Row] | None:
        """Where the lanes of an INDEX stand if they share a row that is worth loading."""
        spread = self._constants.spread(index.src[1])
        dtype = buffer_of(index).dtype
        if spread is None or dtype.count > 1:
            return None
        row = find_row(spread.offsets, 8 * dtype.itemsize)
        if row is None:
            return None
        by_value = mask is not None and mask.dtype.count > 1 and self._constants.of(mask) is None
        if by_value and row.most_lanes_of_an_element > _MOST_SHARED_MASKS:
            return None  # the mask of an element joins those of its lanes
        return spread, row

    def _pointer_to_row(self, index: UOp, spread: SpreadIndex, row: Row) -> Operand:
        return self._addresses.pointer_at(buffer_of(index), spread.bases, row.first)

    def _mask_of_lanes(self, mask: UOp | None, count: int) -> LaneMask:
        if mask is None:
            return LaneMask((True,) * count)
        known = self._constants.of(mask)
        if known is not None:
            return LaneMask(tuple(bool(lane) for lane in known))
        return LaneMask(None, self._operand(mask), mask.dtype.count == 1)

    def _gather(
        self, node: UOp, index: UOp, mask: UOp | None, other: Operand | None
    ) -> Operand:
        kind = memory_type(node.dtype)
        pointer_kind, pointers = self._addresses.pointers(index)
        lanes, lane_mask = self._lane_mask(mask, node.dtype.count)
        narrow = mask is not None and _alignment(index) < 4
        if narrow:
            # No CPU gathers these, and LLVM would branch on each lane of the mask.
            cells = self._text.broadcast("ptr", self._get_zero_cell(), node.dtype.count)
            pointers = self._text.emit(
                f"select {lanes} {lane_mask}, {pointer_kind} {pointers}, {pointer_kind} {cells}"
            )
        all_lanes = literal(dtypes.bool.vec(node.dtype.count), True)
        arguments = [
            (pointer_kind, pointers),
            ("i32", str(_alignment(index))),
            (lanes, all_lanes if narrow else lane_mask),
            (kind, other or "zeroinitializer"),
        ]
        name = f"llvm.masked.gather.{suffix(kind)}.{suffix(pointer_kind)}"
        loaded = self._text.call(name, kind, arguments)
        if not narrow or other is None:
            return loaded
        return self._text.emit(f"select {lanes} {lane_mask}, {kind} {loaded}, {kind} {other}")

    def _scatter(self, index: UOp, kind: str, stored: Operand, mask: UOp | None) -> None:
        pointer_kind, pointers = self._addresses.pointers(index)
        lanes, lane_mask = self._lane_mask(mask, index.src[1].dtype.count)
        arguments = [
            (kind, stored),
            (pointer_kind, pointers),
            ("i32", str(_alignment(index))),
            (lanes, lane_mask),
        ]
        name = f"llvm.masked.scatter.{suffix(kind)}.{suffix(pointer_kind)}"
        self._text.call(name, "void", arguments)

    # ---- masks, cells and the form of values in memory

    def _mask(self, index: UOp) -> UOp | None:
        """The mask of an INDEX; None where it is absent or always true."""
        if len(index.src) < 3:
            return None
        mask = index.src[2]
        known = (mask.arg,) if mask.op is Ops.CONST else self._constants.of(mask)
        return None if known is not None and all(known) else mask

    def _lane_mask(self, mask: UOp | None, count: int) -> tuple[str, Operand]:
        """Type and value of a mask of `count` lanes."""
        kind = vector_of("i1", count)
        if mask is None:
            return kind, literal(dtypes.bool.vec(count), True)
        value = self._operand(mask)
        if mask.dtype.count == 1:
            value = self._text.broadcast("i1", value, count)
        return kind, value

    def _to_memory(self, value: UOp, dtype: DType) -> Operand:
        """The operand of a value as it lies in memory, in as many lanes as `dtype`."""
        operand = self._operand(value)
        kind = value_type(value.dtype)
        if value.dtype.kind == "bool":
            stored = memory_type(value.dtype)
            operand = self._text.emit(f"zext {kind} {operand} to {stored}")
            kind = stored
        if value.dtype.count == 1 and dtype.count > 1:
            return self._text.broadcast(kind, operand, dtype.count)
        return operand

    def _from_memory(self, loaded: Operand, dtype: DType) -> Operand:
        if dtype.kind != "bool":
            return loaded
        kind = memory_type(dtype)
        zero = literal(with_lanes(dtypes.uint8, dtype.count), 0)
        return self._text.emit(f"icmp ne {kind} {loaded}, {zero}")

    def _get_zero_cell(self) -> Operand:
        """A cell that holds 0 of every scalar type and is never written."""
        if self._zero_cell is None:
            self._zero_cell = self._text.emit_in_entry("alloca i64, align 8")
            self._text.effect_in_entry(f"store i64 0, ptr {self._zero_cell}, align 8")
        return self._zero_cell

    def _get_sink_cell(self) -> Operand:
        """A cell that is never read."""
        if self._sink_cell is None:
            self._sink_cell = self._text.emit_in_entry("alloca i64, align 8")
        return self._sink_cell


def _alignment(index: UOp) -> int:
    """Bytes; rows start at any element, so it is that of one element."""
    return buffer_of(index).dtype.scalar().itemsize
