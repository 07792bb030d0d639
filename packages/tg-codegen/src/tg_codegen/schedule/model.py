"""What the scheduler gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_ir.graph import UOp


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to run for a tensor graph, and where its values are afterwards.

    Attributes:
        linear: LINEAR of CALLs in execution order.
        becomes: each requested value, and each CONTIGUOUS, COPY and AFTER that was realised on the
            way and that no later write of the schedule overwrites, to movement ops over the BUFFER
            that holds it afterwards.
        snapshots: each pinned version that the schedule overwrites, to where its old value was
            copied.
    """

    linear: UOp
    becomes: dict[UOp, UOp] = field(default_factory=dict)
    snapshots: dict[UOp, UOp] = field(default_factory=dict)
