"""What a linear kernel costs to run: arithmetic operations and bytes, counted from its loops.

For reports and ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, UOp


@dataclass(frozen=True, slots=True)
class KernelCost:
    """`flops`.

    Float and int operations on values (an fma counts two; index arithmetic is not counted);
    `nbytes`: the size of the buffers that it reads and writes. Symbolic extents count at their
    largest.
    """

    flops: int
    nbytes: int


def kernel_cost(linear: Sequence[UOp]) -> KernelCost:
    """The cost of one launch."""
    trips = [1]
    flops = 0
    for node in linear:
        if node.op is Ops.RANGE:
            trips.append(trips[-1] * (int(node.vmax) + 1))
        elif node.op is Ops.END:
            trips.pop()
        elif node.op in GroupOp.ALU and node.dtype.scalar() is not dtypes.int64:
            flops += trips[-1] * node.dtype.count * (2 if node.op is Ops.MULACC else 1)
    params = [n for n in linear if n.op is Ops.PARAM]
    return KernelCost(flops, sum(p.arg.size * p.dtype.itemsize for p in params))
