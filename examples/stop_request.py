"""Ctrl-C of a training program: the first time it asks to stop, the second time it stops at once.

Import this before what takes long to import: until `StopRequest.watched`, Ctrl-C ends the program
without a traceback.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # exit status of a program that Ctrl-C ended


class StopRequest:
    """Whether Ctrl-C was pressed; a second time raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        """Not yet."""
        self.made = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take Ctrl-C as a request for a while."""
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        message = "\nstopping after this step; Ctrl-C again to stop at once, without a checkpoint"
        print(message, file=sys.stderr, flush=True)


# A module that imports is the only place where nothing else of the program has run yet.
signal.signal(signal.SIGINT, signal.SIG_DFL)
