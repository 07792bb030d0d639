"""What it costs to compute a value inside the kernel of its reader.

Gathered in one walk from the leaves up.

Also here: the cuts that keep every kernel within its limits of buffers and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tg_ir.graph import GroupOp, Ops, UOp, is_one

from tg_codegen.schedule.storage import Storage, upper_size
from tg_codegen.schedule.tensor_order import LEAVES, TRANSPARENT

MAX_BUFFERS = 28
MAX_NODES = 384.0
MAX_ROW = 16384
SMALL_REDUCTION = 32
# Work of the steps from one value that are rather repeated than stored each: a write and a read.
MAX_STEPS = 48.0

_WORK: dict[Ops, float] = {
    Ops.EXP2: 8.0,
    Ops.LOG2: 8.0,
    Ops.SIN: 12.0,
    Ops.SQRT: 4.0,
    Ops.RECIPROCAL: 4.0,
    Ops.FDIV: 4.0,
    Ops.FLOORDIV: 4.0,
    Ops.FLOORMOD: 4.0,
    Ops.CDIV: 4.0,
    Ops.CMOD: 4.0,
    Ops.THREEFRY: 60.0,
    Ops.GATHER: 4.0,
}
# How many nodes a node becomes in a kernel, where that is not 1: masks and index arithmetic.
_NODES: dict[Ops, float] = {Ops.PAD: 12.0, Ops.UNSKEW: 12.0, Ops.RESHAPE: 2.0, Ops.GATHER: 8.0}
_COMPUTES = GroupOp.Elementwise | {Ops.REDUCE_AXIS, Ops.SCAN_AXIS, Ops.GATHER}

# Ops that read an element of their source several times, or from inside a loop of their own.
_ENDS_REDUCTIONS = frozenset(
    {Ops.REDUCE_AXIS, Ops.SCAN_AXIS, Ops.EXPAND, Ops.SKEW, Ops.UNSKEW, Ops.PAD}
)

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Facts:
    """The cost of one element of a value, computed where it is read.

    Attributes:
        work: operations an element, transcendental ones counted several times.
        nodes: nodes that it adds to a kernel.
        leaves: ids of the buffers it reads.
        row: elements that a reduction inside reads for one element of the value; 0 for no
            reduction.
        hoisted: whether there is a reduction inside that is expanded on the way.
        core: the one value of the same shape that an elementwise value is computed from, besides
            constants; None if it is its own.
        core_work: as `work`, but from the core on.
    """

    work: float
    nodes: float
    leaves: frozenset[int]
    row: int = 0
    hoisted: bool = False
    core: UOp | None = None
    core_work: float = 0.0


class FactsWalk:
    """Gathers `Facts` of nodes, sources first, and realises where a limit would be passed."""

    def __init__(self, storage: Storage, consumers: Mapping[UOp, int]) -> None:
        """Start with no facts; `consumers`: how many nodes read each node."""
        self._storage = storage
        self._consumers = consumers
        self._of: dict[UOp, Facts] = {}

    def __getitem__(self, node: UOp) -> Facts:
        """The facts of computing `node` itself, whether or not it is realised."""
        facts = self._of[node]
        if facts.core is None:
            return facts
        core = self.as_read(facts.core)
        if core.leaves == facts.leaves and core.row == facts.row:
            return facts
        # the core was realised since
        work = core.work + facts.core_work
        now = replace(facts, work=work, leaves=core.leaves, row=core.row, hoisted=core.hoisted)
        self._of[node] = now
        return now

    def as_read(self, node: UOp) -> Facts:
        """The facts of reading `node`: of a load where it is realised."""
        buffer = self._storage.buffers.get(node)
        if buffer is not None:
            return Facts(0.0, 1.0, frozenset((buffer.arg.id,)))
        return self[node]

    def visit(self, node: UOp, sources: Iterable[UOp]) -> None:
        """Computes the facts of `node`, whose sources were visited."""
        if node.op in LEAVES:
            leaves = frozenset((node.arg.id,)) if node.op is Ops.BUFFER else NOTHING
            self._of[node] = Facts(0.0, 1.0, leaves)
            return
        read = tuple(sources)
        if node.op in _ENDS_REDUCTIONS:
            self._store_reductions(node, read)
        elif len(read) > 1:
            self._store_smaller_reductions(read)
        facts = self._join(node, read)
        if len(facts.leaves) > MAX_BUFFERS or facts.nodes > MAX_NODES:
            self._cut(read)
            facts = self._join(node, read)
        self._of[node] = facts

    def _join(self, node: UOp, sources: tuple[UOp, ...]) -> Facts:
        op = node.op
        work = _WORK.get(op, 1.0 if op in GroupOp.Elementwise else 0.0)
        nodes = _NODES.get(op, 1.0)
        leaves = NOTHING
        row = 0
        hoisted = False
        for source in sources:
            facts = self.as_read(source)
            share = max(1, self._consumers.get(source, 1))
            # a value that several read is counted once where its readers meet again
            work += facts.work / share
            nodes += facts.nodes / share
            if not facts.leaves <= leaves:
                leaves = facts.leaves if leaves <= facts.leaves else leaves | facts.leaves
            row = max(row, facts.row)
            hoisted = hoisted or facts.hoisted
        if op is Ops.REDUCE_AXIS:
            row = max(1, _reduced_size(node)) * max(1, row)
        elif op is Ops.EXPAND and row and _widens(node):
            row = 0
            hoisted = True
        core, core_work = self._core(node, sources)
        return Facts(work, nodes, leaves, row, hoisted, core, core_work)

    def _core(self, node: UOp, sources: tuple[UOp, ...]) -> tuple[UOp | None, float]:
        if node.op not in GroupOp.Elementwise:
            return None, 0.0
        core: UOp | None = None
        work = _WORK.get(node.op, 1.0)
        for source in sources:
            facts = self.as_read(source)
            if not facts.leaves:
                continue
            of_source = source if facts.core is None else facts.core
            if core is not None and of_source is not core:
                return None, 0.0
            core = of_source
            work += facts.core_work / max(1, self._consumers.get(source, 1))
        return core, work

    def _store_reductions(self, node: UOp, sources: tuple[UOp, ...]) -> None:
        """Realises sources with a reduction inside that `node` would repeat or nest."""
        for source in sources:
            row = self.as_read(source).row
            if row == 0 or (node.op is Ops.EXPAND and _is_row_wise(node, row)):
                continue
            if node.op is Ops.PAD and row <= SMALL_REDUCTION:
                continue
            self._store(source, sources)

    def _store_smaller_reductions(self, sources: tuple[UOp, ...]) -> None:
        """Keeps only the longest reductions in a kernel: its loops are laid out for them."""
        longest = max(self.as_read(source).row for source in sources)
        if longest <= SMALL_REDUCTION:
            return
        for source in sources:
            if 0 < self.as_read(source).row < longest:
                self._store_core(source, sources)

    def _store_core(self, source: UOp, sources: tuple[UOp, ...]) -> None:
        """Realises what `source` follows from in a few steps, or else `source`.

        Its other readers often follow from the same.
        """
        top = self._compute_under(source)
        facts = self.as_read(top)
        core = facts.core
        base = None if core is None else self._compute_under(core)
        if core is None or base is None or base.op not in _COMPUTES or facts.core_work > MAX_STEPS:
            self._store(source, sources)
            return
        self._storage.allocate(base)
        self._refresh((core,), base)
        self._refresh(sources, top)

    def _store(self, source: UOp, sources: tuple[UOp, ...]) -> None:
        candidate = self._compute_under(source)
        if candidate.op in _COMPUTES:
            self._storage.allocate(candidate)
            self._refresh(sources, candidate)

    def _cut(self, sources: tuple[UOp, ...]) -> None:
        """Realises the largest sources until what is read fits in half a kernel."""
        candidates = sorted(
            {self._compute_under(source): None for source in sources},
            key=lambda source: (-self.as_read(source).nodes, -len(self.as_read(source).leaves)),
        )
        for candidate in candidates:
            fits_nodes = sum(self.as_read(s).nodes for s in sources) <= MAX_NODES / 2
            leaves = NOTHING.union(*(self.as_read(s).leaves for s in sources))
            if fits_nodes and len(leaves) <= MAX_BUFFERS / 2:
                return
            self._store(candidate, sources)

    def _compute_under(self, node: UOp) -> UOp:
        passed = GroupOp.Movement | TRANSPARENT
        while node.op in passed and node not in self._storage.buffers:
            node = node.src[0]
        return node

    def _refresh(self, sources: tuple[UOp, ...], realized: UOp) -> None:
        """Facts of the movement ops between `sources` and a value that was just realised."""
        for source in sources:
            chain: list[UOp] = []
            node = source
            while node is not realized and node.op in GroupOp.Movement | TRANSPARENT:
                chain.append(node)
                node = node.src[0]
            if node is realized:
                for step in reversed(chain):
                    self._of[step] = self._join(step, step.src[:1])


def _reduced_size(node: UOp) -> int:
    shape = node.src[0].shape
    return upper_size([shape[axis] for axis in node.arg.axes])


def _widens(node: UOp) -> bool:
    return any(
        is_one(narrow) and not is_one(wide)
        for narrow, wide in zip(node.src[0].shape, node.shape, strict=True)
    )


def _is_row_wise(node: UOp, row: int) -> bool:
    """Whether an EXPAND gives each element of a short row the result of reducing that row."""
    width = 1
    inner = True
    for narrow, wide in reversed(tuple(zip(node.src[0].shape, node.shape, strict=True))):
        if is_one(wide):
            continue
        if not is_one(narrow):
            inner = False
        elif not inner:
            return False
        else:
            width *= upper_size((wide,))
    return width == 1 or (width == row and row <= MAX_ROW)
