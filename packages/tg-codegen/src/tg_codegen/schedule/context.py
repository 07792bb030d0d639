"""A kernel being made, and the places in it where a value is computed.

A `Context` is one index tuple in one kernel: a node computed in two contexts is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tg_ir.dtype import dtypes
from tg_ir.graph import AxisType, Ops, UOp, VarArg, is_one

from tg_codegen.schedule.movement_index import ZERO, Extent, Index

Ranges = tuple[UOp, ...]


@dataclass(eq=False, slots=True)
class Context:
    """One place in a kernel.

    Attributes:
        kernel: the kernel.
        index: the element of the value that is computed here.
        mask: where false, the value is not used and nothing may be read; None for everywhere.
        open: the loops around this place, outermost first; hoisting out of loops is taken into
            account.
        used: the loops that index and mask depend on.
    """

    kernel: KernelDraft
    index: Index
    mask: UOp | None
    open: Ranges
    used: frozenset[UOp]

    def repeats(self, elements: int) -> float:
        """How often each of the value's `elements` is computed here; below 1 where not all are."""
        iterations = 1
        repeated = 1
        seen_used = False
        for loop in reversed(self.open):
            extent = loop_extent(loop)
            if loop in self.used:
                iterations *= extent
                seen_used = True
            elif seen_used:
                repeated *= extent
        return max(float(repeated), repeated * iterations / max(1, elements))

    def row_of_reuse(self) -> int:
        """The iterations of the inner loops that this place does not depend on.

        It is computed once for them.
        """
        row = 1
        for loop in reversed(self.open):
            if loop in self.used:
                break
            row *= loop_extent(loop)
        return row

    def inside(self, kind: AxisType) -> bool:
        """Whether this place depends on a loop of `kind`."""
        return any(loop.arg.kind is kind for loop in self.used)


@dataclass(eq=False, slots=True)
class KernelStore:
    """One store of a kernel.

    `value`, computed in `context`, goes to position `flat` of `buffer`.
    """

    buffer: UOp
    flat: UOp
    mask: UOp | None
    value: UOp
    context: Context
    accumulate: Ops | None = None


@dataclass(eq=False, slots=True)
class Gathered:
    """A position read from an index tensor.

    `position` and `within` stand for the position, wrapped once, and for "it is in range" until the
    value of the index tensor in `context` is known.
    """

    position: UOp
    within: UOp
    index_tensor: UOp
    context: Context
    extent: Extent


@dataclass(eq=False, slots=True)
class KernelDraft:
    """A kernel whose loops and stores are known; its expressions are built later.

    Attributes:
        node: the realised node it computes.
        loops: the loops around the stores, outermost first.
        store: what it stores.
        gathered: positions read from index tensors, in the order they were met.
    """

    node: UOp
    loops: Ranges = ()
    store: KernelStore | None = None
    gathered: list[Gathered] = field(default_factory=list)
    _contexts: dict[tuple[Index, UOp | None], Context] = field(default_factory=dict)
    _axes: int = 0

    def add_loop(self, extent: Extent, kind: AxisType) -> UOp:
        """A new loop, or the constant 0 for an extent of 1."""
        if is_one(extent):
            return ZERO
        self._axes += 1
        return UOp.range(extent, self._axes - 1, kind)

    def context(self, index: Index, mask: UOp | None, around: Ranges) -> Context:
        """The context of `index` and `mask`, one object for each such pair."""
        key = (index, mask)
        known = self._contexts.get(key)
        if known is not None:
            return known
        used: frozenset[UOp] = frozenset()
        parts = index if mask is None else (*index, mask)
        for part in parts:
            found = part.ranges
            if not found <= used:
                used = used | found
        made = Context(self, index, mask, around, used)
        self._contexts[key] = made
        return made

    def release(self) -> None:
        """Forget what was planned, once the kernel is made.

        Contexts and drafts hold each other, and with them the buffers of dead tensors: these would
        stay until the next garbage collection.
        """
        self.store = None
        self.gathered.clear()
        self._contexts.clear()

    def gather(self, index_tensor: UOp, context: Context, extent: Extent) -> Gathered:
        """The placeholders for a position on an axis of `extent`, read from `index_tensor`."""
        for known in self.gathered:
            if known.index_tensor is index_tensor and known.context is context:
                if known.extent is extent or known.extent == extent:
                    return known
        number = len(self.gathered)
        largest = extent.vmax if isinstance(extent, UOp) else extent
        arg = VarArg(f"gathered{number}", 0, max(0, int(largest) - 1))
        loops = tuple(loop for loop in context.open if loop in context.used)
        position = UOp(Ops.DEFINE_VAR, dtypes.index, loops, arg)
        within = UOp(Ops.DEFINE_VAR, dtypes.bool, loops, VarArg(f"within{number}", 0, 1))
        made = Gathered(position, within, index_tensor, context, extent)
        self.gathered.append(made)
        return made


def loop_extent(loop: UOp) -> int:
    """The largest number of iterations of a loop."""
    return int(loop.src[0].vmax)


def loops_of(index: Sequence[UOp]) -> Ranges:
    """The loops among fresh index parts (the others are the constant 0)."""
    return tuple(part for part in index if part.op is Ops.RANGE)
