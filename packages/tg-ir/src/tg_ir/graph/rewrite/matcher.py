"""`Rule` and `PatternMatcher`: what replaces what, what each rule assumes, the table by op.

What a rule may assume (docs/reference/semantics.md, promise 7) is declared on it; `graph_rewrite`
applies a rule that is not exact only with fast_math, or where its guard proves the assumption.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tg_ir.graph.ops import Ops
from tg_ir.graph.rewrite.compiled import NodeFunction, compile_pattern
from tg_ir.graph.rewrite.errors import PatternError
from tg_ir.graph.rewrite.pattern import Bindings, UPat
from tg_ir.graph.scalar import alu
from tg_ir.graph.uop import UOp

RuleFunction = Callable[..., "UOp | None"]
Guard = Callable[..., bool]


class Assumption(Enum):
    """What a rule takes for granted; only EXACT rules apply everywhere."""

    EXACT = "exact"
    NO_NAN = "assumes_no_nan"
    NO_OVERFLOW = "assumes_no_overflow"
    REASSOCIATES = "reassociates"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite: where `pattern` matches, `function` says what replaces the node.

    Where `function` gives None the rule does not apply. `guard` takes what `function` takes; where
    it is true the assumption is proved for this match.
    """

    pattern: UPat
    function: RuleFunction
    name: str
    assumption: Assumption = Assumption.EXACT
    guard: Guard | None = None


def _declare(assumption: Assumption) -> Callable[..., Any]:
    def decorate(function: RuleFunction | None = None, *, guard: Guard | None = None) -> Any:
        if function is None:
            return lambda real: decorate(real, guard=guard)
        function.assumption = assumption  # type: ignore[attr-defined]  # read by as_rule
        function.guard = guard  # type: ignore[attr-defined]  # functions take attributes
        return function

    decorate.__name__ = assumption.value
    decorate.__doc__ = f"Decorator: this rule function is `{assumption.value}`; `guard=` proves it."
    return decorate


exact = _declare(Assumption.EXACT)
assumes_no_nan = _declare(Assumption.NO_NAN)
assumes_no_overflow = _declare(Assumption.NO_OVERFLOW)
reassociates = _declare(Assumption.REASSOCIATES)


def rule(
    name: str,
    before: UPat,
    after: UPat,
    *,
    exact: bool = False,
    assumes: Assumption | None = None,
    guard: Guard | None = None,
) -> Rule:
    """A rule in plain algebra: `rule("fold_add_of_zero", x + 0, x, exact=True)`.

    Literals in `after` take the dtype of the operand beside them, or of the node replaced.

    Raises:
        PatternError: not declared exactly once (`exact=True` or `assumes=`), or `after` uses a
        name that
            `before` does not capture.
    """
    if exact == (assumes is not None):
        raise PatternError(f"rule '{name}': say either exact=True or assumes=...")
    missing = after.names() - before.names()
    if missing:
        raise PatternError(f"rule '{name}': {sorted(missing)} is not captured on the left side")
    names = tuple(sorted(before.names()))
    root = before if before.name is not None else before.named("replaced_node")

    def build(*nodes: UOp) -> UOp:
        bindings = dict(zip((*names, "replaced_node"), nodes, strict=False))
        template = nodes[-1] if before.name is None else bindings[before.name]
        return _build(after, bindings, template)

    parameters = names if before.name is not None else (*names, "replaced_node")
    build.parameters = parameters  # type: ignore[attr-defined]  # read by _parameters
    return Rule(root, build, name, assumes or Assumption.EXACT, guard)


_CONST = frozenset({Ops.CONST})


def _build(after: UPat, bindings: Bindings, template: UOp) -> UOp:
    """The node that the right side of a rule describes; small, so recursion is safe."""
    if after.name is not None and after.name in bindings:
        return bindings[after.name]
    if after.op == _CONST:
        return template.const_like(after.arg)
    if after.op is None or len(after.op) != 1 or not isinstance(after.src, (tuple, list)):
        raise PatternError(f"{after!r} on the right side of a rule does not say what to build")
    (op,) = after.op
    if op in {Ops.CAST, Ops.BITCAST}:
        dtype = template.dtype if after.dtype is None else next(iter(after.dtype))
        return UOp(op, dtype, (_build(after.src[0], bindings, template),))
    built = [
        None if s.op == _CONST and s.name is None else _build(s, bindings, template)
        for s in after.src
    ]
    beside = next((node for node in reversed(built) if node is not None), template)
    operands = [
        beside.const_like(pattern.arg) if node is None else node
        for pattern, node in zip(after.src, built, strict=True)
    ]
    result = operands[0].alu(op, *operands[1:])
    if result.op is Ops.CONST or any(operand.op is not Ops.CONST for operand in operands):
        return result
    values = [operand.arg for operand in operands]
    return UOp.const(result.dtype, alu(op, result.dtype, values))


def _rule_name(function: RuleFunction) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return name
    return f"lambda at {code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno}"


def as_rule(item: Rule | tuple[UPat, RuleFunction]) -> Rule:
    """The rule that an entry of a `PatternMatcher` stands for."""
    if isinstance(item, Rule):
        return item
    pattern, function = item
    assumption = getattr(function, "assumption", Assumption.EXACT)
    return Rule(
        pattern, function, _rule_name(function), assumption, getattr(function, "guard", None)
    )


def _parameters(function: Callable[..., Any], of_rule: Rule) -> tuple[str, ...]:
    """The names of the nodes to call `function` with.

    Raises:
        PatternError: it asks for a name that the pattern does not capture.
    """
    declared = getattr(function, "parameters", None)
    if declared is not None:
        return tuple(declared)
    captured = of_rule.pattern.names() | {"ctx"}
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise PatternError(f"rule '{of_rule.name}': name the captured nodes, not *args")
        if parameter.name in captured:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise PatternError(
                f"rule '{of_rule.name}' asks for '{parameter.name}'; "
                f"its pattern captures {sorted(of_rule.pattern.names())}"
            )
        else:
            break
    return tuple(names)


def _compile(of_rule: Rule, guard: Guard | None) -> NodeFunction:
    parameters = _parameters(of_rule.function, of_rule)
    if guard is None:
        return compile_pattern(of_rule.pattern, parameters, of_rule.function)
    guard_parameters = _parameters(guard, of_rule)
    positions = [parameters.index(name) for name in guard_parameters]
    check = guard

    def in_order(*nodes: UOp) -> bool:
        return check(*[nodes[position] for position in positions])

    return compile_pattern(of_rule.pattern, parameters, of_rule.function, in_order)


class PatternMatcher:
    """An ordered list of rules; the first that applies to a node wins.

    Args:
        rules: `Rule`s or pairs (pattern, function). The function gets the captured nodes by name,
        and the context
            where it has a parameter `ctx`; None means that it does not apply.

    Raises:
        PatternError: a function asks for a name that its pattern does not capture.
    """

    def __init__(self, rules: Iterable[Rule | tuple[UPat, RuleFunction]]) -> None:
        self.rules: tuple[Rule, ...] = tuple(as_rule(item) for item in rules)
        for each in self.rules:
            _parameters(each.function, each)
        # compiled on first use: [exact, fast_math], by op
        self._tables: tuple[dict[Ops, Sequence[tuple[NodeFunction, Rule]]], ...] = ({}, {})
        self._functions: dict[tuple[int, bool], NodeFunction] = {}

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def rules_for(self, op: Ops, fast_math: bool = False) -> Sequence[tuple[NodeFunction, Rule]]:
        """The rules that may apply to a node of `op`, compiled, in order."""
        table = self._tables[fast_math]
        found = table.get(op)
        if found is None:
            found = table[op] = self._compile_for(op, fast_math)
        return found

    def _compile_for(self, op: Ops, fast_math: bool) -> Sequence[tuple[NodeFunction, Rule]]:
        compiled: list[tuple[NodeFunction, Rule]] = []
        for position, each in enumerate(self.rules):
            ops = each.pattern.root_ops()
            if ops is not None and op not in ops:
                continue
            free = fast_math or each.assumption is Assumption.EXACT
            if not free and each.guard is None:
                continue
            function = self._functions.get((position, free))
            if function is None:
                function = _compile(each, None if free else each.guard)
                self._functions[position, free] = function
            compiled.append((function, each))
        return tuple(compiled)

    def rewrite(self, uop: UOp, ctx: Any = None, fast_math: bool = False) -> UOp | None:
        """What the first rule that applies to `uop` makes of it; None: none applies."""
        for function, _ in self.rules_for(uop.op, fast_math):
            result = function(uop, ctx)
            if result is not None and result is not uop:
                return result
        return None
