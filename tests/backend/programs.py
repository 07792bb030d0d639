"""Programs that write, and have several results, run eagerly or captured by the JIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tg_frontend import Tensor, TinyJit
from tg_ir.counters import GlobalCounters
from tg_ir.events import BufferAllocated, BufferCopied, Event, subscribe

Program = Callable[..., Any]
"""A function of tensors that returns a tensor or several."""

Run = Callable[..., list[np.ndarray]]
"""`run(program, *arrays)`: the results of the program, as numpy arrays."""


def run_eagerly(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """Call on new tensors, once."""
    return as_arrays(program(*[Tensor(array) for array in arrays]))


def run_captured(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    """Call until the JIT replays. Earlier calls get other data, so nothing of theirs may stay."""
    captured = TinyJit(program)
    results: list[np.ndarray] = []
    for shift in (3, 2, 1, 0):
        inputs = [Tensor(np.roll(array, shift)) for array in arrays]
        results = as_arrays(captured(*inputs))
    return results


def as_arrays(result: Tensor | Sequence[Tensor]) -> list[np.ndarray]:
    """One tensor or several as arrays."""
    tensors = [result] if isinstance(result, Tensor) else list(result)
    return [tensor.numpy() for tensor in tensors]


def assert_same_floats(actual: np.ndarray, expected: np.ndarray) -> None:
    """The same bits, save that one NaN is as good as another."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


class Work:
    """What the devices did inside a `with`: kernels launched, buffers copied, bytes allocated."""

    def __enter__(self) -> Work:
        """Start to count."""
        self._events: list[Event] = []
        self._subscription = subscribe(self._events.append)
        self._first_kernel = GlobalCounters.kernel_count
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting."""
        self._subscription.close()
        self.kernels = GlobalCounters.kernel_count - self._first_kernel
        self.copies = sum(isinstance(event, BufferCopied) for event in self._events)
        self.allocated = sum(e.nbytes for e in self._events if isinstance(e, BufferAllocated))
