"""What an optimisation of a kernel is.

One `Opt`, a value that can be printed, stored and searched over.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Axis = tuple[int, ...]


class OptOps(Enum):
    """The moves on a loop nest.

    `axis` names a RANGE by its axis path; a split appends 0 (outer) or 1 (inner).
    """

    VECTOR = "vector"
    """Split off an inner axis of `arg` lanes."""
    UPCAST = "upcast"
    """Split off `arg` iterations of an output axis and copy their body: a register tile."""
    UNROLL = "unroll"
    """Split off `arg` iterations of a reduction, each with an accumulator of its own."""
    SPLIT = "split"
    """Split into an outer loop and an inner loop of `arg` iterations: a cache block."""
    ORDER = "order"
    """Put the loops of a store or reduction in the order of the axes in `arg`; the rest follow."""
    THREAD = "thread"
    """Share the iterations of this output axis among the workers; it becomes the outermost loop."""
    STAGE = "stage"
    """Copy the tile of factor `arg` (0 or 1) of the product to a local buffer, as it is read."""


@dataclass(frozen=True, slots=True)
class Opt:
    """One move: `op` on `axis` (None for ORDER and STAGE) with `arg`."""

    op: OptOps
    axis: Axis | None = None
    arg: int | tuple[Axis, ...] | None = None

    def __str__(self) -> str:
        """The form that DEBUG=3 prints, `vector(0.1, 16)`."""
        axis = "" if self.axis is None else ".".join(map(str, self.axis))
        if isinstance(self.arg, tuple):
            arg = " ".join(".".join(map(str, part)) for part in self.arg)
        else:
            arg = "" if self.arg is None else str(self.arg)
        return f"{self.op.value}({', '.join(part for part in (axis, arg) if part)})"
