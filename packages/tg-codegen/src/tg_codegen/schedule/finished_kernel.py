"""A kernel whose expressions are built, and what ordering and grouping need to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.graph import AxisType, Ops, UOp, toposort


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """A kernel over BUFFER nodes.

    Attributes:
        effects: the stores with their loops.
        writes: the BUFFER version that each store writes.
        reads: the BUFFER versions that it loads from.
        loads: its LOADs.
        loops: the loops around the stores if all are independent, so that it may be joined with
            others, else None.
        reductions: its REDUCE and SCAN nodes.
        nodes: how many nodes it has.
        call: for a copy between devices the finished CALL; None for a kernel.
    """

    effects: tuple[UOp, ...]
    writes: tuple[UOp, ...]
    reads: frozenset[UOp]
    loads: frozenset[UOp] = frozenset()
    loops: tuple[UOp, ...] | None = None
    reductions: frozenset[UOp] = frozenset()
    nodes: int = 0
    call: UOp | None = None

    @staticmethod
    def of(effect: UOp, writes: tuple[UOp, ...]) -> Kernel:
        """The kernel of one END."""
        loads: set[UOp] = set()
        reductions: set[UOp] = set()
        order = toposort((effect,))
        for node in order:
            if node.op is Ops.LOAD:
                loads.add(node)
            elif node.op is Ops.REDUCE or node.op is Ops.SCAN:
                reductions.add(node)
        reads = frozenset(load.src[0].src[0] for load in loads)
        return Kernel(
            (effect,),
            writes,
            reads,
            frozenset(loads),
            independent_loops(effect),
            frozenset(reductions),
            len(order),
        )


def independent_loops(effect: UOp) -> tuple[UOp, ...] | None:
    """The loops of an effect if all are GLOBAL, so that it may be joined with others.

    None otherwise.
    """
    loops = effect.src[1:] if effect.op is Ops.END else ()
    if any(loop.arg.kind is not AxisType.GLOBAL for loop in loops):
        return None
    return loops


def stores_of(effect: UOp) -> tuple[UOp, ...]:
    """The STOREs under an END (or a lone STORE)."""
    inner = effect.src[0] if effect.op is Ops.END else effect
    return inner.src if inner.op is Ops.TUPLE else (inner,)
