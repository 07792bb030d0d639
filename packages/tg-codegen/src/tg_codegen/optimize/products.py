"""Sums of products in a kernel: matmul, convolution and their gradients.

The product may stand under a guard, `where(guard, a * b, 0)`, as a gradient through padding makes
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.graph import Ops, UOp, toposort

from tg_codegen.loops import closed_ranges


@dataclass(frozen=True, slots=True)
class Product:
    """A REDUCE that adds `factors[0] * factors[1]`, where `guard` holds if there is one."""

    reduction: UOp
    factors: tuple[UOp, UOp]
    guard: UOp | None

    @property
    def work(self) -> int:
        """How many products are added in all (symbolic axes at their largest)."""
        total = 1
        for loop in (*self.reduction.ranges, *closed_ranges(self.reduction)):
            total *= max(1, int(loop.vmax) + 1)
        return total

    def with_factor(self, number: int, factor: UOp) -> UOp:
        """The reduction with another factor."""
        value = self.reduction.src[0]
        product = value if self.guard is None else value.src[1]
        changed = product.with_sources(
            tuple(factor if place == number else s for place, s in enumerate(product.src))
        )
        if self.guard is not None:
            changed = value.with_sources((value.src[0], changed, value.src[2]))
        return self.reduction.with_sources((changed, *self.reduction.src[1:]))


def as_product(node: UOp) -> Product | None:
    """`node` as a sum of products, or None."""
    if node.op is not Ops.REDUCE or node.arg.combine.op is not Ops.ADD:
        return None
    value, guard = node.src[0], None
    if value.op is Ops.WHERE and value.src[2].op is Ops.CONST and value.src[2].arg == 0:
        guard, value = value.src[0], value.src[1]
    if value.op is not Ops.MUL:
        return None
    return Product(node, (value.src[0], value.src[1]), guard)


def product_of(sink: UOp) -> Product | None:
    """The sum of products of the kernel with the most work, or None."""
    found = [p for p in map(as_product, toposort((sink,))) if p is not None]
    return max(found, key=lambda product: product.work, default=None)
