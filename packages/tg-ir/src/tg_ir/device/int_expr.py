"""Integer expressions for launch sizes: all that running needs of symbolic shapes.

An expression is a tree of frozen dataclasses over constants and named variables. It is evaluated
against the values of one run, and written to a manifest as a flat postfix list, so no depth of
tree recurses. Simplification is not here: the compiler did it before it made these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tg_ir.device.errors import ArtifactFormatError, UnboundVariableError

PostfixItem: TypeAlias = int | str | dict[str, str]
"""One item of the written form: a constant, the name of an operation, or `{"var": name}`."""


@dataclass(frozen=True)
class IntExpr:
    """A mathematical integer that depends on the variables of a program."""

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the value for one run.

        Args:
            values: the value of each variable, by name; may hold more than are needed.

        Raises:
            UnboundVariableError: a variable of the expression has no value.
        """
        results: list[int] = []
        for node in _postorder(self):
            if isinstance(node, Const):
                results.append(node.value)
            elif isinstance(node, Var):
                if node.name not in values:
                    raise UnboundVariableError(node.name, values)
                results.append(values[node.name])
            elif isinstance(node, BinaryExpr):
                right = results.pop()
                results.append(_APPLY[node.symbol](results.pop(), right))
        return results.pop()

    def variables(self) -> frozenset[str]:
        """Return the names of the variables that the value depends on."""
        return frozenset(node.name for node in _postorder(self) if isinstance(node, Var))

    def to_json(self) -> list[PostfixItem]:
        """Return the postfix form, made of what JSON can hold."""
        items: list[PostfixItem] = []
        for node in _postorder(self):
            if isinstance(node, Const):
                items.append(node.value)
            elif isinstance(node, Var):
                items.append({"var": node.name})
            elif isinstance(node, BinaryExpr):
                items.append(node.symbol)
        return items

    def __add__(self, other: IntExpr | int) -> IntExpr:
        """Return the sum."""
        return Add(self, as_int_expr(other))

    def __sub__(self, other: IntExpr | int) -> IntExpr:
        """Return the difference."""
        return Sub(self, as_int_expr(other))

    def __mul__(self, other: IntExpr | int) -> IntExpr:
        """Return the product."""
        return Mul(self, as_int_expr(other))

    def __floordiv__(self, other: IntExpr | int) -> IntExpr:
        """Return the quotient rounded down; 0 where the divisor is 0."""
        return FloorDiv(self, as_int_expr(other))

    def __mod__(self, other: IntExpr | int) -> IntExpr:
        """Return the remainder of the floor division; 0 where the divisor is 0."""
        return FloorMod(self, as_int_expr(other))


@dataclass(frozen=True)
class Const(IntExpr):
    """A known integer."""

    value: int

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the constant; most launch sizes are one, so this skips the traversal."""
        return self.value

    def variables(self) -> frozenset[str]:
        """Return none."""
        return frozenset()


@dataclass(frozen=True)
class Var(IntExpr):
    """A variable that each run gives a value."""

    name: str


@dataclass(frozen=True)
class BinaryExpr(IntExpr):
    """Base of the operations on two integers."""

    left: IntExpr
    right: IntExpr
    symbol: ClassVar[str] = ""


class Add(BinaryExpr):
    """`left + right`."""

    symbol = "+"


class Sub(BinaryExpr):
    """`left - right`."""

    symbol = "-"


class Mul(BinaryExpr):
    """`left * right`."""

    symbol = "*"


class FloorDiv(BinaryExpr):
    """`left // right`, rounded down."""

    symbol = "//"


class FloorMod(BinaryExpr):
    """`left - right * (left // right)`."""

    symbol = "%"


class TruncDiv(BinaryExpr):
    """`left / right`, rounded towards zero, as in C."""

    symbol = "cdiv"


class TruncMod(BinaryExpr):
    """`left - right * cdiv(left, right)`, as in C."""

    symbol = "cmod"


class Min(BinaryExpr):
    """The smaller of the two."""

    symbol = "min"


class Max(BinaryExpr):
    """The larger of the two."""

    symbol = "max"


def as_int_expr(value: IntExpr | int) -> IntExpr:
    """Return `value` itself, or a `Const` of it if it is a Python integer."""
    return value if isinstance(value, IntExpr) else Const(value)


def int_expr_from_json(items: Sequence[object]) -> IntExpr:
    """Read the form that `IntExpr.to_json` writes.

    Raises:
        ArtifactFormatError: an item is unknown, or the items do not make one expression.
    """
    stack: list[IntExpr] = []
    for item in items:
        if isinstance(item, int):
            stack.append(Const(item))
        elif isinstance(item, dict) and isinstance(item.get("var"), str):
            stack.append(Var(item["var"]))
        elif isinstance(item, str) and item in _CLASSES and len(stack) >= 2:
            right = stack.pop()
            stack.append(_CLASSES[item](stack.pop(), right))
        else:
            raise ArtifactFormatError(
                f"integer expression {items!r}: {item!r} is not expected here"
            )
    if len(stack) != 1:
        raise ArtifactFormatError(
            f"integer expression {items!r}: {len(stack)} values, expected one"
        )
    return stack[0]


def _postorder(root: IntExpr) -> Iterator[IntExpr]:
    """Yield every node after its operands; a shared operand comes once for each use."""
    stack: list[tuple[IntExpr, bool]] = [(root, False)]
    while stack:
        node, operands_done = stack.pop()
        if operands_done or not isinstance(node, BinaryExpr):
            yield node
        else:
            stack.append((node, True))
            stack.append((node.right, False))
            stack.append((node.left, False))


def _floor_div(left: int, right: int) -> int:
    return left // right if right else 0


def _floor_mod(left: int, right: int) -> int:
    return left % right if right else 0


def _trunc_div(left: int, right: int) -> int:
    if not right:
        return 0
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


def _trunc_mod(left: int, right: int) -> int:
    return left - right * _trunc_div(left, right) if right else 0


_APPLY: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "//": _floor_div,
    "%": _floor_mod,
    "cdiv": _trunc_div,
    "cmod": _trunc_mod,
    "min": min,
    "max": max,
}

_CLASSES: dict[str, type[BinaryExpr]] = {
    cls.symbol: cls for cls in (Add, Sub, Mul, FloorDiv, FloorMod, TruncDiv, TruncMod, Min, Max)
}
