"""Runs one program after some others and prints what it made: a process of its own for a test.

    python determinism_probe.py NAME_OF_WHAT_RUNS_BEFORE

The output is JSON: a digest of each result, and of each kernel by its key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tg_codegen.compile.driver import clear_kernel_cache
from tg_frontend import Tensor, TinyJit
from tg_frontend.errors import GradientError
from tg_frontend.nn import optim
from tg_ir.config import Context
from tg_ir.errors import ShapeError


def nothing() -> None:
    """Nothing runs before."""


def other_work() -> None:
    """Other buffers, variables, random draws and kernels."""
    kept = [Tensor.rand(3, n).sum(0).realize() for n in range(1, 9)]
    for tensor in kept[::2]:
        tensor += 1
        tensor.realize()
    Tensor([1.0, 2.0]).dot(Tensor([3.0, 4.0])).item()


def failures() -> None:
    """Calls that raise half way."""
    kept = Tensor([1.0, 2.0, 3.0])
    with contextlib.suppress(ShapeError):
        (kept + 1) @ Tensor([1.0] * 7)
    with contextlib.suppress(GradientError):
        (kept * 2).realize().backward()


BEFORE: dict[str, Callable[[], None]] = {
    "nothing": nothing,
    "other_work": other_work,
    "failures": failures,
}


def program() -> list[bytes]:
    """Captured training with random numbers, then reductions, writes and indexing."""
    Tensor.manual_seed(7)
    weight = Tensor.randn(6, 5, requires_grad=True)
    optimizer = optim.Adam([weight], lr=0.1)

    def step(x: Tensor) -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = ((x @ weight).tanh() - Tensor.rand(4, 5)).square().mean()
            loss.backward()
            optimizer.step()
            return loss

    captured = TinyJit(step)
    losses = [captured(Tensor.rand(4, 6)).numpy().tobytes() for _ in range(4)]
    table = Tensor.rand(7, 3)
    table[Tensor([1, 5, 1])] = table[[0, 2, 3]] * 2
    shares = table.softmax(1).sum(0)
    return [*losses, weight.numpy().tobytes(), table.numpy().tobytes(), shares.numpy().tobytes()]


def main() -> None:
    """Run, and print the digests."""
    with Context(CCACHE=0):
        BEFORE[sys.argv[1]]()
    clear_kernel_cache()  # a kernel that is not made again is not written down
    with tempfile.TemporaryDirectory() as folder, Context(CACHEDIR=folder):
        results = program()
        kernels = {}
        for path in Path(folder).glob("*.sqlite3"):
            rows = sqlite3.connect(path).execute("SELECT kind, key, value FROM entries")
            for kind, key, value in rows:
                kernels[f"{kind} {bytes(key).hex()}"] = hashlib.sha256(value).hexdigest()
    digests = [hashlib.sha256(result).hexdigest() for result in results]
    json.dump({"results": digests, "kernels": dict(sorted(kernels.items()))}, sys.stdout)


if __name__ == "__main__":
    main()
