"""`LLVMRenderer`: linear kernels to textual LLVM IR for CPUs, with explicit vector types.

The text is meant for code generation alone, with no pass pipeline before it: accumulators are phis,
addresses fold, loops are tested at the bottom. Arithmetic, casts, memory and addresses have their
own modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from tg_ir.dtype import dtypes
from tg_ir.errors import RenderError
from tg_ir.float_model import FloatModel
from tg_ir.graph import UOp
from tg_ir.graph.render_api import WALKER_NAME, Renderer, TargetCapabilities
from tg_ir.target import Target

from tg_renderers.llvm.arithmetic import NATIVE_OPS
from tg_renderers.llvm.kernel_text import MAX_SCRATCH_BYTES, KernelText
from tg_renderers.llvm.launch_walker import walker_text
from tg_renderers.targets.cpu import CpuFacts, cpu_facts


class LLVMRenderer(Renderer):
    """Renders for the CPU: `void name(ptr buffers, ptr vals, i64 begin, i64 end)`.

    Raises:
        TargetError: the arch of the target is not a CPU arch string.
    """

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "LLVM"
    compiler: ClassVar[str] = "LLVM"
    code_format: ClassVar[str] = "elf"

    def __init__(self, target: Target) -> None:
        """Look up what the target's CPU has."""
        super().__init__(target)
        self._cpu: CpuFacts = cpu_facts(target)

    @cached_property
    def capabilities(self) -> TargetCapabilities:
        """Vectors of the CPU's width, threads, no launch grid."""
        absent = frozenset() if self._cpu.converts_float16 else frozenset({dtypes.float16})
        return TargetCapabilities(
            ops=NATIVE_OPS,
            dtypes=frozenset(dtypes.all) - absent,
            vector_bits=self._cpu.vector_bits,
            vector_registers=self._cpu.vector_registers,
            has_threads=True,
            index_dtype=dtypes.int64,
            l1_bytes=self._cpu.l1_bytes,
            l2_bytes=self._cpu.l2_bytes,
            local_bytes=MAX_SCRATCH_BYTES,
            float_model=FloatModel(),
        )

    @property
    def cachekey(self) -> str:
        """Name and target, `native` replaced by what this machine is."""
        return f"{self.name}:{self._cpu.fingerprint}"

    def support_sources(self) -> dict[str, str]:
        """Return the walker of launch tables; see `Renderer.support_sources`."""
        return {WALKER_NAME: walker_text(self._cpu.arch.family)}

    def render(self, kernel: Sequence[UOp], name: str) -> str:
        """Return the LLVM IR of a kernel; see `Renderer.render`."""
        if not name.isidentifier():
            raise RenderError(f"a kernel is named by a C identifier, not {name!r}")
        return KernelText(kernel).finish(name, self._cpu.vector_bits)
