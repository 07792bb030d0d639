"""Sums of index values as factors of terms: `linear_form` takes one apart, `build_sum` makes one.

The canonical sum has its terms in a fixed order (loop counters by axis, then all else by content),
each with one integer factor, and the constant last. All operands here are simplified already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.symbolic.bounds import bounds
from tg_ir.graph.uop import UOp

Terms = dict[UOp, int]

# Sums longer than this are not put in order: a chain of n additions would cost n*n.
LONGEST_SUM = 64


def constant(value: int) -> UOp:
    """An index constant."""
    return UOp(Ops.CONST, dtypes.index, (), value)


def linear_form(node: UOp) -> tuple[Terms, int]:
    """`(terms, c)` with `node == sum(factor * term) + c`; no term is a sum or a multiple.

    A sum that is too long to be put in order has a sum among its terms.
    """
    terms: Terms = {}
    offset = 0
    stack: list[tuple[UOp, int]] = [(node, 1)]
    while stack:
        part, factor = stack.pop()
        src = part.src
        if part.op is Ops.CONST:
            offset += factor * part.arg
        elif len(terms) + len(stack) > LONGEST_SUM:
            terms[part] = terms.get(part, 0) + factor
        elif part.op is Ops.ADD:
            stack.append((src[1], factor))
            stack.append((src[0], factor))
        elif part.op is Ops.SUB:
            stack.append((src[1], -factor))
            stack.append((src[0], factor))
        elif part.op is Ops.NEG:
            stack.append((src[0], -factor))
        elif part.op is Ops.MUL and src[1].op is Ops.CONST:
            stack.append((src[0], factor * src[1].arg))
        elif part.op is Ops.MUL and src[0].op is Ops.CONST:
            stack.append((src[1], factor * src[0].arg))
        else:
            terms[part] = terms.get(part, 0) + factor
    return terms, offset


def add_multiple(terms: Terms, node: UOp, factor: int) -> int:
    """Adds `factor * node` to `terms`; returns what it adds to the constant."""
    more, offset = linear_form(node)
    for term, by in more.items():
        terms[term] = terms.get(term, 0) + by * factor
    return offset * factor


def interval(terms: Mapping[UOp, int], offset: int) -> tuple[int, int]:
    """Bounds of the sum."""
    low = high = offset
    for term, factor in terms.items():
        least, most = term._bounds or bounds(term)
        if factor >= 0:
            low += int(least) * factor
            high += int(most) * factor
        else:
            low += int(most) * factor
            high += int(least) * factor
    return low, high


def term_order(term: UOp) -> tuple[int, tuple[int, ...], bytes]:
    """The place of a term in a sum: the same in every process."""
    if term.op is Ops.RANGE:
        return (0, term.arg.axis, b"")
    return (1, (), term.key)


def build_sum(terms: Mapping[UOp, int], offset: int) -> UOp:
    """The node for this sum, terms in the given order."""
    total: UOp | None = None
    for term, factor in terms.items():
        part = term
        if factor != 1:
            part = UOp(Ops.MUL, dtypes.index, (term, constant(factor)))
        total = part if total is None else UOp(Ops.ADD, dtypes.index, (total, part))
    if total is None:
        return constant(offset)
    if offset == 0:
        return total
    return UOp(Ops.ADD, dtypes.index, (total, constant(offset)))


def cleaned(terms: Mapping[UOp, int], offset: int) -> tuple[Terms, int]:
    """In canonical order, without terms that are zero or have a known value."""
    kept: list[tuple[UOp, int]] = []
    for term, factor in terms.items():
        if factor == 0:
            continue
        least, most = term._bounds or bounds(term)
        if least == most:
            offset += factor * int(least)
        else:
            kept.append((term, factor))
    if len(kept) > 1:
        kept.sort(key=_pair_order)
    return dict(kept), offset


def _pair_order(pair: tuple[UOp, int]) -> tuple[int, tuple[int, ...], bytes]:
    return term_order(pair[0])


def divisors_in(terms: Iterable[int], modulus: int) -> list[int]:
    """The common divisors of some factor and `modulus`, without 1 and `modulus`, largest first."""
    found = {math.gcd(factor, modulus) for factor in terms}
    return sorted(found - {0, 1, modulus}, reverse=True)


def factors_of(term: UOp) -> list[UOp]:
    """The operands of a product, of however many."""
    found: list[UOp] = []
    stack = [term]
    while stack:
        node = stack.pop()
        if node.op is Ops.MUL:
            stack.extend(reversed(node.src))
        else:
            found.append(node)
    return found


def product_of(factors: Iterable[UOp]) -> UOp:
    """The product in canonical order; 1 for no factors."""
    ordered = sorted(factors, key=term_order)
    if not ordered:
        return constant(1)
    result = ordered[0]
    for factor in ordered[1:]:
        result = UOp(Ops.MUL, dtypes.index, (result, factor))
    return result


def multiply(x: UOp, y: UOp) -> UOp:
    """The canonical product of two simplified index values; constants go to the terms of a sum."""
    if x.op is Ops.CONST:
        x, y = y, x
    if y.op is Ops.CONST:
        terms, offset = linear_form(x)
        scaled = {term: factor * y.arg for term, factor in terms.items()}
        return build_sum(*cleaned(scaled, offset * y.arg))
    scale = 1
    factors: list[UOp] = []
    for operand in (x, y):
        terms, offset = linear_form(operand)
        if offset == 0 and len(terms) == 1:
            ((term, factor),) = terms.items()
            scale *= factor
            factors.extend(factors_of(term))
        else:
            factors.append(operand)
    return build_sum({product_of(factors): scale}, 0)
