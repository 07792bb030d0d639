"""`CallAnalysis`: what a recorded call read, wrote and made, as the tensors alive show it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tg_ir.device import Buffer, Executor
from tg_ir.graph import Ops, UOp

from tg_frontend import storage
from tg_frontend.jit.bindings import (
    ChangedGradient,
    ChangedTensor,
    Effects,
    Made,
    NewTensor,
    Owner,
    SameTensor,
    SourceKind,
    State,
    Value,
)
from tg_frontend.jit.captured_call import CapturedCall
from tg_frontend.jit.errors import JitError
from tg_frontend.jit.live_before import LiveBefore, TensorBefore, live_tensors
from tg_frontend.jit.merging import merge_runs
from tg_frontend.jit.overwriting import ReaderGuard
from tg_frontend.jit.private_inputs import PrivateInputs
from tg_frontend.jit.recording import Recorder
from tg_frontend.jit.results import leaves, map_leaves
from tg_frontend.jit.template import ViewTemplate, hole_like
from tg_frontend.jit.variables import VariablePlan
from tg_frontend.live.walk import is_view_of_storage, place_of
from tg_frontend.tensor import Tensor


@dataclass(frozen=True)
class _Gone:
    """Attributes: `tensor`, one that may outlive the call; `value`, what it then holds."""

    tensor: weakref.ref[Tensor]
    value: Value


class CallAnalysis:
    """What a recorded call read, wrote and made, seen from the tensors that are alive."""

    def __init__(
        self,
        inputs: PrivateInputs,
        before: LiveBefore,
        recorder: Recorder,
        memory: Mapping[int, Buffer],
        variables: VariablePlan,
    ) -> None:
        self._inputs = inputs
        self._variables = variables
        self._before = before
        self._recorder = recorder
        self._storage_of_memory = {id(held): key for key, held in memory.items()}
        self._holes: dict[int, UOp] = {}
        self._nodes: dict[int, UOp] = {}  # by slot: the BUFFER that live tensors see it as
        self._kept: dict[int, Made] = {}
        self._effects = Effects(None)
        self._candidates: list[_Gone] = []
        self._replaced: set[int] = set()
        self._repeatable = not recorder.computed_old_values
        self._look_at_tensors()

    def refuse(self) -> None:
        """Let a later call be captured instead."""
        self._repeatable = False

    def check_replaced(self, replaced: Mapping[int, str]) -> None:
        """Refuse that the call read a tensor and put another in its place.

        A storage that another tensor still shows is read through that one.

        Args:
            replaced: by id of a tensor from before the call the place where it stood.

        Raises:
            JitError: names the place.
        """
        if not self._repeatable:
            return  # it may have read them only for values from before the call
        self._replaced = set(replaced)
        lost: dict[int | None, str] = {}
        shown: set[int | None] = set()
        for before in self._before.read_by(self._recorder.slots):
            tensor = before.tensor()
            stays = tensor is not None and id(tensor) not in replaced
            if stays or before.gradient_of is not None:
                shown.add(before.storage)
            else:
                place = "a tensor" if tensor is None else replaced[id(tensor)]
                lost.setdefault(before.storage, place)
        for storage_id, place in lost.items():
            if storage_id not in shown:
                raise JitError(
                    f"the function reads {place} and puts a new tensor in its place, which a "
                    "replay, that does not run Python, cannot; update it with assign()"
                )

    # ---- what tensors show

    def _look_at_tensors(self) -> None:
        gradients: set[int] = set()
        tensors = live_tensors()
        for tensor in tensors:
            self._note_gradient(tensor, gradients)
        for tensor in tensors:
            known = self._before.of(tensor)
            number = self._inputs.number_of.get(id(tensor))
            if number is not None:
                self._note_input(tensor, number)
            if number is not None or id(tensor) in gradients:
                continue
            if known is None:
                value = self._value_of(tensor)
                self._candidates.append(_Gone(weakref.ref(tensor), value))
            elif known.was_changed(tensor):
                self._note_change(tensor, known)
            elif is_view_of_storage(tensor.uop):
                self._slot_of(place_of(tensor.uop))

    def _note_gradient(self, tensor: Tensor, gradients: set[int]) -> None:
        known = self._before.of(tensor)
        old = known.gradient() if known is not None and known.gradient is not None else None
        had_one = known is not None and known.gradient is not None
        if tensor.grad is old and (old is not None or not had_one):
            return
        value = None if tensor.grad is None else self._value_of(tensor.grad)
        number = self._inputs.number_of.get(id(tensor))
        path = None if number is None else self._inputs.specs[number].path
        if known is not None or path is not None:
            self._effects.gradients.append(ChangedGradient(weakref.ref(tensor), path, value))
            gradients.add(id(tensor.grad))

    def _note_input(self, tensor: Tensor, number: int) -> None:
        if self._inputs.was_written(number) and not self._inputs.shows_writes(number):
            self._effects.inputs[number] = self._value_of(tensor)

    def _note_change(self, tensor: Tensor, known: TensorBefore) -> None:
        if tensor._writes == known.writes:
            # the call computed it, or moved it out of the way of a write: the next will not have to
            self._repeatable = False
            return
        value = self._value_of(tensor)
        same_storage = is_view_of_storage(tensor.uop) and (
            place_of(tensor.uop).arg.id == known.storage
        )
        if not (same_storage and value.kind == "state"):
            self._effects.tensors.append(ChangedTensor(weakref.ref(tensor), value))

    def _slot_of(self, node: UOp, is_shown: bool = False) -> int | None:
        held = storage.memory_of_id(node)
        slot = None if held is None else self._recorder.slot_of(held)
        if slot is None and is_shown and id(held) in self._storage_of_memory and held is not None:
            # state that no program used
            slot = self._recorder.add_state(held)
        if slot is not None:
            self._nodes[slot] = node
        return slot

    def _value_of(self, tensor: Tensor) -> Value:
        grad = tensor.requires_grad
        slot = None
        if is_view_of_storage(tensor.uop):
            slot = self._slot_of(place_of(tensor.uop), is_shown=True)
        if slot is None:
            return Value("fixed", -1, None, Tensor._from_uop(tensor.uop), grad)
        recorded = self._recorder.slots[slot]
        kind: SourceKind = "made"
        if recorded.origin in ("input", "state"):
            kind = recorded.origin
        elif recorded.origin == "constant" and recorded.contents is None:
            return Value("fixed", -1, None, Tensor._from_uop(tensor.uop), grad)
        else:
            self._kept.setdefault(slot, Made(slot, self._hole(slot, place_of(tensor.uop))))
        hole = self._hole(slot, place_of(tensor.uop))
        template = ViewTemplate.of(tensor.uop, hole, self._inputs.binds)
        return Value(kind, slot, template, None, grad)

    def _hole(self, slot: int, node: UOp) -> UOp:
        if slot < len(self._inputs.specs):
            return self._inputs.specs[slot].template.hole
        found = self._holes.get(slot)
        if found is None:
            found = hole_like(node)
            self._holes[slot] = found
        return found

    # ---- the result

    def take_result(self, result: Any) -> Any:
        """Describe the result, and return it made of new tensors.

        The caller then lets go of the function's own; those still alive are kept elsewhere.
        """
        numbers: dict[int, NewTensor] = {}
        copies: dict[int, Tensor] = {}

        def describe(tensor: Any) -> Any:
            if not isinstance(tensor, Tensor):
                return tensor
            number = self._inputs.number_of.get(id(tensor))
            if number is not None:
                return SameTensor(self._inputs.specs[number].path, None)
            if self._before.of(tensor) is not None:
                return SameTensor(None, tensor)
            if id(tensor) not in numbers:
                numbers[id(tensor)] = NewTensor(len(numbers), self._value_of(tensor))
            return numbers[id(tensor)]

        def copy(tensor: Any) -> Any:
            if id(tensor) not in numbers:
                return tensor
            if id(tensor) not in copies:
                new = Tensor._from_uop(tensor.uop, tensor.requires_grad)
                new.grad = tensor.grad
                copies[id(tensor)] = new
            return copies[id(tensor)]

        self._effects.result = map_leaves(result, describe)
        return map_leaves(result, copy)

    # ---- the program

    def finish(self, name: str, use_graph: bool) -> CapturedCall | None:
        """The captured program, or None where the next call will do other things than this one."""
        for gone in self._candidates:
            if gone.tensor() is not None:
                self._effects.tensors.append(ChangedTensor(gone.tensor, gone.value))
        states = [
            self._state(number)
            for number, slot in enumerate(self._recorder.slots)
            if slot.origin == "state" or (slot.origin == "constant" and slot.contents is None)
        ]
        if not self._repeatable:
            return None
        kept = self._kept_slots()
        slots = self._recorder.slots
        merged = merge_runs(self._recorder.runs, slots, set(kept), self._variables, name)
        numbers = range(len(self._inputs.specs))
        shown = [self._inputs.shows_writes(number) for number in numbers]
        written = [slots[number].written for number in numbers]
        return CapturedCall(
            executor=Executor(merged.program, use_graph=use_graph),
            brought=merged.brought,
            inputs=self._inputs.specs,
            positions=self._inputs.positions,
            input_written=[w and s for w, s in zip(written, shown, strict=True)],
            input_copied=[w and not s for w, s in zip(written, shown, strict=True)],
            states=states,
            made=list(kept.values()),
            effects=self._effects,
            draws=self._variables.draws,
            readers=ReaderGuard(),
        )

    def _kept_slots(self) -> dict[int, Made]:
        """The made buffers that something shows after the call."""
        shown = [changed.value for changed in self._effects.tensors]
        shown += [g.value for g in self._effects.gradients if g.value is not None]
        shown += self._effects.inputs.values()
        shown += [n.value for n in leaves(self._effects.result) if isinstance(n, NewTensor)]
        wanted = {value.slot for value in shown if value.kind == "made"}
        return {slot: made for slot, made in self._kept.items() if slot in wanted}

    def _state(self, number: int) -> State:
        slot = self._recorder.slots[number]
        memory = slot.buffer
        if memory is None:
            raise AssertionError("state without memory")
        storage_id = self._storage_of_memory.get(id(memory))
        node = self._nodes.get(number)
        owners = []
        for before in [] if storage_id is None else self._before.stored_in(storage_id):
            owner = self._owner(before, number, storage_id)
            if owner is not None:
                owners.append(owner)
        return State(number, owners, slot.written, node, memory)

    def _owner(self, before: TensorBefore, slot: int, storage_id: int | None) -> Owner | None:
        tensor = before.tensor()
        lost = (tensor is None or id(tensor) in self._replaced) and before.gradient_of is None
        if lost or before.template is None or before.template.view.op is Ops.BIND:
            return None
        owner = Owner(before.tensor, before.gradient_of, before.template)
        current = owner.current()
        if current is not None and is_view_of_storage(current.uop):
            owner.follows = place_of(current.uop).arg.id == storage_id
            owner.seen = current.uop if owner.follows else None
        return owner
