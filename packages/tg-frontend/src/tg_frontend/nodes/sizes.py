"""Numbers that come from the user as sizes, axes and counts: what is accepted, what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as exact_int
from typing import Any

from tg_ir.errors import ShapeError
from tg_ir.graph import Ops, UOp, as_int, as_size, prod

from tg_frontend.errors import ArgumentError

Shape = tuple[Any, ...]
"""A tuple of `int | UOp`."""

MOST_ELEMENTS = (1 << 63) - 1
"""What the index of an element, an int64, can count."""


def whole_number(value: Any, what: str) -> int:
    """`value` as an int, be it one of numpy's.

    Raises:
        ArgumentError: it is none; no number is rounded, and a bool is no number here.
    """
    if type(value) is int:
        return value
    try:
        if not isinstance(value, bool):
            return exact_int(value)
    except TypeError:
        pass  # an array of numpy has the method of an int, and only then looks whether it is one
    raise ArgumentError(f"{what}: expected an int, got {type(value).__name__} {value!r}") from None


def at_least_one(value: Any, what: str) -> int:
    """`value` as an int of 1 or more.

    Raises:
        ArgumentError: it is no int.
        ShapeError: it is less.
    """
    number = whole_number(value, what)
    if number < 1:
        raise ShapeError(f"{what}: expected 1 or more, got {number}")
    return number


def as_shape(sizes: Sequence[Any], what: str = "shape") -> Shape:
    """Sizes (or axes) given one by one, or as one tuple or list.

    Raises:
        ArgumentError: one is no int.
    """
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    return tuple(as_int(s) if isinstance(s, UOp) else whole_number(s, what) for s in sizes)


def as_new_shape(sizes: Sequence[Any], what: str) -> Shape:
    """The shape of a tensor to make.

    Raises:
        ArgumentError: a size is no int.
        ShapeError: a size is negative, or there are more elements than an index can count.
    """
    shape = as_shape(sizes, what)
    known = [size for size in shape if isinstance(size, int)]
    if any(size < 0 for size in known):
        raise ShapeError(f"{what}: sizes are 0 or more, got {shape}")
    if prod(known) > MOST_ELEMENTS:
        raise ShapeError(
            f"{what}: shape {shape} has {prod(known)} elements; "
            f"at most {MOST_ELEMENTS} can be addressed"
        )
    return shape


def with_values(size: int | UOp) -> int | UOp:
    """A size with the values of its variables, as far as they are bound."""
    if isinstance(size, int):
        return size
    binds = {node: node.src[1] for node in size.toposort() if node.op is Ops.BIND}
    return as_size(size.substitute(binds))


def known_size(size: int | UOp, what: str) -> int:
    """The value of a size whose variables are bound.

    Raises:
        ShapeError: a variable has no value.
    """
    value = with_values(size)
    if isinstance(value, UOp):
        raise ShapeError(f"{what}: size {size} has no value; bind its variable by .bind(value)")
    return value


def known_shape(shape: Shape, what: str) -> tuple[int, ...]:
    """The values of sizes whose variables are bound.

    Raises:
        ShapeError: a variable has no value.
    """
    return tuple([known_size(size, what) for size in shape])


def expect_plain_sizes(shape: Shape, what: str) -> None:
    """Refuse symbolic sizes, for what needs to know them before it runs.

    Raises:
        ShapeError: one is symbolic.
    """
    if any(isinstance(size, UOp) for size in shape):
        raise ShapeError(
            f"{what}: not for symbolic sizes, got shape {shape}; give sizes that are ints"
        )
