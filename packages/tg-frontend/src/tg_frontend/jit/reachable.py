"""Which tensors a function reaches not by its arguments: closure, globals it names, its object."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from tg_frontend.state import get_state_dict
from tg_frontend.tensor import Tensor


class ReachedTensors:
    """What a function reached at the moment of creation, as far as attributes show it."""

    def __init__(self, function: Any) -> None:
        """Look."""
        self._function = function
        self._tensors = {path: weakref.ref(t) for path, t in reachable_tensors(function).items()}

    def includes(self, tensors: Iterable[Tensor]) -> bool:
        """Whether one of these tensors was reached."""
        reached = {id(reference()) for reference in self._tensors.values()}
        return any(id(tensor) in reached for tensor in tensors)

    def replaced(self) -> dict[int, str]:
        """The tensors in whose place another stands now: their places, by id."""
        now = reachable_tensors(self._function)
        found = {}
        for path, reference in self._tensors.items():
            tensor = reference()
            if tensor is not None and path in now and now[path] is not tensor:
                found[id(tensor)] = f"the tensor '{path}'"
        return found


def reachable_tensors(function: Any) -> dict[str, Tensor]:
    """The tensors that a function reaches, by names such as "model.weight"."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    pending = [("", function)]
    while pending:
        name, item = pending.pop()
        if id(item) in seen or isinstance(item, (ModuleType, type)):
            continue
        seen.add(id(item))
        if isinstance(item, (FunctionType, MethodType)):
            pending.extend(_parts(item))
        elif isinstance(item, weakref.ref):
            pending.append((name, item()))
        else:
            found.update(get_state_dict(item, name))
    return found


def _parts(function: FunctionType | MethodType) -> Iterator[tuple[str, Any]]:
    if isinstance(function, MethodType):
        yield "self", function.__self__
        yield "", function.__func__
        return
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable of the enclosing function that has no value yet
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
