"""Turns a `UPat` and what to do on a match into one Python function of a node and the context.

The function is nested ifs and loops in the order in which they reject soonest. It accepts the
nodes that `UPat.match` accepts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tg_ir.graph.rewrite.pattern import Bindings, UPat, match_sequence, same_arg
from tg_ir.graph.uop import UOp

NodeFunction = Callable[[UOp, Any], "UOp | None"]


def match_repeated(pattern: UPat, nodes: tuple[UOp, ...], known: Bindings) -> Iterator[Bindings]:
    """Every way in which all of `nodes` fit `pattern`."""
    return match_sequence([pattern] * len(nodes), nodes, known)


class _Writer:
    """Writes the body of one matching function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 1
        self.values: dict[str, Any] = {
            "permutations": itertools.permutations,
            "match_repeated": match_repeated,
            "same_arg": same_arg,
        }
        self.bound: dict[str, str] = {}
        # names that only some of the choices of a UPat.any bind: None elsewhere
        self.optional: set[str] = set()
        self.conditions: list[str] = []
        self.variables = 0

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def flush(self) -> None:
        """Opens an `if` for the conditions met so far."""
        if self.conditions:
            self.line(f"if {' and '.join(self.conditions)}:")
            self.indent += 1
            self.conditions = []

    def constant(self, value: Any) -> str:
        name = f"c{len(self.values)}"
        self.values[name] = value
        return name

    def variable(self) -> str:
        self.variables += 1
        return f"n{self.variables}"

    def check_op(self, pattern: UPat, node: str) -> None:
        if pattern.op is None:
            return
        if len(pattern.op) == 1:
            (op,) = pattern.op
            self.conditions.append(f"{node}.op is {self.constant(op)}")
        else:
            self.conditions.append(f"{node}.op in {self.constant(pattern.op)}")

    def check_node(self, pattern: UPat, node: str) -> None:
        """Dtype, argument, number of sources, and whether a name used before is this node."""
        if pattern.dtype is not None:
            known = self.constant(pattern.dtype)
            lanes = f"({node}.dtype.count != 1 and {node}.dtype.scalar() in {known})"
            self.conditions.append(f"({node}.dtype in {known} or {lanes})")
        if pattern.arg is not None:
            self.conditions.append(f"same_arg({self.constant(pattern.arg)}, {node}.arg)")
        if isinstance(pattern.src, (tuple, list)):
            relation = ">=" if pattern.allow_any_len else "=="
            self.conditions.append(f"len({node}.src) {relation} {len(pattern.src)}")
        if pattern.name is None:
            return
        known_as = self.bound.get(pattern.name)
        if known_as is not None and pattern.name not in self.optional:
            self.conditions.append(f"{known_as} is {node}")
        elif known_as is not None:
            self.conditions.append(f"({known_as} is None or {known_as} is {node})")
            self.optional.discard(pattern.name)
            self.bound[pattern.name] = node
        else:
            self.bound[pattern.name] = node

    def check_interpreted(self, call: str, pattern: UPat) -> None:
        """A part that is matched by `UPat.match`: choices and repeated sources."""
        self.flush()
        known = ", ".join(f"{name!r}: {node}" for name, node in self.bound.items())
        found = self.variable()
        self.line(f"for {found} in {call.format(known='{' + known + '}')}:")
        self.indent += 1
        for name in sorted(pattern.names()):
            if name not in self.bound or name in self.optional:
                node = self.variable()
                self.line(f"{node} = {found}.get({name!r})")
                self.bound[name] = node
                self.optional.add(name)

    def write(self, root: UPat) -> None:
        """The checks of `root`, breadth first: ops of all sources before their sources."""
        queue: list[tuple[UPat, str]] = [(root, "node")]
        self.check_node_or_choice(root, "node")
        while queue:
            pattern, node = queue.pop(0)
            queue.extend(self.open_sources(pattern, node))

    def check_node_or_choice(self, pattern: UPat, node: str) -> None:
        self.check_node(pattern, node)
        if pattern.choices:
            any_of = UPat.any(*pattern.choices)
            call = f"{self.constant(any_of)}.match({node}, {{known}})"
            self.check_interpreted(call, any_of)

    def open_sources(self, pattern: UPat, node: str) -> list[tuple[UPat, str]]:
        """Binds and checks the sources of `node`; returns those to open next."""
        src = pattern.src
        if src is None or pattern.choices or (isinstance(src, (tuple, list)) and not src):
            return []
        if isinstance(src, UPat):
            call = f"match_repeated({self.constant(src)}, {node}.src, {{known}})"
            self.check_interpreted(call, src)
            return []
        self.flush()
        names = [self.variable() for _ in src]
        targets = ", ".join(names) + ("," if len(names) == 1 else "")
        if isinstance(src, list) and len(src) == 2:
            pair = f"{node}.src"
            self.line(f"for {targets} in ({pair}, {pair}[::-1]):")
            self.indent += 1
        elif isinstance(src, list) and len(src) > 2:
            self.line(f"for {targets} in permutations({node}.src):")
            self.indent += 1
        else:
            cut = f"[:{len(src)}]" if pattern.allow_any_len else ""
            self.line(f"{targets} = {node}.src{cut}")
        for source, name in zip(src, names, strict=True):
            self.check_op(source, name)
        for source, name in zip(src, names, strict=True):
            self.check_node_or_choice(source, name)
        return list(zip(src, names, strict=True))


def compile_pattern(
    pattern: UPat,
    parameters: tuple[str, ...],
    action: Callable[..., UOp | None],
    guard: Callable[..., bool] | None = None,
) -> NodeFunction:
    """A function `(node, ctx)`: what `action` gives for the first match that it accepts.

    The op of the node itself is not checked: the caller looks rules up by op. `action` and `guard`
    are called with the nodes captured under the names in `parameters` ("ctx": the context), in
    that order.
    """
    writer = _Writer()
    writer.write(pattern)
    writer.flush()
    writer.values["action"] = action
    values = [name if name == "ctx" else writer.bound[name] for name in parameters]
    call = ", ".join(values)
    if guard is not None:
        writer.values["guard"] = guard
        writer.line(f"if guard({call}):")
        writer.indent += 1
    writer.line(f"result = action({call})")
    writer.line("if result is not None:")
    writer.line("  return result")
    source = "\n".join(["def match(node, ctx):", *writer.lines, "  return None"])
    exec(compile(source, f"<pattern of {pattern!r}>", "exec"), writer.values)
    function: NodeFunction = writer.values["match"]
    return function
