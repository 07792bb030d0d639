"""What a function reaches not by its arguments: closure, globals it names, its object, its methods.

Each object is entered once: the time is linear in what is there. Modules, classes, objects of this
stack other than layers and optimisers, and containers of plain values are not entered.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from tg_ir.dtype import DType
from tg_ir.graph import Ops, UOp

from tg_frontend.jit.code_names import global_names, mentioned_names
from tg_frontend.jit.places import (
    Place,
    read_attribute,
    read_cell,
    read_global,
    read_item,
    read_member,
    read_referent,
    read_slot,
)
from tg_frontend.jit.watched import (
    PLAIN_TYPES,
    Watched,
    WatchedPlace,
    is_constant,
    is_plain,
    snapshot,
)
from tg_frontend.tensor import Tensor

_OWN_PACKAGES = frozenset(
    ("tg_ir", "tg_codegen", "tg_renderers", "tg_runtime_cpu", "tg_runtime_gpu", "tg_frontend")
)
_OWN_MODELS = ("tg_frontend.nn", "tg_frontend.optim")
_CALLED_UNNAMED = frozenset(("__call__", "__getitem__", "__iter__", "__enter__", "__exit__"))
_LARGEST_COMPARED = 64  # plain values in one container; comparing more would cost each replay


class ReachedTensors:
    """What a function reached at the moment of creation, as far as attributes show it.

    Attributes:
        places: where it looked, the function first and each after the one that it stands in.
    """

    def __init__(self, function: Any) -> None:
        """Look."""
        self._function = function
        walk = _Walk(function)
        self.places = walk.places
        self._tensors = walk.tensors
        self._values = walk.mentioned_values()

    def includes(self, tensors: Iterable[Tensor]) -> bool:
        """Whether one of these tensors was reached."""
        reached = {id(reference()) for reference in self._tensors.values()}
        return any(id(tensor) in reached for tensor in tensors)

    def replaced(self) -> dict[int, str]:
        """The tensors in whose place another stands now: their places, by id."""
        now = self._read_all()
        found = {}
        for index, reference in self._tensors.items():
            tensor = reference()
            present = now[index]
            if tensor is not None and isinstance(present, Tensor) and present is not tensor:
                found[id(tensor)] = f"the tensor '{self._path(index)}'"
        return found

    def watched(self, state: set[int]) -> Watched:
        """What has to stay where it is now for what was captured to stay right.

        Args:
            state: ids of the tensors that the captured program reads or writes.
        """
        now = self._read_all()
        kept: dict[int, object] = {}
        for index in self._tensors:
            present = now[index]
            if isinstance(present, Tensor) and (id(present) in state or is_constant(present)):
                kept[index] = weakref.ref(present)
        kept |= {index: snapshot(now[index]) for index in self._values if _is_value(now[index])}
        needed = set(kept)
        for index in sorted(kept, reverse=True):
            while index and self.places[index].parent not in needed:
                index = self.places[index].parent
                needed.add(index)
        new_index = {old: new for new, old in enumerate(sorted(needed | {0}))}
        steps = []
        for index in sorted(needed - {0}):
            place = self.places[index]
            parent = new_index[place.parent]
            steps.append(WatchedPlace(parent, place.read, place.key, kept.get(index)))
        return Watched(self._function, tuple(steps))

    def _read_all(self) -> list[object]:
        found: list[object] = [self._function]
        for place in self.places[1:]:
            found.append(place.present(found[place.parent]))
        return found

    def _path(self, index: int) -> str:
        parts: list[str] = []
        while index:
            place = self.places[index]
            if place.name:
                parts.append(place.name)
            index = place.parent
        return ".".join(reversed(parts))


def reachable_tensors(function: Any) -> dict[str, Tensor]:
    """The tensors that a function reaches, by names such as "model.weight"."""
    reached = ReachedTensors(function)
    found = {}
    for index, reference in reached._tensors.items():
        tensor = reference()
        if tensor is not None:
            found[reached._path(index)] = tensor
    return found


class _Walk:
    """One walk from a function.

    Attributes:
        places: where it was.
        tensors: by index of a place the tensor there.
    """

    def __init__(self, function: Any) -> None:
        self.places = [Place(0, read_slot, "", "")]
        self.tensors: dict[int, weakref.ref[Tensor]] = {}
        self._values: list[int] = []
        self._names: set[str] = set()
        self._classes: dict[type, int] = {}
        self._seen: set[int] = set()
        self._held: list[object] = []  # so that no id is used twice
        self._pending: list[tuple[int, Any]] = [(0, function)]
        while self._pending:
            self._enter(*self._pending.pop())
            if not self._pending:
                self._add_methods()

    def mentioned_values(self) -> list[int]:
        """The places of plain values that the code names."""
        return [index for index in self._values if self._is_mentioned(index)]

    def _enter(self, index: int, item: Any) -> None:
        if isinstance(item, Tensor):
            self.tensors[index] = weakref.ref(item)
        elif _is_value(item):
            self._values.append(index)
        elif isinstance(item, (list, tuple, dict)) and _holds_plain(item):
            return  # too many to compare
        elif id(item) not in self._seen:
            self._seen.add(id(item))
            self._held.append(item)
            for place, child in self._children(index, item):
                self.places.append(place)
                self._pending.append((len(self.places) - 1, child))

    def _children(self, index: int, item: Any) -> Iterator[tuple[Place, Any]]:
        if isinstance(item, (ModuleType, type)):
            return
        if isinstance(item, (FunctionType, MethodType, partial, weakref.ref)):
            yield from self._parts_of_function(index, item)
        elif isinstance(item, (list, tuple, dict)):
            entries = item.items() if isinstance(item, dict) else enumerate(item)
            few = len(item) <= _LARGEST_COMPARED
            for key, child in entries:
                if few or not is_plain(child):
                    yield Place(index, read_item, key, str(key)), child
        elif not _is_own(item):
            self._classes.setdefault(type(item), index)
            yield from _attributes(index, item)
        elif hasattr(item, "fxn"):  # what a nested TinyJit calls
            yield Place(index, read_slot, "fxn", ""), item.fxn

    def _parts_of_function(self, index: int, item: Any) -> Iterator[tuple[Place, Any]]:
        if isinstance(item, weakref.ref):
            yield Place(index, read_referent, "", ""), item()
        elif isinstance(item, MethodType):
            yield Place(index, read_slot, "__self__", "self"), item.__self__
            yield Place(index, read_slot, "__func__", ""), item.__func__
        elif isinstance(item, partial):
            for name in ("func", "args", "keywords"):
                yield Place(index, read_slot, name, ""), getattr(item, name)
        else:
            self._names |= mentioned_names(item.__code__)
            if not _is_own(item):
                yield from _variables(index, item)

    def _add_methods(self) -> None:
        """Go on with the methods that the code names, of the classes of what was reached."""
        for kind, index in list(self._classes.items()):
            for owner in kind.__mro__:
                for name, member in vars(owner).items():
                    if name not in self._names and name not in _CALLED_UNNAMED:
                        continue
                    function = read_member(None, (owner, name))
                    if isinstance(function, FunctionType) and id(function) not in self._seen:
                        self._held.append(member)
                        self.places.append(Place(index, read_member, (owner, name), ""))
                        self._pending.append((len(self.places) - 1, function))

    def _is_mentioned(self, index: int) -> bool:
        """Whether the code names each attribute on the way there."""
        while index:
            place = self.places[index]
            if place.read is read_attribute and place.key not in self._names:
                return False
            index = place.parent
        return True


def _attributes(index: int, item: Any) -> Iterator[tuple[Place, Any]]:
    for name, child in list(getattr(item, "__dict__", {}).items()):
        yield Place(index, read_attribute, name, name), child
    for owner in type(item).__mro__:
        slots = vars(owner).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(item, name):
                yield Place(index, read_slot, name, name), getattr(item, name)


def _variables(index: int, function: FunctionType) -> Iterator[tuple[Place, Any]]:
    cells = function.__closure__ or ()
    for number, (name, cell) in enumerate(zip(function.__code__.co_freevars, cells, strict=True)):
        try:
            yield Place(index, read_cell, number, name), cell.cell_contents
        except ValueError:  # a variable of the enclosing function that has no value yet
            continue
    for name in sorted(global_names(function.__code__)):
        if name in function.__globals__:
            yield Place(index, read_global, name, name), function.__globals__[name]
    for name in ("__defaults__", "__kwdefaults__"):
        if getattr(function, name):
            yield Place(index, read_slot, name, ""), getattr(function, name)


def _is_own(item: Any) -> bool:
    """Whether an object is of this stack, and no layer or optimiser."""
    is_function = isinstance(item, FunctionType)
    module = str(item.__module__ if is_function else type(item).__module__)
    return module.partition(".")[0] in _OWN_PACKAGES and not (
        module.startswith(_OWN_MODELS) and not is_function
    )


def _is_value(item: Any) -> bool:
    """Whether an object is compared by what it holds: a plain value, or a few in a container."""
    if isinstance(item, UOp):
        return item.op is Ops.BIND
    if isinstance(item, (list, tuple, dict)):
        return len(item) <= _LARGEST_COMPARED and _holds_plain(item)
    return is_plain(item) or isinstance(item, DType)


def _holds_plain(container: Any) -> bool:
    """Whether nothing but plain values is inside, found without a step of Python for each."""
    items = container.values() if isinstance(container, dict) else container
    return set(map(type, items)) <= PLAIN_TYPES
