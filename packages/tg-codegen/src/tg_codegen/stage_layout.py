"""Where the elements of a staged tile lie in its local buffer."""

from __future__ import annotations

from tg_ir.graph import StageArg, UOp, as_index


def stage_strides(arg: StageArg) -> tuple[int, ...]:
    """The distance in memory between neighbours along each axis of a staged tile."""
    strides = [0] * len(arg.shape)
    step = 1
    for place, axis in enumerate(reversed(arg.order)):
        strides[axis] = step
        step *= arg.shape[axis] + (arg.pad if place == 0 else 0)
    return tuple(strides)


def stage_size(arg: StageArg) -> int:
    """The number of elements that a staged tile takes, padding included."""
    if not arg.order:
        return 1
    outermost = arg.order[0]
    pad = arg.pad if len(arg.order) == 1 else 0
    return stage_strides(arg)[outermost] * (arg.shape[outermost] + pad)


def stage_position(arg: StageArg, indices: tuple[UOp, ...]) -> UOp:
    """The position in memory of element `indices` of a staged tile."""
    where: UOp = as_index(0)
    for index, stride in zip(indices, stage_strides(arg), strict=True):
        where = where + index * stride
    return where
