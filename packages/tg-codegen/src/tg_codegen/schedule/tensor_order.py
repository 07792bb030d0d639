"""The tensor graph as the scheduler walks it: which sources of a node are values that it reads.

DETACH and REALIZED are transparent, the history of REALIZED is never looked at, symbolic sizes are
not values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tg_ir.graph import GroupOp, Ops, UOp

TRANSPARENT = frozenset({Ops.DETACH, Ops.REALIZED})
LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.BIND, Ops.DEFINE_VAR, Ops.IOTA})
STORED = frozenset({Ops.CONTIGUOUS, Ops.COPY})
# A value that is one of these over storage can be read in place: no kernel makes it.
ADDRESSING = frozenset(
    {Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.SKEW, *TRANSPARENT}
)
_NO_SOURCES: tuple[UOp, ...] = ()
_FIRST_ONLY = GroupOp.Movement | TRANSPARENT


def value_sources(node: UOp) -> tuple[UOp, ...]:
    """The sources of `node` whose elements it reads."""
    if node.op in _FIRST_ONLY:
        return node.src[:1]
    if node.op is Ops.FUNCTION:
        # the PARAMs of its body mean something only inside
        return node.src[1:]
    return _NO_SOURCES if node.op in LEAVES else node.src


def tensor_order(roots: Iterable[UOp]) -> list[UOp]:
    """Every node that `roots` read, sources first, in an order that only the graph decides."""
    return order_by(roots, value_sources)


def order_by(roots: Iterable[UOp], sources_of: Callable[[UOp], tuple[UOp, ...]]) -> list[UOp]:
    """Every node reachable from `roots` by `sources_of`, sources before users."""
    seen: set[UOp] = set()
    order: list[UOp] = []
    for root in roots:
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
                continue
            if node in seen:
                continue
            seen.add(node)
            stack.append((node, True))
            for source in reversed(sources_of(node)):
                if source not in seen:
                    stack.append((source, False))
    return order


def strip_transparent(node: UOp) -> UOp:
    """The node below DETACH and REALIZED."""
    while node.op in TRANSPARENT:
        node = node.src[0]
    return node


def addressing_base(node: UOp) -> UOp:
    """The node below every op that only says where to read."""
    while node.op in ADDRESSING:
        node = node.src[0]
    return node


def rebase(view: UOp, base: UOp, new_base: UOp) -> UOp:
    """`view`, movement ops over `base`, over `new_base` instead.

    The transparent nodes are left out.
    """
    chain: list[UOp] = []
    node = view
    while node is not base:
        chain.append(node)
        node = node.src[0]
    result = new_base
    for step in reversed(chain):
        if step.op not in TRANSPARENT:
            result = UOp(step.op, step.dtype, (result, *step.src[1:]), step.arg)
    return result


def is_transfer(node: UOp) -> bool:
    """Whether a COPY moves bytes between devices.

    Of a value that no device holds it only says where to compute.
    """
    return node.op is Ops.COPY and node.src[0].device is not None
