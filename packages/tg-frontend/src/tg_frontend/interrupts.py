"""Ctrl-C while kernels write to tensors: it is taken when the tensors show what was written.

Between a kernel and that moment a tensor would be computed from what the kernel has overwritten,
and a write in place be done twice.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

# Below the conversions to enums of `signal`, which with both calls take as long as a short replay.
_native: Any = import_module("_signal") if sys.implementation.name == "cpython" else signal
_NUMBER = int(signal.SIGINT)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let a first Ctrl-C wait for the end of the body; a second one stops it at once.

    A handler that the program has set itself stays in place, and so does what it does.

    Raises:
        KeyboardInterrupt: after the body, if Ctrl-C was pressed in it.
    """
    if not _is_ours_to_hold():
        yield
        return
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    _native.signal(_NUMBER, note)
    try:
        yield
    finally:
        _native.signal(_NUMBER, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _is_ours_to_hold() -> bool:
    """Whether Ctrl-C would raise in this thread, by Python's own handler."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return bool(_native.getsignal(_NUMBER) is signal.default_int_handler)
