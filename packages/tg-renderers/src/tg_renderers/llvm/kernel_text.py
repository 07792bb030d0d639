"""`KernelText`: one linear kernel on its way to LLVM IR: control flow, registers, dispatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tg_ir.errors import RenderError
from tg_ir.graph import AxisType, GroupOp, Ops, UOp

from tg_renderers.llvm.addresses import Addresses, find_needed
from tg_renderers.llvm.arithmetic import reduce_lanes, render_alu
from tg_renderers.llvm.casts import bitcast, cast
from tg_renderers.llvm.function_text import FunctionText, Operand
from tg_renderers.llvm.lane_constants import LaneConstants
from tg_renderers.llvm.memory import MemoryAccess
from tg_renderers.llvm.registers import (
    Slot,
    buffer_of,
    closed_ranges,
    find_register_buffers,
    find_stores_of_regions,
    slot_of,
)
from tg_renderers.llvm.types import (
    constant_lanes,
    literal,
    memory_type,
    splat,
    value_type,
    vector_literal,
    zero,
)

MAX_SCRATCH_BYTES = 512 << 10
"""Most DEFINE_LOCAL and unpromoted DEFINE_REG a kernel may have: it lies on a worker's stack."""

PARAMETERS = "ptr %buffers, ptr %vals, i64 %begin, i64 %end"


@dataclass(frozen=True)
class _Phi:
    """A value that a loop carries: the line to fill, and what it starts with."""

    name: Operand
    line: int
    kind: str
    initial: Operand


@dataclass(frozen=True)
class _Loop:
    head: str
    exit: str
    before: str
    counter: _Phi
    bound: Operand
    tested_at_bottom: bool
    carried: dict[Slot, _Phi]


@dataclass(frozen=True)
class _Condition:
    join: str
    before: str
    saved: dict[Slot, Operand]


class KernelText:
    """Renders the nodes of a kernel in order; `finish` gives the module."""

    def __init__(self, kernel: Sequence[UOp]) -> None:
        """Render everything.

        Raises:
            RenderError: a node that this renderer does not take, or too much scratch memory.
        """
        self._text = FunctionText()
        self._values: dict[UOp, Operand] = {}
        self._addresses = Addresses(self._text, self._operand)
        self._constants = LaneConstants(kernel)
        self._memory = MemoryAccess(
            self._text, self._operand, self._addresses, self._constants
        )
        self._register_buffers = find_register_buffers(kernel)
        self._registers: dict[Slot, Operand] = {}
        try:
            self._stores = find_stores_of_regions(kernel, self._register_buffers)
        except ValueError as error:
            raise RenderError(f"loops or conditions do not nest: {error}") from error
        self._loops: dict[UOp, _Loop] = {}
        self._conditions: dict[UOp, _Condition] = {}
        self._scratch_bytes = 0
        self._variables = {
            node: number
            for number, node in enumerate(n for n in kernel if n.op is Ops.DEFINE_VAR)
        }
        needed = find_needed(kernel, self._constants)
        for node in kernel:
            if node in needed:
                self._render(node)

    def finish(self, name: str, vector_bits: int) -> str:
        """The text of the module."""
        return self._text.finish(name, PARAMETERS, vector_bits)

    def _render(self, node: UOp) -> None:
        if node.dtype.count > 1:
            self._text.note_vector(node.dtype.count * node.dtype.bits)
        known = self._constants.of(node)
        if known is not None:
            self._values[node] = constant_lanes(node.dtype, known)
            return
        if node.op in GroupOp.ALU:
            values = [self._operand(source) for source in node.src]
            self._keep(node, render_alu(self._text, node, values))
            return
        render = self._RENDERERS.get(node.op)
        if render is None:
            raise _not_rendered(node)
        render(self, node)

    def _keep(self, node: UOp, value: Operand | None) -> None:
        if value is None:
            raise _not_rendered(node)
        self._values[node] = value

    def _operand(self, node: UOp) -> Operand:
        known = self._values.get(node)
        if known is not None:
            return known
        if node.op is Ops.CONST:
            return literal(node.dtype, node.arg)
        if node.op is Ops.AFTER:
            return self._operand(buffer_of(node))
        raise RenderError(f"{node!r} is used before it stands in the kernel")

    # ---- leaves

    def _skip(self, node: UOp) -> None:
        """Nothing to write: constants and indices are written where they are used."""

    def _param(self, node: UOp) -> None:
        place = self._text.emit_in_entry(f"getelementptr ptr, ptr %buffers, i64 {node.arg.slot}")
        self._values[node] = self._text.emit_in_entry(f"load ptr, ptr {place}, align 8")

    def _variable(self, node: UOp) -> None:
        number = _number_of_variable(node, self._variables[node])
        place = self._text.emit_in_entry(f"getelementptr i64, ptr %vals, i64 {number}")
        value = self._text.emit_in_entry(f"load i64, ptr {place}, align 8")
        if node.dtype.bits < 64:
            value = self._text.emit_in_entry(f"trunc i64 {value} to {value_type(node.dtype)}")
        self._values[node] = value

    def _scratch(self, node: UOp) -> None:
        """DEFINE_LOCAL, and a DEFINE_REG that is indexed by values: memory of this worker."""
        if node in self._register_buffers:
            return
        self._scratch_bytes += node.arg.size * node.dtype.itemsize
        if self._scratch_bytes > MAX_SCRATCH_BYTES:
            raise RenderError(
                f"{node!r}: {self._scratch_bytes} bytes of scratch memory, at most "
                f"{MAX_SCRATCH_BYTES} fit on a worker's stack; use a workspace buffer"
            )
        kind = f"[{node.arg.size} x {memory_type(node.dtype)}]"
        self._values[node] = self._text.emit_in_entry(f"alloca {kind}, align 64")

    # ---- control flow

    def _range(self, node: UOp) -> None:
        text = self._text
        first, bound = "0", self._as_counter(node.src[0])
        if node.arg.kind is AxisType.THREAD:
            first, bound = "%begin", "%end"
        at_bottom = first == "0" and node.src[0].op is Ops.CONST and node.src[0].arg > 0
        before, head, exit_label = text.block, text.new_label("loop"), text.new_label("done")
        text.effect(f"br label %{head}")
        text.start_block(head)
        counter = self._open_phi("i64", first)
        carried = {slot: self._open_phi(*self._current(slot)) for slot in self._stores[node]}
        self._registers.update({slot: phi.name for slot, phi in carried.items()})
        if not at_bottom:
            body = text.new_label("body")
            go_on = text.emit(f"icmp slt i64 {counter.name}, {bound}")
            text.effect(f"br i1 {go_on}, label %{body}, label %{exit_label}")
            text.start_block(body)
        self._loops[node] = _Loop(head, exit_label, before, counter, bound, at_bottom, carried)
        self._addresses.enter_region()
        self._values[node] = counter.name
        if node.dtype.bits < 64:
            kind = value_type(node.dtype)
            self._values[node] = text.emit(f"trunc i64 {counter.name} to {kind}")

    def _end(self, node: UOp) -> None:
        for loop_range in closed_ranges(node):
            self._close_loop(self._loops[loop_range])

    def _close_loop(self, loop: _Loop) -> None:
        text = self._text
        following = text.emit(f"add nsw i64 {loop.counter.name}, 1")
        latch = text.block
        self._fill_phi(loop.counter, loop.before, following, latch)
        for slot, phi in loop.carried.items():
            self._fill_phi(phi, loop.before, self._registers[slot], latch)
        if loop.tested_at_bottom:
            again = text.emit(f"icmp slt i64 {following}, {loop.bound}")
            text.effect(f"br i1 {again}, label %{loop.head}, label %{loop.exit}")
        else:
            text.effect(f"br label %{loop.head}")
            # the loop is left at its head, where a register is its phi
            self._registers.update({slot: phi.name for slot, phi in loop.carried.items()})
        text.start_block(loop.exit)
        self._addresses.leave_region()

    def _if(self, node: UOp) -> None:
        text = self._text
        then, join = text.new_label("then"), text.new_label("join")
        saved = {slot: self._current(slot)[1] for slot in self._stores[node]}
        self._conditions[node] = _Condition(join, text.block, saved)
        text.effect(
            f"br i1 {self._operand(node.src[0])}, label %{then}, label %{join}"
        )
        text.start_block(then)
        self._addresses.enter_region()

    def _endif(self, node: UOp) -> None:
        text = self._text
        condition = self._conditions[node.src[0]]
        inside = text.block
        text.effect(f"br label %{condition.join}")
        text.start_block(condition.join)
        self._addresses.leave_region()
        for slot, old in condition.saved.items():
            kind, new = self._current(slot)
            self._registers[slot] = text.emit(
                f"phi {kind} [ {old}, %{condition.before} ], [ {new}, %{inside} ]"
            )

    def _open_phi(self, kind: str, initial: Operand) -> _Phi:
        return _Phi(self._text.new_name(), self._text.reserve_line(), kind, initial)

    def _fill_phi(self, phi: _Phi, before: str, following: Operand, latch: str) -> None:
        self._text.fill_line(
            phi.line,
            f"{phi.name} = phi {phi.kind} [ {phi.initial}, %{before} ], [ {following}, %{latch} ]",
        )

    def _as_counter(self, bound: UOp) -> Operand:
        value = self._operand(bound)
        if bound.op is Ops.CONST or bound.dtype.bits == 64:
            return value
        return self._text.emit(f"sext {value_type(bound.dtype)} {value} to i64")

    # ---- memory

    def _current(self, slot: Slot) -> tuple[str, Operand]:
        """LLVM type and present value of a register; 0 where it was never written."""
        dtype = slot[0].dtype
        return value_type(dtype), self._registers.get(slot) or zero(dtype)

    def _load(self, node: UOp) -> None:
        slot = self._register_slot(node.src[0])
        if slot is None:
            self._values[node] = self._memory.load(node)
            return
        kind, value = self._current(slot)
        if len(node.src[0].src) > 2:
            other = self._operand(node.src[1]) if len(node.src) > 1 else zero(node.dtype)
            value = self._select(node.src[0].src[2], kind, value, other)
        self._values[node] = value

    def _store(self, node: UOp) -> None:
        if node.arg is not None:
            self._accumulate(node)
            return
        slot = self._register_slot(node.src[0])
        if slot is None:
            self._memory.store(node)
            return
        value = self._operand(node.src[1])
        if len(node.src[0].src) > 2:
            kind, before = self._current(slot)
            value = self._select(node.src[0].src[2], kind, value, before)
        self._registers[slot] = value

    def _accumulate(self, node: UOp) -> None:
        """A STORE that joins with what is there: lane by lane, for positions may be equal."""
        index, value = node.src
        lanes = max(index.src[1].dtype.count, value.dtype.count)
        if index.src[1].dtype.count == 1:
            lanes = 1
        for lane in range(lanes):
            parts = [
                source.gep(lane) if lanes > 1 and source.dtype.count > 1 else source
                for source in (*index.src[1:], value)
            ]
            place = UOp(Ops.INDEX, index.dtype, (index.src[0], *parts[:-1]))
            before = place.load(dtype=parts[-1].dtype)
            joined = before.alu(node.arg, parts[-1])
            for step in (*parts, before, joined, place.store(joined)):
                if step in (before, joined) or step not in self._values:
                    self._render(step)

    def _register_slot(self, index: UOp) -> Slot | None:
        return slot_of(index) if buffer_of(index) in self._register_buffers else None

    def _select(self, mask: UOp, kind: str, yes: Operand, no: Operand) -> Operand:
        return self._text.emit(f"select i1 {self._operand(mask)}, {kind} {yes}, {kind} {no}")

    # ---- values

    def _cast(self, node: UOp) -> None:
        source = node.src[0]
        value = self._operand(source)
        self._values[node] = cast(self._text, value, source.dtype, node.dtype)

    def _bitcast(self, node: UOp) -> None:
        source = node.src[0]
        value = self._operand(source)
        self._values[node] = bitcast(self._text, value, source.dtype, node.dtype)

    def _lanes(self, node: UOp) -> None:
        scalar = node.dtype.scalar()
        lanes = [literal(scalar, lane) for lane in range(node.dtype.count)]
        self._values[node] = vector_literal(node.dtype, lanes)

    def _broadcast(self, node: UOp) -> None:
        source = node.src[0]
        value = self._operand(source)
        if source.op is Ops.CONST:
            self._values[node] = splat(node.dtype, value)
        else:
            kind = value_type(source.dtype)
            self._values[node] = self._text.broadcast(kind, value, node.dtype.count)

    def _vectorize(self, node: UOp) -> None:
        lanes = [self._operand(source) for source in node.src]
        if all(source.op is Ops.CONST for source in node.src):
            self._values[node] = vector_literal(node.dtype, lanes)
            return
        kind, scalar = value_type(node.dtype), value_type(node.dtype.scalar())
        value = "poison"
        for number, lane in enumerate(lanes):
            value = self._text.emit(f"insertelement {kind} {value}, {scalar} {lane}, i64 {number}")
        self._values[node] = value

    def _gep(self, node: UOp) -> None:
        source = node.src[0]
        kind = value_type(source.dtype)
        value = self._operand(source)
        self._values[node] = self._text.emit(f"extractelement {kind} {value}, i64 {node.arg}")

    def _reduce_lanes(self, node: UOp) -> None:
        source = node.src[0]
        self._keep(node, reduce_lanes(self._text, node.arg, source.dtype, self._operand(source)))

    _RENDERERS: ClassVar[dict[Ops, Callable[[KernelText, UOp], None]]] = {
        Ops.CONST: _skip,
        Ops.INDEX: _skip,
        Ops.AFTER: _skip,
        Ops.BARRIER: _skip,  # a group has one work-item
        Ops.PARAM: _param,
        Ops.DEFINE_VAR: _variable,
        Ops.DEFINE_LOCAL: _scratch,
        Ops.DEFINE_REG: _scratch,
        Ops.RANGE: _range,
        Ops.END: _end,
        Ops.IF: _if,
        Ops.ENDIF: _endif,
        Ops.LOAD: _load,
        Ops.STORE: _store,
        Ops.CAST: _cast,
        Ops.BITCAST: _bitcast,
        Ops.LANES: _lanes,
        Ops.BROADCAST: _broadcast,
        Ops.VECTORIZE: _vectorize,
        Ops.GEP: _gep,
        Ops.REDUCE_LANES: _reduce_lanes,
    }


def _not_rendered(node: UOp) -> RenderError:
    sources = ", ".join(repr(source) for source in node.src)
    return RenderError(
        f"LLVM does not take {node!r} (sources: {sources}); "
        "an earlier pass should have decomposed it"
    )


def _number_of_variable(node: UOp, position: int) -> int:
    """Which of the kernel's integers a DEFINE_VAR is: `v3` says so, others go by position."""
    name: str = node.arg.name
    digits = name[1:]
    return int(digits) if name.startswith("v") and digits.isdecimal() else position

