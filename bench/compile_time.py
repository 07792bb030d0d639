"""Compile time of a train step.

In CPU seconds of a process with empty caches, against tinygrad's.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.child import ChildError, Cost, run_script
from bench.report import Row
from bench.train_step import script

ROUNDS = 3
PEER = "tinygrad==0.14.0"
CLANGS = ("clang-22", "clang-21", "clang-20", "clang-19", "clang")
NAME = "cold train step / tinygrad"


def measure() -> Iterator[Row]:
    """Ours over theirs, runs in turn."""
    python = peer_python()
    if isinstance(python, str):
        yield Row(NAME, None, 0.5, False, python)
        return
    ratios: list[float] = []
    for _ in range(ROUNDS):
        ours = _cold("tg_frontend", None)
        try:
            theirs = _cold("tinygrad", python)
        except ChildError as error:
            yield Row(NAME, None, 0.5, False, f"the peer failed: {error}")
            return
        ratios.append(ours.cpu / theirs.cpu)
    detail = f"{ours.cpu:.1f} s against {theirs.cpu:.1f} s CPU, three steps included"
    yield Row(NAME, statistics.median(ratios), 0.5, False, detail)


def peer_python() -> Path | str:
    """The interpreter of an environment that holds the peer, or why there is none."""
    if not any(shutil.which(name) for name in CLANGS):
        return "tinygrad needs clang: apt-get install clang-19"
    home = Path(tempfile.gettempdir()) / "tg-bench-peer"
    python = home / "bin" / "python"
    if python.exists():
        return python
    for command in (
        ["uv", "venv", "--quiet", str(home)],
        ["uv", "pip", "install", "--quiet", "--python", str(python), PEER, "numpy"],
    ):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            shutil.rmtree(home, ignore_errors=True)
            return f"{' '.join(command)} failed: {result.stderr.strip()[-200:]}"
    return python


def _cold(module: str, python: Path | None) -> Cost:
    clang = next((name for name in CLANGS if shutil.which(name)), "clang")
    with tempfile.TemporaryDirectory(prefix="tg-bench-") as folder:
        env = {"CACHEDIR": folder, "XDG_CACHE_HOME": folder, "CC": clang, "DEV": "CPU"}
        if python is None:
            return run_script(script(module), env)
        return run_script(script(module), env, str(python))
