"""The registry of gradient rules: one function an op, found by the op.

A rule gets a node and the gradient of the loss by it, and gives pairs of a source and the gradient
by it. A source may come more than once, or be further below: what one pair says is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tg_ir.graph import Ops, UOp

Contribution = tuple[UOp, UOp]
Rule = Callable[[UOp, UOp], Iterable[Contribution]]

RULES: dict[Ops, Rule] = {}


def gradient_of(*ops: Ops) -> Callable[[Rule], Rule]:
    """Register a rule for ops, each of which has one."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            known = RULES.setdefault(op, rule)
            if known is not rule:
                raise ValueError(
                    f"two gradient rules for {op.name}: {known.__name__} and {rule.__name__}"
                )
        return rule

    return register
