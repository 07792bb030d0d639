"""Errors of the JIT."""

from __future__ import annotations

from tg_ir.errors import TgError


class JitError(TgError, RuntimeError):
    """A call that does not fit the captured program, or a function that cannot be captured."""
