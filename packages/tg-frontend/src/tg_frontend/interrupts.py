"""Ctrl-C while kernels write to tensors: it is taken when the tensors show what was written.

Between a kernel and that moment a tensor would be computed from what the kernel has overwritten,
and a write in place be done twice.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Below the conversions to enums, which take 20 us of each call here: as long as a short replay.
_set_handler: Any = getattr(signal.signal, "__wrapped__", signal.signal)
_get_handler: Any = getattr(signal.getsignal, "__wrapped__", signal.getsignal)


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

    _set_handler(signal.SIGINT, note)
    try:
        yield
    finally:
        _set_handler(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def _is_ours_to_hold() -> bool:
    """Whether Ctrl-C would raise in this thread, by Python's own handler."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return bool(_get_handler(signal.SIGINT) is signal.default_int_handler)
