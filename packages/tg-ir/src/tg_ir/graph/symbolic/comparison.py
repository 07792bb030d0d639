"""Comparisons of index values: a sum without constant against a constant, divided by its gcd.

The first term has a positive factor; so a condition reads `2*i + j < 9` or `3 < 2*i + j`. Operands
are simplified already.
"""

from __future__ import annotations

import math

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.symbolic.integer_division import subtract, sum_of, upper_terms
from tg_ir.graph.symbolic.linear import (
    Terms,
    build_sum,
    constant,
    divisors_in,
    interval,
    linear_form,
)
from tg_ir.graph.uop import UOp

TRUE = UOp.const(dtypes.bool, True)
FALSE = UOp.const(dtypes.bool, False)


def truth(value: bool) -> UOp:
    """A bool constant."""
    return TRUE if value else FALSE


def less_than(x: UOp, y: UOp) -> UOp:
    """`x < y`."""
    terms, offset = linear_form(subtract(x, y))
    return sum_less_than(terms, -offset)


def sum_less_than(terms: Terms, limit: int) -> UOp:
    """`sum < limit` for terms in canonical order."""
    low, high = interval(terms, 0)
    if high < limit:
        return TRUE
    if low >= limit:
        return FALSE
    divisor = math.gcd(*terms.values())
    if divisor > 1:
        terms = {term: factor // divisor for term, factor in terms.items()}
        limit = -(-limit // divisor)
    if any(term.vmax != 0 and _is_symbolic(term) for term in terms):
        top = upper_terms(terms, 0)
        if interval(*top)[1] < limit:
            return TRUE
    coarser = _without_small_terms(terms, limit)
    if coarser is not None:
        return coarser
    if len(terms) == 1:
        ((term, factor),) = terms.items()
        if term.op is Ops.FLOORDIV and term.src[1].op is Ops.CONST and term.src[1].arg > 0:
            return _quotient_less_than(term, factor, limit)
    if next(iter(terms.values())) > 0:
        return UOp(Ops.CMPLT, dtypes.bool, (build_sum(terms, 0), constant(limit)))
    negated = {term: -factor for term, factor in terms.items()}
    return UOp(Ops.CMPLT, dtypes.bool, (constant(-limit), build_sum(negated, 0)))


def _is_symbolic(term: UOp) -> bool:
    if term.op is Ops.RANGE:
        return term.src[0].op is not Ops.CONST
    return term.op is Ops.MUL


def _without_small_terms(terms: Terms, limit: int) -> UOp | None:
    """g*y + s < g*q + e with 0 <= s < g: y < q or y < q + 1, where the bounds of s decide which."""
    for step in divisors_in(terms.values(), 0):
        if step == 1:
            continue
        rest = {term: factor for term, factor in terms.items() if factor % step}
        low, high = interval(rest, 0)
        bucket = low // step
        if not rest or high // step != bucket:
            continue
        multiples = {term: by // step for term, by in terms.items() if by % step == 0}
        quotient, excess = divmod(limit, step)
        if excess == 0 or low - bucket * step >= excess:
            return sum_less_than(multiples, quotient - bucket)
        if high - bucket * step < excess:
            return sum_less_than(multiples, quotient + 1 - bucket)
    return None


def _quotient_less_than(term: UOp, factor: int, limit: int) -> UOp:
    """x//k < limit -> x < limit*k, and -(x//k) < limit -> (1 - limit)*k - 1 < x."""
    value, divisor = term.src[0], int(term.src[1].arg)
    if factor > 0:
        return less_than(value, constant(limit * divisor))
    return less_than(constant((1 - limit) * divisor - 1), value)


def equal(x: UOp, y: UOp) -> UOp:
    """`x == y`."""
    terms, offset = linear_form(subtract(x, y))
    target = -offset
    if not terms:
        return truth(target == 0)
    low, high = interval(terms, 0)
    divisor = math.gcd(*terms.values())
    if not low <= target <= high or target % divisor:
        return FALSE
    if next(iter(terms.values())) < 0:
        divisor = -divisor
    scaled = {term: factor // divisor for term, factor in terms.items()}
    return UOp(Ops.CMPEQ, dtypes.bool, (sum_of(scaled, 0), constant(target // divisor)))


def not_equal(x: UOp, y: UOp) -> UOp:
    """`x != y`."""
    same = equal(x, y)
    if same.op is Ops.CONST:
        return truth(not same.arg)
    return UOp(Ops.CMPNE, dtypes.bool, same.src)
