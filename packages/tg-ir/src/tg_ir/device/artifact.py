"""What code generation hands over: `TinyELF`, one kernel, and `LinearProgram`, all of them.

Plain frozen dataclasses, the same for eager mode, the JIT and exported files. The written form is
in `artifact_file`; running one is `execute`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tg_ir.device.errors import ProgramInputError
from tg_ir.device.int_expr import Const, IntExpr

FORMAT_VERSION = 1
"""Version of the written form. Files of earlier versions keep loading."""

BufferRole: TypeAlias = Literal["input", "temporary", "constant"]
"""Who brings the memory: the caller of each run (results too), the executor, the program."""


@dataclass(frozen=True)
class BufferParameter:
    """One buffer argument of a kernel."""

    dtype: str  # name of the element type
    writable: bool


@dataclass(frozen=True)
class KernelSignature:
    """The arguments of a kernel: buffers in PARAM order, then integers in DEFINE_VAR order."""

    buffers: tuple[BufferParameter, ...]
    vals: tuple[str, ...] = ()


@dataclass(frozen=True)
class TinyELF:
    """A compiled kernel.

    `code` is what the device loads, in the format that `code_format` names (`elf` a relocatable
    ELF object, `text` the text form of a linear kernel, `ptx`, ...).
    """

    name: str  # symbol of the entry point
    code: bytes
    code_format: str
    target: str  # what it was compiled for, in the grammar of DEV
    signature: KernelSignature


@dataclass(frozen=True)
class BufferDecl:
    """A buffer of a program.

    Temporaries that the memory planner placed share an arena: one allocation a device and arena
    number, in which this buffer starts at `offset`. `arena` is None for a temporary that has its
    own allocation. The target of a `View` step is a temporary too, and gets no memory.
    `name` says which input it is, such as "x" or "result", where whoever made the program knew.
    """

    nbytes: int
    device: str
    role: BufferRole
    arena: int | None = None
    offset: int = 0
    name: str = ""


@dataclass(frozen=True)
class Launch:
    """Run a kernel. `flops` and `bytes` moved are estimates for reports."""

    kernel: int  # index into LinearProgram.kernels
    buffers: tuple[int, ...]  # indices into LinearProgram.buffers, in PARAM order
    vals: tuple[IntExpr, ...] = ()
    global_size: tuple[IntExpr, ...] = (Const(1), Const(1), Const(1))
    local_size: tuple[IntExpr, ...] | None = None
    flops: IntExpr = Const(0)
    bytes: IntExpr = Const(0)


@dataclass(frozen=True)
class Copy:
    """Copy one whole buffer to another of the same size, between any two devices."""

    dest: int
    source: int


@dataclass(frozen=True)
class View:
    """From here on buffer `dest` is the memory of `source` that starts at `byte_offset`."""

    dest: int
    source: int
    byte_offset: IntExpr = Const(0)


Step: TypeAlias = Launch | Copy | View


@dataclass(frozen=True)
class VariableBounds:
    """The values that a variable may take, both ends included."""

    name: str
    minimum: int
    maximum: int


@dataclass(frozen=True)
class LinearProgram:
    """Buffers, kernels, and what to do in order.

    `constants` holds the contents of the buffers with role `constant`, in their order.
    """

    buffers: tuple[BufferDecl, ...]
    kernels: tuple[TinyELF, ...]
    steps: tuple[Step, ...]
    variables: tuple[VariableBounds, ...] = ()
    constants: tuple[bytes, ...] = field(default=(), repr=False)
    name: str = "program"

    def input_indices(self) -> tuple[int, ...]:
        """Return the indices of the buffers that the caller brings, in its order."""
        return self.indices_of("input")

    def input_names(self) -> tuple[str, ...]:
        """Return the names of the buffers that the caller brings, in its order; "" if unnamed."""
        return tuple(self.buffers[index].name for index in self.input_indices())

    def indices_of(self, role: BufferRole) -> tuple[int, ...]:
        """Return the indices of the buffers with this role."""
        return tuple(index for index, decl in enumerate(self.buffers) if decl.role == role)

    def verify(self) -> None:
        """Check that every index is in range and every constant has its contents.

        Raises:
            ProgramInputError: something does not fit; the message says what and where.
        """
        for number, step in enumerate(self.steps):
            self._verify_step(number, step)
        constant_indices = self.indices_of("constant")
        if len(constant_indices) != len(self.constants):
            raise ProgramInputError(
                f"{self.name}: {len(constant_indices)} constant buffers "
                f"but contents of {len(self.constants)}"
            )
        for index, contents in zip(constant_indices, self.constants, strict=True):
            if len(contents) != self.buffers[index].nbytes:
                raise ProgramInputError(
                    f"{self.name}: constant buffer {index} has {self.buffers[index].nbytes} bytes "
                    f"but contents of {len(contents)}"
                )

    def _verify_step(self, number: int, step: Step) -> None:
        where = f"{self.name}: step {number} ({type(step).__name__})"
        used = step.buffers if isinstance(step, Launch) else (step.dest, step.source)
        for index in used:
            if not 0 <= index < len(self.buffers):
                raise ProgramInputError(
                    f"{where}: buffer {index} of {len(self.buffers)} does not exist"
                )
        if isinstance(step, Launch):
            self._verify_launch(where, step)
        elif (
            isinstance(step, Copy)
            and self.buffers[step.dest].nbytes != self.buffers[step.source].nbytes
        ):
            raise ProgramInputError(
                f"{where}: source has {self.buffers[step.source].nbytes} bytes, "
                f"destination {self.buffers[step.dest].nbytes}"
            )

    def _verify_launch(self, where: str, launch: Launch) -> None:
        if not 0 <= launch.kernel < len(self.kernels):
            raise ProgramInputError(
                f"{where}: kernel {launch.kernel} of {len(self.kernels)} does not exist"
            )
        kernel = self.kernels[launch.kernel]
        expected = (len(kernel.signature.buffers), len(kernel.signature.vals))
        given = (len(launch.buffers), len(launch.vals))
        if expected != given:
            raise ProgramInputError(
                f"{where}: kernel {kernel.name} takes {expected[0]} buffers "
                f"and {expected[1]} integers, "
                f"the launch gives {given[0]} and {given[1]}"
            )
