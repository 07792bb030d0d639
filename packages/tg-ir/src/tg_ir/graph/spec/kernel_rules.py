"""The spec of the kernel graph.

Loops are RANGEs that END, REDUCE and STAGE close; memory is reached through INDEX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import (
    AxisType,
    DefineArg,
    KernelInfo,
    Ops,
    ParamArg,
    RangeArg,
    ReduceArg,
    StageArg,
)
from tg_ir.graph.spec.model import Check, Fault, OpRule, Spec
from tg_ir.graph.spec.tensor_rules import takes_one_result
from tg_ir.graph.spec.value_rules import (
    CONST_RULE,
    NO_ARG,
    VARIABLE_RULE,
    VECTOR_RULES,
    combine_fault,
    elementwise_rules,
    image_fits,
    is_void,
    same_dtype_as_first,
)
from tg_ir.graph.uop import UOp, toposort

MEMORY = frozenset({Ops.PARAM, Ops.DEFINE_LOCAL, Ops.DEFINE_REG, Ops.STAGE})
_SPECIAL_NAMES = frozenset({"g0", "g1", "g2", "l0", "l1", "l2"})
_EFFECTS = frozenset({Ops.STORE, Ops.END, Ops.TUPLE, Ops.BARRIER})
# an AFTER may also name the loop inside of which its buffer is read
_ORDERING = _EFFECTS | {Ops.RANGE, Ops.AFTER}


def memory_of(buffer: UOp) -> UOp:
    """What holds the elements: `buffer` behind its AFTERs."""
    while buffer.op is Ops.AFTER:
        buffer = buffer.src[0]
    return buffer


# ---- leaves


def _is_stored_scalar(node: UOp) -> str | None:
    if node.dtype.count == 1 and node.dtype not in (dtypes.void, dtypes.index):
        return None
    return f"holds scalars with a machine format, got {node.dtype!r}"


def _slot_and_size(node: UOp) -> str | None:
    if node.arg.slot < 0 or node.arg.size < 0:
        return f"slot and size are at least 0, got {node.arg!r}"
    return None


def _has_elements(node: UOp) -> str | None:
    return "holds values, not void" if node.dtype is dtypes.void else None


def _counts_up_to_an_int(node: UOp) -> str | None:
    bound = node.src[0]
    if not dtypes.is_int(bound.dtype) or bound.dtype.count != 1:
        return f"its bound is an int, got {bound.dtype!r}"
    if node.dtype is not bound.dtype:
        return f"counts in the dtype of its bound, {bound.dtype!r}, got {node.dtype!r}"
    return None


def _is_place_in_grid(node: UOp) -> str | None:
    if node.arg not in _SPECIAL_NAMES:
        return f"is one of {', '.join(sorted(_SPECIAL_NAMES))}, got {node.arg!r}"
    return _counts_up_to_an_int(node)


# ---- memory


def _indexes_memory(node: UOp) -> str | None:
    buffer, position = node.src[0], node.src[1]
    memory = memory_of(buffer)
    if memory.op not in MEMORY:
        return f"reaches into a buffer, got {memory.op.name}"
    if not dtypes.is_int(position.dtype):
        return f"its position is an int, got {position.dtype!r}"
    if node.dtype is not buffer.dtype:
        return f"is an element of its buffer, {buffer.dtype!r}, got {node.dtype!r}"
    return None


def _mask_is_bool(node: UOp) -> str | None:
    if len(node.src) < 3:
        return None
    mask, lanes = node.src[2].dtype, node.src[1].dtype.count
    if not dtypes.is_bool(mask):
        return f"its mask is a bool, got {mask!r}"
    if lanes > 1 and mask.count not in (1, lanes):
        return f"its mask has one lane or {lanes}, got {mask!r}"
    return None


def _accessed_lanes(access: UOp, lanes: int) -> str | None:
    """An access by `lanes` positions at once, or to a row of elements from one position."""
    positions = access.src[1].dtype.count
    if positions not in (1, lanes):
        return f"accesses {lanes} lanes at {positions} positions"
    if len(access.src) > 2 and access.src[2].dtype.count not in (1, lanes):
        return f"accesses {lanes} lanes under a mask of {access.src[2].dtype!r}"
    return None


def _loads_an_element(node: UOp) -> str | None:
    access = node.src[0]
    if access.op is not Ops.INDEX:
        return f"reads an INDEX, got {access.op.name}"
    if node.dtype.scalar() is not access.dtype.scalar() or node.dtype.count % access.dtype.count:
        return f"reads elements of {access.dtype!r}, got {node.dtype!r}"
    if len(node.src) > 1 and node.src[1].dtype.scalar() is not node.dtype.scalar():
        return f"gives {node.dtype!r} where its mask is false, got {node.src[1].dtype!r}"
    return _accessed_lanes(access, node.dtype.count // access.dtype.count)


def _stores_an_element(node: UOp) -> str | None:
    access, value = node.src
    if access.op is not Ops.INDEX:
        return f"writes an INDEX, got {access.op.name}"
    if value.dtype.scalar() is not access.dtype.scalar() or value.dtype.count % access.dtype.count:
        return f"writes elements of {access.dtype!r}, got {value.dtype!r}"
    memory = memory_of(access.src[0])
    if memory.op is Ops.PARAM and not memory.arg.writable:
        return f"writes argument {memory.arg.slot}, which is not writable"
    lanes = value.dtype.count // access.dtype.count
    # one value may be written to several positions
    return None if lanes == 1 else _accessed_lanes(access, lanes)


def _follows_effects(node: UOp) -> str | None:
    if memory_of(node).op not in MEMORY:
        return f"is a buffer after effects, got {memory_of(node).op.name}"
    for effect in node.src[1:]:
        if effect.op not in _ORDERING:
            return f"comes after effects, got {effect.op.name}"
    return same_dtype_as_first(node)


def _joins_work_items(node: UOp) -> str | None:
    """BARRIER: what every item has done before any goes on."""
    for effect in node.src:
        if effect.op not in _EFFECTS:
            return f"waits for effects, got {effect.op.name}"
    return None


# ---- loops


_COUNTED = frozenset({AxisType.LOCAL, AxisType.VECTOR, AxisType.UNROLL, AxisType.DEVICE})


def _counted_when_compiled(node: UOp) -> str | None:
    """Work-items, lanes, copies and devices are no loop that may end anywhere."""
    bound = node.src[0]
    if node.arg.kind not in _COUNTED or (bound.op is Ops.CONST and bound.arg > 0):
        return None
    return f"an axis of kind {node.arg.kind.name} has a constant bound above 0, got {bound!r}"


def closed_ranges(node: UOp) -> tuple[UOp, ...]:
    """The loops that an END, REDUCE or STAGE closes, or that a SCAN runs along."""
    if node.op in (Ops.REDUCE, Ops.SCAN):
        return node.src[len(node.arg.combine.init) :]
    return node.src[1:]


def _closes_ranges(node: UOp) -> str | None:
    for loop in closed_ranges(node):
        if loop.op is not Ops.RANGE:
            return f"closes RANGEs, got {loop.op.name}"
    if len(set(closed_ranges(node))) != len(closed_ranges(node)):
        return "closes a RANGE twice"
    return None


def _ends_effects(node: UOp) -> str | None:
    effect = node.src[0]
    return None if effect.op in _EFFECTS else f"repeats an effect, got {effect.op.name}"


def _holds_effects(node: UOp) -> str | None:
    """TUPLE: several effects under one END."""
    for effect in node.src:
        if effect.op not in _EFFECTS:
            return f"holds the effects of one END, got {effect.op.name}"
    return None


def _reduces_states(node: UOp) -> str | None:
    arg: ReduceArg = node.arg
    count = len(arg.combine.init)
    states = [state.dtype for state in node.src[:count]]
    if arg.axes:
        return f"reduces its RANGEs, not axes, got axes {arg.axes}"
    message = combine_fault(arg.combine, states)
    if message is not None:
        return message
    if node.op is Ops.SCAN and len(closed_ranges(node)) != 1:
        return f"runs along one RANGE, got {len(closed_ranges(node))}"
    return same_dtype_as_first(node)


def _stage_fits(node: UOp) -> str | None:
    arg: StageArg = node.arg
    loops = closed_ranges(node)
    if len(arg.shape) != len(loops) or sorted(arg.order) != list(range(len(loops))):
        return f"its shape and order are for its {len(loops)} RANGEs, got {arg!r}"
    if arg.pad < 0:
        return f"pads by at least 0, got {arg.pad}"
    for extent, loop in zip(arg.shape, loops, strict=True):
        if loop.src[0].vmax > extent:
            return f"has {extent} places for a RANGE up to {loop.src[0].vmax}"
    return same_dtype_as_first(node)


def one_vector_axis(node: UOp) -> str | None:
    """A value has lanes along one axis at most."""
    axes = [loop for loop in node.ranges if loop.arg.kind is AxisType.VECTOR]
    if len(axes) > 1:
        return f"depends on {len(axes)} VECTOR axes: {sorted(r.arg.axis for r in axes)}"
    return None


def _sinks_effects(node: UOp) -> str | None:
    for effect in node.src:
        if effect.op not in _EFFECTS:
            return f"holds effects, got {effect.op.name}"
    for loop in node.ranges:
        return f"the RANGE of axis {loop.arg.axis} is never closed by an END"
    return is_void(node)


# ---- the whole graph


def axes_are_distinct(nodes: Sequence[UOp]) -> Fault | None:
    """Two RANGEs of one axis would be one loop to some passes and two to others."""
    seen: dict[tuple[int, ...], UOp] = {}
    for node in nodes:
        if node.op is Ops.RANGE:
            other = seen.setdefault(node.arg.axis, node)
            if other is not node:
                return Fault(node, f"another RANGE is also called axis {node.arg.axis}: {other!r}")
    return None


def reads_are_ordered(nodes: Sequence[UOp]) -> Fault | None:
    """A LOAD of memory that the kernel also writes feeds the write, or comes AFTER it."""
    stores: dict[UOp, list[UOp]] = {}
    loads: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op is Ops.STORE:
            stores.setdefault(memory_of(node.src[0].src[0]), []).append(node)
        elif node.op is Ops.LOAD:
            loads.setdefault(memory_of(node.src[0].src[0]), []).append(node)
    for memory, writes in stores.items():
        if memory not in loads:
            continue
        fault = _unordered_read(loads[memory], writes)
        if fault is not None:
            return fault
    return None


def work_items_meet(nodes: Sequence[UOp]) -> Fault | None:
    """What other work-items of a group wrote is read behind a BARRIER."""
    for node in nodes:
        if node.op is not Ops.LOAD or memory_of(node.src[0].src[0]).op is not Ops.DEFINE_LOCAL:
            continue
        access = node.src[0]
        for write in _writes_just_before(access.src[0]):
            position = write.src[0].src[1]
            is_shared = any(loop.arg.kind is AxisType.LOCAL for loop in position.ranges)
            if is_shared and position is not access.src[1]:
                return Fault(
                    node,
                    f"may read what another work-item has not written yet, by {write!r}; "
                    "put a BARRIER between",
                )
    return None


def _writes_just_before(buffer: UOp) -> Iterator[UOp]:
    """The STOREs before `buffer` with neither a BARRIER nor the END of their loops between."""
    while buffer.op is Ops.AFTER:
        yield from (effect for effect in buffer.src[1:] if effect.op is Ops.STORE)
        buffer = buffer.src[0]


def _unordered_read(loads: Sequence[UOp], writes: Sequence[UOp]) -> Fault | None:
    feeding = {write: toposort((write,)) for write in writes}
    for load in loads:
        before = toposort((load,)) if any(load not in below for below in feeding.values()) else {}
        place = load.src[0].src[1]
        own = any(load in below and w.src[0].src[1] is place for w, below in feeding.items())
        for write, below in feeding.items():
            if own and _is_unrolled_copy(place, write.src[0].src[1]):
                continue
            if load not in below and write not in before:
                return Fault(
                    load,
                    "reads a buffer that this kernel overwrites, and neither feeds the STORE nor "
                    "comes AFTER it, so that it may see either version",
                )
            if load in below and write not in before and _collides(load, write):
                return Fault(
                    load,
                    "reads an element that another iteration of the same independent loops may "
                    "have overwritten; read it from a copy, or make the loops LOOP",
                )
    return None


def _is_unrolled_copy(place: UOp, other: UOp) -> bool:
    """Whether two positions are the same sum but for a constant, as unrolled iterations are."""
    (terms, constant), (other_terms, other_constant) = _linear_form(place), _linear_form(other)
    return terms == other_terms and constant != other_constant


def _linear_form(position: UOp) -> tuple[dict[UOp, int], int]:
    """The factor of each term of a sum, lanes looked through, and the constant."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [(position, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.CONST:
            constant += factor * int(node.arg)
        elif node.op is Ops.ADD or node.op is Ops.BROADCAST:
            stack.extend((source, factor) for source in node.src)
        elif node.op is Ops.MUL and _constant_of(node.src[1]) is not None:
            stack.append((node.src[0], factor * (_constant_of(node.src[1]) or 0)))
        else:
            terms[node] = terms.get(node, 0) + factor
    return terms, constant


def _constant_of(node: UOp) -> int | None:
    """The value of a constant, in every lane; None for anything else."""
    inner = node.src[0] if node.op is Ops.BROADCAST else node
    return int(inner.arg) if inner.op is Ops.CONST else None


_SHARED = frozenset({Ops.PARAM, Ops.DEFINE_LOCAL})
_INDEPENDENT = frozenset(
    {AxisType.GLOBAL, AxisType.THREAD, AxisType.LOCAL, AxisType.VECTOR, AxisType.DEVICE}
)


def _collides(load: UOp, write: UOp) -> bool:
    """Whether iterations of the same loops may read and write one another's elements."""
    read, written = load.src[0].src[1], write.src[0].src[1]
    if read is written or memory_of(load.src[0].src[0]).op not in _SHARED:
        return False
    if load.ranges != write.ranges or any(
        r.arg.kind not in _INDEPENDENT for r in load.ranges
    ):
        return False
    return bool(read.vmin <= written.vmax and written.vmin <= read.vmax)


_VECTOR_AXIS: tuple[Callable[[UOp], str | None], ...] = (one_vector_axis,)

INDEX_RULE = OpRule(2, 3, NO_ARG, (_indexes_memory, _mask_is_bool))
LOAD_RULE = OpRule(1, 2, NO_ARG, (_loads_an_element,))
STORE_RULE = OpRule(2, 2, NO_ARG, (is_void, _stores_an_element))
PARAM_RULE = OpRule(0, 0, ParamArg, (_slot_and_size, _is_stored_scalar, image_fits))
DEFINE_RULE = OpRule(0, 0, DefineArg, (_slot_and_size, _has_elements))
RANGE_RULE = OpRule(1, 1, RangeArg, (_counts_up_to_an_int, _counted_when_compiled))
SPECIAL_RULE = OpRule(1, 1, str, (_is_place_in_grid,))
AFTER_RULE = OpRule(1, None, NO_ARG, (_follows_effects,))
BARRIER_RULE = OpRule(0, None, NO_ARG, (is_void,))


def _along_one_axis(rule: OpRule) -> OpRule:
    """`rule`, and lanes along one VECTOR axis at most."""
    checks: tuple[Check, ...] = (*rule.checks, *_VECTOR_AXIS)
    return OpRule(rule.least, rule.most, rule.arg, checks)


kernel_graph = Spec(
    "kernel graph",
    {
        Ops.PARAM: PARAM_RULE,
        Ops.DEFINE_VAR: VARIABLE_RULE,
        Ops.DEFINE_LOCAL: DEFINE_RULE,
        Ops.DEFINE_REG: DEFINE_RULE,
        Ops.CONST: CONST_RULE,
        Ops.RANGE: RANGE_RULE,
        Ops.SPECIAL: SPECIAL_RULE,
        Ops.INDEX: _along_one_axis(INDEX_RULE),
        Ops.LOAD: _along_one_axis(LOAD_RULE),
        Ops.STORE: _along_one_axis(STORE_RULE),
        **elementwise_rules(*_VECTOR_AXIS),
        **VECTOR_RULES,
        Ops.END: OpRule(1, None, NO_ARG, (is_void, _ends_effects, _closes_ranges)),
        Ops.TUPLE: OpRule(1, None, NO_ARG, (is_void, _holds_effects)),
        Ops.REDUCE: OpRule(1, None, ReduceArg, (_reduces_states, _closes_ranges)),
        Ops.SCAN: OpRule(2, None, ReduceArg, (_reduces_states, _closes_ranges)),
        Ops.GETTUPLE: OpRule(1, 1, int, (takes_one_result,)),
        Ops.STAGE: OpRule(1, None, StageArg, (_closes_ranges, _stage_fits)),
        Ops.AFTER: AFTER_RULE,
        Ops.BARRIER: OpRule(1, None, NO_ARG, (is_void, _joins_work_items)),
        Ops.SINK: OpRule(0, None, (KernelInfo, NO_ARG), (_sinks_effects,)),
    },
    (axes_are_distinct, reads_are_ordered, work_items_meet),
)
