"""The two ways to run a function of tensors: eagerly, and captured by the JIT."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tg_frontend import Tensor, TinyJit

Evaluate = Callable[..., np.ndarray]
"""`evaluate(function, *arrays)`: what the function of tensors gives, as a numpy array."""


def eager(function: Callable[..., Tensor], *arrays: np.ndarray) -> np.ndarray:
    """Call on new tensors, once."""
    return function(*[Tensor(array) for array in arrays]).numpy()


def jitted(function: Callable[..., Tensor], *arrays: np.ndarray) -> np.ndarray:
    """Call until the JIT has captured the program and replays it."""
    captured = TinyJit(lambda *tensors: function(*tensors).realize())
    result = np.empty(0)
    for _ in range(4):
        result = captured(*[Tensor(array).realize() for array in arrays]).numpy()
    return result
