"""Results of a captured function, in which something else stands for each tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_leaves(result: Any, function: Callable[[Any], Any]) -> Any:
    """`result` with each leaf, in lists, tuples and dicts, replaced by what `function` gives."""
    if isinstance(result, dict):
        return {key: map_leaves(item, function) for key, item in result.items()}
    if isinstance(result, (list, tuple)):
        items = [map_leaves(item, function) for item in result]
        if hasattr(result, "_fields"):  # a named tuple takes its fields one by one
            return type(result)(*items)
        return type(result)(items)
    return function(result)


def leaves(result: Any) -> list[Any]:
    """The leaves of a result, in order."""
    found: list[Any] = []
    map_leaves(result, found.append)
    return found
