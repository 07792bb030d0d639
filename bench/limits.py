"""The limits of this machine, from `limits.c`.

Compiled on first use with the C compiler of the machine.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("limits.c")


class LimitsError(RuntimeError):
    """The limits cannot be measured here; says what is missing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one core.

    Float32 operations a second by fma, and bytes a second (read plus written) by copying 64 MiB.
    """

    fma_flops: float
    copy_bytes: float


@functools.cache
def _program() -> Path:
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise LimitsError("no C compiler on PATH: install gcc to measure the machine's limits")
    path = Path(tempfile.mkdtemp(prefix="tg-bench-")) / "limits"
    command = [compiler, "-O3", "-march=native", "-ffp-contract=fast", "-o", str(path), str(SOURCE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LimitsError(f"{' '.join(command)} failed:\n{result.stderr}")
    return path


def measure_limits() -> Limits:
    """Run the instrument once (about half a second)."""
    output = subprocess.run([_program()], capture_output=True, text=True, check=True).stdout
    values = dict(line.split() for line in output.splitlines())
    return Limits(float(values["fma_flops"]), float(values["copy_bytes"]))
