"""Floor division and remainder of index values, simplified by bounds, and the sums that hold them.

With `x = k*q + r` the quotient is `q + r//k` and the remainder `r%k`; both are taken apart in the
same way, so that `x//k*k + x%k` comes back as `x` (`sum_of`). Operands are simplified already.
"""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.scalar import truncating_division
from tg_ir.graph.symbolic.linear import (
    LONGEST_SUM,
    Terms,
    add_multiple,
    build_sum,
    cleaned,
    constant,
    divisors_in,
    factors_of,
    interval,
    linear_form,
    multiply,
    product_of,
)
from tg_ir.graph.uop import UOp


def sum_of(terms: Terms, offset: int) -> UOp:
    """The canonical sum, quotients and remainders of one value joined."""
    terms, offset = cleaned(terms, offset)
    if len(terms) > 1:
        while (joined := _join_remainder(terms)) is not None:
            terms, more = joined
            terms, offset = cleaned(terms, offset + more)
    return build_sum(terms, offset)


def add(x: UOp, y: UOp) -> UOp:
    """`x + y`."""
    terms, offset = linear_form(x)
    offset += add_multiple(terms, y, 1)
    if len(terms) > LONGEST_SUM:
        return UOp(Ops.ADD, dtypes.index, (x, y))
    return sum_of(terms, offset)


def subtract(x: UOp, y: UOp) -> UOp:
    """`x - y`."""
    terms, offset = linear_form(x)
    offset += add_multiple(terms, y, -1)
    return sum_of(terms, offset)


def _constant_divisor(term: UOp, op: Ops) -> int | None:
    """The divisor of a division `op` by a positive constant."""
    if term.op is op and term.src[1].op is Ops.CONST and term.src[1].arg > 0:
        return int(term.src[1].arg)
    return None


def _join_remainder(terms: Terms) -> tuple[Terms, int] | None:
    """x//n*n + x%n -> x, x//a%b*a + x%a -> x%(a*b), all times any factor. None: no pair."""
    remainders = [term for term in terms if term.op is Ops.FLOORMOD]
    for term in remainders:
        divisor = _constant_divisor(term, Ops.FLOORMOD)
        if divisor is None:
            continue
        value, factor = term.src[0], terms[term]
        quotient = floor_divide(value, divisor)
        rest = {other: by for other, by in terms.items() if other is not term}
        if rest.get(quotient) == factor * divisor:
            del rest[quotient]
            return rest, add_multiple(rest, value, factor)
        for other in remainders:
            outer = _constant_divisor(other, Ops.FLOORMOD)
            if outer and other.src[0] is quotient and rest.get(other) == factor * divisor:
                del rest[other]
                return rest, add_multiple(rest, floor_modulo(value, divisor * outer), factor)
    return None


def _split_by(terms: Terms, offset: int, divisor: int) -> tuple[Terms, int, Terms, int]:
    """(quotient terms, constant, rest terms, constant): value == divisor*quotient + rest.

    Factors are divided towards zero, the constant towards minus infinity.
    """
    quotient: Terms = {}
    rest: Terms = {}
    for term, factor in terms.items():
        whole = truncating_division(factor, divisor)
        if whole:
            quotient[term] = whole
        if factor != whole * divisor:
            rest[term] = factor - whole * divisor
    return quotient, offset // divisor, rest, offset % divisor


def _bucket(terms: Terms, offset: int, divisor: int) -> int | None:
    """The quotient by `divisor` if it is the same for all values."""
    low, high = interval(terms, offset)
    return low // divisor if low // divisor == high // divisor else None


def _multiples_and_rest(
    terms: Terms, offset: int, step: int
) -> tuple[Terms, int, Terms, int] | None:
    """(y terms, constant, s terms, constant): value == step*y + s, 0 <= s < step by bounds."""
    multiples = {term: by // step for term, by in terms.items() if by % step == 0}
    rest = {term: by for term, by in terms.items() if by % step}
    bucket = _bucket(rest, offset % step, step)
    if bucket is None:
        return None
    return multiples, offset // step + bucket, rest, offset % step - bucket * step


def floor_divide(x: UOp, divisor: int) -> UOp:
    """`x // divisor`, 0 for a divisor of 0."""
    if divisor == 0:
        return constant(0)
    if divisor < 0:
        return floor_divide(multiply(x, constant(-1)), -divisor)
    if divisor == 1:
        return x
    quotient, offset, rest, rest_offset = _split_by(*linear_form(x), divisor)
    bucket = _bucket(rest, rest_offset, divisor)
    if bucket is None and any(factor < 0 for factor in rest.values()):
        # the same value with the negative factors made positive
        positive = {term: factor % divisor for term, factor in rest.items()}
        bucket = _bucket(positive, rest_offset, divisor)
        if bucket is not None:
            for term, factor in rest.items():
                quotient[term] = quotient.get(term, 0) - (factor < 0)
    if bucket is not None:
        return sum_of(quotient, offset + bucket)
    inner = _divide_rest(rest, rest_offset, divisor)
    offset += add_multiple(quotient, inner, 1)
    return sum_of(quotient, offset)


def _divide_rest(rest: Terms, offset: int, divisor: int) -> UOp:
    for step in divisors_in(rest.values(), divisor):
        split = _multiples_and_rest(rest, offset, step)
        if split is not None:
            return floor_divide(sum_of(split[0], split[1]), divisor // step)
    if len(rest) == 1:
        nested = _divide_nested(rest, offset, divisor)
        if nested is not None:
            return nested
    return UOp(Ops.FLOORDIV, dtypes.index, (sum_of(rest, offset), constant(divisor)))


def _divide_nested(rest: Terms, offset: int, divisor: int) -> UOp | None:
    """(y//a + c)//b -> (y + a*c)//(a*b), and (y%(b*m))//b -> (y//b)%m."""
    ((term, factor),) = rest.items()
    if factor != 1:
        return None
    inner = _constant_divisor(term, Ops.FLOORDIV)
    if inner is not None:
        terms, more = linear_form(term.src[0])
        return floor_divide(sum_of(terms, more + inner * offset), inner * divisor)
    modulus = _constant_divisor(term, Ops.FLOORMOD)
    if modulus is not None and offset == 0 and modulus % divisor == 0:
        return floor_modulo(floor_divide(term.src[0], divisor), modulus // divisor)
    return None


def floor_modulo(x: UOp, divisor: int) -> UOp:
    """`x % divisor` with the sign of the divisor, 0 for a divisor of 0."""
    if divisor in {0, 1, -1}:
        return constant(0)
    if divisor < 0:
        return multiply(floor_modulo(multiply(x, constant(-1)), -divisor), constant(-1))
    terms, offset = linear_form(x)
    bucket = _bucket(terms, offset, divisor)
    if bucket is not None:
        return sum_of(terms, offset - bucket * divisor)
    terms, offset = _drop_inner_remainders(terms, offset, divisor)
    _, _, rest, rest_offset = _split_by(terms, offset, divisor)
    for candidate in (rest, {term: factor % divisor for term, factor in rest.items()}):
        bucket = _bucket(candidate, rest_offset, divisor)
        if bucket is not None:
            return sum_of(candidate, rest_offset - bucket * divisor)
    for step in divisors_in(rest.values(), divisor):
        split = _multiples_and_rest(rest, rest_offset, step)
        if split is None:
            continue
        inner = floor_modulo(sum_of(split[0], split[1]), divisor // step)
        result = split[2]
        more = add_multiple(result, inner, step)
        return sum_of(result, split[3] + more)
    return UOp(Ops.FLOORMOD, dtypes.index, (sum_of(rest, rest_offset), constant(divisor)))


def _drop_inner_remainders(terms: Terms, offset: int, divisor: int) -> tuple[Terms, int]:
    """(y % m)*c -> y*c where m*c is a multiple of the divisor."""
    result: Terms = {}
    for term, factor in terms.items():
        modulus = _constant_divisor(term, Ops.FLOORMOD)
        if modulus is not None and modulus * factor % divisor == 0:
            offset += add_multiple(result, term.src[0], factor)
        else:
            result[term] = result.get(term, 0) + factor
    return result, offset


# ---- symbolic sizes


def upper_terms(terms: Terms, offset: int) -> tuple[Terms, int]:
    """An upper bound of a sum: loop counters replaced by the last value of their loop."""
    result: Terms = {}
    for term, factor in terms.items():
        factors = factors_of(term)
        counter = next((part for part in factors if part.op is Ops.RANGE), None)
        others = list(factors)
        if counter is not None:
            others.remove(counter)  # one of them: a counter may stand squared
        if counter is None or factor < 0 or any(part.vmin < 0 for part in others):
            result[term] = result.get(term, 0) + factor
            continue
        rest = product_of(others)
        offset += add_multiple(result, multiply(counter.src[0], rest), factor)
        offset += add_multiple(result, rest, -factor)
    return result, offset


def divide_by_symbol(x: UOp, divisor: UOp) -> tuple[UOp, UOp] | None:
    """Quotient and remainder of `x` by a positive symbolic size; None: bounds do not give them."""
    if divisor.vmin <= 0:
        return None
    base, scale = _base_and_scale(divisor)
    terms, offset = linear_form(x)
    quotient: Terms = {}
    quotient_offset = 0
    rest: Terms = {}
    for term, factor in terms.items():
        cofactor = _without_factor(term, base)
        if cofactor is None or factor % scale:
            rest[term] = factor
        else:
            quotient_offset += add_multiple(quotient, cofactor, factor // scale)
    if interval(rest, offset)[0] < 0:
        return None
    top, top_offset = upper_terms(rest, offset)
    top_offset += add_multiple(top, divisor, -1)
    if interval(top, top_offset)[1] >= 0:
        return None
    return sum_of(quotient, quotient_offset), sum_of(rest, offset)


def _base_and_scale(divisor: UOp) -> tuple[UOp, int]:
    terms, offset = linear_form(divisor)
    if offset == 0 and len(terms) == 1:
        ((base, scale),) = terms.items()
        return base, scale
    return divisor, 1


def _without_factor(term: UOp, base: UOp) -> UOp | None:
    """`term / base` if `base` is one of its factors."""
    remaining = factors_of(term)
    for factor in factors_of(base):
        if factor not in remaining:
            return None
        remaining.remove(factor)
    return product_of(remaining)
