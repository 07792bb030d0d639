"""`Watched`: what a captured function saw beside its arguments, compared before each replay.

A replay runs no Python: a tensor that another took the place of, or a number that is another now,
would go unnoticed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tg_ir.graph import Ops, UOp

from tg_frontend.jit.places import CANNOT_READ
from tg_frontend.live.walk import place_of
from tg_frontend.tensor import Tensor

PLAIN_TYPES = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Of values that never change themselves."""


@dataclass(frozen=True)
class WatchedPlace:
    """One place.

    Attributes:
        parent: index of the one before it.
        read: gives what is there, of what is at the parent and `key`.
        key: which attribute, item or variable.
        expected: a weak reference to the tensor there, the copy of a plain value in a tuple, or
            None if anything may be there that leads on.
    """

    parent: int
    read: Callable[[Any, Any], Any]
    key: Any
    expected: object


@dataclass(frozen=True)
class Watched:
    """What has to be as it was at the capture.

    Attributes:
        function: where the places begin.
        places: each after its parent.
    """

    function: Any
    places: tuple[WatchedPlace, ...] = ()

    def is_unchanged(self) -> bool:
        """Whether the same tensors and equal plain values are still there."""
        found: list[Any] = [self.function]
        for place in self.places:
            try:
                item = place.read(found[place.parent], place.key)
            except CANNOT_READ:
                return False
            found.append(item)
            expected = place.expected
            if expected is None:
                continue
            if isinstance(expected, weakref.ref):
                if expected() is not item:
                    return False
            elif not _is_as_in(expected, item):
                return False
        return True


def is_plain(item: object) -> bool:
    """Whether an object is a number, a text or None, which never changes itself."""
    return type(item) in PLAIN_TYPES


def is_constant(tensor: Tensor) -> bool:
    """Whether the value of a tensor stands in programs themselves, so that they name no memory."""
    return place_of(tensor.uop).op is Ops.CONST


def snapshot(item: object) -> tuple[object]:
    """A copy of a plain value, or of a container of plain values, for `Watched`."""
    if isinstance(item, dict):
        return (dict(item),)
    if isinstance(item, list):
        return (list(item),)
    return (item,)


def _is_as_in(expected: Any, item: object) -> bool:
    value = expected[0]
    if value is item:
        return True
    if type(value) is not type(item) or isinstance(item, UOp):
        return False
    return bool(value == item)
