"""The text of generated kernels: what a programmer who reads the assembly would look for."""

from __future__ import annotations

import re

import kernel_cases as kernels
import pytest
from tg_codegen.kernel.pipeline import lower_kernel
from tg_codegen.optimize import Opt, OptOps
from tg_ir.graph import Ops, UOp
from tg_ir.target import Target
from tg_renderers.compilers.llvm import LLVMCompiler
from tg_renderers.llvm import LLVMRenderer

# A fixed CPU, so that the text does not depend on the machine.
TARGET = Target.parse("CPU:LLVM:x86_64,skylake-avx512")
TILE = [
    Opt(OptOps.VECTOR, (1,), 16),
    Opt(OptOps.UPCAST, (1, 0), 2),
    Opt(OptOps.UPCAST, (0,), 14),
    Opt(OptOps.STAGE, None, 1),
]


def assembly_of(sink: UOp, opts: list[Opt] | None) -> str:
    renderer = LLVMRenderer(TARGET)
    kernel = lower_kernel(sink, renderer.capabilities, opts)
    return LLVMCompiler(TARGET).assembly(renderer.render(kernel.linear, "kernel"))


def inner_loops(assembly: str) -> list[str]:
    """The basic blocks that jump back to their own label, up to that jump."""
    blocks = re.split(r"^(\.LBB\w+):", assembly, flags=re.M)
    loops = []
    for label, body in zip(blocks[1::2], blocks[2::2], strict=True):
        jump = re.search(rf"\bj\w+\s+{re.escape(label)}\b", body)
        if jump is not None:
            loops.append(body[: jump.end()])
    return loops


def test_a_14x32_tile_is_28_fma_a_step_without_a_spill() -> None:
    assembly = assembly_of(kernels.matmul(28, 64, 128).sink, TILE)
    products = [body for body in inner_loops(assembly) if "vfmadd" in body]
    assert len(products) == 1
    body = products[0]
    assert len(re.findall(r"\bvfmadd\w+ps\b.*%zmm", body)) == 28
    assert "%rsp" not in body
    # two vectors of the staged factor and loop control; the 14 scalars are operands of the fma
    assert len(body.strip().splitlines()) < 28 + 14 + 12


@pytest.mark.parametrize("opts", [[], None], ids=["plain", "optimised"])
def test_an_embedding_has_no_loop_over_the_vocabulary(opts: list[Opt] | None) -> None:
    case = kernels.embedding(6, 50257, 18)
    kernel = lower_kernel(case.sink, LLVMRenderer(TARGET).capabilities, opts)
    bounds = [int(node.src[0].arg) for node in kernel.linear if node.op is Ops.RANGE]
    assert all(bound <= 18 for bound in bounds)
    loads = [node for node in kernel.linear if node.op is Ops.LOAD]
    assert sum(load.src[0].src[0].arg.slot == 2 for load in loads) == 1
