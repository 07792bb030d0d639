"""Errors of the scheduler."""

from __future__ import annotations

from tg_ir.errors import TgError


class ScheduleError(TgError, ValueError):
    """A tensor graph that the scheduler cannot turn into kernels.

    The message says what to do instead.
    """
