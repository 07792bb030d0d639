"""What the choice of a register tile has to know about a sum of products and its target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tg_ir.graph import UOp
from tg_ir.graph.render_api import TargetCapabilities

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.access import body_loads, has_mask, output_axes, stride
from tg_codegen.optimize.products import Product
from tg_codegen.optimize.split_range import extent

_FAR_APART = 256


class Factor:
    """One factor of the product: where it reads, and the output axes that only it depends on."""

    def __init__(self, value: UOp, own: list[UOp], summed: tuple[UOp, ...]) -> None:
        """Look at the loads of `value`, which is summed over `summed`."""
        self.value = value
        self.own = own
        self.loads = body_loads(value)
        self.summed_elements = 1
        for loop in summed:
            if loop in value.ranges:
                self.summed_elements *= int(loop.vmax) + 1
        self._summed = summed

    @cached_property
    def is_masked(self) -> bool:
        """Whether it reads through a mask."""
        return has_mask(self.value)

    @cached_property
    def is_far_apart(self) -> bool:
        """Whether the elements of one sum lie far apart, each on a cache line of its own."""
        return any(
            (stride(load.src[0], loop) or 0) >= _FAR_APART
            for load in self.loads
            for loop in self._summed
        )

    def reads_in_row(self, axis: UOp) -> bool:
        """Whether every load that depends on `axis` finds neighbours side by side."""
        strides = [stride(load.src[0], axis) for load in self.loads]
        return bool(strides) and all(s in {0, 1} for s in strides) and 1 in strides


@dataclass(frozen=True, slots=True)
class Problem:
    """A sum of products on a target.

    Attributes:
        factors: the two factors.
        shared: output axes that both depend on.
        summed: the summed axes of constant extent.
        work: how many products there are in all.
        sums: how many sums.
        lanes: how many elements fill a vector register.
        registers: how many vector registers there are.
        stage_limit: the most elements that a staged tile should have.
    """

    factors: tuple[Factor, Factor]
    shared: list[UOp]
    summed: list[UOp]
    work: int
    sums: int
    lanes: int
    registers: int
    stage_limit: int


def describe(sink: UOp, product: Product, capabilities: TargetCapabilities) -> Problem:
    """The facts about `product`, which is in the kernel `sink`."""
    first, second = product.factors
    reduction = product.reduction
    loops = closed_ranges(reduction)
    outputs = [r for r in output_axes(sink) if r in reduction.ranges]
    summed_size = 1
    for loop in loops:
        summed_size *= int(loop.vmax) + 1
    itemsize = max(1, reduction.dtype.itemsize)
    return Problem(
        factors=(
            Factor(first, [r for r in outputs if r not in second.ranges], loops),
            Factor(second, [r for r in outputs if r not in first.ranges], loops),
        ),
        shared=[r for r in outputs if r in first.ranges and r in second.ranges],
        summed=[r for r in loops if extent(r) > 0],
        work=product.work,
        sums=max(1, product.work // max(1, summed_size)),
        lanes=max(1, capabilities.vector_bits // (8 * itemsize)),
        registers=capabilities.vector_registers or 16,
        stage_limit=min(capabilities.l2_bytes // 2, capabilities.local_bytes) // itemsize,
    )
