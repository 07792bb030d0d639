"""The compile driver, with kernels written by hand in place of lowering."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tg_codegen.compile import (
    CompiledKernel,
    Workspace,
    bound_values,
    clear_kernel_cache,
    compile_schedule,
    schedule_buffers,
)
from tg_codegen.compile.kernel_record import read_record, write_record
from tg_codegen.compile.launch_expressions import rename_variables, to_int_expr
from tg_codegen.errors import UnexpectedCompileError, UnsupportedCallError
from tg_ir.config import Context
from tg_ir.device import Buffer as DeviceBuffer
from tg_ir.device import (
    BufferParameter,
    Const,
    Copy,
    Executor,
    KernelSignature,
    Launch,
    LinearProgram,
    TinyELF,
    Var,
    View,
)
from tg_ir.dtype import dtypes
from tg_ir.dtype.storage import from_bytes, to_bytes
from tg_ir.errors import CompileError
from tg_ir.events import CacheHit, KernelCompiled, subscribe
from tg_ir.graph import (
    AxisType,
    CallArg,
    KernelInfo,
    Ops,
    ParamArg,
    RangeArg,
    UOp,
    VarArg,
    toposort,
)
from tg_ir.graph.render_api import WALKER_NAME, TargetCapabilities
from tg_ir.target import Target
from tg_renderers.compilers.llvm import LLVMCompiler
from tg_renderers.llvm import LLVMRenderer

F32 = dtypes.float32
COUNT = 16
TARGET = Target("CPU", "LLVM")


@dataclass(frozen=True)
class Cost:
    flops: int = 16
    nbytes: int = 192


@dataclass
class Lowered:
    name: str
    linear: Sequence[UOp]
    thread_extent: UOp | int = 1
    cost: Cost = Cost()
    opts: Sequence[str] = ("none",)
    workspaces: Sequence[Workspace] = ()


@dataclass
class HandLowering:
    """Lowers kernels that are linear already, and counts how often."""

    extent: UOp | int = 1
    workspaces: Sequence[Workspace] = ()
    names: list[str] = field(default_factory=list)

    def __call__(self, sink: UOp, capabilities: TargetCapabilities) -> list[Lowered]:
        self.names.append(sink.arg.name)
        linear = [node for node in toposort((sink,)) if node.op is not Ops.SINK]
        return [Lowered(sink.arg.name, linear, self.extent, workspaces=self.workspaces)]


@pytest.fixture(autouse=True)
def fresh_caches(tmp_path: Path) -> object:
    clear_kernel_cache()
    with Context(CACHEDIR=str(tmp_path), CCACHE=1, ASSERT_COMPILE=0, DEBUG=0):
        yield
    clear_kernel_cache()


def param(slot: int) -> UOp:
    return UOp(Ops.PARAM, F32, (), ParamArg(slot, COUNT, slot == 0))


def kernel(op: Ops = Ops.ADD, name: str = "two in one", bound: UOp | int = COUNT) -> UOp:
    """`p0[i] = op(p1[i], p2[i])`."""
    extent = UOp(Ops.CONST, dtypes.int64, (), bound) if isinstance(bound, int) else bound
    counter = UOp(Ops.RANGE, dtypes.int64, (extent,), RangeArg((0,), AxisType.LOOP))
    left, right = (param(slot).index(counter).load() for slot in (1, 2))
    effect = param(0).index(counter).store(left.alu(op, right)).end(counter)
    return UOp.sink(effect, arg=KernelInfo(name))


def buffer(size: int = COUNT) -> UOp:
    return UOp.new_buffer("CPU", size, F32)


def schedule(*calls: UOp) -> UOp:
    return UOp(Ops.LINEAR, dtypes.void, calls)


def compile_calls(
    *calls: UOp, lower: HandLowering | None = None, temporaries: Sequence[UOp] = ()
) -> LinearProgram:
    return compile_schedule(
        schedule(*calls),
        LLVMRenderer(TARGET),
        LLVMCompiler(TARGET),
        "CPU",
        lower or HandLowering(),
        temporaries,
    )


def run(
    program: LinearProgram, inputs: Sequence[Sequence[float]], **variables: int
) -> list[list[float]]:
    buffers = []
    for values in inputs:
        made = DeviceBuffer("CPU", len(values), F32).ensure_allocated()
        buffers.append(made.copyin(to_bytes(values, F32)))
    Executor(program).run(buffers, variables)
    return [from_bytes(made.copyout(bytearray(made.nbytes)), F32) for made in buffers]


ONE = [1.0] * COUNT
ZERO = [0.0] * COUNT


def test_a_schedule_runs() -> None:
    out, a, b = buffer(), buffer(), buffer()
    program = compile_calls(kernel().call(out, a, b))
    assert run(program, [ZERO, ONE, ONE])[0] == [2.0] * COUNT


def test_temporaries_are_planned_and_not_asked_for() -> None:
    out, middle, a = buffer(), buffer(), buffer()
    program = compile_calls(
        kernel().call(middle, a, a), kernel(Ops.MUL).call(out, middle, a), temporaries=[middle]
    )
    assert [decl.role for decl in program.buffers] == ["temporary", "input", "input"]
    assert program.buffers[0].arena == 0
    assert run(program, [ONE, ZERO])[1] == [2.0] * COUNT
    # inputs are listed as schedule_buffers has them
    linear = schedule(kernel().call(middle, a, a), kernel(Ops.MUL).call(out, middle, a))
    assert schedule_buffers(linear) == (middle, a, out)


def test_versions_of_a_buffer_are_one_storage() -> None:
    out, a = buffer(), buffer()
    later = UOp(Ops.BUFFER, F32, (), replace(out.arg, version=1))
    program = compile_calls(kernel().call(out, a, a), kernel().call(later, out, a))
    assert len(program.buffers) == 2
    assert run(program, [ZERO, ONE])[0] == [3.0] * COUNT


def test_equal_kernels_are_compiled_once_and_stored_once() -> None:
    lower = HandLowering()
    a, b, c, d = (buffer() for _ in range(4))
    program = compile_calls(kernel().call(b, a, a), kernel().call(c, b, d), lower=lower)
    assert lower.names == ["two in one"]
    assert [kernel.name for kernel in program.kernels] == ["two_in_one", WALKER_NAME]


def test_support_code_goes_with_programs_of_several_launches() -> None:
    a, b, c = (buffer() for _ in range(3))
    one = compile_calls(kernel().call(b, a, a))
    two = compile_calls(kernel().call(b, a, a), kernel().call(c, b, a))
    assert [kernel.name for kernel in one.kernels] == ["two_in_one"]
    assert two.kernels[1].code_format == "elf"
    clear_kernel_cache()  # as in a new process
    with Context(ASSERT_COMPILE=1):
        again = compile_calls(kernel().call(b, a, a), kernel().call(c, b, a))
    assert again.kernels == two.kernels


def test_a_second_process_lowers_nothing() -> None:
    lower = HandLowering()
    call = kernel().call(buffer(), buffer(), buffer())
    first = compile_calls(call, lower=lower)
    clear_kernel_cache()  # as in a new process
    seen: list[object] = []
    with subscribe(seen.append), Context(ASSERT_COMPILE=1):
        second = compile_calls(call, lower=lower)
    assert lower.names == ["two in one"]
    assert second == first
    assert [type(event) for event in seen] == [CacheHit]


def test_assert_compile_refuses_a_kernel_that_is_in_no_cache() -> None:
    with Context(ASSERT_COMPILE=1), pytest.raises(UnexpectedCompileError, match="two in one"):
        compile_calls(kernel().call(buffer(), buffer(), buffer(), name="two in one"))


def test_settings_and_targets_that_affect_kernels_are_part_of_the_key() -> None:
    lower = HandLowering()
    call = kernel().call(buffer(), buffer(), buffer())
    compile_calls(call, lower=lower)
    with Context(NOOPT=1):
        compile_calls(call, lower=lower)
    with Context(LRU=0, DEBUG=1):  # these affect no kernel
        compile_calls(call, lower=lower)
    assert len(lower.names) == 2
    narrow = Target("CPU", "LLVM", "x86_64,x86-64-v3")
    compile_schedule(
        schedule(call), LLVMRenderer(narrow), LLVMCompiler(narrow), "CPU", lower
    )
    assert len(lower.names) == 3


def test_a_damaged_record_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = HandLowering()
    call = kernel().call(buffer(), buffer(), buffer())
    monkeypatch.setattr("tg_codegen.compile.driver.write_record", lambda made: b"nonsense")
    compile_calls(call, lower=lower)
    clear_kernel_cache()
    monkeypatch.undo()
    with Context(ASSERT_COMPILE=0):
        compile_calls(call, lower=lower)
    assert len(lower.names) == 2


def test_compiling_is_reported_as_an_event() -> None:
    seen: list[object] = []
    with subscribe(seen.append):
        compile_calls(kernel().call(buffer(), buffer(), buffer()))
    compiled = [event for event in seen if isinstance(event, KernelCompiled)]
    assert [event.name for event in compiled] == ["two_in_one"]
    assert compiled[0].code_bytes > 0


def test_a_kernel_that_does_not_compile_names_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LLVMRenderer, "render", lambda self, linear, name: "no LLVM IR")
    with pytest.raises(CompileError, match="source and log are in") as caught:
        compile_calls(kernel().call(buffer(), buffer(), buffer()))
    file = Path(str(caught.value).rpartition(" ")[2])
    assert "no LLVM IR" in file.read_text()
    file.unlink()


def test_variables_become_values_of_the_launch() -> None:
    variable = UOp.variable("batch", 1, COUNT)
    inside = UOp(Ops.DEFINE_VAR, dtypes.int64, (), VarArg("v0", 1, COUNT))
    lower = HandLowering(extent=inside * 2)
    call = kernel(bound=inside).call(buffer(), buffer(), buffer(), variable.bind(5))
    program = compile_calls(call, lower=lower)
    (launch,) = program.steps
    assert isinstance(launch, Launch)
    assert launch.vals == (Var("batch"),)
    assert launch.global_size[0].evaluate({"batch": 5}) == 10
    assert [(v.name, v.minimum, v.maximum) for v in program.variables] == [("batch", 1, COUNT)]
    assert bound_values(schedule(call)) == {"batch": 5}


def test_a_workspace_is_a_planned_buffer_after_those_of_the_call() -> None:
    lower = HandLowering(workspaces=[Workspace(1000, "float32")])
    program = compile_calls(kernel().call(buffer(), buffer(), buffer()), lower=lower)
    (launch,) = program.steps
    assert isinstance(launch, Launch)
    assert launch.buffers == (0, 1, 2, 3)
    assert program.buffers[3].nbytes == 1000
    assert program.buffers[3].arena == 0
    assert program.kernels[0].signature.buffers[3] == BufferParameter("float32", True)


def test_a_copy_of_a_run_of_elements_is_a_view_and_a_copy() -> None:
    dest, source = buffer(4), buffer()
    copied = param(1).shrink(((3, 7),)).copy_to_device("CPU")
    call = UOp(Ops.CALL, dtypes.void, (copied, dest, source), CallArg("copy_4", "copy"))
    program = compile_calls(call)
    assert program.steps == (View(2, 1, Const(12)), Copy(0, 2))
    numbers = [float(number) for number in range(COUNT)]
    assert run(program, [[0.0] * 4, numbers])[0] == numbers[3:7]


def test_a_call_of_unknown_kind_is_refused() -> None:
    call = UOp(Ops.CALL, dtypes.void, (kernel(),), CallArg("all", "graph"))
    with pytest.raises(UnsupportedCallError, match="kind 'graph'"):
        compile_calls(call)


def test_a_buffer_on_several_devices_is_refused() -> None:
    spread = UOp.new_buffer(("CPU", "CPU:1"), COUNT, F32)
    with pytest.raises(UnsupportedCallError, match="several devices"):
        compile_calls(kernel().call(spread, buffer(), buffer()))


def test_debug_shows_each_stage_once(capsys: pytest.CaptureFixture[str]) -> None:
    call = kernel().call(buffer(), buffer(), buffer())
    compile_calls(call)
    clear_kernel_cache()
    shown = {}
    for level in range(3, 8):
        with Context(DEBUG=level):
            compile_calls(call)
        shown[level] = capsys.readouterr().out
        clear_kernel_cache()
    assert "two_in_one: none" in shown[3]
    assert "define void @two_in_one" in shown[4]
    assert "define void" not in shown[3]
    assert shown[5].count("SINK") == 1
    assert len(shown[6]) > len(shown[5])
    assert "ret" in shown[7].replace(shown[6], "")


def test_a_record_reads_as_it_was_written_and_damage_reads_as_none() -> None:
    signature = KernelSignature((BufferParameter("float32", True),), ("v0",))
    elf = TinyELF("name", b"code \x00\xff", "elf", "CPU:LLVM", signature)
    first = CompiledKernel(elf, Var("v0") * 2, (Workspace(64),), Const(5), Const(6))
    made = (first, CompiledKernel(TinyELF("other", b"more", "elf", "CPU:LLVM", signature)))
    data = write_record(made)
    assert read_record(data) == made
    assert read_record(data[:-1]) is None
    assert read_record(b"") is None
    for position in range(0, len(data), 7):
        changed = bytes([data[position] ^ 1])
        assert read_record(data[:position] + changed + data[position + 1 :]) is None


def test_index_expressions_keep_their_value() -> None:
    x, y = UOp.variable("x", 0, 100), UOp.variable("y", 1, 100)
    expression = ((x * 3 + 7) // y).maximum(x % 5).minimum(40) + x.alu(Ops.CDIV, y)
    converted = to_int_expr(expression)
    renamed = rename_variables(converted, {"x": "a", "y": "b"})
    for a, b in ((0, 1), (17, 3), (100, 99), (50, 1)):
        expected = min(max((a * 3 + 7) // b, a % 5), 40) + a // b
        assert converted.evaluate({"x": a, "y": b}) == expected
        assert renamed.evaluate({"a": a, "b": b}) == expected


def test_an_expression_that_no_launch_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match="launch size"):
        to_int_expr(param(0).index(UOp.const(dtypes.int64, 0)).load())


def test_a_warm_start_loads_no_llvmlite(tmp_path: Path) -> None:
    compile_calls(kernel().call(buffer(), buffer(), buffer()))
    program = (
        "import runpy, sys\n"
        "sys.argv = ['x']\n"
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('driver_tests', {__file__!r})\n"
        "tests = importlib.util.module_from_spec(spec)\n"
        "sys.modules['driver_tests'] = tests\n"
        "spec.loader.exec_module(tests)\n"
        "call = tests.kernel().call(tests.buffer(), tests.buffer(), tests.buffer())\n"
        f"with tests.Context(CACHEDIR={str(tmp_path)!r}, CCACHE=1, ASSERT_COMPILE=1, DEBUG=0):\n"
        "    tests.compile_calls(call)\n"
        "print('llvmlite' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
