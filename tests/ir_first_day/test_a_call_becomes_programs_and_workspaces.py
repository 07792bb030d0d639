"""Lowering a CALL gives programs and requests for workspaces; memory is planned afterwards."""

from __future__ import annotations

import dataclasses

import kernel_cases as kernels
import numpy as np
import pytest
from tg_codegen.compile import clear_kernel_cache, compile_schedule
from tg_codegen.compile.driver import compile_call
from tg_codegen.compile.kernel_record import CompiledKernel, read_record, write_record
from tg_codegen.compile.program_builder import ProgramBuilder
from tg_codegen.kernel.pipeline import LoweredKernel, lower_call, lower_kernel
from tg_codegen.kernel.workspace import Workspace
from tg_codegen.optimize import Opt, OptOps
from tg_codegen.schedule import create_schedule
from tg_ir.config import Context
from tg_ir.device import Buffer, KernelSignature, Launch, TinyELF
from tg_ir.device.execute import Executor
from tg_ir.dtype import dtypes
from tg_ir.errors import TgError
from tg_ir.graph import UOp
from tg_ir.graph.ops import AxisType, CallArg, KernelInfo, Ops
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.spec import schedule, verify
from tg_renderers.compilers.llvm import LLVMCompiler

from .kernels import floats, param
from .stages import renderer
from .tensors import compiled, holding, run_compiled

GLOBAL, REDUCE = AxisType.GLOBAL, AxisType.REDUCE
M, N, K = 48, 64, 96


def lower_with_little_scratch(
    sink: UOp, capabilities: TargetCapabilities
) -> tuple[LoweredKernel, ...]:
    """A packed factor that does not fit the scratch memory, rows shared among workers."""
    small = dataclasses.replace(capabilities, local_bytes=256)
    opts = [
        Opt(OptOps.VECTOR, (1,), 16),
        Opt(OptOps.UPCAST, (0,), 4),
        Opt(OptOps.STAGE, None, 1),
        Opt(OptOps.THREAD, (0, 0)),
    ]
    return (lower_kernel(sink, small, opts),)


@pytest.fixture(autouse=True)
def no_kernel_of_another_test() -> None:
    """The keys of kernels do not say which lowering made them: there is one in a real program."""
    clear_kernel_cache()


def product(a: UOp, b: UOp) -> UOp:
    """The matrix product as a tensor graph."""
    rows, inner = a.shape
    columns = b.shape[1]
    left = a.reshape((rows, 1, inner)).expand((rows, columns, inner))
    right = b.permute((1, 0)).reshape((1, columns, inner)).expand((rows, columns, inner))
    return (left * right).reduce_axis(Ops.ADD, (2,)).reshape((rows, columns))


def test_workspaces_are_buffers_of_the_program_and_share_its_memory() -> None:
    a, b, c = floats(M, K), floats(K, N), floats(N, N)
    first = product(holding(a), holding(b)).contiguous()
    second = product(first, holding(c))
    made = create_schedule(UOp.sink(second))
    assert len(made.linear.src) == 2
    with Context(CCACHE=0):
        program, _ = compiled(made, [made.becomes[second]], lower_with_little_scratch)
        (result,) = run_compiled(made, [second], lower_with_little_scratch)
    np.testing.assert_allclose(result, a @ b @ c, rtol=1e-4, atol=1e-3)
    launches = [step for step in program.steps if isinstance(step, Launch)]
    scratch = [program.buffers[launch.buffers[-1]] for launch in launches]
    assert [decl.role for decl in scratch] == ["temporary", "temporary"]
    assert all(decl.nbytes > 256 for decl in scratch)
    # planned like any temporary: the first is dead when the second begins
    assert scratch[0].offset is not None
    spans = [range(decl.offset, decl.offset + decl.nbytes) for decl in scratch]
    assert spans[0].start < spans[1].stop and spans[1].start < spans[0].stop


def test_a_workspace_is_an_argument_behind_those_of_the_call() -> None:
    case = kernels.matmul(M, N, K)
    buffers = tuple(UOp.new_buffer("CPU", n, dtypes.float32) for n in (M * N, M * K, K * N))
    call = UOp(Ops.CALL, dtypes.void, (case.sink, *buffers), CallArg("product"))
    llvm = renderer()
    with Context(CCACHE=0):
        made = compile_call(call, llvm, LLVMCompiler(llvm.target), lower_with_little_scratch)
    (kernel,) = made
    (workspace,) = kernel.workspaces
    parameters = kernel.elf.signature.buffers
    assert len(parameters) == 4
    assert [p.writable for p in parameters] == [True, False, False, True]
    assert workspace.nbytes == (M // 4) * K * 16 * 4
    # and the disk cache keeps the request
    assert read_record(write_record(made)) == made


def sums_and_maxima(rows: int, columns: int) -> UOp:
    """Row sums and column maxima: two loop nests without a loop in common."""
    x = param(2, rows * columns)
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    other_column, other_row = UOp.range(columns, 2, GLOBAL), UOp.range(rows, 3, REDUCE)
    total = x.index(row * columns + column).load().reduce(Ops.ADD, column)
    largest = x.index(other_row * columns + other_column).load().reduce(Ops.MAX, other_row)
    return UOp.sink(
        param(0, rows).index(row).store(total).end(row),
        param(1, columns, writable=True).index(other_column).store(largest).end(other_column),
        arg=KernelInfo("sums_and_maxima"),
    )


@pytest.mark.parametrize(("rows", "columns", "programs"), [(300, 400, 2), (3, 4, 1)])
def test_outputs_without_a_common_loop_become_programs_where_there_is_work_to_share(
    rows: int, columns: int, programs: int
) -> None:
    nodes = [UOp.new_buffer("CPU", n, dtypes.float32) for n in (rows, columns, rows * columns)]
    call = UOp(
        Ops.CALL, dtypes.void, (sums_and_maxima(rows, columns), *nodes), CallArg("sums_and_maxima")
    )
    linear = UOp(Ops.LINEAR, dtypes.void, (call,))
    llvm = renderer()
    with Context(CCACHE=0):
        program = compile_schedule(linear, llvm, LLVMCompiler(llvm.target), "CPU", lower_call)
    launches = [step for step in program.steps if isinstance(step, Launch)]
    assert len(launches) == programs
    x = floats(rows, columns)
    memory = [Buffer("CPU", node.arg.size, node.dtype) for node in nodes]
    memory[2].copyin(x.tobytes())
    Executor(program).run(memory, {})
    sums, maxima = (np.frombuffer(m.as_memoryview(), np.float32) for m in memory[:2])
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(maxima, x.max(0))


def test_memory_that_no_plan_aligns_is_refused() -> None:
    case = kernels.matmul(M, N, K)
    buffers = tuple(UOp.new_buffer("CPU", n, dtypes.float32) for n in (M * N, M * K, K * N))
    call = UOp(Ops.CALL, dtypes.void, (case.sink, *buffers), CallArg("product"))
    elf = TinyELF("product", b"", "elf", "CPU", KernelSignature(()))
    kernel = CompiledKernel(elf, workspaces=(Workspace(64, "float32", 4096),))
    with pytest.raises(TgError, match="asks for memory aligned to 4096 bytes"):
        ProgramBuilder("CPU", ()).add_launch(call, kernel)


def test_a_kernel_without_large_tiles_asks_for_nothing() -> None:
    lowered = lower_kernel(kernels.matmul(8, 32, 8).sink, renderer().capabilities, [])
    assert lowered.workspaces == ()


def test_a_call_that_gives_too_few_buffers_is_refused() -> None:
    case = kernels.matmul(4, 4, 4)
    buffers = tuple(UOp.new_buffer("CPU", 16, dtypes.float32) for _ in range(2))
    call = UOp(Ops.CALL, dtypes.void, (case.sink, *buffers), CallArg("product"))
    with pytest.raises(TgError, match="the kernel takes buffer 2, the CALL gives 2"):
        verify(UOp(Ops.LINEAR, dtypes.void, (call,)), schedule)
