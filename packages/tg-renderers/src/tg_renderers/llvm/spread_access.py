"""Loads and stores of lanes at known distances: one masked row and a shuffle, not lane by lane.

The gaps of the row are masked off, so no element is touched that the kernel does not name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.dtype import dtypes

from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.lane_constants import Row
from tg_renderers.llvm.types import literal, scalar_literal, suffix, vector_literal, vector_of


@dataclass(frozen=True)
class LaneMask:
    """Which lanes take part: lanes known here (`known`), else a value of `<n x i1>` or `i1`.

    Attributes:
        known: one bool a lane; None where only `value` says it.
        value: the operand; "" where `known` says it.
        uniform: `value` is an `i1` for all lanes.
    """

    known: tuple[bool, ...] | None
    value: Operand = ""
    uniform: bool = False


def load_row(
    text: FunctionText, row: Row, pointer: Operand, scalar: str, align: int, mask: LaneMask
) -> Operand:
    """The lanes of a row as a vector; a lane that is masked off may hold anything.

    Args:
        text: the function under construction.
        row: where the lanes stand.
        pointer: address of the row's first element.
        scalar: LLVM type of an element.
        align: of an element, in bytes.
        mask: which lanes are loaded.
    """
    kind = vector_of(scalar, row.width)
    elements = _mask_of_elements(text, row, mask)
    if elements is None:
        loaded = text.emit(f"load {kind}, ptr {pointer}, align {align}")
        if row.width == 1:  # all lanes read one element: there is no vector to shuffle
            return text.broadcast(scalar, loaded, len(row.positions))
    else:
        mask_kind = vector_of("i1", row.width)
        arguments = [
            ("ptr", pointer),
            ("i32", str(align)),
            (mask_kind, elements),
            (kind, "zeroinitializer"),
        ]
        loaded = text.call(f"llvm.masked.load.{suffix(kind)}.p0", kind, arguments)
    return loaded if row.is_plain else _shuffle(text, kind, loaded, row.positions)


def store_row(
    text: FunctionText,
    row: Row,
    pointer: Operand,
    scalar: str,
    align: int,
    value: Operand,
    mask: LaneMask,
) -> None:
    """Store the lanes of `value` to a row without repeats; arguments as of `load_row`."""
    kind = vector_of(scalar, row.width)
    if not row.is_plain:
        lanes = vector_of(scalar, len(row.positions))
        order = [found[0] if found else None for found in row.lanes_of_elements()]
        value = _shuffle(text, lanes, value, order)
    elements = _mask_of_elements(text, row, mask)
    if elements is None:
        text.effect(f"store {kind} {value}, ptr {pointer}, align {align}")
        return
    arguments = [
        (kind, value),
        ("ptr", pointer),
        ("i32", str(align)),
        (vector_of("i1", row.width), elements),
    ]
    text.call(f"llvm.masked.store.{suffix(kind)}.p0", "void", arguments)


def _mask_of_elements(text: FunctionText, row: Row, mask: LaneMask) -> Operand | None:
    """The mask of the elements of a row; None where all take part."""
    if mask.known is not None:
        wanted = {p for p, known in zip(row.positions, mask.known, strict=True) if known}
        return _constant_mask([position in wanted for position in range(row.width)])
    if mask.uniform:
        kind = vector_of("i1", row.width)
        no_gaps = _constant_mask([bool(lanes) for lanes in row.lanes_of_elements()])
        inside = no_gaps or literal(dtypes.bool.vec(row.width), True)
        return text.emit(f"select i1 {mask.value}, {kind} {inside}, {kind} zeroinitializer")
    return mask.value if row.is_plain else _spread_mask(text, row, mask.value)


def _spread_mask(text: FunctionText, row: Row, mask: Operand) -> Operand:
    """An element takes part if one of the lanes that stand there does."""
    count = len(row.positions)
    source, kind = vector_of("i1", count), vector_of("i1", row.width)
    lanes_of_elements = row.lanes_of_elements()
    most = max(len(lanes) for lanes in lanes_of_elements)
    joined: Operand = ""
    for turn in range(most):
        # lane `count` is the first of the second operand, which is all false
        picked = [lanes[turn] if turn < len(lanes) else count for lanes in lanes_of_elements]
        order = ", ".join(f"i32 {lane}" for lane in picked)
        part = text.emit(
            f"shufflevector {source} {mask}, {source} zeroinitializer, "
            f"<{row.width} x i32> <{order}>"
        )
        joined = text.emit(f"or {kind} {joined}, {part}") if joined else part
    return joined


def _constant_mask(elements: Sequence[bool]) -> Operand | None:
    if all(elements):
        return None
    lanes = [scalar_literal(dtypes.bool, element) for element in elements]
    return vector_literal(dtypes.bool.vec(len(lanes)), lanes)


def _shuffle(text: FunctionText, kind: str, value: Operand, order: Sequence[int | None]) -> Operand:
    lanes = ", ".join("i32 poison" if lane is None else f"i32 {lane}" for lane in order)
    return text.emit(
        f"shufflevector {kind} {value}, {kind} poison, <{len(order)} x i32> <{lanes}>"
    )
