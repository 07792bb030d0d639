"""Keywords that libraries spell differently: what is `axis` here is `dim` there.

A method keeps one name; the other one is taken too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from tg_frontend.errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")


def also_called(other: str, name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the keyword argument `name` may be written as `other`.

    Raises:
        ArgumentError: at the call, if both are given.
    """

    def decorated(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def taking_both(*args: P.args, **kwargs: P.kwargs) -> R:
            if other in kwargs:
                if name in kwargs:
                    raise ArgumentError(
                        f"{method.__name__}: {other}= is another name of {name}=; give one of them"
                    )
                kwargs[name] = kwargs.pop(other)
            return method(*args, **kwargs)

        return taking_both

    return decorated
