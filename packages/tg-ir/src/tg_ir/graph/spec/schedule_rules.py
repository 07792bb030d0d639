"""The spec of a schedule: a LINEAR of valid CALLs, each reading the version that it names.

A write changes storage in place, so a version is gone once a CALL has written a later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import CallArg, Ops
from tg_ir.graph.spec.kernel_rules import kernel_graph
from tg_ir.graph.spec.model import Fault, OpRule, Spec, first_fault
from tg_ir.graph.spec.tensor_rules import tensor_graph
from tg_ir.graph.spec.value_rules import NO_ARG, is_void
from tg_ir.graph.uop import UOp, toposort

_CALLED = {
    "kernel": frozenset({Ops.SINK}),
    "copy": frozenset({Ops.COPY}),
    "graph": frozenset({Ops.LINEAR}),
}
_NUMBERS = frozenset({Ops.BIND, Ops.DEFINE_VAR, Ops.CONST})


def _holds_calls(node: UOp) -> str | None:
    for call in node.src:
        if call.op is not Ops.CALL:
            return f"is a list of CALLs, got {call.op.name}"
    return is_void(node)


def _calls_what_it_says(node: UOp) -> str | None:
    arg: CallArg = node.arg
    expected = _CALLED.get(arg.kind)
    if expected is None:
        return f"is of kind {', '.join(_CALLED)}, got {arg.kind!r}"
    if node.src[0].op not in expected:
        return f"of kind {arg.kind} calls {_names(expected)}, got {node.src[0].op.name}"
    return is_void(node)


def _names(ops: frozenset[Ops]) -> str:
    return " or ".join(sorted(op.name for op in ops))


def _arguments_in_order(node: UOp) -> str | None:
    """Buffers, then integers."""
    seen_number = False
    for argument in node.src[1:]:
        if argument.op in _NUMBERS:
            seen_number = True
        elif argument.op not in (Ops.BUFFER, Ops.PARAM):
            return f"takes BUFFERs, then integers, got {argument.op.name}"
        elif seen_number:
            return "takes its BUFFERs before its integers"
    return None


def _parameters(call: UOp) -> Iterator[UOp]:
    return (node for node in toposort((call.src[0],)) if node.op is Ops.PARAM)


def _parameters_fit(node: UOp) -> str | None:
    if node.arg.kind != "kernel":
        return None
    buffers = [s for s in node.src[1:] if s.op not in _NUMBERS]
    for param in _parameters(node):
        slot = param.arg.slot
        if not 0 <= slot < len(buffers):
            return f"the kernel takes buffer {slot}, the CALL gives {len(buffers)}"
        given = buffers[slot]
        if given.dtype is not param.dtype:
            return f"buffer {slot} holds {given.dtype!r}, the kernel takes {param.dtype!r}"
        if given.op is Ops.BUFFER and given.arg.size < param.arg.size:
            return f"buffer {slot} has {given.arg.size} elements of {param.arg.size}"
    return None


# ---- the whole schedule


def kernels_are_valid(nodes: Sequence[UOp]) -> Fault | None:
    """Each kernel satisfies `kernel_graph`."""
    for node in nodes:
        if node.op is Ops.CALL and node.arg.kind == "kernel":
            fault = first_fault(node.src[0], kernel_graph)
            if fault is not None:
                return Fault(fault.node, f"in kernel '{node.arg.name}': {fault.message}")
    return None


def written_slots(call: UOp) -> frozenset[int]:
    """The slots of the buffers that a CALL writes."""
    if call.arg.kind == "copy":
        return frozenset({0})
    return frozenset(param.arg.slot for param in _parameters(call) if param.arg.writable)


def versions_are_alive(nodes: Sequence[UOp]) -> Fault | None:
    """No CALL reads or writes a version that an earlier one has overwritten."""
    for node in nodes:
        if node.op is Ops.LINEAR:
            fault = _dead_read(node)
            if fault is not None:
                return fault
    return None


def _dead_read(linear: UOp) -> Fault | None:
    latest: dict[int, tuple[int, str]] = {}
    for call in linear.src:
        written = written_slots(call)
        for slot, buffer in enumerate(call.src[1:]):
            if buffer.op is not Ops.BUFFER:
                continue
            version, writer = latest.get(buffer.arg.id, (buffer.arg.version, ""))
            if buffer.arg.version < version:
                verb = "writes" if slot in written else "reads"
                return Fault(
                    call,
                    f"{verb} version {buffer.arg.version} of buffer {buffer.arg.id}, "
                    f"which '{writer}' overwrote by version {version}",
                )
            if slot in written:
                latest[buffer.arg.id] = (buffer.arg.version, call.arg.name)
    return None


def _is_number(node: UOp) -> str | None:
    return None if dtypes.is_int(node.dtype) else f"is an integer, got {node.dtype!r}"


_ELSEWHERE = OpRule(0, None, object)

schedule = Spec(
    "schedule",
    {
        Ops.LINEAR: OpRule(0, None, (NO_ARG, tuple, str), (_holds_calls,)),
        Ops.CALL: OpRule(
            1, None, CallArg, (_calls_what_it_says, _arguments_in_order, _parameters_fit)
        ),
        Ops.SINK: _ELSEWHERE,
        Ops.COPY: _ELSEWHERE,
        Ops.BUFFER: tensor_graph.ops[Ops.BUFFER],
        Ops.PARAM: _ELSEWHERE,
        Ops.CONST: OpRule(0, 0, int, (_is_number,)),
        Ops.BIND: tensor_graph.ops[Ops.BIND],
        Ops.DEFINE_VAR: tensor_graph.ops[Ops.DEFINE_VAR],
    },
    (kernels_are_valid, versions_are_alive),
    enters=frozenset({Ops.LINEAR, Ops.CALL}),
)
