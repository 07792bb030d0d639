"""The tensor suite that every DEV has to pass, in eager mode and under the JIT.

`nox -s dev_matrix` runs it once for each DEV. What a backend is known to do differently stands in
`known_differences/<DEVICE>.txt`, one `test id: reason` a line; such a test has to fail there.
Shapes are small, since PYTHON evaluates element by element.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from .modes import Evaluate, eager, jitted
from .programs import Run, run_captured, run_eagerly

HERE = Path(__file__).resolve().parent


def known_differences() -> dict[str, str]:
    """Reason by test id (`test_file.py::test_name[parameter]`) of the device in DEV."""
    device = os.environ.get("DEV", "CPU").partition(":")[0]
    path = HERE / "known_differences" / f"{device}.txt"
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    reasons = {}
    for line in lines:
        test, separator, reason = line.partition(": ")
        assert separator, f"{path}: expected 'test id: reason', got {line!r}"
        reasons[test] = reason
    return reasons


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the known differences as tests that have to fail."""
    reasons = known_differences()
    here = [item for item in items if HERE in item.path.parents]
    names = {item.nodeid.rpartition("/")[2]: item for item in here}
    for test, reason in reasons.items():
        if test in names:
            names[test].add_marker(pytest.mark.xfail(strict=True, reason=reason))


@pytest.fixture(params=[eager, jitted], ids=["eager", "jit"])
def evaluate(request: pytest.FixtureRequest) -> Evaluate:
    """`evaluate(function, *arrays)`: the function of tensors, as a numpy array, in either mode."""
    mode: Evaluate = request.param
    return mode


@pytest.fixture(scope="session", params=[run_eagerly, run_captured], ids=["eager", "jit"])
def run(request: pytest.FixtureRequest) -> Run:
    """`run(program, *arrays)`: all results of a program, which may write, in either mode."""
    mode: Run = request.param
    return mode


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in each test."""
    return np.random.default_rng(2026)
