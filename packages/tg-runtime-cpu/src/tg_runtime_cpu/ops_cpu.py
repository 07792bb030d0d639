"""The CPU device: this machine's cores, memory and renderers."""

from __future__ import annotations

from tg_ir.device import Compiled, DeviceCapabilities

from tg_runtime_cpu.cpu_graph import CPUGraph
from tg_runtime_cpu.cpu_program import CODE_FORMAT, CPUProgram
from tg_runtime_cpu.host_allocator import ALIGNMENT, HostAllocator, HostMemory


class CPUDevice(Compiled[HostMemory]):
    """All cores of this machine; `CPU:1`, `CPU:2`, ... are further names for them.

    Args:
        device: canonical name.
    """

    runtime_api = 1

    def __init__(self, device: str) -> None:
        """Open the device; nothing is started until the first launch."""
        super().__init__(
            device,
            HostAllocator(device),
            renderers=("LLVM", "CLANG"),
            runtime=CPUProgram,
            graph=CPUGraph,
            capabilities=DeviceCapabilities(host_memory=True, max_alignment=ALIGNMENT),
            code_formats=(CODE_FORMAT,),
        )

    def finalize(self) -> None:
        """Give cached memory back; worker threads are daemons and end with the process."""
        self.allocator.free_cache()
