"""Every live tensor of this process, in order of creation.

Realising looks here for readers of what it overwrites, and points every tensor at what was
computed.
"""

from __future__ import annotations

import itertools
import weakref
from abc import ABC

from tg_ir.graph import UOp


class ValueHolder(ABC):
    """What has a graph node as its value and may be pointed at another node of the same value.

    Attributes:
        uop: the value.
    """

    __slots__ = ("__weakref__", "_requires_grad", "uop")
    uop: UOp
    _requires_grad: bool | None


_numbers = itertools.count()
_live: weakref.WeakValueDictionary[int, ValueHolder] = weakref.WeakValueDictionary()


def register(holder: ValueHolder) -> None:
    """Add a new tensor; it leaves when it dies."""
    _live[next(_numbers)] = holder


def live_holders() -> list[ValueHolder]:
    """The tensors alive now, oldest first."""
    return list(_live.values())
