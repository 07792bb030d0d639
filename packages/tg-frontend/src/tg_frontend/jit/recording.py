"""`Recorder`: hears of every program that runs during one call, and keeps what a replay needs.

It tells buffers apart by who brought their contents: an argument, what existed before the call
(state), Python data inside the call (constant), or the programs themselves (made).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tg_ir.device import Buffer, Copy, Launch, LinearProgram, View
from tg_ir.graph import Ops, UOp

from tg_frontend.capture import CaptureObserver
from tg_frontend.jit.errors import JitError
from tg_frontend.live.walk import is_view_of_storage, place_of, value_order

Origin = Literal["input", "state", "constant", "made"]


@dataclass
class Slot:
    """One buffer of the captured call.

    Attributes:
        origin: who brought its contents.
        device, nbytes: where it is, and its size.
        buffer: the memory itself where a replay needs it (state, constant), else None.
        written: whether a program writes to it.
        contents: of a constant that a program writes to: what it held before.
    """

    origin: Origin
    device: str
    nbytes: int
    buffer: Buffer | None
    written: bool = False
    contents: bytes | None = None


@dataclass(frozen=True)
class Piece:
    """An input of a recorded program: a slot, or a part of one.

    Attributes:
        slot: index of the slot.
        offset: where it begins, in bytes.
        nbytes: its size.
    """

    slot: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class RecordedRun:
    """A program that ran, with its inputs and the values of its variables."""

    program: LinearProgram
    inputs: tuple[Piece, ...]
    values: Mapping[str, int]


class Recorder(CaptureObserver):
    """Records one call.

    Args:
        inputs: the memory of the tensor arguments, each its own.
        existing: the memory of everything else that exists before the call.
        unrealized: values of tensors from before the call that are not computed yet.

    Attributes:
        runs: what ran, in order.
        slots: every buffer that it used; the first are the inputs.
        computed_old_values: whether a value from before the call was computed in it, so that this
            recording is of no use, and the next will be.
    """

    def __init__(
        self, inputs: Sequence[Buffer], existing: Sequence[Buffer], unrealized: set[UOp]
    ) -> None:
        """Start with the inputs as the first slots."""
        self.runs: list[RecordedRun] = []
        self.slots: list[Slot] = []
        self.computed_old_values = False
        self._existing = {id(buffer) for buffer in existing}
        self._keep_alive = list(existing)  # so that no id is used twice
        self._unrealized = unrealized
        self._numbers: dict[int, int] = {}  # slot by id of the memory, while that is alive
        self._watched: dict[int, weakref.ref[Buffer]] = {}
        for buffer in inputs:
            self._add(buffer, "input")

    def before_realize(self, values: Sequence[UOp]) -> None:
        """Note whether values from before the call are computed."""
        if self._unrealized and not self.computed_old_values:
            reached = value_order(values)
            self.computed_old_values = any(node in self._unrealized for node in reached)

    def before_run(
        self, program: LinearProgram, inputs: Sequence[Buffer], values: Mapping[str, int]
    ) -> None:
        """Keep the program, and the contents of constants that it will overwrite."""
        pieces = tuple(self._piece(buffer) for buffer in inputs)
        written = written_inputs(program)
        for position, piece in enumerate(pieces):
            if position in written:
                self._note_write(self.slots[piece.slot])
        self.runs.append(RecordedRun(program, pieces, dict(values)))

    def before_read(self, what: str) -> None:
        """Refuse.

        Raises:
            JitError: always.
        """
        raise JitError(
            f"{what} inside a function that TinyJit captures: a replay does not run Python, so it "
            "could not see other values; return the tensor and read it outside"
        )

    def slot_of(self, buffer: Buffer) -> int | None:
        """The slot whose memory this is; None if no program used it."""
        return self._numbers.get(id(buffer.root))

    def add_state(self, buffer: Buffer) -> int:
        """Count memory from before the call as used, and return its slot."""
        return self._add(buffer.root, "state")

    def finish(self) -> None:
        """Let go of what only had to exist during the call."""
        self._keep_alive = []
        self._watched.clear()
        self._numbers.clear()

    def _piece(self, buffer: Buffer) -> Piece:
        root = buffer.root
        number = self._numbers.get(id(root))
        if number is None:
            number = self._add(root, self._origin(root))
        return Piece(number, buffer.offset, buffer.nbytes)

    def _origin(self, root: Buffer) -> Origin:
        if id(root) in self._existing:
            return "state"
        # memory is allocated by the first program that uses it, or when Python fills it
        return "constant" if root.is_allocated else "made"

    def _add(self, root: Buffer, origin: Origin) -> int:
        number = len(self.slots)
        kept = root if origin in ("state", "constant") else None
        self.slots.append(Slot(origin, root.device, root.nbytes, kept))
        key = id(root)
        self._numbers[key] = number
        self._watched[key] = weakref.ref(root, lambda _: self._numbers.pop(key, None))
        return number

    def _note_write(self, slot: Slot) -> None:
        if slot.origin == "constant" and not slot.written and slot.buffer is not None:
            slot.contents = bytes(slot.buffer.as_memoryview())
        slot.written = True


def written_inputs(program: LinearProgram) -> set[int]:
    """The positions of the inputs that a program writes to, views of them included."""
    owner: dict[int, int] = {}
    written: set[int] = set()
    for step in program.steps:
        match step:
            case View():
                owner[step.dest] = owner.get(step.source, step.source)
            case Copy():
                written.add(owner.get(step.dest, step.dest))
            case Launch():
                parameters = program.kernels[step.kernel].signature.buffers
                for index, parameter in zip(step.buffers, parameters, strict=True):
                    if parameter.writable:
                        written.add(owner.get(index, index))
    positions = {index: position for position, index in enumerate(program.input_indices())}
    return {positions[index] for index in written if index in positions}


def is_unrealized(uop: UOp) -> bool:
    """Whether a value has to be computed from something stored, or from more than a constant."""
    return not is_view_of_storage(uop) and place_of(uop).op is not Ops.CONST
