"""`Workspace`: memory that a lowered kernel asks for, planned with the temporaries of a program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory that a kernel needs for one launch, passed as a buffer after those of its CALL.

    Attributes:
        nbytes: size in bytes, > 0.
        dtype: name of the element type.
    """

    nbytes: int
    dtype: str = "uint8"
