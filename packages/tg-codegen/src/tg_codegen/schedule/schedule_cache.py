"""Schedules made before, for graphs that differ only in which buffers and variable values they use.

A loop that builds the same graph again and again is scheduled once. A kept schedule holds no buffer
of the program: its BUFFERs and BINDs are numbered, and an answer is made by putting in those of the
graph at hand.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tg_ir.dtype import dtypes
from tg_ir.graph import BufferArg, Ops, UOp, VarArg, substitute, toposort, unique_number

from tg_codegen.schedule.model import Schedule
from tg_codegen.schedule.tensor_order import addressing_base, order_by

# How many nodes the described graphs may have together; the schedules used longest ago go first.
MAX_NODES = 1 << 20

_Row = tuple[Any, ...]


@dataclass(slots=True)
class Description:
    """A tensor graph without the names of its buffers and the values of its variables.

    Attributes:
        key: equal for graphs that have the same schedule.
        nodes: the nodes, sources first.
        places: each node's place in `nodes`.
        buffers: for each buffer in the order met, its id and the oldest version in the graph.
        bindings: the BINDs and unbound variables in the order met.
        pinned: the pinned versions that the graph could overwrite, in the order of the graph.
    """

    key: _Row = ()
    nodes: list[UOp] = field(default_factory=list)
    places: dict[UOp, int] = field(default_factory=dict)
    buffers: dict[int, tuple[int, int]] = field(default_factory=dict)
    bindings: dict[UOp, int] = field(default_factory=dict)
    pinned: tuple[UOp, ...] = ()


@dataclass(frozen=True, slots=True)
class _Template:
    """A schedule over numbered BUFFERs and BINDs.

    Values are named by their place in the description.
    """

    linear: UOp
    becomes: tuple[tuple[int, UOp], ...]
    snapshots: tuple[tuple[int, UOp], ...]


def describe(requested: Sequence[UOp], pinned: Collection[UOp]) -> Description:
    """The description of the graph of `requested`."""
    result = Description()
    result.nodes = order_by(requested, _sources)
    result.places = {node: place for place, node in enumerate(result.nodes)}
    bases = {version: addressing_base(version) for version in pinned}
    kept = [version for version, base in bases.items() if base in result.places]
    kept.sort(key=lambda version: result.places[bases[version]])
    for node in order_by(kept, _sources):
        if node not in result.places:
            result.places[node] = len(result.nodes)
            result.nodes.append(node)
    result.pinned = tuple(kept)
    _number_buffers(result)
    rows = tuple([_row(node, result) for node in result.nodes])
    wanted = tuple(result.places[value] for value in requested)
    result.key = (rows, wanted, tuple(result.places[version] for version in kept))
    return result


def _sources(node: UOp) -> tuple[UOp, ...]:
    if node.op is Ops.REALIZED:
        return node.src[:1]
    return () if node.op is Ops.BIND else node.src


def _number_buffers(description: Description) -> None:
    oldest: dict[int, int] = {}
    for node in description.nodes:
        if node.op is Ops.BUFFER:
            version = node.arg.version
            oldest[node.arg.id] = min(version, oldest.get(node.arg.id, version))
        elif node.op is Ops.BIND or node.op is Ops.DEFINE_VAR:
            description.bindings[node] = len(description.bindings)
    for number, (buffer_id, version) in enumerate(oldest.items()):
        description.buffers[buffer_id] = (number, version)


def _row(node: UOp, description: Description) -> _Row:
    places = description.places
    arg: Any = node.arg
    match node.op:
        case Ops.BUFFER:
            number, oldest = description.buffers[arg.id]
            arg = (number, arg.size, arg.device, arg.version - oldest, arg.image)
        case Ops.BIND:
            variable = node.src[0].arg
            arg = (description.bindings[node], variable.vmin, variable.vmax)
        case Ops.DEFINE_VAR:
            arg = (description.bindings[node], arg.vmin, arg.vmax)
        case Ops.CONST if type(arg) is float:
            # 0.0 and -0.0 are equal, and nan is not equal to itself
            arg = repr(arg)
    return (node.op, node.dtype, arg, tuple([places[source] for source in _sources(node)]))


# ---- the cache

_lock = threading.Lock()
_templates: OrderedDict[_Row, _Template] = OrderedDict()
_kept_nodes = 0


def recall(description: Description) -> Schedule | None:
    """The schedule of the described graph if one like it was remembered."""
    with _lock:
        template = _templates.get(description.key)
        if template is None:
            return None
        _templates.move_to_end(description.key)
    return _instantiated(template, description)


def remember(description: Description, schedule: Schedule) -> None:
    """Keeps `schedule` for later graphs with the same description."""
    global _kept_nodes
    template = _template_of(schedule, description)
    with _lock:
        if description.key in _templates:
            return
        _templates[description.key] = template
        _kept_nodes += len(description.nodes)
        while _kept_nodes > MAX_NODES:
            key, _ = _templates.popitem(last=False)
            _kept_nodes -= len(key[0])


def clear_schedule_cache() -> None:
    """Forgets all schedules."""
    global _kept_nodes
    with _lock:
        _templates.clear()
        _kept_nodes = 0


# ---- templates

_FRESH = -(1 << 32)


def _template_of(schedule: Schedule, description: Description) -> _Template:
    roots = (schedule.linear, *schedule.becomes.values(), *schedule.snapshots.values())
    ids = {known: -1 - number for known, (number, _) in description.buffers.items()}
    mapping: dict[UOp, UOp] = {
        binding: _numbered_binding(binding, number)
        for binding, number in description.bindings.items()
    }
    for buffer in _buffers(roots):
        arg: BufferArg = buffer.arg
        oldest = description.buffers[arg.id][1] if arg.id in description.buffers else 0
        number = ids.setdefault(arg.id, _FRESH - len(ids))
        mapping[buffer] = buffer.replace(
            arg=replace(arg, id=number, version=arg.version - oldest)
        )
    linear, *views = _substituted(roots, mapping)
    places = [description.places[node] for node in (*schedule.becomes, *schedule.snapshots)]
    results = tuple(zip(places, views, strict=True))
    count = len(schedule.becomes)
    return _Template(linear, results[:count], results[count:])


def _numbered_binding(binding: UOp, number: int) -> UOp:
    variable = binding.src[0] if binding.op is Ops.BIND else binding
    arg = VarArg(f"variable{number}", variable.arg.vmin, variable.arg.vmax)
    numbered = UOp(Ops.DEFINE_VAR, dtypes.index, (), arg)
    if binding.op is Ops.DEFINE_VAR:
        return numbered
    return UOp(Ops.BIND, dtypes.index, (numbered, UOp.const(dtypes.index, variable.arg.vmin)))


def _instantiated(template: _Template, description: Description) -> Schedule:
    known = {-1 - number: (i, oldest) for i, (number, oldest) in description.buffers.items()}
    mapping: dict[UOp, UOp] = {
        _numbered_binding(binding, number): binding
        for binding, number in description.bindings.items()
    }
    results = (*template.becomes, *template.snapshots)
    roots = (template.linear, *(view for _, view in results))
    for buffer in _buffers(roots):
        arg: BufferArg = buffer.arg
        found = known.get(arg.id)
        if found is None:
            found = (unique_number(), 0)
            known[arg.id] = found
        new_arg = replace(arg, id=found[0], version=arg.version + found[1])
        mapping[buffer] = buffer.replace(arg=new_arg)
    linear, *views = _substituted(roots, mapping)
    named = [
        (description.nodes[place], view)
        for (place, _), view in zip(results, views, strict=True)
    ]
    count = len(template.becomes)
    return Schedule(linear, dict(named[:count]), dict(named[count:]))


def _enters(node: UOp) -> bool:
    # kernel graphs hold neither BUFFER nor BIND
    return node.op is not Ops.SINK


def _buffers(roots: Iterable[UOp]) -> list[UOp]:
    return [node for node in toposort(roots, _enters) if node.op is Ops.BUFFER]


def _substituted(roots: Iterable[UOp], mapping: Mapping[UOp, UOp]) -> tuple[UOp, ...]:
    return substitute(roots, dict(mapping), _enters)
