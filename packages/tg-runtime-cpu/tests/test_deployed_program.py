"""A machine that only runs compiled programs loads little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tg_ir.device import BufferDecl, Const, Launch, LinearProgram, TinyELF, save_program

RUN = """
import sys
from array import array
from tg_ir.device import Buffer, Executor, load_program
from tg_ir.dtype import dtypes

source = Buffer("CPU", 8, dtypes.int32).copyin(array("i", range(8)).tobytes())
out = Buffer("CPU", 8, dtypes.int32)
executor = Executor(load_program(sys.argv[1]))
for _ in range(3):
    executor.run([out, source])
print(array("i", bytes(out.as_memoryview())).tolist())
heavy = ("numpy", "llvmlite", "sqlite3", "tg_ir.graph", "tg_codegen", "tg_renderers", "pickle")
print([name for name in heavy if name in sys.modules])
"""


def test_artifact_runs_without_compiler_graph_or_numpy(tmp_path: Path, add_kernel: TinyELF) -> None:
    program = LinearProgram(
        buffers=(BufferDecl(32, "CPU", "input"), BufferDecl(32, "CPU", "input")),
        kernels=(add_kernel,),
        steps=(Launch(0, (0, 1, 1), global_size=(Const(8), Const(1), Const(1))),),
    )
    path = tmp_path / "program.zip"
    save_program(program, path)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[0, 2, 4, 6, 8, 10, 12, 14]", "[]"]
