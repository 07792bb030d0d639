"""Python source for each kind of node of a kernel: leaves, vectors, memory. See `python_source`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tg_ir.dtype import DType, struct_code
from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.evaluate import memory
from tg_ir.graph.evaluate.expressions import joining_function, literal, zero_of
from tg_ir.graph.evaluate.python_source import PythonSource
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import UOp


def write_value(source: PythonSource, node: UOp) -> None:
    """Write the statements that compute `node`, whose sources are written.

    Raises:
        EvaluationError: no kernel has this op.
    """
    source.at(node)
    if node.op in GroupOp.Elementwise:
        source.elementwise(node)
        return
    write = _WRITERS.get(node.op)
    if write is None:
        raise EvaluationError(f"{node.op.name} has no place in a kernel:\n{neighbourhood(node)}")
    write(source, node)


def buffer_of(node: UOp) -> UOp:
    """The memory behind a version of it: PARAM, DEFINE_LOCAL, DEFINE_REG or STAGE."""
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


# ---- leaves and vectors


def _const(source: PythonSource, node: UOp) -> None:
    text = literal(node.arg)
    count = node.dtype.count
    source.names[node] = text if count == 1 else f"(({text},) * {count})"


def _lanes(source: PythonSource, node: UOp) -> None:
    source.names[node] = str(tuple(range(node.dtype.count)))


def _broadcast(source: PythonSource, node: UOp) -> None:
    source.define(node, f"({source.name(node.src[0])},) * {node.dtype.count}")


def _vectorize(source: PythonSource, node: UOp) -> None:
    lanes = ", ".join(source.name(s) for s in node.src)
    source.define(node, f"({lanes},)")


def _gep(source: PythonSource, node: UOp) -> None:
    source.define(node, f"{source.name(node.src[0])}[{node.arg}]")


def _reduce_lanes(source: PythonSource, node: UOp) -> None:
    join = joining_function(node.arg, node.dtype)
    source.define(node, f"reduce({join}, {source.name(node.src[0])})")


def _bind(source: PythonSource, node: UOp) -> None:
    source.names[node] = source.name(node.src[1])


# ---- memory


def _define_private(source: PythonSource, node: UOp) -> None:
    source.define(node, f"[None] * {node.arg.size}")


def _after(source: PythonSource, node: UOp) -> None:
    source.names[node] = source.name(node.src[0])


def _index(source: PythonSource, node: UOp) -> None:
    """An INDEX is written where it is loaded or stored."""


def _elements(access: UOp, value_dtype: DType) -> int:
    """How many elements in a row an access with a scalar index touches."""
    return value_dtype.count // access.dtype.count


def _size_of(source: PythonSource, buffer: UOp) -> str:
    return f"len({source.name(buffer)})"


def _known_size(buffer: UOp) -> int:
    return int(buffer.arg.size) if buffer.op is not Ops.STAGE else 0


def _check(source: PythonSource, access: UOp, count: int) -> None:
    """Write the range check of a scalar position, where the bounds do not already prove it."""
    buffer = buffer_of(access.src[0])
    position = access.src[1]
    if position.vmin >= 0 and position.vmax <= _known_size(buffer) - count:
        return
    name = source.name(position)
    size = _size_of(source, buffer)
    last = size if count == 1 else f"{size} - {count - 1}"
    source.line(f"if not 0 <= {name} < {last}: out_of_range({name}, {count}, {size})")


def _positions(source: PythonSource, access: UOp, count: int) -> str:
    name = source.name(access.src[1])
    return name if access.src[1].dtype.count > 1 else f"range({name}, {name} + {count})"


def _load(source: PythonSource, node: UOp) -> None:
    access = node.src[0]
    buffer = source.name(buffer_of(access.src[0]))
    mask = access.src[2] if len(access.src) > 2 else None
    is_gather = access.src[1].dtype.count > 1
    count = _elements(access, node.dtype)
    if is_gather and mask is None:
        source.define(node, f"load_lanes({buffer}, {source.name(access.src[1])})")
        return
    if mask is not None and (is_gather or mask.dtype.count > 1):
        positions = _positions(source, access, count)
        other = _other(source, node)
        mask_text = _lanes_of(source, mask, count)
        source.define(
            node, f"load_masked_lanes({buffer}, {positions}, {mask_text}, {other})"
        )
        return
    result = source.new_name()
    if mask is not None:
        source.line(f"{result} = {_other(source, node)}")
        source.open_if(source.name(mask))
    _check(source, access, count)
    position = source.name(access.src[1])
    if count == 1:
        source.line(f"{result} = {buffer}[{position}]")
    else:
        source.line(f"{result} = tuple({buffer}[{position}:{position} + {count}])")
    if mask is not None:
        source.close_if()
    source.names[node] = result


def _lanes_of(source: PythonSource, node: UOp, count: int) -> str:
    name = source.name(node)
    return name if node.dtype.count > 1 else f"({name},) * {count}"


def _other(source: PythonSource, node: UOp) -> str:
    """What a masked LOAD gives where it touches nothing, as many lanes as the LOAD."""
    count = node.dtype.count
    if len(node.src) == 1:
        text = literal(zero_of(node.dtype))
        return text if count == 1 else f"({text},) * {count}"
    other = node.src[1]
    return source.name(other) if count == 1 else _lanes_of(source, other, count)


def _store(source: PythonSource, node: UOp) -> None:
    access, value = node.src[0], node.src[1]
    buffer = source.name(buffer_of(access.src[0]))
    mask = access.src[2] if len(access.src) > 2 else None
    index_lanes = access.src[1].dtype.count
    count = index_lanes if index_lanes > 1 else _elements(access, value.dtype)
    text = source.name(value)
    if count == 1:
        if mask is not None:
            source.open_if(source.name(mask))
        _check(source, access, 1)
        source.line(f"{buffer}[{source.name(access.src[1])}] = {text}")
        if mask is not None:
            source.close_if()
        return
    values = text if value.dtype.count > 1 else f"({text},) * {count}"
    positions = _positions(source, access, count)
    if mask is None and index_lanes == 1:
        _check(source, access, count)
        place = source.name(access.src[1])
        row = _as_row(values, buffer_of(access.src[0]))
        if row:
            source.line(f"{buffer}[{place}:{place} + {count}] = {row}")
            return
    if mask is None:
        source.line(f"store_lanes({buffer}, {positions}, {values})")
    else:
        mask_text = _lanes_of(source, mask, count)
        source.line(f"store_masked_lanes({buffer}, {positions}, {mask_text}, {values})")


def _as_row(values: str, buffer: UOp) -> str:
    """What a slice of the memory of `buffer` can be set to; empty: it takes lanes one by one."""
    if buffer.op is not Ops.PARAM:
        return values
    code = struct_code(buffer.dtype)
    is_native = code is not None and code not in ("?", "e")
    return f"array({code!r}, {values})" if is_native else ""


def _barrier(source: PythonSource, node: UOp) -> None:
    if source.yields:
        source.line("yield")


def _no_effect(source: PythonSource, node: UOp) -> None:
    """A node that only orders or groups."""


_WRITERS: dict[Ops, Callable[[PythonSource, UOp], None]] = {
    Ops.CONST: _const,
    Ops.LANES: _lanes,
    Ops.BROADCAST: _broadcast,
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: _gep,
    Ops.REDUCE_LANES: _reduce_lanes,
    Ops.BIND: _bind,
    Ops.DEFINE_REG: _define_private,
    Ops.DEFINE_LOCAL: _define_private,
    Ops.AFTER: _after,
    Ops.INDEX: _index,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.BARRIER: _barrier,
    Ops.SINK: _no_effect,
}


def write_arguments(source: PythonSource, nodes: Iterable[UOp]) -> None:
    """Write where in `buffers` and `vals` the PARAMs and DEFINE_VARs of `nodes` are."""
    for node, position in variable_positions(nodes).items():
        source.define(node, f"vals[{position}]")
    for node in nodes:
        if node.op is Ops.PARAM:
            source.define(node, f"buffers[{node.arg.slot}]")


def variable_positions(nodes: Iterable[UOp]) -> dict[UOp, int]:
    """Where in `vals` each DEFINE_VAR is: by its name `v0`, `v1`, ..., else in order."""
    variables = [node for node in nodes if node.op is Ops.DEFINE_VAR]
    if all(v.arg.name[:1] == "v" and v.arg.name[1:].isdigit() for v in variables):
        return {v: int(v.arg.name[1:]) for v in variables}
    return {v: position for position, v in enumerate(variables)}


def bind_buffers(nodes: Iterable[UOp], buffers: Sequence[memory.Buffer]) -> list[memory.Memory]:
    """The buffers as memory of the dtypes of the PARAMs among `nodes`.

    Raises:
        EvaluationError: a buffer is missing, or smaller than its PARAM says.
    """
    found: list[memory.Memory] = [[] for _ in buffers]
    for node in nodes:
        if node.op is not Ops.PARAM:
            continue
        slot = node.arg.slot
        if slot >= len(buffers):
            raise EvaluationError(
                f"the kernel takes a buffer {slot}, but got {len(buffers)} buffers: {node!r}"
            )
        found[slot] = memory.typed_memory(buffers[slot], node.dtype)
        if len(found[slot]) < node.arg.size:
            raise EvaluationError(
                f"buffer {slot} holds {len(found[slot])} elements of {node.dtype.name}, "
                f"the kernel needs {node.arg.size}"
            )
    return found
