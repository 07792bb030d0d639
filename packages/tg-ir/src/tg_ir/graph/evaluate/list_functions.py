"""Functions over whole lists, compiled once each: ALU ops, reductions and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tg_ir.dtype import DType
from tg_ir.graph.evaluate import expressions
from tg_ir.graph.evaluate.expressions import literal, scalar_expression
from tg_ir.graph.evaluate.python_source import PythonSource
from tg_ir.graph.ops import Combine, Ops

_FUNCTIONS_KEPT = 1024


@lru_cache(maxsize=_FUNCTIONS_KEPT)
def elementwise_function(
    op: Ops, dtype: DType, src_dtype: DType, count: int
) -> Callable[..., list[Any]]:
    """A function of `count` equally long lists that applies `op` to each group of elements."""
    expression = scalar_expression(op, dtype, src_dtype)
    lists = [f"x{k}" for k in range(count)]
    lanes = [f"a{k}" for k in range(count)]
    together = lists[0] if count == 1 else f"zip({', '.join(lists)}, strict=True)"
    body = f"[{expression.of(*lanes)} for {', '.join(lanes)} in {together}]"
    rounded = f"list(array('f', {body}))" if expression.through_float32 else body
    function: Callable[..., list[Any]] = eval(
        f"lambda {', '.join(lists)}: {rounded}", dict(expressions.FUNCTIONS)
    )
    return function


def fold_groups(
    combine: Combine,
    dtypes: Sequence[DType],
    states: Sequence[list[Any]],
    group: int,
    is_scan: bool,
    count: int,
) -> list[list[Any]]:
    """Join each run of `group` elements, `count` runs in all.

    Args:
        combine: how to join.
        dtypes: of each state.
        states: one list a state, `count * group` items.
        group: how many elements are joined.
        is_scan: keep every prefix instead of the last.
        count: how many groups.

    Returns:
        One list a state: `count` items, or as many as came in for a scan.
    """
    # equal numbers of unlike sign or type are one key otherwise
    spelled = tuple([literal(start) for start in combine.init])
    function = _fold_function(combine, spelled, tuple(dtypes), is_scan)
    results: list[list[Any]] = function(group, count, *states)
    return results


@lru_cache(maxsize=_FUNCTIONS_KEPT)
def _fold_function(
    combine: Combine, initial: tuple[str, ...], dtypes: tuple[DType, ...], is_scan: bool
) -> Callable[..., Any]:
    source = PythonSource()
    names = [f"s{k}" for k in range(len(dtypes))]
    source.open_function(f"fold(group, count, {', '.join(names)})")
    source.line(f"results = [{', '.join('[]' for _ in names)}]")
    source.open_loop("g", "range(count)")
    old = [f"o{k}" for k in range(len(dtypes))]
    for name, start in zip(old, initial, strict=True):
        source.line(f"{name} = {start}")
    source.open_loop("i", "range(g * group, g * group + group)")
    new = [f"n{k}" for k in range(len(dtypes))]
    for name, state in zip(new, names, strict=True):
        source.line(f"{name} = {state}[i]")
    joined = source.combine(combine, dtypes, old, new)
    source.line(f"{', '.join(old)}, = {', '.join(joined)},")
    if is_scan:
        _append(source, old)
    source.close_loop()
    if not is_scan:
        _append(source, old)
    source.close_loop()
    source.line("return results")
    return source.compile("fold")


def _append(source: PythonSource, names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        source.line(f"results[{position}].append({name})")
