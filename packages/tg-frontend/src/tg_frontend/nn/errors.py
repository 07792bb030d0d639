"""Errors of layers and optimisers."""

from __future__ import annotations

from tg_ir.errors import TgError


class LayerError(TgError, ValueError):
    """A layer that cannot be made as asked, or an input it does not take; shows both shapes."""
