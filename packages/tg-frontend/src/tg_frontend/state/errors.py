"""Errors of saving, loading and naming parameters."""

from __future__ import annotations

from tg_ir.errors import TgError


class StateError(TgError, ValueError):
    """A state dict does not fit the model it is loaded into; the message names the key."""


class SafetensorsError(TgError, ValueError):
    """A safetensors file that is not one, or whose header does not match its contents."""
