"""What a spec is, a table of the ops of a stage with their rules, and `verify`.

A rule is a function of a node that gives None, or what is wrong. Checking is linear in the size of
the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tg_ir.errors import TgError
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import Ops
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import UOp, toposort

Check = Callable[[UOp], str | None]


@dataclass(frozen=True, slots=True)
class OpRule:
    """What one op looks like in one stage.

    least, most: how many sources; `most` None means any number.
    arg: the type of its argument, `type(None)` where it has none, or several such types.
    checks: further rules, the cheap and basic ones first: each may rely on those before it.
    """

    least: int
    most: int | None
    arg: type | tuple[type, ...]
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """A node that breaks a rule, and what is wrong with it."""

    node: UOp
    message: str


@dataclass(frozen=True, slots=True)
class Spec:
    """The rules of a stage.

    name: of the stage, as in "tensor graph".
    ops: the rule of each op that the stage may contain.
    whole: checks of the whole graph, given its nodes with sources first (a linear kernel: in its
        order).
    enters: the ops whose sources belong to this stage; None means all.
    """

    name: str
    ops: Mapping[Ops, OpRule]
    whole: tuple[Callable[[Sequence[UOp]], Fault | None], ...] = ()
    enters: frozenset[Ops] | None = None


def verify(graph: UOp | Sequence[UOp], spec: Spec) -> None:
    """Check that `graph` (a root, or the nodes of a linear kernel) satisfies `spec`.

    Raises:
        VerificationError: the first fault, with the nodes around it.
    """
    nodes = _nodes_of(graph, spec)
    fault = _first_fault(nodes, spec)
    if fault is None:
        return
    users = [node for node in nodes if fault.node in node.src]
    raise VerificationError(
        f"{spec.name}: {fault.node.op.name}: {fault.message}\n{neighbourhood(fault.node, users)}"
    )


def _nodes_of(graph: UOp | Sequence[UOp], spec: Spec) -> Sequence[UOp]:
    if not isinstance(graph, UOp):
        return tuple(graph)
    entered = spec.enters
    if entered is None:
        return tuple(toposort((graph,)))
    return tuple(toposort((graph,), lambda node: node.op in entered))


def first_fault(graph: UOp | Sequence[UOp], spec: Spec) -> Fault | None:
    """The first fault of `graph`, or None; for specs that hold graphs of another stage."""
    return _first_fault(_nodes_of(graph, spec), spec)


def is_valid(graph: UOp | Sequence[UOp], spec: Spec) -> bool:
    """Whether `verify` finds nothing."""
    try:
        verify(graph, spec)
    except VerificationError:
        return False
    return True


def _first_fault(nodes: Sequence[UOp], spec: Spec) -> Fault | None:
    for node in nodes:
        message = node_fault(node, spec)
        if message is not None:
            return Fault(node, message)
    for check in spec.whole:
        found = check(nodes)
        if found is not None:
            return found
    return None


def node_fault(node: UOp, spec: Spec) -> str | None:
    """What is wrong with one node, sources and users left aside; None if nothing is."""
    rule = spec.ops.get(node.op)
    if rule is None:
        return f"has no place in a {spec.name}"
    count = len(node.src)
    if count < rule.least or (rule.most is not None and count > rule.most):
        return f"takes {_counted(rule)}, got {count}"
    if not isinstance(node.arg, rule.arg):
        return f"its argument is {_types(rule.arg)}, got {node.arg!r}"
    try:
        for check in rule.checks:
            message = check(node)
            if message is not None:
                return message
    except TgError as error:
        # a derived fact (shape, bounds) that cannot be computed
        return str(error)
    return None


def _counted(rule: OpRule) -> str:
    if rule.most is None:
        return f"{rule.least} sources or more"
    if rule.least == rule.most:
        return "no sources" if rule.least == 0 else f"{rule.least} source(s)"
    return f"{rule.least} to {rule.most} sources"


def _types(types: type | tuple[type, ...]) -> str:
    several = types if isinstance(types, tuple) else (types,)
    return " or ".join("None" if t is type(None) else t.__name__ for t in several)
