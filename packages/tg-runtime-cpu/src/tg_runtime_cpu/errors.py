"""Errors of the CPU runtime. Each says what was expected, what came, and what to do."""

from __future__ import annotations

from tg_ir.errors import TgError


class ObjectFileError(TgError, ValueError):
    """An object file is damaged, is for another machine, or uses what the loader does not know."""


class UnresolvedSymbolError(ObjectFileError):
    """An object file calls a function that no library of this machine offers."""


class ExecutableMemoryError(TgError, OSError):
    """The operating system refused memory for code."""


class KernelCallError(TgError, ValueError):
    """A kernel is launched with other arguments than it was compiled for."""


class ForeignCodeError(TgError, ValueError):
    """Code was compiled for a CPU whose instructions this machine lacks."""


class WorkerThreadError(TgError, RuntimeError):
    """The operating system starts no more threads for this process."""
