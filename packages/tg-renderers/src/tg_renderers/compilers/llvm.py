"""`LLVMCompiler`: LLVM IR text to a relocatable ELF object, in this process, by llvmlite.

Code generation only: the renderer writes vector types and phis itself, so that no pass pipeline
has to run (1 ms a kernel instead of 6).
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any, ClassVar

from tg_ir.graph.render_api import Compiler
from tg_ir.target import Target

from tg_renderers.compilers.llvm_machine import make_target_machine
from tg_renderers.lazy import llvmlite_binding
from tg_renderers.targets.cpu import cpu_facts


class LLVMCompiler(Compiler):
    """Compiles for the CPU of a target; `native` means the CPU of this machine.

    Attributes:
        opt_level: of code generation, 0 to 3.
        passes: also run LLVM's own -O2 pipeline before. Off: slower to compile, and the text does
            not need it.
    """

    render_api: ClassVar[int] = 1
    name: ClassVar[str] = "LLVM"
    code_format: ClassVar[str] = "elf"

    def __init__(self, target: Target, opt_level: int = 2, passes: bool = False) -> None:
        """Check the arch; LLVM is loaded at the first compile.

        Raises:
            TargetError: the arch is no CPU arch string.
        """
        super().__init__(target)
        self.opt_level = opt_level
        self.passes = passes
        self._cpu = cpu_facts(target)
        self._machine: Any = None  # an llvmlite TargetMachine

    @property
    def cachekey(self) -> str:
        """Name and version, CPU and options; found without loading LLVM."""
        options = f"O{self.opt_level}:{int(self.passes)}"
        return f"{self.name}:{_llvmlite_version()}:{self._cpu.fingerprint}:{options}"

    def compile(self, source: str) -> bytes:
        """Return the ELF object of an LLVM IR module; see `Compiler.compile`."""
        module = self._parse(source)
        return bytes(self._target_machine().emit_object(module))

    def assembly(self, source: str) -> str:
        """Return the assembly text of an LLVM IR module; see `Compiler.assembly`."""
        module = self._parse(source)
        return str(self._target_machine().emit_assembly(module))

    def _parse(self, source: str) -> Any:
        binding = llvmlite_binding()
        machine = self._target_machine()
        try:
            module = binding.parse_assembly(source)
            module.verify()
        except RuntimeError as error:
            log = str(error).removeprefix("LLVM IR parsing error\n")
            raise self.refused(source, log) from None
        if self.passes:
            tuning = binding.create_pipeline_tuning_options(speed_level=2)
            builder = binding.create_pass_builder(machine, tuning)
            builder.getModulePassManager().run(module, builder)
        return module

    def _target_machine(self) -> Any:
        if self._machine is None:
            self._machine = make_target_machine(
                llvmlite_binding(), self._cpu.arch, self.opt_level
            )
        return self._machine


@cache
def _llvmlite_version() -> str:
    try:
        return metadata.version("llvmlite")
    except metadata.PackageNotFoundError:
        return "absent"
