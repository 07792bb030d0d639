"""How compile time grows: per-op time of long chains, per-layer time of deep networks."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator

from bench.child import run_script
from bench.report import Row

ROUNDS = 3

CHAIN = """
import sys
from tg_frontend import Tensor
x = Tensor.ones(16).contiguous().realize()
y = x
for step in range({count}):
    y = y + x
assert y.tolist() == [{count} + 1.0] * 16
"""

NETWORK = """
from tg_frontend import Tensor
x = Tensor.ones(8, 16).contiguous().realize()
weights = [Tensor.full((16, 16), 1 / 16).contiguous().realize() for _ in range({count})]
for weight in weights:
    x = (x @ weight).relu()
loss = x.sum()
gradients = loss.gradient(*weights)
Tensor.realize(loss, *gradients)
"""


def measure() -> Iterator[Row]:
    """Cold CPU seconds per op, large against small; what an empty process costs is taken off."""
    yield _row("chain of adds, 10000 / 1000 ops", CHAIN, 1000, 10000)
    yield _row("network, 200 / 20 layers", NETWORK, 20, 200)


def _row(name: str, script: str, small: int, large: int) -> Row:
    ratios = []
    for _ in range(ROUNDS):
        empty = _cold(script.format(count=1))
        few = (_cold(script.format(count=small)) - empty) / small
        many = (_cold(script.format(count=large)) - empty) / large
        ratios.append(many / few)
    detail = f"CPU time an op or layer, compile included, median of {ROUNDS}"
    return Row(name, statistics.median(ratios), 1.5, False, detail)


def _cold(code: str) -> float:
    with tempfile.TemporaryDirectory(prefix="tg-bench-") as folder:
        return run_script(code, {"CACHEDIR": folder}).cpu
