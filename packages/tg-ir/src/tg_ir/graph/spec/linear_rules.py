"""The spec of the linear kernel: a list, each node after its sources, in nested loops."""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.spec.kernel_rules import (
    AFTER_RULE,
    BARRIER_RULE,
    DEFINE_RULE,
    INDEX_RULE,
    LOAD_RULE,
    PARAM_RULE,
    RANGE_RULE,
    SPECIAL_RULE,
    STORE_RULE,
)
from tg_ir.graph.spec.model import Fault, OpRule, Spec
from tg_ir.graph.spec.value_rules import (
    CONST_RULE,
    NO_ARG,
    VARIABLE_RULE,
    VECTOR_RULES,
    elementwise_rules,
    is_void,
)
from tg_ir.graph.uop import UOp

_OPENING = frozenset({Ops.RANGE, Ops.IF})
_CLOSING = frozenset({Ops.END, Ops.ENDIF})
_LINEAR_KINDS = frozenset(
    {
        AxisType.GLOBAL,
        AxisType.LOCAL,
        AxisType.THREAD,
        AxisType.LOOP,
        AxisType.REDUCE,
        AxisType.DEVICE,
    }
)


def _is_a_loop(node: UOp) -> str | None:
    if node.arg.kind in _LINEAR_KINDS:
        return None
    return f"axes of kind {node.arg.kind.name} are lanes or copies by now, not loops"


def _ends_a_range(node: UOp) -> str | None:
    source = node.src[0]
    return None if source.op is Ops.RANGE else f"ends a RANGE, got {source.op.name}"


def _ends_an_if(node: UOp) -> str | None:
    source = node.src[0]
    return None if source.op is Ops.IF else f"ends an IF, got {source.op.name}"


def _asks_a_bool(node: UOp) -> str | None:
    condition = node.src[0].dtype
    return None if condition is dtypes.bool else f"asks a bool, got {condition!r}"


# ---- the whole list


def sources_come_first(nodes: Sequence[UOp]) -> Fault | None:
    """Each node stands once, after its sources."""
    seen: set[UOp] = set()
    for node in nodes:
        if node in seen:
            return Fault(node, "stands twice in the list; a node is one value, computed once")
        for source in node.src:
            if source not in seen:
                where = "stands after it" if source in nodes else "is not in the list"
                return Fault(node, f"its source {source!r} {where}")
        seen.add(node)
    return None


def machine_dtypes_only(nodes: Sequence[UOp]) -> Fault | None:
    """`index` has a machine width by now."""
    for node in nodes:
        if node.dtype.scalar() is dtypes.index:
            return Fault(node, "has dtype index, which has no machine width; lower it")
    return None


def loops_are_nested(nodes: Sequence[UOp]) -> Fault | None:
    """Every RANGE and IF is ended, in reverse order, and what is computed inside stays inside."""
    opened: list[UOp] = []
    home: dict[UOp, UOp | None] = {}
    for node in nodes:
        fault = _outside_of_scope(node, opened, home)
        if fault is not None:
            return fault
        if node.op in _CLOSING:
            if not opened or opened[-1] is not node.src[0]:
                innermost = repr(opened[-1]) if opened else "nothing"
                return Fault(node, f"ends {node.src[0]!r}, but innermost is {innermost}")
            opened.pop()
        elif node.op in _OPENING:
            opened.append(node)
        home[node] = opened[-1] if opened else None
    if opened:
        return Fault(opened[-1], "is never ended")
    return None


def _outside_of_scope(
    node: UOp, opened: Sequence[UOp], home: dict[UOp, UOp | None]
) -> Fault | None:
    """A value is only known in the loop that computes it. Effects have no value."""
    for source in node.src:
        if source.dtype is dtypes.void:
            continue
        inside = home[source]
        if inside is not None and inside not in opened:
            return Fault(node, f"uses {source!r}, which was computed inside {inside!r}")
    return None


def one_thread_range(nodes: Sequence[UOp]) -> Fault | None:
    """The range that workers share is one, and is around everything that it repeats."""
    depth = 0
    found = False
    for node in nodes:
        if node.op is Ops.RANGE and node.arg.kind is AxisType.THREAD:
            if found:
                return Fault(node, "is a second THREAD range; a kernel has one")
            if depth:
                return Fault(node, "is a THREAD range inside another loop; it is outermost")
            found = True
        if node.op in _OPENING:
            depth += 1
        elif node.op in _CLOSING:
            depth -= 1
    return None


linear_kernel = Spec(
    "linear kernel",
    {
        Ops.PARAM: PARAM_RULE,
        Ops.DEFINE_VAR: VARIABLE_RULE,
        Ops.DEFINE_LOCAL: DEFINE_RULE,
        Ops.DEFINE_REG: DEFINE_RULE,
        Ops.CONST: CONST_RULE,
        Ops.SPECIAL: SPECIAL_RULE,
        Ops.RANGE: OpRule(1, 1, RANGE_RULE.arg, (*RANGE_RULE.checks, _is_a_loop)),
        Ops.END: OpRule(1, 1, NO_ARG, (is_void, _ends_a_range)),
        Ops.IF: OpRule(1, 1, NO_ARG, (is_void, _asks_a_bool)),
        Ops.ENDIF: OpRule(1, 1, NO_ARG, (is_void, _ends_an_if)),
        Ops.INDEX: INDEX_RULE,
        Ops.LOAD: LOAD_RULE,
        Ops.STORE: STORE_RULE,
        Ops.AFTER: AFTER_RULE,
        Ops.BARRIER: BARRIER_RULE,
        **elementwise_rules(),
        **VECTOR_RULES,
    },
    (sources_come_first, machine_dtypes_only, loops_are_nested, one_thread_range),
)
