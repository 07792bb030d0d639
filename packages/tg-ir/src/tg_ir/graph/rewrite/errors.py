"""The errors of pattern rewriting."""

from __future__ import annotations

from tg_ir.errors import TgError


class PatternError(TgError, ValueError):
    """A rule that cannot work as written; the message names the rule and what is wrong."""


class RewriteLoopError(TgError, RuntimeError):
    """Rules that undo each other, or that never stop; the message names them."""
