"""What realising and reading tell whoever captures a program: the JIT, through one object a thread.

Here is only the contract and who is listening now. `realize` calls it and does not know who
listens; `jit` implements it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tg_ir.device import Buffer, LinearProgram
from tg_ir.graph import UOp


class CaptureObserver(ABC):
    """Hears of everything that runs on devices while it is installed."""

    @abstractmethod
    def before_realize(self, values: Sequence[UOp]) -> None:
        """Tensors are about to be realised; called before their graph is scheduled.

        The observer may realise others first, which changes the nodes that live tensors hold.

        Args:
            values: what the tensors hold.
        """

    @abstractmethod
    def before_run(
        self, program: LinearProgram, inputs: Sequence[Buffer], values: Mapping[str, int]
    ) -> None:
        """A program is about to run with these arguments of `Executor.run`."""

    @abstractmethod
    def before_read(self, what: str) -> None:
        """A value is about to leave for Python.

        Args:
            what: the call that asks, such as "item()".

        Raises:
            JitError: the observer cannot allow it.
        """


class _Listening(threading.local):
    """The observers of one thread, outermost first."""

    def __init__(self) -> None:
        self.observers: tuple[CaptureObserver, ...] = ()


_listening = _Listening()


def observers() -> tuple[CaptureObserver, ...]:
    """Who captures in this thread now; usually nobody."""
    return _listening.observers


@contextmanager
def capturing(observer: CaptureObserver) -> Iterator[None]:
    """Install `observer` in this thread for a while."""
    outer = _listening.observers
    _listening.observers = (*outer, observer)
    try:
        yield
    finally:
        _listening.observers = outer


@contextmanager
def paused() -> Iterator[None]:
    """Run something in this thread that no observer hears of."""
    outer = _listening.observers
    _listening.observers = ()
    try:
        yield
    finally:
        _listening.observers = outer
