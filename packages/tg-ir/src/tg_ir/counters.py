"""`GlobalCounters`: what this process has launched and allocated so far."""

import threading
from typing import ClassVar

__all__ = ["GlobalCounters"]


class GlobalCounters:
    """Totals over all devices and threads; the executor and the allocators add to them.

    Attributes:
        global_ops: arithmetic operations of all kernels launched.
        global_mem: bytes that these kernels read and wrote.
        time_sum_s: seconds that timed launches took.
        kernel_count: kernels launched.
        mem_used: bytes of device memory in buffers that are alive.
        mem_peak: the most that `mem_used` was since the last `reset_peak`.
    """

    global_ops: ClassVar[int] = 0
    global_mem: ClassVar[int] = 0
    time_sum_s: ClassVar[float] = 0.0
    kernel_count: ClassVar[int] = 0
    mem_used: ClassVar[int] = 0
    mem_peak: ClassVar[int] = 0

    # Reentrant: the garbage collector may free a buffer, and count it, inside any of these calls.
    _lock: ClassVar[threading.RLock] = threading.RLock()

    @classmethod
    def reset(cls) -> None:
        """Start counting launches afresh. Memory in use stays, as the buffers do."""
        with cls._lock:
            cls.global_ops = 0
            cls.global_mem = 0
            cls.time_sum_s = 0.0
            cls.kernel_count = 0

    @classmethod
    def reset_peak(cls) -> None:
        """Let `mem_peak` start again at what is in use now."""
        with cls._lock:
            cls.mem_peak = cls.mem_used

    @classmethod
    def count_launches(
        cls, kernels: int = 1, ops: int = 0, mem: int = 0, time_s: float = 0.0
    ) -> None:
        """Add launches.

        Args:
            kernels: how many were launched.
            ops: arithmetic operations of all of them.
            mem: bytes that all of them read and wrote.
            time_s: seconds they took; 0 where that was not measured.
        """
        with cls._lock:
            cls.kernel_count += kernels
            cls.global_ops += ops
            cls.global_mem += mem
            cls.time_sum_s += time_s

    @classmethod
    def count_memory(cls, nbytes: int) -> None:
        """Add memory allocated (positive) or freed (negative), in bytes."""
        with cls._lock:
            cls.mem_used += nbytes
            cls.mem_peak = max(cls.mem_peak, cls.mem_used)
