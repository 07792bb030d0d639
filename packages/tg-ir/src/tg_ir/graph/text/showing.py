"""`show`: a graph or a linear kernel for people, as printed by DEBUG=5 and 6.

One numbered line a node, sources by number, indented by loop depth where the nodes are a linear
kernel, with what the node computes written as an expression where that is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.text.writing import argument_text, dtype_text, graph_nodes
from tg_ir.graph.uop import UOp

_INFIX = {
    Ops.ADD: "+",
    Ops.SUB: "-",
    Ops.MUL: "*",
    Ops.FDIV: "/",
    Ops.FLOORDIV: "//",
    Ops.FLOORMOD: "%",
    Ops.CMPLT: "<",
    Ops.CMPNE: "!=",
    Ops.CMPEQ: "==",
    Ops.AND: "&",
    Ops.OR: "|",
    Ops.XOR: "^",
    Ops.SHL: "<<",
    Ops.SHR: ">>",
}
_OPENING = frozenset({Ops.RANGE, Ops.IF})
_CLOSING = frozenset({Ops.END, Ops.ENDIF})
_EXPRESSION_LENGTH = 60


def show(roots: UOp | Sequence[UOp]) -> str:
    """The text of a graph below `roots`, or of a linear kernel given as its list of nodes."""
    root_list = (roots,) if isinstance(roots, UOp) else tuple(roots)
    nodes = graph_nodes(root_list)
    is_linear = len(root_list) > 1 and list(nodes) == list(root_list)
    numbers = {node: number for number, node in enumerate(nodes)}
    expressions: dict[UOp, str] = {}
    depth = 0
    lines = []
    for node, number in numbers.items():
        expressions[node] = _expression(node, numbers, expressions)
        if is_linear and node.op in _CLOSING:
            depth = max(0, depth - 1)
        lines.append(_line(node, number, numbers, expressions, "  " * depth))
        if is_linear and node.op in _OPENING:
            depth += 1
    return "\n".join(lines) + "\n"


def print_graph(roots: UOp | Sequence[UOp]) -> None:
    """Print `show(roots)`."""
    print(show(roots), end="")


def _line(
    node: UOp,
    number: int,
    numbers: dict[UOp, int],
    expressions: dict[UOp, str],
    indent: str,
) -> str:
    sources = ", ".join(str(numbers[s]) for s in node.src)
    argument = "" if node.arg is None else argument_text(node.arg, numbers)
    head = f"{number:4} {indent}{node.op.name:<12} {dtype_text(node.dtype):<10} ({sources})"
    text = f"{head:<44} {argument}".rstrip()
    expression = expressions[node]
    if node.src and expression != f"v{number}":
        text = f"{text:<64} # {expression}"
    return text.rstrip()


def _expression(node: UOp, numbers: dict[UOp, int], known: dict[UOp, str]) -> str:
    """What `node` computes, from the expressions of its sources; `v<number>` if that is long."""
    text = _operation(node, numbers, known)
    return text if 0 < len(text) <= _EXPRESSION_LENGTH else f"v{numbers[node]}"


def _operation(node: UOp, numbers: dict[UOp, int], known: dict[UOp, str]) -> str:
    args = [known[s] for s in node.src]
    if node.op in _INFIX:
        return f"({args[0]} {_INFIX[node.op]} {args[1]})"
    if node.op in GroupOp.ALU:
        return f"{node.op.name.lower()}({', '.join(args)})"
    spell = _SPELLINGS.get(node.op)
    return f"v{numbers[node]}" if spell is None else spell(node, args)


def _spell_index(node: UOp, args: Sequence[str]) -> str:
    guard = f" if {args[2]}" if len(args) > 2 else ""
    return f"{args[0]}[{args[1]}{guard}]"


def _spell_range(node: UOp, args: Sequence[str]) -> str:
    return f"r{'_'.join(str(number) for number in node.arg.axis)}"


_SPELLINGS: dict[Ops, Callable[[UOp, Sequence[str]], str]] = {
    Ops.CONST: lambda node, args: repr(node.arg),
    Ops.RANGE: _spell_range,
    Ops.DEFINE_VAR: lambda node, args: str(node.arg.name),
    Ops.SPECIAL: lambda node, args: str(node.arg),
    Ops.PARAM: lambda node, args: f"data{node.arg.slot}",
    Ops.DEFINE_REG: lambda node, args: f"reg{node.arg.slot}",
    Ops.DEFINE_LOCAL: lambda node, args: f"local{node.arg.slot}",
    Ops.AFTER: lambda node, args: args[0],
    Ops.CAST: lambda node, args: f"({dtype_text(node.dtype)}){args[0]}",
    Ops.INDEX: _spell_index,
    Ops.STORE: lambda node, args: f"{args[0]} = {args[1]}",
    Ops.GEP: lambda node, args: f"{args[0]}.{node.arg}",
}
