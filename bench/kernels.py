"""Kernels on one core against the limits of that core, measured in turn in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from tg_frontend import Context, Tensor, TinyJit

from bench.limits import Limits, LimitsError, measure_limits
from bench.report import Row

ROUNDS = 7
CALLS_A_ROUND = 5
MATMUL = 1024
ELEMENTS = 16 << 20  # 64 MiB of float32


def measure() -> Iterator[Row]:
    """Matmul against the fma peak.

    Elementwise chains and reductions over 64 MiB against the copy bandwidth.
    """
    with Context(THREADS=1):
        yield from _ratios()


def _ratios() -> Iterator[Row]:
    side = (MATMUL, MATMUL)
    a, b = Tensor.rand(*side).realize(), Tensor.rand(*side).realize()
    x, y = Tensor.rand(ELEMENTS).realize(), Tensor.rand(ELEMENTS).realize()
    square = x.reshape(4096, 4096)
    megabytes = ELEMENTS * 4

    def fma(limits: Limits) -> float:
        return limits.fma_flops

    def copy(limits: Limits) -> float:
        return limits.copy_bytes

    work = 2 * MATMUL**3
    yield _row("matmul 1024 / fma peak", lambda: a @ b, work, fma, 0.25)
    chain = lambda: (x * 2.0 + 1.0) * x - 3.0  # noqa: E731  # four of these read better in a line each
    yield _row("chain of 4 ops / copy", chain, 2 * megabytes, copy, 0.75)
    yield _row("add of two / copy", lambda: x + y, 3 * megabytes, copy, 0.75)
    yield _row("sum of all / copy", lambda: x.sum(), megabytes, copy, 0.75)
    yield _row("sum of rows / copy", lambda: square.sum(1), megabytes, copy, 0.75)
    yield _row("sum of columns / copy", lambda: square.sum(0), megabytes, copy, 0.75)
    yield _row("max of rows / copy", lambda: square.max(1), megabytes, copy, 0.75)


def _row(
    name: str,
    function: Callable[[], Tensor],
    work: float,
    limit: Callable[[Limits], float],
    target: float,
) -> Row:
    run = TinyJit(lambda: function().realize())
    for _ in range(3):
        run()
    ratios: list[float] = []
    rates: list[float] = []
    try:
        for _ in range(ROUNDS):
            seconds = min(_timed(run) for _ in range(CALLS_A_ROUND))
            rates.append(work / seconds)
            ratios.append(rates[-1] / limit(measure_limits()))
    except LimitsError as error:
        return Row(name, None, target, True, str(error))
    rate = statistics.median(rates) / 1e9
    return Row(name, statistics.median(ratios), target, True, f"{rate:.0f} G/s on one core")


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
