"""The PYTHON device: evaluates linear kernels. Slow and exact, the reference for others."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from tg_ir.device import Compiled, DeviceCapabilities, LaunchSize, Program, TinyELF
from tg_ir.graph.evaluate import run_linear_kernel
from tg_ir.graph.text import parse

from tg_runtime_cpu.errors import KernelCallError
from tg_runtime_cpu.view_allocator import ViewAllocator, ViewMemory

CODE_FORMAT = "text"


class PythonAllocator(ViewAllocator):
    """Memory that is bytearrays."""

    def _allocate(self, size: int) -> memoryview:
        try:
            return memoryview(bytearray(size))
        except OverflowError as error:
            raise MemoryError(str(error)) from error


class PythonProgram(Program[ViewMemory]):
    """A linear kernel in its text form, parsed once.

    Args:
        obj: its code is the text, in UTF-8.

    Raises:
        KernelCallError: the code is in another format.
    """

    def __init__(self, obj: TinyELF) -> None:
        """Parse the text."""
        if obj.code_format != CODE_FORMAT:
            raise KernelCallError(
                f"kernel {obj.name}: PYTHON runs code of format '{CODE_FORMAT}', "
                f"got '{obj.code_format}'"
            )
        self.name = obj.name
        self.signature = obj.signature
        self._kernel = parse(obj.code.decode())

    def __call__(
        self,
        *buffers: ViewMemory,
        global_size: LaunchSize = (1, 1, 1),
        local_size: LaunchSize | None = None,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """Evaluate the kernel; see `Program`.

        Raises:
            KernelCallError: another number of buffers or integers than the kernel takes.
        """
        expected = (len(self.signature.buffers), len(self.signature.vals))
        if (len(buffers), len(vals)) != expected:
            raise KernelCallError(
                f"kernel {self.name} takes {expected[0]} buffers and {expected[1]} integers; "
                f"got {len(buffers)} buffers and {tuple(vals)}"
            )
        started = perf_counter()
        views = [buffer.view for buffer in buffers]
        run_linear_kernel(self._kernel, views, vals, 0, global_size[0])
        return perf_counter() - started if wait else None


class PYTHONDevice(Compiled[ViewMemory]):
    """The interpreter as a device.

    Args:
        device: canonical name.
    """

    runtime_api = 1

    def __init__(self, device: str) -> None:
        """Open the device; there is nothing to start."""
        super().__init__(
            device,
            PythonAllocator(device),
            renderers=("SERIAL",),
            runtime=PythonProgram,
            capabilities=DeviceCapabilities(host_memory=True, max_alignment=8),
            code_formats=(CODE_FORMAT,),
        )
