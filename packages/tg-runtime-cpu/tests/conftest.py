"""Kernels for the tests of the CPU device: LLVM IR or C compiled on the spot."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from tg_ir.device import BufferParameter, KernelSignature, TinyELF

CompileIr = Callable[[str], bytes]
MakeKernel = Callable[..., TinyELF]


@cache
def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(reloc="pic", codemodel="small")


@cache
def _compile_ir(text: str) -> bytes:
    machine = _target_machine()  # initialises LLVM first
    code: bytes = machine.emit_object(llvm.parse_assembly(text))
    return code


def _make_kernel(
    name: str, body: str, buffers: int, vals: tuple[str, ...] = (), declarations: str = ""
) -> TinyELF:
    """A kernel of float or int work on i = begin .. end-1; `body` sees %i, %p0 ... and %v0 ..."""
    lines = [
        declarations,
        f"define void @{name}(ptr %b, ptr %v, i64 %begin, i64 %end) {{",
        "entry:",
    ]
    for n in range(buffers):
        lines.append(f"  %a{n} = getelementptr ptr, ptr %b, i64 {n}")
        lines.append(f"  %p{n} = load ptr, ptr %a{n}")
    for n in range(len(vals)):
        lines.append(f"  %w{n} = getelementptr i64, ptr %v, i64 {n}")
        lines.append(f"  %v{n} = load i64, ptr %w{n}")
    lines += [
        "  %any = icmp slt i64 %begin, %end",
        "  br i1 %any, label %loop, label %done",
        "loop:",
        "  %i = phi i64 [%begin, %entry], [%next, %loop]",
        body,
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %end",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    signature = KernelSignature(
        tuple(BufferParameter("int32", n == 0) for n in range(buffers)), vals
    )
    return TinyELF(name, _compile_ir("\n".join(lines)), "elf", "CPU:LLVM", signature)


ADD_BODY = """
  %e1 = getelementptr i32, ptr %p1, i64 %i
  %x1 = load i32, ptr %e1
  %e2 = getelementptr i32, ptr %p2, i64 %i
  %x2 = load i32, ptr %e2
  %sum = add i32 %x1, %x2
  %e0 = getelementptr i32, ptr %p0, i64 %i
  store i32 %sum, ptr %e0
"""

FILL_BODY = """
  %value = trunc i64 %v0 to i32
  %e0 = getelementptr i32, ptr %p0, i64 %i
  store i32 %value, ptr %e0
"""


@pytest.fixture(scope="session")
def compile_ir() -> CompileIr:
    """LLVM IR to an object for this machine."""
    return _compile_ir


@pytest.fixture(scope="session")
def make_kernel() -> MakeKernel:
    """Body of a loop to a kernel."""
    return _make_kernel


@pytest.fixture(scope="session")
def add_kernel() -> TinyELF:
    """out[i] = left[i] + right[i], int32."""
    return _make_kernel("add", ADD_BODY, 3)


@pytest.fixture(scope="session")
def fill_kernel() -> TinyELF:
    """out[i] = value, int32."""
    return _make_kernel("fill", FILL_BODY, 1, ("value",))


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., bytes]:
    """C to an object with the machine's compiler; skips where there is none."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")

    def run(text: str, *options: str) -> bytes:
        source = tmp_path / "kernel.c"
        source.write_text(text)
        target = tmp_path / "kernel.o"
        command = [compiler, "-c", "-O1", *options, str(source), "-o", str(target)]
        subprocess.run(command, check=True, capture_output=True)
        return target.read_bytes()

    return run
