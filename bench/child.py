"""A script run in a process of its own, and what it cost: CPU seconds, wall seconds, output."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass


class ChildError(RuntimeError):
    """The script failed; the message ends with what it printed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`cpu`: user plus system seconds of the process and what it waited for."""

    cpu: float
    wall: float
    output: str


def run_script(
    code: str, env: Mapping[str, str], python: str = sys.executable, *arguments: str
) -> Cost:
    """Run `code` by `python -c` with `env` added to the environment.

    Raises:
        ChildError: it did not exit with 0.
    """
    before = os.times()
    start = time.perf_counter()
    result = subprocess.run(
        [python, "-c", code, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    after = os.times()
    if result.returncode:
        raise ChildError(f"exit code {result.returncode}:\n{result.stderr[-2000:]}")
    cpu = after.children_user - before.children_user
    cpu += after.children_system - before.children_system
    return Cost(cpu, wall, result.stdout)
