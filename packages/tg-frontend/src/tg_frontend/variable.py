"""`Variable`: a symbolic integer for shapes, so that one kernel serves many sizes."""

from __future__ import annotations

from tg_ir.graph import UOp


def Variable(name: str, min_val: int, max_val: int) -> UOp:
    """A symbolic integer with `min_val <= value <= max_val`; `.bind(value)` gives it a value."""
    return UOp.variable(name, min_val, max_val)
