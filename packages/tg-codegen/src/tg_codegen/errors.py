"""Errors of code generation; those of the scheduler stand in `schedule.errors`."""

from __future__ import annotations

from tg_ir.errors import TgError


class UnexpectedCompileError(TgError, RuntimeError):
    """`ASSERT_COMPILE` is set and a kernel is in no cache."""


class UnsupportedCallError(TgError, NotImplementedError):
    """A CALL of a schedule that the compile driver cannot turn into steps of a program."""


class LoweringError(TgError, ValueError):
    """A kernel graph that lowering cannot handle: what made it broke the contract of a pass."""


class OptError(TgError, ValueError):
    """An `Opt` that a kernel does not allow; says which and why."""
