"""UOp index expressions as the integer expressions of launches, evaluated without a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tg_ir.device import (
    Add,
    Const,
    FloorDiv,
    FloorMod,
    IntExpr,
    Max,
    Min,
    Mul,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    int_expr_from_json,
)
from tg_ir.graph import Ops, UOp, toposort

_BINARY: dict[Ops, Callable[[IntExpr, IntExpr], IntExpr]] = {
    Ops.ADD: Add,
    Ops.SUB: Sub,
    Ops.MUL: Mul,
    Ops.FLOORDIV: FloorDiv,
    Ops.FLOORMOD: FloorMod,
    Ops.CDIV: TruncDiv,
    Ops.CMOD: TruncMod,
    Ops.MAX: Max,
}


def to_int_expr(value: UOp | int) -> IntExpr:
    """`value` as an expression over the names of its variables.

    Raises:
        ValueError: it contains an op that launch sizes do not have.
    """
    if isinstance(value, int):
        return Const(value)
    made: dict[UOp, IntExpr] = {}
    for node in toposort((value,)):
        if node.op is Ops.CMPLT:
            continue  # part of a minimum, which its WHERE makes
        made[node] = _convert(node, made)
    return made[value]


def _convert(node: UOp, made: Mapping[UOp, IntExpr]) -> IntExpr:
    match node.op:
        case Ops.CONST:
            return Const(int(node.arg))
        case Ops.DEFINE_VAR:
            return Var(node.arg.name)
        case Ops.BIND | Ops.CAST:
            return made[node.src[0]]
        case Ops.NEG:
            return Mul(made[node.src[0]], Const(-1))
        case Ops.WHERE if node.src[0].op is Ops.CMPLT and node.src[0].src == node.src[1:]:
            return Min(made[node.src[1]], made[node.src[2]])
        case op if op in _BINARY:
            return _BINARY[op](made[node.src[0]], made[node.src[1]])
        case _:
            raise ValueError(f"{node!r} cannot be part of a launch size")


def rename_variables(expression: IntExpr, names: Mapping[str, str]) -> IntExpr:
    """`expression` with each variable called by its name in `names`."""
    if not expression.variables():
        return expression
    items = expression.to_json()
    return int_expr_from_json(
        [{"var": names[item["var"]]} if isinstance(item, dict) else item for item in items]
    )
