"""`dump`: a graph as text, one node a line, sources before users.

    tg-ir text 1
    0: PARAM float32 () ParamArg(slot=0, size=4, writable=True)
    1: CONST int64 () 3
    2: INDEX float32 (0, 1)
    roots (2)

A node is `number: OP dtype (sources) argument`; `float32x4` is a vector. Fields of an argument that
have their default value are left out. The body of a Combine is written as nodes and named by
`%number`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from tg_ir.dtype import DType
from tg_ir.graph.ops import AddrSpace, AxisType, Combine, Ops, ReduceArg
from tg_ir.graph.uop import Symbol, UOp

FORMAT_VERSION = 1
HEADER = "tg-ir text"


def graph_nodes(roots: Iterable[UOp]) -> dict[UOp, None]:
    """Every node reachable from `roots`, the bodies of Combines included, sources first.

    The nodes of a linear kernel come out in the order of the kernel.
    """
    order: dict[UOp, None] = {}
    for root in roots:
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if node in order:
                continue
            needs = (*node.src, *combine_body(node))
            if done or not needs:
                order[node] = None
                continue
            stack.append((node, True))
            stack.extend((need, False) for need in reversed(needs) if need not in order)
    return order


def combine_body(node: UOp) -> tuple[UOp, ...]:
    """The nodes that the argument of `node` holds: the body of a Combine."""
    return node.arg.combine.body if isinstance(node.arg, ReduceArg) else ()


def dtype_text(dtype: DType) -> str:
    """`float32` or, with lanes, `float32x4`."""
    return dtype.name if dtype.count == 1 else f"{dtype.name}x{dtype.count}"


def argument_text(value: Any, numbers: dict[UOp, int]) -> str:
    """An argument as text; `numbers` gives the number of each node that a Combine may name.

    Raises:
        TypeError: a value that arguments cannot hold.
    """
    if isinstance(value, UOp):
        return f"%{numbers[value]}"
    if isinstance(value, Symbol):
        return f"src[{int(value)}]"
    if isinstance(value, (Ops, AxisType, AddrSpace)):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, DType):
        return f"dtype.{dtype_text(value)}"
    if isinstance(value, tuple):
        items = ", ".join(argument_text(item, numbers) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass_text(value, numbers)
    raise TypeError(
        "the argument of a node is a number, text, tuple or a dataclass of tg_ir.graph.ops, "
        f"not {type(value).__name__}"
    )


def _dataclass_text(value: Any, numbers: dict[UOp, int]) -> str:
    fields = []
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        if not _is_default(held, field):
            fields.append(f"{field.name}={argument_text(held, numbers)}")
    return f"{type(value).__name__}({', '.join(fields)})"


def _is_default(held: Any, field: dataclasses.Field[Any]) -> bool:
    if field.default is dataclasses.MISSING:
        return field.default_factory is tuple and held == ()
    return type(held) is type(field.default) and bool(held == field.default)


def dump(roots: UOp | Sequence[UOp]) -> str:
    """The text of the graphs below `roots`, or of a linear kernel given as its list of nodes.

    `parse` gives the same nodes back, in the order of `roots`. Linear in the number of nodes.

    Raises:
        TypeError: an argument holds something that has no text.
    """
    root_list = (roots,) if isinstance(roots, UOp) else tuple(roots)
    numbers: dict[UOp, int] = {}
    lines = [f"{HEADER} {FORMAT_VERSION}"]
    for node in graph_nodes(root_list):
        number = len(numbers)
        sources = ", ".join([str(numbers[s]) for s in node.src])
        argument = "" if node.arg is None else " " + argument_text(node.arg, numbers)
        lines.append(
            f"{number}: {node.op.name} {dtype_text(node.dtype)} ({sources}){argument}"
        )
        numbers[node] = number
    root_numbers = [numbers[root] for root in root_list]
    everything = len(root_numbers) > 1 and root_numbers == list(range(len(numbers)))
    named = "all" if everything else f"({', '.join(map(str, root_numbers))})"
    lines.append(f"roots {named}")
    return "\n".join(lines) + "\n"


__all__ = [
    "FORMAT_VERSION",
    "HEADER",
    "Combine",
    "argument_text",
    "combine_body",
    "dtype_text",
    "dump",
    "graph_nodes",
]
