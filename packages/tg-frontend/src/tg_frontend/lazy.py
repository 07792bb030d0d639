"""What is imported on first use: numpy, and the compiler behind `realize`.

So a program that only builds graphs starts as fast as it can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from tg_ir.device import Buffer
    from tg_ir.graph import UOp

    from tg_frontend.live.registry import ValueHolder


def array_from_bytes(data: Any, dtype_name: str, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    """A numpy array over `data`, which it keeps alive."""
    import numpy

    return numpy.frombuffer(data, dtype=dtype_name).reshape(shape)


def array_of(data: Any) -> numpy.ndarray[Any, Any]:
    """What numpy makes of `data`."""
    import numpy

    return numpy.asarray(data)


def realize(*holders: ValueHolder) -> None:
    """See `realize.realize`."""
    from tg_frontend import realize as late

    late.realize(*holders)


def plan(*holders: ValueHolder) -> UOp:
    """See `realize.plan`."""
    from tg_frontend import realize as late

    return late.plan(*holders)


def is_realized(holder: ValueHolder) -> bool:
    """See `realize.is_realized`."""
    from tg_frontend import realize as late

    return late.is_realized(holder)


def memory_of(holder: ValueHolder) -> Buffer | None:
    """See `realize.memory_of`."""
    from tg_frontend import realize as late

    return late.memory_of(holder)


def is_whole_storage(uop: UOp) -> bool:
    """See `realize.is_whole_storage`."""
    from tg_frontend import realize as late

    return late.is_whole_storage(uop)
