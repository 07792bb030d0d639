"""The pass that makes every VECTOR range disappear.

What depends on one becomes a value of as many lanes.

The number of nodes does not grow with the width. An access with stride 1 becomes a vector access,
any other a gather.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_ir.dtype import dtypes
from tg_ir.graph import (
    AxisType,
    DefineArg,
    GroupOp,
    Ops,
    RangeArg,
    ReduceArg,
    UOp,
    substitute,
    toposort,
)
from tg_ir.graph.symbolic import simplify, split_affine

from tg_codegen.errors import LoweringError
from tg_codegen.kernel.private_memory import next_slots, with_memory_for_each_lane
from tg_codegen.loops import closed_ranges


@dataclass(slots=True)
class _State:
    """`new`: the vector form of each node. `next_slot`: of the next DEFINE_REG."""

    new: dict[UOp, UOp] = field(default_factory=dict)
    next_slot: int = 0


def is_vector_range(node: UOp) -> bool:
    """Whether `node` is a RANGE of kind VECTOR."""
    return node.op is Ops.RANGE and node.arg.kind is AxisType.VECTOR


def vector_ranges(node: UOp) -> list[UOp]:
    """The VECTOR ranges that the value of `node` depends on."""
    return [r for r in node.ranges if r.arg.kind is AxisType.VECTOR]


def vectorize(sink: UOp) -> UOp:
    """Turns VECTOR ranges into lanes.

    Requires: a node depends on at most one VECTOR range; its bound is constant. Ensures: no VECTOR
    range.
    """
    axes = [n for n in toposort((sink,)) if is_vector_range(n)]
    if not axes:
        return sink
    order = toposort((with_memory_for_each_lane(sink, axes),))
    state = _State(next_slot=next_slots(order)[Ops.DEFINE_REG])
    for node in order:
        state.new[node] = _vector_form(node, state)
    return state.new[node]


def _width(axis: UOp) -> int:
    return int(axis.src[0].arg)


def _lanes(source: UOp, width: int) -> UOp:
    return source.broadcast(width) if source.dtype.count == 1 else source


def _vector_form(node: UOp, state: _State) -> UOp:
    if is_vector_range(node):
        return UOp(Ops.LANES, dtypes.index.vec(_width(node)))
    axes = vector_ranges(node)
    if len(axes) > 1:
        raise LoweringError(f"{node!r} depends on {len(axes)} vector axes, expected at most one")
    match node.op:
        case Ops.INDEX:
            # kept as it is: LOAD and STORE decide between a vector access and a gather
            return node
        case Ops.LOAD | Ops.STORE:
            return _access(node, axes[0] if axes else None, state)
        case Ops.REDUCE:
            return _reduce(node, axes[0] if axes else None, state)
        case Ops.SCAN:
            return _scan(node, axes[0] if axes else None, state)
        case Ops.END | Ops.STAGE | Ops.TUPLE | Ops.AFTER | Ops.BARRIER:
            src = [state.new[s] for s in node.src if not is_vector_range(s)]
            return UOp(node.op, node.dtype, tuple(src), node.arg)
        case _:
            return _elementwise(node, axes[0] if axes else None, state)


def _elementwise(node: UOp, axis: UOp | None, state: _State) -> UOp:
    src = tuple([state.new[s] for s in node.src])
    if axis is None:
        return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    width = _width(axis)
    if node.op is Ops.GETTUPLE or node.op not in GroupOp.Elementwise:
        return UOp(node.op, node.dtype.vec(width), src, node.arg)
    wide = tuple([_lanes(s, width) for s in src])
    return UOp(node.op, node.dtype.vec(width), wide, node.arg)


def _position(index: UOp, axis: UOp | None, state: _State) -> tuple[UOp, bool]:
    """The address of an INDEX in vector form, and whether its lanes lie in a row from there."""
    where = index.src[1]
    if axis is None or axis not in where.ranges:
        return state.new[where], False
    parts = split_affine(where, axis)
    if parts is not None and parts[0].op is Ops.CONST and parts[0].arg == 1:
        return _with_new_loads(simplify(parts[1]), state), True
    return state.new[where], False


def _with_new_loads(where: UOp, state: _State) -> UOp:
    """An address may hold loads of its own (an offset read from memory).

    These in their new form.
    """
    loads = {n: state.new[n] for n in toposort((where,)) if n.op is Ops.LOAD and n in state.new}
    return substitute((where,), loads)[0] if loads else where


def _mask(index: UOp, width: int, in_lanes: bool, state: _State) -> UOp | None:
    if len(index.src) < 3:
        return None
    mask = state.new[index.src[2]]
    return _lanes(mask, width) if in_lanes else mask


def _index(index: UOp, buffer: UOp, where: UOp, mask: UOp | None) -> UOp:
    src = (buffer, where) if mask is None else (buffer, where, mask)
    return UOp(Ops.INDEX, index.dtype, src)


def _access(node: UOp, axis: UOp | None, state: _State) -> UOp:
    index = node.src[0]
    buffer = state.new[index.src[0]]
    others = [state.new[s] for s in node.src[1:]]
    where, in_row = _position(index, axis, state)
    address_axis = axis is not None and axis in index.ranges
    width = _width(axis) if axis is not None else 1
    if axis is None or (node.op is Ops.LOAD and not address_axis):
        mask = _mask(index, 1, False, state)
        position = _index(index, buffer, where, mask)
        return UOp(node.op, node.dtype, (position, *others), node.arg)
    if not in_row:
        where = _lanes(where, width)
    mask = _mask(index, width, True, state)
    position = _index(index, buffer, where, mask)
    wide = tuple([_lanes(s, width) for s in others])
    dtype = node.dtype if node.op is Ops.STORE else node.dtype.vec(width)
    return UOp(node.op, dtype, (position, *wide), node.arg)


def _reduce(node: UOp, axis: UOp | None, state: _State) -> UOp:
    combine = node.arg.combine
    count = len(combine.init)
    values = [state.new[v] for v in node.src[:count]]
    ranges = closed_ranges(node)
    loops = tuple([state.new[r] for r in ranges if not is_vector_range(r)])
    lanes = [r for r in ranges if is_vector_range(r)]
    if len(lanes) + (axis is not None) > 1:
        raise LoweringError(
            f"lanes of a reduction: expected one vector axis, got {[r.arg.axis for r in lanes]} "
            f"in the reduction and {None if axis is None else axis.arg.axis} around it"
        )
    if axis is None and not lanes:
        return UOp(node.op, node.dtype, (*values, *loops), node.arg)
    width = _width(lanes[0] if axis is None else axis)
    wide = tuple([_lanes(v, width) for v in values])
    partial = _with_loops(wide, loops, node, width)
    if axis is not None:
        return partial
    if combine.op is not None:
        return UOp(Ops.REDUCE_LANES, node.dtype, (partial,), combine.op)
    return _join_lanes(node, partial, lanes[0], state)


def _scan(node: UOp, axis: UOp | None, state: _State) -> UOp:
    src = [state.new[s] for s in node.src]
    if axis is None:
        return UOp(node.op, node.dtype, tuple(src), node.arg)
    width = _width(axis)
    wide = [_lanes(s, width) for s in src[:-1]]
    return UOp(node.op, node.dtype.vec(width), (*wide, src[-1]), node.arg)


def _join_lanes(node: UOp, partial: UOp, axis: UOp, state: _State) -> UOp:
    """The states of all lanes joined: written to memory, read back one lane after another.

    So the number of nodes does not grow with the lanes, whatever the combine is.
    """
    width = _width(axis)
    lane = UOp(Ops.RANGE, dtypes.index, axis.src, RangeArg(axis.arg.axis, AxisType.REDUCE))
    values = []
    for position, value in enumerate(node.src[: len(node.arg.combine.init)]):
        dtype = value.dtype
        wide = partial.get_tuple(position, dtype.vec(width)) if _is_tuple(partial) else partial
        memory = UOp(Ops.DEFINE_REG, dtype, (), DefineArg(state.next_slot, width))
        state.next_slot += 1
        filled = memory.after(memory.index(0).store(wide))
        values.append(filled.index(lane).load())
    return UOp(node.op, node.dtype, (*values, lane), node.arg)


def _is_tuple(reduction: UOp) -> bool:
    return reduction.op is Ops.REDUCE and len(reduction.arg.combine.init) > 1


def _with_loops(values: tuple[UOp, ...], loops: tuple[UOp, ...], node: UOp, width: int) -> UOp:
    if not loops and len(values) == 1:
        return values[0]
    arg: ReduceArg = node.arg
    return UOp(Ops.REDUCE, node.dtype.vec(width), (*values, *loops), arg)
