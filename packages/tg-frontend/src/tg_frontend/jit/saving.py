"""`program_to_save`: a captured program that needs nothing of this process any more.

State becomes constants with the contents that it has now; the arguments and results stay inputs of
the program, and get names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tg_ir.device import BufferDecl, LinearProgram

from tg_frontend import storage
from tg_frontend.jit.bindings import NewTensor, SameTensor, State
from tg_frontend.jit.captured_call import CapturedCall
from tg_frontend.jit.errors import JitError
from tg_frontend.jit.state_lookup import locate_state

_RESULT = "result"
_ARGUMENT = "argument "


def program_to_save(captured: CapturedCall, parameters: Sequence[str]) -> LinearProgram:
    """The program of a captured call, with its state in it and names for what the caller brings.

    Args:
        captured: the call.
        parameters: the names of the arguments given by position.

    Raises:
        JitError: a result is no buffer of its own, the function draws random numbers, or its state
            is no longer what was captured.
    """
    _check_can_be_saved(captured)
    names = _names(captured, parameters)
    states = {state.slot: state for state in captured.states}
    program = captured.executor.program
    slots = iter(captured.brought)
    known = iter(program.constants)
    buffers: list[BufferDecl] = []
    constants: list[bytes] = []
    for decl in program.buffers:
        if decl.role == "input":
            slot = next(slots)
            if slot in states:
                constants.append(_contents(states[slot]))
                buffers.append(replace(decl, role="constant"))
            else:
                buffers.append(_brought(decl, names.get(slot)))
            continue
        if decl.role == "constant":
            constants.append(next(known))
        buffers.append(decl)
    saved = replace(program, buffers=tuple(buffers), constants=tuple(constants))
    saved.verify()
    return saved


def _brought(decl: BufferDecl, name: str | None) -> BufferDecl:
    if name is None:  # it shows in tensors of this process only
        return replace(decl, role="temporary")
    return replace(decl, name=name)


def _check_can_be_saved(captured: CapturedCall) -> None:
    if captured.watched is not None and not captured.watched.is_unchanged():
        raise JitError(
            "save(): the function would see another tensor or number than at the capture; call it "
            "once more before"
        )
    if captured.draws:
        raise JitError(
            "save(): the function draws random numbers, whose sequence a saved program does not "
            "know; draw them outside and pass them as an argument"
        )
    for spec, copied in zip(captured.inputs, captured.input_copied, strict=True):
        if copied:
            raise JitError(
                f"save(): the function writes to an alias of {spec.path}; write to it or to a copy"
            )


def _contents(state: State) -> bytes:
    node = locate_state(state)
    memory = state.memory if node is None else storage.buffer_of(node)
    if memory is None:
        raise AssertionError("state without memory")
    return bytes(memory.ensure_allocated().as_memoryview())


def _names(captured: CapturedCall, parameters: Sequence[str]) -> dict[int, str]:
    """By slot the name of each argument and result."""
    names = {
        slot: _argument_name(spec.path, parameters) for slot, spec in enumerate(captured.inputs)
    }
    for name, leaf in _named_leaves(_RESULT, captured.effects.result):
        if isinstance(leaf, NewTensor):
            names.setdefault(_slot_of_result(name, leaf), name)
        elif isinstance(leaf, SameTensor):
            raise JitError(f"save(): {name} is not computed by the function: leave it out")
    return names


def _slot_of_result(name: str, leaf: NewTensor) -> int:
    value = leaf.value
    if value.kind == "fixed":
        raise JitError(f"save(): {name} is the same for every call: leave it out")
    template = value.template
    whole = template is not None and (
        template.view is template.hole.reshape(template.view.shape)
    )
    if value.kind != "made" or not whole:
        raise JitError(f"save(): {name} is a view of something else; return it with contiguous()")
    return value.slot


def _named_leaves(name: str, item: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict):
        for key, child in item.items():
            yield from _named_leaves(f"{name}[{key!r}]", child)
    elif isinstance(item, (list, tuple)):
        for number, child in enumerate(item):
            yield from _named_leaves(f"{name}[{number}]", child)
    else:
        yield name, item


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that can be given by position, where they are known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in by_position]


def _argument_name(path: str, parameters: Sequence[str]) -> str:
    """"argument 0[1]" -> "x[1]", where x is the first parameter."""
    name, bracket, rest = path.removeprefix(_ARGUMENT).partition("[")
    if name.isdigit() and int(name) < len(parameters):
        name = parameters[int(name)]
    return f"{name}{bracket}{rest}"
