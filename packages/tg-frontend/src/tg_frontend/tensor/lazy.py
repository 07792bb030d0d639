"""Realising, imported on first use: a program that only builds graphs loads no compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tg_ir.device import Buffer
    from tg_ir.graph import UOp

    from tg_frontend.live.registry import ValueHolder


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


def storage_of(holder: ValueHolder) -> Buffer:
    """See `realize.storage_of`."""
    from tg_frontend import realize as late

    return late.storage_of(holder)
