"""Errors of optimisers."""

from __future__ import annotations

from tg_ir.errors import TgError


class OptimizerError(TgError, RuntimeError):
    """An optimiser that has nothing to optimise, or a step without gradients."""
