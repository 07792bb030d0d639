"""Whether a value gets a buffer or is computed again by each of its readers.

The one place for that judgement.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.graph import AxisType, GroupOp, Ops, UOp

from tg_codegen.schedule.context import Context
from tg_codegen.schedule.facts import MAX_ROW, MAX_STEPS, SMALL_REDUCTION, Facts
from tg_codegen.schedule.storage import upper_size
from tg_codegen.schedule.tensor_order import TRANSPARENT

# Work that is rather repeated than stored: within one kernel, in two kernels, for each repetition
# in a loop.
_WORK_TWICE_IN_KERNEL = 96.0
_WORK_IN_TWO_KERNELS = 8.0
_WORK_IN_LOOP = 2.0
_WORK_WITHOUT_BUFFERS = 24.0


def is_better_stored(node: UOp, facts: Facts, wanted: Sequence[Context]) -> bool:
    """Whether `node`, at a cost of `facts` an element, is not computed where it is wanted."""
    if not wanted or node.op in GroupOp.Movement or node.op in TRANSPARENT:
        return False
    if node.op is Ops.SCAN_AXIS:
        return True
    if node.op is Ops.REDUCE_AXIS and len(node.src) > 1:
        # several states of one reduction: asked of each GETTUPLE
        return False
    if len(wanted) > 1 and _follows_from_one_value(node, facts, wanted):
        return False
    if facts.row or node.op is Ops.GETTUPLE:
        return len(wanted) > 1 or not _reduces_in_place(node, facts.row, wanted[0])
    return _is_repeated_too_often(node, facts, wanted)


def _follows_from_one_value(node: UOp, facts: Facts, wanted: Sequence[Context]) -> bool:
    """Whether each reader of `node` rather reads what it is made from, where that costs more.

    Of the steps of an activation, which its gradient needs too, one is then stored and not all.
    """
    if facts.core is None:
        return False
    elements = upper_size(node.shape)
    if any(context.repeats(elements) > 1.5 for context in wanted):
        return False
    return facts.core_work * (len(wanted) - 1) <= MAX_STEPS


def _reduces_in_place(node: UOp, row: int, context: Context) -> bool:
    """Whether the reduction inside `node`, over `row` elements, may run where it is read."""
    if context.inside(AxisType.REDUCE) or context.inside(AxisType.LOOP):
        return False
    if context.mask is not None and row > SMALL_REDUCTION:
        return False
    if context.repeats(upper_size(node.shape)) > 1.5:
        return False
    reuse = context.row_of_reuse()
    return reuse == 1 or (reuse == row and row <= MAX_ROW)


def _is_repeated_too_often(node: UOp, facts: Facts, wanted: Sequence[Context]) -> bool:
    elements = upper_size(node.shape)
    repeats = max(context.repeats(elements) for context in wanted)
    places = len(wanted)
    work = facts.work
    if repeats > 1.5:
        if not facts.leaves:
            return work > _WORK_WITHOUT_BUFFERS
        if facts.hoisted or len(facts.leaves) > 1 or places > 4:
            return work > 0
        return work > (2 * _WORK_IN_LOOP if repeats <= 2 else _WORK_IN_LOOP)
    if places == 1:
        return False
    kernels = len({id(context.kernel) for context in wanted})
    if kernels == 1:
        return work * places > _WORK_TWICE_IN_KERNEL
    if not facts.leaves:
        return work * (places - 1) > _WORK_WITHOUT_BUFFERS
    if facts.hoisted or len(facts.leaves) > 2:
        return work > 0
    if len(facts.leaves) == 2:
        # two reads in each of two kernels cost no more than a write and a read in each
        return places > 2 or work > _WORK_IN_TWO_KERNELS / 2
    return work * (places - 1) > _WORK_IN_TWO_KERNELS
