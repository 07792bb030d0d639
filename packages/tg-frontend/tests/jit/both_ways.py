"""Running one program eagerly and under the JIT, and comparing all that it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tg_frontend import Context, Tensor

CALLS = 5


def values(tensors: Any) -> Any:
    """A result as numpy arrays."""
    if isinstance(tensors, Tensor):
        return tensors.numpy()
    if isinstance(tensors, (list, tuple)):
        return [values(item) for item in tensors]
    return tensors


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(left, right)


def run_both(make: Callable[[], Callable[[int], Any]]) -> None:
    """`make` gives a fresh program that takes the number of the call; both ways have to agree."""
    with Context(JIT=0):
        program = make()
        eager = [values(program(number)) for number in range(CALLS)]
    program = make()
    replayed = [values(program(number)) for number in range(CALLS)]
    assert_same(eager, replayed)
