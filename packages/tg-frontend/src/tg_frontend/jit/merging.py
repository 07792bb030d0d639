"""`merge_runs`: the programs of one call as one program, its memory planned as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tg_codegen.compile import plan_memory
from tg_ir.device import (
    BufferDecl,
    Const,
    Copy,
    IntExpr,
    Launch,
    LinearProgram,
    Step,
    TinyELF,
    VariableBounds,
    View,
    int_expr_from_json,
)

from tg_frontend.jit.errors import JitError
from tg_frontend.jit.recording import Piece, RecordedRun, Slot
from tg_frontend.jit.variables import VariablePlan


@dataclass(frozen=True)
class MergedProgram:
    """Attributes: `program`; `brought`, the slot of each of its inputs, in order."""

    program: LinearProgram
    brought: tuple[int, ...]


def merge_runs(
    runs: Sequence[RecordedRun],
    slots: Sequence[Slot],
    kept: Collection[int],
    variables: VariablePlan,
    name: str,
) -> MergedProgram:
    """Put the runs of one call after one another.

    Args:
        runs: what ran.
        slots: the buffers that it used.
        kept: slots made in the call that are still wanted after it; the caller brings their memory.
        variables: what becomes of the variables of the programs.
        name: for messages.

    Raises:
        JitError: two variables of one name have different bounds.
    """
    merger = _Merger(slots, kept, variables)
    for run in runs:
        merger.add(run)
    return merger.finish(name)


class _Merger:
    """Buffers, kernels and steps of the program in the making."""

    def __init__(
        self, slots: Sequence[Slot], kept: Collection[int], variables: VariablePlan
    ) -> None:
        self._slots = slots
        self._kept = kept
        self._variables = variables
        self._buffers: list[BufferDecl] = []
        self._constants: list[bytes] = []
        self._kernels: dict[TinyELF, int] = {}
        self._steps: list[Step] = []
        self._bounds: dict[str, VariableBounds] = {}
        self._of_slot: dict[int, int] = {}
        self._brought: list[int] = []

    def add(self, run: RecordedRun) -> None:
        """Append the steps of one program."""
        indices = self._place_buffers(run)
        replaced = self._replaced_variables(run)
        kernels = [self._kernels.setdefault(k, len(self._kernels)) for k in run.program.kernels]
        for step in run.program.steps:
            match step:
                case Launch():
                    moved = tuple(indices[index] for index in step.buffers)
                    launch = replace(step, kernel=kernels[step.kernel], buffers=moved)
                    self._steps.append(_with_values(launch, replaced))
                case Copy():
                    self._steps.append(Copy(indices[step.dest], indices[step.source]))
                case View():
                    offset = _with_value(step.byte_offset, replaced)
                    self._steps.append(View(indices[step.dest], indices[step.source], offset))

    def finish(self, name: str) -> MergedProgram:
        """The program."""
        program = LinearProgram(
            buffers=plan_memory(self._buffers, self._steps),
            kernels=tuple(self._kernels),
            steps=tuple(self._steps),
            variables=tuple(self._bounds.values()),
            constants=tuple(self._constants),
            name=name,
        )
        program.verify()
        return MergedProgram(program, tuple(self._brought))

    def _place_buffers(self, run: RecordedRun) -> list[int]:
        """For each buffer of the run's program its index in the merged one."""
        indices = []
        pieces = iter(run.inputs)
        contents = iter(run.program.constants)
        for decl in run.program.buffers:
            match decl.role:
                case "input":
                    indices.append(self._of_piece(next(pieces)))
                case "constant":
                    indices.append(self._new_constant(decl, next(contents)))
                case "temporary":
                    indices.append(self._new_buffer(replace(decl, arena=None, offset=0)))
        return indices

    def _of_piece(self, piece: Piece) -> int:
        whole = self._of_slot.get(piece.slot)
        if whole is None:
            whole = self._new_slot(piece.slot)
            self._of_slot[piece.slot] = whole
        slot = self._slots[piece.slot]
        if piece.offset == 0 and piece.nbytes == slot.nbytes:
            return whole
        part = self._new_buffer(BufferDecl(piece.nbytes, slot.device, "temporary"))
        self._steps.append(View(part, whole, Const(piece.offset)))
        return part

    def _new_slot(self, number: int) -> int:
        slot = self._slots[number]
        is_made = slot.origin == "made" or slot.contents is not None
        if is_made and number not in self._kept:
            index = self._new_buffer(BufferDecl(slot.nbytes, slot.device, "temporary"))
        else:
            index = self._new_buffer(BufferDecl(slot.nbytes, slot.device, "input"))
            self._brought.append(number)
        if slot.contents is not None:
            decl = BufferDecl(slot.nbytes, slot.device, "constant")
            self._steps.append(Copy(index, self._new_constant(decl, slot.contents)))
        return index

    def _new_constant(self, decl: BufferDecl, contents: bytes) -> int:
        self._constants.append(contents)
        return self._new_buffer(decl)

    def _new_buffer(self, decl: BufferDecl) -> int:
        self._buffers.append(decl)
        return len(self._buffers) - 1

    def _replaced_variables(self, run: RecordedRun) -> dict[str, IntExpr]:
        """What stands for variables of a run; those that stay are declared."""
        replaced = self._variables.replacements(run.program.variables, run.values)
        for bounds in self._variables.declared(run.program.variables, replaced):
            known = self._bounds.setdefault(bounds.name, bounds)
            if known != bounds:
                raise JitError(
                    f"two variables are called '{bounds.name}', with bounds "
                    f"{known.minimum}..{known.maximum} and {bounds.minimum}..{bounds.maximum}; "
                    "rename one of them"
                )
        return replaced


def _with_values(launch: Launch, values: Mapping[str, IntExpr]) -> Launch:
    if not values:
        return launch
    local = launch.local_size
    return replace(
        launch,
        vals=_all_with_values(launch.vals, values),
        global_size=_all_with_values(launch.global_size, values),
        local_size=None if local is None else _all_with_values(local, values),
        flops=_with_value(launch.flops, values),
        bytes=_with_value(launch.bytes, values),
    )


def _all_with_values(
    exprs: tuple[IntExpr, ...], values: Mapping[str, IntExpr]
) -> tuple[IntExpr, ...]:
    return tuple(_with_value(expr, values) for expr in exprs)


def _with_value(expr: IntExpr, values: Mapping[str, IntExpr]) -> IntExpr:
    """`expr` with other expressions for some variables."""
    if not expr.variables() & values.keys():
        return expr
    items: list[object] = []
    for item in expr.to_json():
        if isinstance(item, dict) and item["var"] in values:
            items.extend(values[item["var"]].to_json())
        else:
            items.append(item)
    return int_expr_from_json(items)
