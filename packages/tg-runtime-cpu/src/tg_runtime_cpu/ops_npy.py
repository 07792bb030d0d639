"""The NPY device: memory that is numpy arrays. It runs no programs.

This is the only file of the package that imports numpy.
"""

from __future__ import annotations

import numpy as np
from tg_ir.device import Compiled, DeviceCapabilities, Program, TinyELF, UnsupportedByDevice

from tg_runtime_cpu.view_allocator import ViewAllocator, ViewMemory


class NumpyAllocator(ViewAllocator):
    """Memory that numpy allocates, zeroed by the operating system where it is large."""

    def _allocate(self, size: int) -> memoryview:
        try:
            return np.zeros(size, dtype=np.uint8).data
        except ValueError as error:  # larger than any array can be
            raise MemoryError(str(error)) from error


class NPYDevice(Compiled[ViewMemory]):
    """numpy as a device.

    Args:
        device: canonical name.
    """

    runtime_api = 1

    def __init__(self, device: str) -> None:
        """Open the device; there is nothing to start."""
        super().__init__(
            device,
            NumpyAllocator(device),
            renderers=(),
            runtime=_refuse_program,
            capabilities=DeviceCapabilities(
                runs_programs=False, host_memory=True, max_alignment=16
            ),
        )


def _refuse_program(obj: TinyELF) -> Program[ViewMemory]:
    raise UnsupportedByDevice(
        f"NPY runs no kernels, so not '{obj.name}'; copy to another device first"
    )
