"""Torch as an optional oracle: without it the whole folder is one skip, with the reason shown.

The default set-up never installs torch; `nox -s torch_oracle` makes an environment that has it.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

REASON = "torch is not installed; `nox -s torch_oracle` makes an environment with it and runs these"
HAS_TORCH = importlib.util.find_spec("torch") is not None

collect_ignore_glob = [] if HAS_TORCH else ["test_[!0]*.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why, without -rs too."""
    if not HAS_TORCH:
        terminalreporter.write_line(f"tests/torch_oracle: skipped: {REASON}")


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in each test."""
    return np.random.default_rng(2026)
