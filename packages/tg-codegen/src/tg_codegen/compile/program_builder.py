"""`ProgramBuilder`: buffers, kernels and steps of a `LinearProgram`, collected call by call."""

from __future__ import annotations

from collections.abc import Collection

from tg_ir.device import (
    BufferDecl,
    BufferRole,
    Const,
    Copy,
    Launch,
    LinearProgram,
    Step,
    TinyELF,
    Var,
    VariableBounds,
    View,
)
from tg_ir.graph import Ops, UOp

from tg_codegen.compile.kernel_record import CompiledKernel
from tg_codegen.compile.launch_expressions import rename_variables
from tg_codegen.compile.memory_plan import ALIGNMENT, plan_memory
from tg_codegen.compile.variable_names import INTEGERS, VariableNames
from tg_codegen.errors import UnsupportedCallError


class ProgramBuilder:
    """Collects the steps of a program in order.

    Args:
        device: where workspaces are allocated.
        temporaries: BUFFERs whose memory is the program's own.
    """

    def __init__(self, device: str, temporaries: Collection[UOp]) -> None:
        """Start without buffers, kernels and steps."""
        self._device = device
        self._temporaries = {node.arg.id for node in temporaries}
        self._indices: dict[int, int] = {}  # by the id of the storage
        self._nodes: list[UOp] = []
        self._buffers: list[BufferDecl] = []
        self._kernels: dict[TinyELF, int] = {}
        self._steps: list[Step] = []
        self._variables: dict[str, VariableBounds] = {}
        self._names = VariableNames()

    def add_launch(self, call: UOp, kernel: CompiledKernel) -> None:
        """Append the launch of a compiled kernel with the buffers and integers of its CALL."""
        buffers = self.add_buffers(call)
        for workspace in kernel.workspaces:
            if workspace.alignment > ALIGNMENT:
                raise UnsupportedCallError(
                    f"kernel {kernel.elf.name!r} asks for memory aligned to {workspace.alignment} "
                    f"bytes; temporaries are aligned to {ALIGNMENT}"
                )
            buffers.append(len(self._buffers))
            self._buffers.append(BufferDecl(workspace.nbytes, self._device, "temporary"))
        names = [self._add_variable(node) for node in call.src[1:] if node.op in INTEGERS]
        in_kernel = {f"v{number}": name for number, name in enumerate(names)}
        extent = rename_variables(kernel.thread_extent, in_kernel)
        number = self._kernels.setdefault(kernel.elf, len(self._kernels))
        launch = Launch(
            kernel=number,
            buffers=tuple(buffers),
            vals=tuple(Var(name) for name in names),
            global_size=(extent, Const(1), Const(1)),
            flops=rename_variables(kernel.flops, in_kernel),
            bytes=rename_variables(kernel.nbytes, in_kernel),
        )
        self._steps.append(launch)

    def add_copy(self, call: UOp) -> None:
        """Append the copy of a CALL whose buffers are destination and source.

        `src[0]` is a COPY of PARAM 1, or of a run of its elements.
        """
        buffers = self.add_buffers(call)
        if len(buffers) != 2:
            raise UnsupportedCallError(
                f"copy {call.arg.name!r}: expected a destination and a source, "
                f"got {len(buffers)} buffers"
            )
        dest, source = buffers
        copied = call.src[0].src[0]
        if copied.op is Ops.SHRINK:
            source = self._view(source, copied)
        self._steps.append(Copy(dest, source))

    def add_support(self, kernel: TinyELF) -> None:
        """Append a kernel that no step launches; devices that know its name use it."""
        self._kernels.setdefault(kernel, len(self._kernels))

    def launch_count(self) -> int:
        """How many launches there are so far."""
        return sum(isinstance(step, Launch) for step in self._steps)

    def add_buffers(self, call: UOp) -> list[int]:
        """The indices of the buffers of a CALL; new ones are added."""
        return [self._index(node) for node in call.src[1:] if node.op not in INTEGERS]

    def buffer_nodes(self) -> tuple[UOp, ...]:
        """The BUFFER of each storage that was added, workspaces not among them."""
        return tuple(self._nodes)

    def finish(self) -> LinearProgram:
        """The program, its memory planned.

        Raises:
            ProgramInputError: a kernel takes other buffers than its CALL gives; a bug of a pass.
        """
        program = LinearProgram(
            buffers=plan_memory(self._buffers, self._steps),
            kernels=tuple(self._kernels),
            steps=tuple(self._steps),
            variables=tuple(self._variables.values()),
        )
        program.verify()
        return program

    def _view(self, source: int, shrink: UOp) -> int:
        """Append a view of the elements that a one-dimensional SHRINK keeps; returns its index."""
        ((begin, end),) = shrink.marg
        itemsize = shrink.dtype.itemsize
        index = len(self._buffers)
        nbytes = (end - begin) * itemsize
        self._buffers.append(BufferDecl(nbytes, self._buffers[source].device, "temporary"))
        self._steps.append(View(index, source, Const(begin * itemsize)))
        return index

    def _index(self, node: UOp) -> int:
        buffer = _storage(node)
        known = self._indices.get(buffer.arg.id)
        if known is not None:
            return known
        device = buffer.arg.device
        if not isinstance(device, str):
            raise UnsupportedCallError(
                f"buffer {buffer.arg.id} lies on several devices {device}; "
                "a program takes one buffer a device"
            )
        role: BufferRole = "temporary" if buffer.arg.id in self._temporaries else "input"
        nbytes = buffer.arg.size * buffer.dtype.itemsize
        index = len(self._buffers)
        self._indices[buffer.arg.id] = index
        self._nodes.append(buffer)
        self._buffers.append(BufferDecl(nbytes, device, role))
        return index

    def _add_variable(self, node: UOp) -> str:
        name = self._names.name_of(node)
        variable = node.src[0] if node.op is Ops.BIND else node
        self._variables[name] = VariableBounds(name, variable.arg.vmin, variable.arg.vmax)
        return name


def _storage(node: UOp) -> UOp:
    """The BUFFER that an argument of a CALL, perhaps a later version of one, is about."""
    while node.op is not Ops.BUFFER:
        if not node.src:
            raise UnsupportedCallError(f"{node!r} is no argument of a CALL; expected a BUFFER")
        node = node.src[0]
    return node

