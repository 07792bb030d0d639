"""`Place`: where an object was found, so that what stands there now can be looked at again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MISSING = object()
"""Stands for what is at a place that no longer exists."""

CANNOT_READ = (LookupError, AttributeError, ValueError, TypeError)
"""What reading a place raises that no longer exists."""


@dataclass(frozen=True)
class Place:
    """One step from an object to another.

    Attributes:
        parent: index of the place of the first.
        read: gives the second, of the first and `key`.
        key: which attribute, item or variable.
        name: of the step in messages; may be empty.
    """

    parent: int
    read: Callable[[Any, Any], Any]
    key: Any
    name: str

    def present(self, holder: object) -> object:
        """What is there now, or `MISSING`."""
        try:
            return self.read(holder, self.key)
        except CANNOT_READ:
            return MISSING


def read_attribute(holder: Any, name: str) -> Any:
    """An attribute in the object's own dict."""
    return holder.__dict__[name]


def read_slot(holder: Any, name: str) -> Any:
    """Another attribute."""
    return getattr(holder, name)


def read_item(holder: Any, key: Any) -> Any:
    """An item of a list, tuple or dict."""
    return holder[key]


def read_cell(holder: Any, number: int) -> Any:
    """A variable of an enclosing function."""
    return holder.__closure__[number].cell_contents


def read_global(holder: Any, name: str) -> Any:
    """A global variable of the module of a function."""
    return holder.__globals__[name]


def read_referent(holder: Any, _: Any) -> Any:
    """What a weak reference refers to."""
    return holder()


def read_member(_: Any, key: tuple[type, str]) -> Any:
    """A function of a class: a method, or what a property computes."""
    owner, name = key
    member = vars(owner)[name]
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    return member.fget if isinstance(member, property) else member
