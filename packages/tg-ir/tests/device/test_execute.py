"""The executor: binding, views, copies, variables, graphs, counters and reports."""

from __future__ import annotations

import gc
import weakref
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tg_ir import GlobalCounters
from tg_ir.config import Context
from tg_ir.device import (
    Buffer,
    BufferDecl,
    Const,
    Copy,
    Executor,
    Launch,
    LinearProgram,
    OutOfDeviceMemory,
    ProgramInputError,
    Step,
    TinyELF,
    Var,
    VariableBounds,
    View,
    open_device,
)
from tg_ir.dtype import dtypes
from tg_ir.events import BufferCopied, Event, KernelLaunched, subscribe

COUNT = 8
NBYTES = 4 * COUNT
AsBytes = Callable[[Sequence[int]], bytes]


def ints(values: Sequence[int], device: str = "TINY") -> Buffer:
    buffer = Buffer(device, len(values), dtypes.int32)
    return buffer.copyin(array("i", values).tobytes())


def values_of(buffer: Buffer) -> list[int]:
    return array("i", bytes(buffer.as_memoryview())).tolist()


def size(count: int) -> tuple[Const, Const, Const]:
    return (Const(count), Const(1), Const(1))


def doubling(add: TinyELF, device: str = "TINY") -> LinearProgram:
    """`out[:n] = 4 * source[:n]`, inputs (source, out)."""
    sizes = (Var("n"), Const(1), Const(1))
    return LinearProgram(
        buffers=(
            BufferDecl(NBYTES, device, "input"),
            BufferDecl(NBYTES, device, "temporary", arena=1, offset=32),
            BufferDecl(NBYTES, device, "input"),
        ),
        kernels=(add,),
        steps=(
            Launch(0, (1, 0, 0), global_size=sizes, flops=Var("n"), bytes=Var("n") * 8),
            Launch(0, (2, 1, 1), global_size=sizes, flops=Var("n"), bytes=Var("n") * 8),
        ),
        variables=(VariableBounds("n", 1, COUNT),),
        name="doubling",
    )


@pytest.mark.parametrize("device", ["TINY", "GRAPHED"])
def test_runs_follow_new_inputs_and_values(add_kernel: TinyELF, device: str) -> None:
    executor = Executor(doubling(add_kernel, device))
    kept = ints(range(COUNT), device)
    for n in (8, 3, 3, 8):
        fresh = ints(range(10, 10 + COUNT), device)
        for source in (kept, fresh, kept):
            out = ints([-1] * COUNT, device)
            executor.run([source, out], {"n": n})
            assert values_of(out) == [4 * x for x in values_of(source)[:n]] + [-1] * (COUNT - n)


def test_graph_is_recorded_once_from_the_second_run_on(
    add_kernel: TinyELF, graphs: list[object]
) -> None:
    executor = Executor(doubling(add_kernel, "GRAPHED"))
    buffers = [ints(range(COUNT), "GRAPHED"), ints([0] * COUNT, "GRAPHED")]
    for expected in (0, 1, 1, 1):
        executor.run(buffers, {"n": COUNT})
        assert len(graphs) == expected
    assert executor.run(buffers, {"n": COUNT}, wait=True) == 0.002


def test_graph_can_be_declined(add_kernel: TinyELF, graphs: list[object]) -> None:
    executor = Executor(doubling(add_kernel, "GRAPHED"), use_graph=False)
    buffers = [ints(range(COUNT), "GRAPHED"), ints([0] * COUNT, "GRAPHED")]
    for _ in range(3):
        executor.run(buffers, {"n": COUNT})
    assert graphs == []


def test_graph_follows_views_of_new_inputs(add_kernel: TinyELF) -> None:
    program = LinearProgram(
        buffers=(
            BufferDecl(NBYTES, "GRAPHED", "input"),
            BufferDecl(NBYTES // 2, "GRAPHED", "temporary"),
        ),
        kernels=(add_kernel,),
        steps=(View(1, 0, Const(NBYTES // 2)), Launch(0, (1, 1, 1), global_size=size(4))),
    )
    executor = Executor(program)
    for _ in range(4):
        buffer = ints(range(COUNT), "GRAPHED")
        executor.run([buffer])
        assert values_of(buffer) == [0, 1, 2, 3, 8, 10, 12, 14]


def test_view_offset_may_depend_on_a_variable(fill_kernel: TinyELF) -> None:
    program = LinearProgram(
        buffers=(BufferDecl(NBYTES, "TINY", "input"), BufferDecl(4, "TINY", "temporary")),
        kernels=(fill_kernel,),
        steps=(View(1, 0, Var("at") * 4), Launch(0, (1,), (Const(7),), size(1))),
        variables=(VariableBounds("at", 0, COUNT - 1),),
    )
    executor = Executor(program)
    buffer = ints([0] * COUNT)
    for at in (1, 5, 5, 2):
        executor.run([buffer], {"at": at})
    assert values_of(buffer) == [0, 7, 7, 0, 0, 7, 0, 0]


def test_copies_between_devices_and_constants(add_kernel: TinyELF, as_bytes: AsBytes) -> None:
    program = LinearProgram(
        buffers=(
            BufferDecl(NBYTES, "TINY", "input"),
            BufferDecl(NBYTES, "GRAPHED", "temporary"),
            BufferDecl(NBYTES, "GRAPHED", "constant"),
            BufferDecl(NBYTES, "TINY", "input"),
        ),
        kernels=(add_kernel,),
        steps=(Copy(1, 0), Launch(0, (1, 1, 2), global_size=size(COUNT)), Copy(3, 1)),
        constants=(as_bytes([100] * COUNT),),
    )
    executor = Executor(program)
    for _ in range(3):
        out = ints([0] * COUNT)
        executor.run([ints(range(COUNT)), out])
        assert values_of(out) == [100 + i for i in range(COUNT)]


def test_temporaries_of_one_arena_share_memory(fill_kernel: TinyELF, add_kernel: TinyELF) -> None:
    program = LinearProgram(
        buffers=(
            BufferDecl(NBYTES, "TINY", "temporary", arena=0, offset=0),
            BufferDecl(NBYTES, "TINY", "temporary", arena=0, offset=NBYTES // 2),
            BufferDecl(NBYTES, "TINY", "input"),
        ),
        kernels=(fill_kernel, add_kernel),
        steps=(
            Launch(0, (0,), (Const(1),), size(COUNT)),
            Launch(0, (1,), (Const(10),), size(COUNT)),
            Launch(1, (2, 0, 0), global_size=size(COUNT)),
        ),
    )
    used = open_device("TINY").allocator.bytes_in_use
    out = ints([0] * COUNT)
    executor = Executor(program)
    executor.run([out])
    assert values_of(out) == [2] * 4 + [20] * 4
    assert open_device("TINY").allocator.bytes_in_use == used + NBYTES + NBYTES + NBYTES // 2
    executor.release_temporaries()
    assert open_device("TINY").allocator.bytes_in_use == used + NBYTES
    executor.run([out])
    assert values_of(out) == [2] * 4 + [20] * 4


def test_inputs_are_not_kept_alive(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel))
    buffers = [ints(range(COUNT)), ints([0] * COUNT)]
    executor.run(buffers, {"n": COUNT})
    alive = [weakref.ref(buffer) for buffer in buffers]
    buffers.clear()
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_kernels_are_loaded_once_for_several_programs(add_kernel: TinyELF) -> None:
    Executor(doubling(add_kernel))
    program = open_device("TINY").loaded_program(add_kernel)
    loads = type(program).loads  # type: ignore[attr-defined]  # counted by the test's device
    Executor(doubling(add_kernel))
    assert type(program).loads == loads  # type: ignore[attr-defined]  # of the fake program


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([COUNT], {"n": 1}, "doubling: expected 2 input buffers, got 1"),
        ([COUNT, 3], {"n": 1}, "input 1 should have 32 bytes on TINY, got 12 bytes on TINY"),
        ([COUNT, COUNT], {}, "no value for the variable 'n'; given: none"),
        ([COUNT, COUNT], {"n": 9}, "n = 9 is outside its bounds 1..8"),
        ([COUNT, COUNT], {"n": 0}, "n = 0 is outside its bounds 1..8"),
    ],
)
def test_wrong_inputs_say_what_was_expected(
    add_kernel: TinyELF, sizes: list[int], values: dict[str, int], message: str
) -> None:
    executor = Executor(doubling(add_kernel))
    with pytest.raises(ProgramInputError, match=message):
        executor.run([ints([0] * count) for count in sizes], values)


def test_input_of_another_device_is_refused(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel))
    with pytest.raises(ProgramInputError, match="on TINY, got 32 bytes on GRAPHED"):
        executor.run([ints([0] * COUNT), ints([0] * COUNT, "GRAPHED")], {"n": 1})


def test_buffer_that_nothing_fills_is_refused(add_kernel: TinyELF) -> None:
    steps: tuple[Step, ...] = (Launch(0, (0, 1, 1), global_size=size(1)), View(2, 1))
    buffers = (
        BufferDecl(4, "TINY", "input"),
        BufferDecl(4, "TINY", "input"),
        BufferDecl(4, "TINY", "temporary"),
        BufferDecl(4, "TINY", "temporary"),
    )
    bad = LinearProgram(buffers, (add_kernel,), (*steps, View(3, 3)))
    with pytest.raises(ProgramInputError, match="buffer 3 is used before anything gives it memory"):
        Executor(bad).run([ints([1]), ints([1])])


def test_run_that_found_no_memory_can_be_repeated(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel))
    hog = Buffer("TINY", (1 << 20) - 2 * NBYTES - 16, dtypes.uint8).allocate()
    buffers = [ints(range(COUNT)), ints([0] * COUNT)]
    with pytest.raises(OutOfDeviceMemory, match="TINY: out of memory"):
        executor.run(buffers, {"n": COUNT})
    assert values_of(buffers[1]) == [0] * COUNT
    del hog
    executor.run(buffers, {"n": COUNT})
    assert values_of(buffers[1]) == [4 * i for i in range(COUNT)]


def test_launches_are_counted(add_kernel: TinyELF) -> None:
    GlobalCounters.reset()
    executor = Executor(doubling(add_kernel))
    executor.run([ints(range(COUNT)), ints([0] * COUNT)], {"n": 5}, wait=True)
    assert GlobalCounters.kernel_count == 2
    assert GlobalCounters.global_ops == 10
    assert GlobalCounters.global_mem == 80
    assert GlobalCounters.time_sum_s == pytest.approx(0.002)


def test_wait_gives_the_seconds(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel))
    buffers = [ints(range(COUNT)), ints([0] * COUNT)]
    assert executor.run(buffers, {"n": 1}) is None
    assert executor.run(buffers, {"n": 1}, wait=True) == pytest.approx(0.002)


def test_observers_see_each_launch(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel))
    seen: list[Event] = []
    buffers = [ints(range(COUNT)), ints([0] * COUNT)]
    with subscribe(seen.append):
        executor.run(buffers, {"n": 4})
    launches = [event for event in seen if isinstance(event, KernelLaunched)]
    assert launches == [KernelLaunched("add", "TINY", None, 32, 4)] * 2


def test_debug_prints_a_line_for_each_launch(
    add_kernel: TinyELF, capsys: pytest.CaptureFixture[str]
) -> None:
    program = doubling(add_kernel, "GRAPHED")
    executor = Executor(program)
    buffers = [ints(range(COUNT), "GRAPHED"), ints([0] * COUNT, "GRAPHED")]
    GlobalCounters.reset()
    with Context(DEBUG=2):
        for _ in range(2):
            executor.run(buffers, {"n": 8})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    for number, line in enumerate(lines, 1):
        words = line.split()
        assert words[:4] == ["GRAPHED", str(number), "add", "3"]
        assert "GFLOPS" in line and "GB/s" in line and "1.00 ms" in line
    assert GlobalCounters.kernel_count == 4


def test_copies_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    program = LinearProgram(
        (BufferDecl(8, "TINY", "input"), BufferDecl(8, "GRAPHED", "input")), (), (Copy(1, 0),)
    )
    seen: list[Event] = []
    with subscribe(seen.append), Context(DEBUG=2):
        Executor(program).run([ints([1, 2]), ints([0, 0], "GRAPHED")])
    copied = [event for event in seen if isinstance(event, BufferCopied)]
    assert [(event.source, event.destination, event.nbytes) for event in copied] == [
        ("TINY", "GRAPHED", 8)
    ]
    assert "copy TINY -> GRAPHED" in capsys.readouterr().out


def test_single_launches_follow_inputs_that_only_the_graph_saw(add_kernel: TinyELF) -> None:
    executor = Executor(doubling(add_kernel, "GRAPHED"))
    for debug in (0, 0, 0, 2, 0, 2):
        source, out = ints(range(debug, debug + COUNT), "GRAPHED"), ints([0] * COUNT, "GRAPHED")
        with Context(DEBUG=debug):
            executor.run([source, out], {"n": COUNT})
        assert values_of(out) == [4 * x for x in values_of(source)]


def test_kernels_that_no_step_launches_support_the_graph(
    add_kernel: TinyELF, fill_kernel: TinyELF, graphs: list[object]
) -> None:
    program = doubling(add_kernel, "GRAPHED")
    executor = Executor(replace(program, kernels=(*program.kernels, fill_kernel)))
    for _ in range(2):
        executor.run([ints([0] * COUNT, "GRAPHED"), ints([0] * COUNT, "GRAPHED")], {"n": 1})
    assert list(graphs[0].support) == ["fill"]  # type: ignore[attr-defined]  # of the fake graph
