"""Recorded launches, walked by Python and by native code."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable
from dataclasses import replace

import pytest
from tg_ir.config import Context
from tg_ir.device import (
    Buffer,
    BufferDecl,
    BufferParameter,
    Const,
    Executor,
    KernelSignature,
    Launch,
    LinearProgram,
    TinyELF,
    Var,
    VariableBounds,
)
from tg_ir.dtype import dtypes

COUNT = 1000
STEPS = 40

# What docs/reference/cpu-walker.md says, written down a second time; parts of one iteration each.
WALKER = """
declare i32 @sched_yield()
define void @tg_walker(ptr %b, ptr %v, i64 %worker, i64 %workers) {
entry:
  %rows = load ptr, ptr %b
  %cp = getelementptr ptr, ptr %b, i64 1
  %counters = load ptr, ptr %cp
  %first = load i64, ptr %v
  %ep = getelementptr i64, ptr %v, i64 1
  %end = load i64, ptr %ep
  br label %head
head:
  %r = phi i64 [%first, %entry], [%r1, %crossed]
  %more = icmp slt i64 %r, %end
  br i1 %more, label %row, label %done
row:
  %at = mul i64 %r, 4
  %p0 = getelementptr i64, ptr %rows, i64 %at
  %kernel = load ptr, ptr %p0
  %p1 = getelementptr i64, ptr %p0, i64 1
  %table = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %vals = load ptr, ptr %p2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %extent = load i64, ptr %p3
  %claim.offset = mul i64 %r, 64
  %claimed = getelementptr i8, ptr %counters, i64 %claim.offset
  %finished = getelementptr i8, ptr %claimed, i64 8
  br label %claim
claim:
  %i = atomicrmw add ptr %claimed, i64 1 acq_rel
  %mine = icmp slt i64 %i, %extent
  br i1 %mine, label %call, label %wait
call:
  %i1 = add i64 %i, 1
  call void %kernel(ptr %table, ptr %vals, i64 %i, i64 %i1)
  %old = atomicrmw add ptr %finished, i64 1 acq_rel
  br label %claim
wait:
  %now = load atomic i64, ptr %finished acquire, align 8
  %open = icmp sge i64 %now, %extent
  br i1 %open, label %crossed, label %yield
yield:
  %ignored = call i32 @sched_yield()
  br label %wait
crossed:
  %r1 = add i64 %r, 1
  br label %head
done:
  ret void
}
"""


@pytest.fixture
def walker(compile_ir: Callable[[str], bytes]) -> TinyELF:
    parameters = (BufferParameter("int64", False), BufferParameter("int64", True))
    signature = KernelSignature(parameters, ("first", "end"))
    return TinyELF("tg_walker", compile_ir(WALKER), "elf", "CPU:LLVM", signature)


def chain(add: TinyELF) -> LinearProgram:
    """`out = source * (STEPS + 1)`; each launch needs the one before."""
    size = (Var("n"), Const(1), Const(1))
    decls = [BufferDecl(4 * COUNT, "CPU", "input"), BufferDecl(4 * COUNT, "CPU", "input")]
    decls += [BufferDecl(4 * COUNT, "CPU", "temporary") for _ in range(2)]
    steps = []
    previous = 0
    for step in range(STEPS):
        target = 1 if step == STEPS - 1 else 2 + step % 2
        steps.append(Launch(0, (target, previous, 0), global_size=size))
        previous = target
    variables = (VariableBounds("n", 1, COUNT),)
    return LinearProgram(tuple(decls), (add,), tuple(steps), variables)


def ints(values: range | list[int]) -> Buffer:
    return Buffer("CPU", len(values), dtypes.int32).copyin(array("i", values).tobytes())


def check_runs(executor: Executor, runs: int) -> None:
    for run in range(runs):
        n = COUNT - run
        source, out = ints(range(run, run + COUNT)), ints([-1] * COUNT)
        executor.run([source, out], {"n": n})
        got = array("i", bytes(out.as_memoryview())).tolist()
        assert got == [(STEPS + 1) * x for x in range(run, run + n)] + [-1] * run


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("native", [False, True])
def test_recorded_launches_follow_inputs_and_sizes(
    add_kernel: TinyELF, walker: TinyELF, threads: int, native: bool
) -> None:
    program = chain(add_kernel)
    if native:
        program = replace(program, kernels=(add_kernel, walker))
    with Context(THREADS=threads):
        check_runs(Executor(program), 6)


def test_walker_is_used_once_recorded(
    add_kernel: TinyELF, walker: TinyELF, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Executor(replace(chain(add_kernel), kernels=(add_kernel, walker)))
    check_runs(executor, 2)
    monkeypatch.setattr("tg_runtime_cpu.cpu_program.CPUProgram.launch", None)
    check_runs(executor, 2)


def test_long_programs_come_back_between_slices(
    add_kernel: TinyELF, walker: TinyELF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tg_runtime_cpu.cpu_graph._SLICE_SECONDS", 1e-9)
    check_runs(Executor(replace(chain(add_kernel), kernels=(add_kernel, walker))), 4)


def test_programs_in_several_threads_do_not_wait_for_each_other_forever(
    add_kernel: TinyELF, walker: TinyELF
) -> None:
    program = replace(chain(add_kernel), kernels=(add_kernel, walker))
    problems: list[BaseException] = []

    def work() -> None:
        try:
            with Context(THREADS=2):
                check_runs(Executor(program), 20)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert problems == []
