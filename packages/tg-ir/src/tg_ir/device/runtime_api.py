"""The contract of a runtime: `Compiled`, a device; `Program`, a kernel; `DeviceGraph`, many.

A runtime package implements these and advertises its devices by entry point; memory is in
`allocator`, what a device declares about itself in `capabilities`, the binary it receives in
`artifact`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias

from tg_ir.device.allocator import Allocator, HandleT
from tg_ir.device.artifact import TinyELF
from tg_ir.device.capabilities import PLAIN_DEVICE, DeviceCapabilities

RUNTIME_API = 1
"""Version of this contract. A runtime names the version it was written for; see `registry`."""

LOADED_PROGRAMS = 4096
"""How many loaded programs a device keeps for the next executor that has the same kernel."""

LaunchSize: TypeAlias = tuple[int, ...]
"""Up to three extents of a launch grid or of a work-group."""


class Program(ABC, Generic[HandleT]):
    """A kernel that is loaded on a device and can be launched."""

    @abstractmethod
    def __call__(
        self,
        *buffers: HandleT,
        global_size: LaunchSize = (1, 1, 1),
        local_size: LaunchSize | None = None,
        vals: Sequence[int] = (),
        wait: bool = False,
    ) -> float | None:
        """Launch the kernel.

        Args:
            buffers: memory of the device, in the order of the kernel's parameters.
            global_size: extents of the launch grid; on CPU the first is the extent of the THREAD
            axis.
            local_size: extents of a work-group; None where the device has none.
            vals: the kernel's integer arguments, in order.
            wait: wait for the end.

        Returns:
            Seconds that the kernel ran if `wait`, else None.
        """


@dataclass(frozen=True)
class GraphLaunch:
    """One launch of a device graph: a program and entries of the graph's handle table."""

    program: Program[Any]
    slots: tuple[int, ...]  # position in the handle table of each kernel parameter
    global_size: LaunchSize
    local_size: LaunchSize | None
    vals: tuple[int, ...]


class DeviceGraph(ABC, Generic[HandleT]):
    """Several launches in order, made once and run many times with little overhead."""

    @abstractmethod
    def set_handle(self, slot: int, handle: HandleT) -> None:
        """Use this memory for `slot` from the next run on."""

    @abstractmethod
    def set_sizes(self, index: int, global_size: LaunchSize, vals: tuple[int, ...]) -> None:
        """Change the grid and the integers of the launch at `index`."""

    @abstractmethod
    def run(self, wait: bool = False) -> float | None:
        """Run every launch; return the seconds it took if `wait`, else None."""


GraphFactory: TypeAlias = Callable[
    ["Compiled[Any]", Sequence[GraphLaunch], Sequence[Any], Mapping[str, Program[Any]]],
    DeviceGraph[Any],
]
"""Makes a graph from a device, its launches, the first handle of every slot, and support kernels.

Support kernels, by name, are those of the program that no step launches: a compiler puts there
what a device's graph needs, such as native code that walks the launches.
"""


class Compiled(Generic[HandleT]):
    """A device that runs compiled programs.

    Attributes:
        device: canonical name, `CPU` or `CPU:1`.
        allocator: its memory.
        renderers: names of the renderers whose code it runs, best first.
        code_formats: it runs the code of any other renderer too that makes one of these formats.
        graph: makes device graphs; None where the device has none.
        arch: what a compiler must know of this machine, as in `DEV`; None if nothing.
        capabilities: what it declares about itself.
    """

    runtime_api: ClassVar[int]  # each runtime writes the number of the contract it was written for
    is_named_by_path: ClassVar[bool] = False  # `NAME:path` rather than `NAME:index`

    def __init__(
        self,
        device: str,
        allocator: Allocator[HandleT],
        renderers: Sequence[str],
        runtime: Callable[[TinyELF], Program[HandleT]],
        graph: GraphFactory | None = None,
        arch: str | None = None,
        capabilities: DeviceCapabilities = PLAIN_DEVICE,
        code_formats: Sequence[str] = (),
    ) -> None:
        """Store the parts; a subclass calls this at the end of opening the device."""
        self.device = device
        self.allocator = allocator
        self.renderers = tuple(renderers)
        self.code_formats = tuple(code_formats)
        self.graph = graph
        self.arch = arch
        self.capabilities = capabilities
        self._runtime = runtime
        self._loaded: dict[TinyELF, Program[HandleT]] = {}

    def runtime(self, obj: TinyELF) -> Program[HandleT]:
        """Load a binary and return what launches it."""
        return self._runtime(obj)

    def loaded_program(self, obj: TinyELF) -> Program[HandleT]:
        """Return the program of a binary, loading it unless that was done lately."""
        program = self._loaded.pop(obj, None)
        if program is None:
            program = self._runtime(obj)
        self._loaded[obj] = program  # a dict keeps its order: the first is the one unused longest
        while len(self._loaded) > LOADED_PROGRAMS:
            self._loaded.pop(next(iter(self._loaded)), None)
        return program

    def synchronize(self) -> None:
        """Wait until everything launched so far has run; a synchronous device has nothing to do."""

    def count(self) -> int:
        """Return how many devices of this kind the machine has: `CPU:0` to `CPU:n-1`."""
        return 1

    def finalize(self) -> None:
        """Give back what the device holds; called once at exit, after `synchronize`."""


AnyCompiled: TypeAlias = Compiled[Any]
"""A device whose handles are opaque to the holder."""
