"""The line that `DEBUG=2` prints for each launch: where, what, memory, time, rates."""

from __future__ import annotations

from tg_ir.counters import GlobalCounters

_NAME_WIDTH = 36


def launch_line(
    device: str, number: int, name: str, buffers: int, seconds: float, flops: int, nbytes: int
) -> str:
    """Return the line of one launch.

    Args:
        device: canonical name.
        number: how many launches the process had before, plus one.
        name: of the kernel.
        buffers: number of its buffer arguments.
        seconds: how long it ran.
        flops: floating point operations, as estimated by the compiler.
        nbytes: bytes read and written, as estimated by the compiler.
    """
    per_second = 1e-9 / seconds if seconds > 0 else 0.0
    total_ms = GlobalCounters.time_sum_s * 1e3
    return (
        f"{device:<8} {number:5d} {name:<{_NAME_WIDTH}} {buffers:3d} buffers "
        f"mem {GlobalCounters.mem_used / 1e9:6.3f} GB  "
        f"time {_time_text(seconds)} / {total_ms:9.2f} ms  "
        f"({flops * per_second:8.2f} GFLOPS, {nbytes * per_second:7.2f} GB/s)"
    )


def _time_text(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:8.2f} us"
    return f"{seconds * 1e3:8.2f} ms"
