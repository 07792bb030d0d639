"""`Workspace`: memory that a lowered kernel asks for, planned with the temporaries of a program."""

from __future__ import annotations

from dataclasses import dataclass

MAX_WORKSPACE_BYTES = 1 << 28
"""Most that one tile may take for all workers together; above that it is refused."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory that a kernel needs for one launch, passed as a buffer after those of its CALL.

    Contents before the launch are undefined. What belongs to one worker has a part for each
    iteration of the THREAD range, so workers never share any.

    Attributes:
        nbytes: size in bytes, > 0.
        dtype: name of the element type.
        alignment: of its first byte, in bytes, a power of two.
    """

    nbytes: int
    dtype: str = "uint8"
    alignment: int = 64
