"""`Variable`: a symbolic integer for shapes, so that one kernel serves many sizes."""

from __future__ import annotations

from tg_ir.graph import UOp

from tg_frontend.errors import ArgumentError
from tg_frontend.nodes.sizes import whole_number


def Variable(name: str, min_val: int, max_val: int) -> UOp:
    """A symbolic integer with `min_val <= value <= max_val`; `.bind(value)` gives it a value.

    Raises:
        ArgumentError: the name is no identifier, or a bound no int.
        ValueError: the bounds hold no value.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"Variable: expected a name such as 'n', got {name!r}")
    low = whole_number(min_val, f"Variable '{name}': least value")
    high = whole_number(max_val, f"Variable '{name}': greatest value")
    if low > high:
        raise ValueError(f"Variable '{name}': {low}..{high} holds no value; give the least first")
    return UOp.variable(name, low, high)
