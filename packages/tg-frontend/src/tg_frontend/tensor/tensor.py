"""`Tensor`, the last class of the chain."""

from __future__ import annotations

import inspect

from tg_frontend.tensor.gradient import Gradient


class Tensor(Gradient):
    """A value of one dtype and shape on one device, computed when it is asked for."""

    __slots__ = ()


def _name_methods() -> None:
    """Let Python's own messages name `Tensor.sum`, whichever class of the chain defines it."""
    for part in Tensor.__mro__[:-1]:
        for name, member in vars(part).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(function):
                function.__qualname__ = f"Tensor.{name}"


_name_methods()
