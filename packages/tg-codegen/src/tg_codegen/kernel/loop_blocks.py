"""The tree of loops of a kernel and the place of every node in it.

A node stands in the innermost loop whose counter it depends on, so what does not change in a loop
is computed outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tg_ir.graph import AxisType, Ops, UOp

from tg_codegen.errors import LoweringError
from tg_codegen.loops import closed_ranges, stored_by


@dataclass(slots=True, eq=False)
class Block:
    """The body of one loop (`range` None: the whole kernel) and what stands directly in it."""

    range: UOp | None
    parent: Block | None
    depth: int
    items: list[UOp | Block] = field(default_factory=list)

    @property
    def around(self) -> Block:
        """The block that this loop stands in."""
        if self.parent is None:
            raise LoweringError("the whole kernel stands in no loop")
        return self.parent

    def child_towards(self, inner: Block) -> Block:
        """The block directly inside this one that contains `inner`."""
        block = inner
        while block.parent is not self:
            block = block.around
        return block


def deeper(left: Block, right: Block) -> Block:
    """The inner one of two blocks of which one contains the other."""
    return right if right.depth > left.depth else left


@dataclass(slots=True)
class LoopTree:
    """The blocks of a kernel: `root`, and for each RANGE the block of its body."""

    root: Block
    of_range: dict[UOp, Block]

    def outside(self, closer: UOp) -> Block:
        """The block around the loops of `closer`."""
        return self.of_range[closed_ranges(closer)[0]].around

    def inside(self, closer: UOp) -> Block:
        """The block of the innermost loop of `closer`."""
        return self.of_range[closed_ranges(closer)[-1]]


def build_loop_tree(closers: list[UOp]) -> LoopTree:
    """The tree of the loops of `closers`.

    Requires: `separate_loops` ran.
    """
    owner: dict[UOp, UOp] = {}
    for closer in closers:
        for loop in closed_ranges(closer):
            owner.setdefault(loop, closer)
    root = Block(None, None, 0)
    tree = LoopTree(root, {})
    waiting = list(dict.fromkeys(owner.values()))
    while waiting:
        later: list[UOp] = []
        for closer in waiting:
            around = [r for r in closer.ranges if r in owner]
            if all(r in tree.of_range for r in around):
                _add_loops(tree, closer, around)
            else:
                later.append(closer)
        if len(later) == len(waiting):
            raise LoweringError("two loops of the kernel contain each other")
        waiting = later
    return tree


def _add_loops(tree: LoopTree, closer: UOp, around: list[UOp]) -> None:
    block = tree.root
    for outer in around:
        block = deeper(block, tree.of_range[outer])
    for loop in closed_ranges(closer):
        block = Block(loop, block, block.depth + 1)
        tree.of_range[loop] = block


def pinned_loads(ends: list[UOp], order: dict[UOp, None]) -> dict[UOp, UOp]:
    """LOADs that must run in every iteration of a store's loops.

    Since these loops, run in order, write what they read: LOAD -> the END whose innermost loop it
    belongs to.
    """
    writers = {
        store.src[0].src[0]: end
        for end in ends
        if any(r.arg.kind is AxisType.LOOP for r in closed_ranges(end))
        for store in stored_by(end)
    }
    if not writers:
        return {}
    return {
        node: writers[node.src[0].src[0]]
        for node in order
        if node.op is Ops.LOAD and node.src[0].src[0] in writers
    }
