"""`gradients`: the reverse walk over a graph. Iterative, so any depth of graph works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, UOp, substitute, toposort

from tg_frontend.autograd import (  # noqa: F401 - each registers its rules
    elementwise_rules,
    movement_rules,
    reduction_rules,
    write_rules,
)
from tg_frontend.autograd.rules import RULES, Rule
from tg_frontend.autograd.structural_zeros import added
from tg_frontend.errors import GradientError
from tg_frontend.live.history import differentiable_sources, with_histories

CallGradient = Callable[[Sequence[UOp], Sequence[UOp | None]], Sequence[UOp | None]]
"""`(arguments, gradient by each result) -> gradient by each argument`; None for none."""

_call_gradients: dict[str, CallGradient] = {}


def register_gradient(name: str, function: CallGradient) -> None:
    """Give the FUNCTIONs and CUSTOM kernels whose argument names `gradient=name` their gradient.

    Raises:
        GradientError: the name is taken by another function.
    """
    known = _call_gradients.setdefault(name, function)
    if known is not function:
        raise GradientError(f"two functions are the gradient '{name}': {known!r} and {function!r}")


def has_gradient(name: str) -> bool:
    """Whether a gradient of that name is registered."""
    return name in _call_gradients


def gradients(
    root: UOp, root_gradient: UOp, targets: Sequence[UOp], realized: Iterable[UOp] = ()
) -> list[UOp | None]:
    """The gradient by each of `targets`, or None where `root` does not depend on it.

    Args:
        root: the value that is differentiated.
        root_gradient: the gradient by `root`, of its shape.
        targets: nodes of float dtype.
        realized: REALIZED nodes whose values may be read rather than computed again.

    Raises:
        GradientError: the way leads through an op that has no rule.
    """
    plain = with_histories([root, *targets])
    stored = {node.src[1]: node for node in (*realized, *plain) if node.op is Ops.REALIZED}
    root, *wanted = _inlined([plain[root], *[plain[target] for target in targets]])
    order, reaching = _paths(root, set(wanted))
    found: dict[UOp, UOp] = {root: root_gradient} if root in reaching else {}
    results: dict[UOp, dict[int, UOp]] = {}
    for node in reversed(order):
        if node not in reaching:
            continue
        if node.op in (Ops.FUNCTION, Ops.CUSTOM):
            contributions = _through_call(node, results.pop(node, {}))
        elif node not in found or not any(source in reaching for source in _sources(node)):
            continue
        elif node.op is Ops.GETTUPLE:
            _note_result(node, found[node], results)
            continue
        else:
            contributions = list(_rule(node)(node, found[node]))
        for source, gradient in contributions:
            if source in reaching:
                before = found.get(source)
                found[source] = gradient if before is None else added(before, gradient)
    answers = [found.get(target) for target in wanted]
    return _reading_stored_values(answers, stored)


def depends_on(root: UOp, targets: Sequence[UOp]) -> list[bool]:
    """For each target whether a gradient path leads from `root` to it."""
    plain = with_histories([root, *targets])
    root, *wanted = _inlined([plain[root], *[plain[target] for target in targets]])
    order, _ = _paths(root, set())
    nodes = set(order)
    return [target in nodes for target in wanted]


def _paths(root: UOp, targets: set[UOp]) -> tuple[list[UOp], set[UOp]]:
    """Every node that a gradient may pass, sources first.

    And those from which it reaches a target.
    """
    order: dict[UOp, None] = {}
    reaching: set[UOp] = set()
    stack: list[tuple[UOp, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if node in order:
            continue
        sources = _sources(node)
        if done:
            order[node] = None
            if node in targets or any(source in reaching for source in sources):
                reaching.add(node)
            continue
        stack.append((node, True))
        stack.extend((source, False) for source in reversed(sources) if source not in order)
    return list(order), reaching


def _sources(node: UOp) -> tuple[UOp, ...]:
    if node.op is Ops.GETTUPLE:
        return node.src
    if node.op is Ops.FUNCTION:
        return node.src[1:]
    return differentiable_sources(node)


def _rule(node: UOp) -> Rule:
    rule = RULES.get(node.op)
    if rule is None:
        raise GradientError(
            f"no gradient rule for {node.op.name} of shape {node.shape}; "
            "detach() it if none is wanted"
        )
    return rule


def _inlined(roots: Sequence[UOp]) -> list[UOp]:
    """`roots` with each FUNCTION that names no gradient replaced by its body."""
    order = toposort(roots)
    if not any(node.op is Ops.FUNCTION and not node.arg.gradient for node in order):
        return list(roots)
    new: dict[UOp, UOp] = {}
    bodies: dict[UOp, tuple[UOp, ...]] = {}
    for node in order:
        src = tuple([new[source] for source in node.src])
        call = src[0] if node.op is Ops.GETTUPLE else None
        if call is not None and call.op is Ops.FUNCTION and not call.arg.gradient:
            if call not in bodies:
                bodies[call] = _instantiated(call)
            new[node] = bodies[call][node.arg]
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return [new[root] for root in roots]


def _instantiated(call: UOp) -> tuple[UOp, ...]:
    """The results of a call, its arguments in place of the PARAMs.

    The body of a call in the body has PARAMs of its own, so it is not entered.
    """
    body, *arguments = call.src
    new: dict[UOp, UOp] = {}
    for root in body.src:
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            if node in new:
                continue
            kept = 1 if node.op is Ops.FUNCTION else 0
            if not done:
                stack.append((node, True))
                stack.extend((source, False) for source in node.src[kept:])
            elif node.op is Ops.PARAM:
                new[node] = arguments[node.arg.slot]
            else:
                src = (*node.src[:kept], *[new[source] for source in node.src[kept:]])
                new[node] = UOp(node.op, node.dtype, src, node.arg)
    return tuple([new[root] for root in body.src])


def _note_result(node: UOp, gradient: UOp, results: dict[UOp, dict[int, UOp]]) -> None:
    call = node.src[0]
    if call.op not in (Ops.FUNCTION, Ops.CUSTOM):
        raise GradientError(
            "no gradient rule for a reduction over several states; detach() its result"
        )
    results.setdefault(call, {})[node.arg] = gradient


def _through_call(call: UOp, by_result: dict[int, UOp]) -> list[tuple[UOp, UOp]]:
    if not by_result:
        return []
    function = _call_gradients.get(call.arg.gradient)
    if function is None:
        raise GradientError(
            f"'{call.arg.name}' has no gradient: '{call.arg.gradient}' is not registered"
        )
    arguments = call.src[1:] if call.op is Ops.FUNCTION else call.src
    count = len(call.src[0].src) if call.op is Ops.FUNCTION else len(call.arg.results)
    answers = function(arguments, [by_result.get(k) for k in range(count)])
    pairs = zip(arguments, answers, strict=True)
    return [(argument, gradient) for argument, gradient in pairs if gradient is not None]


def _reading_stored_values(
    answers: Sequence[UOp | None], stored: dict[UOp, UOp]
) -> list[UOp | None]:
    """`answers` with what was realised read from storage rather than computed again."""
    known = [answer for answer in answers if answer is not None]
    if not stored or not known:
        return list(answers)
    new = iter(substitute(known, stored))
    return [None if answer is None else next(new) for answer in answers]


def is_differentiable(uop: UOp) -> bool:
    """Whether a node can have a gradient at all."""
    return dtypes.is_float(uop.dtype) and uop.op not in GroupOp.Comparison
