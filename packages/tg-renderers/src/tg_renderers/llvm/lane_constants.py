"""Which vectors of a kernel are constants, and indices that are one base plus constant offsets.

LLVM would fold these in a pass pipeline, which does not run. It matters for masks and indices: a
constant mask costs nothing, and lanes at known distances can be loaded as one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tg_ir.graph import GroupOp, Ops, UOp
from tg_ir.graph.scalar import alu

Lanes: TypeAlias = tuple[int | bool, ...]

_KINDS = ("bool", "int", "uint", "index")
_FOLDED = GroupOp.ALU | {Ops.CAST}
_MAX_LANES = 64


@dataclass(frozen=True)
class SpreadIndex:
    """A vector index whose lanes stand at `sum(bases) + offsets[lane]`.

    Attributes:
        bases: scalar indices.
        offsets: one a lane.
    """

    bases: tuple[UOp, ...]
    offsets: tuple[int, ...]


class LaneConstants:
    """The constant vectors of bools and ints of a kernel."""

    def __init__(self, kernel: Sequence[UOp]) -> None:
        """Fold what can be folded, in order."""
        self._known: dict[UOp, Lanes] = {}
        for node in kernel:
            if 1 < node.dtype.count <= _MAX_LANES and node.dtype.kind in _KINDS:
                lanes = self._fold(node)
                if lanes is not None:
                    self._known[node] = lanes

    def of(self, node: UOp) -> Lanes | None:
        """The lanes of a constant vector; None for any other node."""
        return self._known.get(node)

    def spread(self, index: UOp) -> SpreadIndex | None:
        """A vector index as a base and constant offsets; None where it has no such form."""
        known = self._known.get(index)
        if known is not None:
            return SpreadIndex((), tuple(int(lane) for lane in known))
        if index.op is Ops.BROADCAST:
            return SpreadIndex((index.src[0],), (0,) * index.dtype.count)
        if index.op is not Ops.ADD or index.dtype.bits != 64:
            return None  # narrower sums may wrap
        left, right = (self.spread(source) for source in index.src)
        if left is None or right is None:
            return None
        offsets = tuple(a + b for a, b in zip(left.offsets, right.offsets, strict=True))
        return SpreadIndex(left.bases + right.bases, offsets)

    def _fold(self, node: UOp) -> Lanes | None:
        count = node.dtype.count
        match node.op:
            case Ops.LANES:
                return tuple(range(count))
            case Ops.BROADCAST:
                source = node.src[0]
                return (source.arg,) * count if source.op is Ops.CONST else None
            case Ops.VECTORIZE:
                lanes = tuple(s.arg for s in node.src if s.op is Ops.CONST)
                return lanes if len(lanes) == count else None
            case op if op in _FOLDED:
                return self._fold_elementwise(node)
            case _:
                return None

    def _fold_elementwise(self, node: UOp) -> Lanes | None:
        sources: list[Lanes] = []
        for source in node.src:
            known = self._known.get(source)
            if known is None:
                return None
            sources.append(known)
        dtype = node.dtype.scalar()
        folded = [alu(node.op, dtype, values) for values in zip(*sources, strict=True)]
        return tuple(bool(v) if dtype.kind == "bool" else int(v) for v in folded)


@dataclass(frozen=True)
class Row:
    """A run of elements that holds all lanes of a spread index.

    Attributes:
        first: offset of its first element from the base.
        width: number of elements, a power of two.
        positions: where in the run each lane stands.
    """

    first: int
    width: int
    positions: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the lanes are the run, in order."""
        return self.positions == tuple(range(self.width))

    @property
    def has_repeats(self) -> bool:
        """Whether two lanes stand at one element."""
        return len(set(self.positions)) < len(self.positions)

    @property
    def most_lanes_of_an_element(self) -> int:
        """How many lanes stand at the element that has most."""
        return max(Counter(self.positions).values())

    def lanes_of_elements(self) -> tuple[tuple[int, ...], ...]:
        """For each element of the run the lanes that stand there; none for a gap."""
        lanes: list[list[int]] = [[] for _ in range(self.width)]
        for lane, position in enumerate(self.positions):
            lanes[position].append(lane)
        return tuple(tuple(found) for found in lanes)


def find_row(offsets: Sequence[int], element_bits: int) -> Row | None:
    """The run for lanes at `offsets`; None where it would be much longer than the lanes.

    Four times the lanes, and four of the widest registers, are still cheaper than to fetch each
    lane by itself.
    """
    first = min(offsets)
    span = max(offsets) - first + 1
    width = max(2, 1 << (span - 1).bit_length())  # one element would be no vector
    if width > 4 * len(offsets) or width * element_bits > 4 * 512:
        return None
    return Row(first, width, tuple(offset - first for offset in offsets))
