"""Gradients of graphs: one rule an op, and the reverse walk that applies them."""

from tg_frontend.autograd.engine import (
    depends_on,
    gradients,
    has_gradient,
    register_gradient,
)

__all__ = ["depends_on", "gradients", "has_gradient", "register_gradient"]
