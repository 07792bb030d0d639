"""What is particular to LLVM IR for CPUs: registers as phis, scratch memory, arch strings."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_ir.conformance.kernel_cases import (
    COUNT,
    elementwise_case,
    linear,
    loop,
    masked_case,
    number,
    param,
    reduction_case,
    thread_case,
)
from tg_ir.dtype import dtypes
from tg_ir.errors import RenderError, TargetError, ToolchainLoadError
from tg_ir.graph import AxisType, DefineArg, Ops, UOp
from tg_ir.graph.render_api import WALKER_NAME
from tg_ir.host import host_cpu
from tg_ir.target import Target
from tg_renderers.compilers.llvm import LLVMCompiler
from tg_renderers.llvm import LLVMRenderer

F32 = dtypes.float32
HOST = Target("CPU", "LLVM")
WIDE = Target("CPU", "LLVM", "x86_64,x86-64-v4")
needs_avx512 = pytest.mark.skipif(
    "avx512f" not in host_cpu().features, reason="the tile is made for 512-bit registers"
)

Native = Callable[..., Any]


def render(kernel: tuple[UOp, ...], target: Target = WIDE) -> str:
    return LLVMRenderer(target).render(kernel, "kernel")


def run(native: Native, kernel: tuple[UOp, ...], *arrays: np.ndarray, **rest: Any) -> None:
    """Run a kernel on arrays, in place."""
    code = LLVMCompiler(HOST).compile(render(kernel, HOST))
    buffers = [bytearray(array.tobytes()) for array in arrays]
    native(code, "kernel")(buffers, **rest)
    for array, buffer in zip(arrays, buffers, strict=True):
        array[...] = np.frombuffer(buffer, array.dtype).reshape(array.shape)


def test_text_of_an_elementwise_kernel(golden: Any) -> None:
    golden.check("elementwise.ll", render(elementwise_case(Ops.ADD, [F32, F32], F32, 16).kernel))


def test_text_of_a_reduction(golden: Any) -> None:
    golden.check("reduction.ll", render(reduction_case(F32, 16).kernel))


def test_text_of_masked_accesses(golden: Any) -> None:
    golden.check("masks_scalar.ll", render(masked_case(1).kernel))
    golden.check("masks_vector.ll", render(masked_case(16).kernel))


def test_text_of_a_threaded_kernel(golden: Any) -> None:
    golden.check("threads.ll", render(thread_case().kernel))


def test_an_accumulator_is_a_phi_and_no_memory() -> None:
    text = render(reduction_case(F32, 16).kernel)
    assert "phi <16 x float>" in text
    assert "alloca" not in text


def matmul_tile(rows: int, vectors: int, depth: int) -> tuple[UOp, ...]:
    """`out[m, n] = sum over k of a[k, m] * b[k, n]`, all of the tile in registers."""
    lanes = 16
    vector = F32.vec(lanes)
    out = param(0, F32, rows * vectors * lanes)
    a, b = param(1, F32, depth * rows), param(2, F32, depth * vectors * lanes)
    register = UOp(Ops.DEFINE_REG, vector, (), DefineArg(0, rows * vectors))
    start = [
        register.index(number(slot)).store(UOp.const(vector, 0.0))
        for slot in range(rows * vectors)
    ]
    k = loop(depth, kind=AxisType.REDUCE)
    inside = register.after(*start, k)
    row, column = k * number(rows), k * number(vectors * lanes)
    right = [
        b.index(column.alu(Ops.ADD, number(lanes * n))).load(dtype=vector) for n in range(vectors)
    ]
    stores = []
    for m in range(rows):
        left = a.index(row.alu(Ops.ADD, number(m))).load().broadcast(lanes)
        for n in range(vectors):
            place = inside.index(number(m * vectors + n))
            stores.append(place.store(left.alu(Ops.MULACC, right[n], place.load())))
    end = UOp(Ops.END, dtypes.void, (*stores, k))
    result = register.after(end)
    finish = [
        out.index(number(slot * lanes)).store(result.index(number(slot)).load())
        for slot in range(rows * vectors)
    ]
    return linear(*start, end, *finish)


def test_a_matmul_tile_computes_the_product(native_kernel: Native) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((7, 3)).astype(np.float32)
    b = random.standard_normal((7, 32)).astype(np.float32)
    out = np.zeros((3, 32), np.float32)
    run(native_kernel, matmul_tile(3, 2, 7), out, a, b)
    np.testing.assert_allclose(out, a.T @ b, rtol=1e-5, atol=1e-5)


def test_a_14_by_32_tile_is_28_fma_a_step_without_spills() -> None:
    assembly = LLVMCompiler(WIDE).assembly(render(matmul_tile(14, 2, 256)))
    assert len(re.findall(r"\tvfmadd\w+ps\t", assembly)) == 28
    assert "Spill" not in assembly
    assert "%rsp" not in assembly


def test_text_grows_with_the_tile_and_not_with_its_lanes() -> None:
    lines = len(render(matmul_tile(14, 2, 256)).splitlines())
    # 28 accumulators: phi, fma and final store with its address each; 14 + 2 loads, broadcasts
    assert lines < 28 * 4 + 16 * 4 + 30


def test_a_register_file_indexed_by_a_value_is_memory(native_kernel: Native) -> None:
    source, result = param(1, F32, 8), param(0, F32, 8)
    register = UOp(Ops.DEFINE_REG, F32, (), DefineArg(0, 8))
    writer, reader = loop(8, 0), loop(8, 1)
    fill = register.after(writer).index(writer).store(source.index(writer).load()).end(writer)
    value = register.after(fill).index(number(7).alu(Ops.SUB, reader)).load()
    kernel = linear(fill, result.index(reader).store(value).end(reader))
    assert "alloca [8 x float], align 64" in render(kernel)
    numbers = np.arange(8, dtype=np.float32)
    out = np.zeros(8, np.float32)
    run(native_kernel, kernel, out, numbers)
    assert out.tolist() == numbers[::-1].tolist()


def test_a_value_stored_in_a_loop_that_never_runs_stays(native_kernel: Native) -> None:
    register = UOp(Ops.DEFINE_REG, F32, (), DefineArg(0, 1))
    place = number(0)
    start = register.index(place).store(UOp.const(F32, 5.0))
    counter = loop(0)
    inside = register.after(start, counter).index(place).store(UOp.const(F32, 9.0)).end(counter)
    value = register.after(inside).index(place).load()
    out = np.zeros(1, np.float32)
    kernel = linear(start, inside, param(0, F32, 1).index(place).store(value))
    run(native_kernel, kernel, out)
    assert out[0] == 5.0


def test_vectors_wider_than_a_register_work(native_kernel: Native) -> None:
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(COUNT).astype(np.float32) for _ in range(2))
    out = np.zeros(COUNT, np.float32)
    run(native_kernel, elementwise_case(Ops.MUL, [F32, F32], F32, 48).kernel, out, a, b)
    assert np.array_equal(out, a * b)


def test_an_accumulating_store_counts_equal_positions(native_kernel: Native) -> None:
    position = param(1, dtypes.int64, 8).index(number(0)).load(dtype=dtypes.int64.vec(8))
    value = UOp.const(F32.vec(8), 1.0)
    kernel = linear(param(0, F32, 4).index(position).store(value, Ops.ADD))
    out = np.full(4, 10.0, np.float32)
    run(native_kernel, kernel, out, np.array([0, 1, 1, 3, 3, 3, 0, 1], np.int64))
    assert out.tolist() == [12.0, 13.0, 10.0, 13.0]


def test_without_avx512_no_wide_register_is_used(native_kernel: Native) -> None:
    target = Target("CPU", "LLVM", f"{host_cpu().family},native,-avx512f")
    if host_cpu().family != "x86_64":
        pytest.skip("a feature of x86_64")
    renderer, compiler = LLVMRenderer(target), LLVMCompiler(target)
    kernel = elementwise_case(Ops.ADD, [F32, F32], F32, 16).kernel
    assert renderer.capabilities.vector_bits <= 256
    assert "zmm" not in compiler.assembly(renderer.render(kernel, "kernel"))


@needs_avx512
def test_wide_registers_are_used_where_there_are_any() -> None:
    kernel = elementwise_case(Ops.MAX, [F32, F32], F32, 16).kernel
    assembly = LLVMCompiler(HOST).assembly(render(kernel, HOST))
    assert "zmm" in assembly
    assert "vmaxps" in assembly


@pytest.mark.parametrize(
    ("arch", "machine"),
    [("x86_64,x86-64-v3", 62), ("arm64,generic", 183), ("riscv64,generic", 243)],
)
def test_objects_are_made_for_the_family_of_the_target(arch: str, machine: int) -> None:
    target = Target("CPU", "LLVM", arch)
    kernel = elementwise_case(Ops.MULACC, [F32] * 3, F32, 4).kernel
    code = LLVMCompiler(target).compile(LLVMRenderer(target).render(kernel, "kernel"))
    assert code[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", code, 18) == (machine,)


def test_scratch_memory_that_does_not_fit_the_stack_is_refused() -> None:
    scratch = UOp(Ops.DEFINE_LOCAL, F32, (), DefineArg(0, 200_000))
    kernel = linear(scratch.index(number(0)).store(UOp.const(F32, 0.0)))
    with pytest.raises(RenderError, match="800000 bytes of scratch memory.*workspace"):
        render(kernel)


def test_a_loop_that_is_never_closed_is_refused() -> None:
    with pytest.raises(RenderError, match="never closed"):
        render((*linear(loop(4)),))


def test_a_node_used_before_it_stands_in_the_list_is_refused() -> None:
    kernel = elementwise_case(Ops.ADD, [F32, F32], F32).kernel
    add = next(node for node in kernel if node.op is Ops.ADD)
    with pytest.raises(RenderError, match="before it stands"):
        render(tuple(node for node in kernel if node is not add))


def test_a_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(RenderError, match="C identifier"):
        LLVMRenderer(WIDE).render(thread_case().kernel, "r 4")


def test_an_unknown_arch_is_refused_when_opened() -> None:
    with pytest.raises(TargetError, match="sparc"):
        LLVMRenderer(Target("CPU", "LLVM", "sparc,native"))
    with pytest.raises(TargetError, match="sparc"):
        LLVMCompiler(Target("CPU", "LLVM", "sparc,native"))


def test_missing_llvmlite_says_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    with pytest.raises(ToolchainLoadError, match=r"pip install 'tg-renderers\[llvm\]'"):
        LLVMCompiler(WIDE).compile("")


def test_rendering_loads_no_llvmlite() -> None:
    program = (
        "import sys, tg_renderers.llvm, tg_renderers.compilers.llvm, tg_renderers.serial\n"
        "from tg_ir.target import Target\n"
        "tg_renderers.llvm.LLVMRenderer(Target('CPU')).capabilities\n"
        "tg_renderers.compilers.llvm.LLVMCompiler(Target('CPU')).cachekey\n"
        "print(sorted(n for n in sys.modules if n.partition('.')[0] in ('llvmlite', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_float16_is_offered_only_where_the_cpu_converts_it() -> None:
    old = LLVMRenderer(Target("CPU", "LLVM", "x86_64,x86-64-v2")).capabilities
    new = LLVMRenderer(WIDE).capabilities
    assert dtypes.float16 not in old.dtypes
    assert dtypes.float16 in new.dtypes


ROW_WORDS = 4


def walk(
    native: Native,
    launches: list[tuple[Any, np.ndarray, int]],
    workers: int,
    times: int = 1,
    present: int | None = None,
) -> None:
    """Let the first `present` of `workers` (all) walk a table of (kernel, its buffer, extent)."""
    text = LLVMRenderer(HOST).support_sources()[WALKER_NAME]
    walker = native(LLVMCompiler(HOST).compile(text), WALKER_NAME)
    tables = [(ctypes.c_uint64 * 1)(array.ctypes.data) for _, array, _ in launches]
    rows = (ctypes.c_int64 * (ROW_WORDS * len(launches)))()
    for row, (kernel, _, extent) in enumerate(launches):
        rows[ROW_WORDS * row : ROW_WORDS * (row + 1)] = [
            *(kernel.address, ctypes.addressof(tables[row]), 0, extent)
        ]
    for _ in range(times):
        counters = (ctypes.c_int64 * (8 * len(launches)))()
        buffers = (ctypes.c_void_p * 2)(ctypes.addressof(rows), ctypes.addressof(counters))
        bounds = (ctypes.c_int64 * 2)(0, len(launches))
        arguments = (ctypes.addressof(buffers), ctypes.addressof(bounds))
        threads = [
            threading.Thread(target=walker.function, args=(*arguments, worker, workers))
            for worker in range(workers if present is None else present)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def increment_kernel(native: Native) -> Any:
    """Adds 1 to each element."""
    data = param(0, dtypes.int64, COUNT)
    counter = loop(COUNT, kind=AxisType.THREAD)
    one = UOp.const(dtypes.int64, 1)
    store = data.index(counter).store(data.index(counter).load().alu(Ops.ADD, one))
    return native(LLVMCompiler(HOST).compile(render(linear(store.end(counter)), HOST)), "kernel")


def reverse_kernel(native: Native) -> Any:
    """`data[COUNT + i] = data[COUNT - 1 - i] + 1`."""
    data = param(0, dtypes.int64, 2 * COUNT)
    counter = loop(COUNT, kind=AxisType.THREAD)
    mirrored = number(COUNT - 1).alu(Ops.SUB, counter)
    value = data.index(mirrored).load().alu(Ops.ADD, UOp.const(dtypes.int64, 1))
    store = data.index(counter.alu(Ops.ADD, number(COUNT))).store(value)
    return native(LLVMCompiler(HOST).compile(render(linear(store.end(counter)), HOST)), "kernel")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_walker_runs_every_part_of_every_launch(native_kernel: Native, workers: int) -> None:
    data = np.zeros(COUNT, np.int64)
    walk(native_kernel, [(increment_kernel(native_kernel), data, COUNT)] * 20, workers, times=3)
    assert data.tolist() == [60] * COUNT


def test_the_walker_waits_between_launches(native_kernel: Native) -> None:
    # Each launch mirrors one half into the other, so a worker needs what the other one wrote.
    kernel = reverse_kernel(native_kernel)
    data = np.zeros(3 * COUNT, np.int64)
    first, second = data[: 2 * COUNT], data[COUNT:]
    walk(native_kernel, [(kernel, first, COUNT), (kernel, second, COUNT)], 2, times=50)
    assert data[2 * COUNT :].tolist() == [2] * COUNT


def test_a_worker_that_never_comes_is_not_waited_for(native_kernel: Native) -> None:
    data = np.zeros(COUNT, np.int64)
    launches = [(increment_kernel(native_kernel), data, COUNT)] * 5
    walk(native_kernel, launches, workers=3, present=1)
    assert data.tolist() == [5] * COUNT


def test_extents_below_the_number_of_workers_run_once(native_kernel: Native) -> None:
    data = np.zeros(COUNT, np.int64)
    walk(native_kernel, [(increment_kernel(native_kernel), data, 1)] * 5, 2)
    assert data.tolist() == [5] + [0] * (COUNT - 1)


def test_cache_keys_tell_targets_and_options_apart() -> None:
    narrow = Target("CPU", "LLVM", "x86_64,x86-64-v3")
    assert LLVMRenderer(WIDE).cachekey != LLVMRenderer(narrow).cachekey
    assert LLVMCompiler(WIDE).cachekey != LLVMCompiler(narrow).cachekey
    assert LLVMCompiler(WIDE).cachekey != LLVMCompiler(WIDE, opt_level=3).cachekey
    assert LLVMCompiler(WIDE).cachekey != LLVMCompiler(WIDE, passes=True).cachekey


def test_the_pass_pipeline_can_be_turned_on(native_kernel: Native) -> None:
    case = elementwise_case(Ops.ADD, [F32, F32], F32, 16)
    code = LLVMCompiler(HOST, passes=True).compile(render(case.kernel, HOST))
    ones = np.ones(COUNT, np.float32).tobytes()
    buffers = [bytearray(len(ones)), bytearray(ones), bytearray(ones)]
    native_kernel(code, "kernel")(buffers)
    assert np.frombuffer(buffers[0], np.float32).tolist() == [2.0] * COUNT
