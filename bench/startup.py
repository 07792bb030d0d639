"""Start-up: the import against numpy's, and a second process on a warm cache."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator

from bench.child import ChildError, run_script
from bench.report import Row
from bench.train_step import script

ROUNDS = 9
STEP = script("tg_frontend")


def measure() -> Iterator[Row]:
    """`import tg_frontend` / `import numpy`, and the compiles of a second process."""
    ratios = []
    for _ in range(ROUNDS):
        bare = run_script("pass", {}).wall
        ours = run_script("import tg_frontend", {}).wall - bare
        numpy = run_script("import numpy", {}).wall - bare
        ratios.append(ours / numpy)
    detail = f"import tg_frontend / import numpy, median of {ROUNDS}"
    yield Row("import", statistics.median(ratios), 1.0, False, detail)
    yield _warm()


def _warm() -> Row:
    with tempfile.TemporaryDirectory(prefix="tg-bench-") as folder:
        cold = run_script(STEP, {"CACHEDIR": folder})
        try:
            warm = run_script(STEP, {"CACHEDIR": folder, "ASSERT_COMPILE": "1"})
        except ChildError as error:
            return Row("warm second process / cold", float("inf"), 0.5, False, str(error))
    detail = "CPU seconds of the train step; ASSERT_COMPILE=1 held"
    return Row("warm second process / cold", warm.cpu / cold.cpu, 0.5, False, detail)
