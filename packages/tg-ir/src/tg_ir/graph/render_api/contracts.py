"""The contracts between code generation and its back ends: `Renderer` and `Compiler`.

A renderer turns the linear form of a kernel into source text, a compiler turns source text into the
bytes a device loads. What a renderer can express it declares as `TargetCapabilities`; how both are
found by name is in `registry`.
"""

from __future__ import annotations

import hashlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tg_ir.dtype import DType, dtypes
from tg_ir.errors import CompileError
from tg_ir.float_model import FloatModel
from tg_ir.graph.ops import Ops
from tg_ir.graph.uop import UOp
from tg_ir.target import Target

WALKER_NAME = "tg_walker"
"""The entry point of a native walker of CPU launches, the one kind of support code there is so far.

What it does and how it is called: docs/reference/cpu-walker.md.
"""

_INT64 = dtypes.int64  # inside `TargetCapabilities` the name `dtypes` is a field

RENDER_API = 1
"""Version of this contract. A renderer or compiler names the version it was written for."""


@dataclass(frozen=True)
class TargetCapabilities:
    """What generated code may use on a target, and the sizes that optimisation needs to know.

    Attributes:
        ops: elementwise ops that the renderer takes; every other one is decomposed before.
        dtypes: scalar types that values and buffers may have.
        vector_bits: width of a vector register in bits; 0: vector types are not taken.
        vector_registers: how many of them there are; 0 if unknown or none.
        has_threads: a THREAD range may be split over workers.
        has_local: work-items of a group share LOCAL memory and meet at a BARRIER.
        global_dims: how many SPECIAL `g` ranges a kernel may have; 0: loops only.
        local_dims: how many SPECIAL `l` ranges a kernel may have.
        index_dtype: the machine type of indices and loop counters.
        max_buffers: most buffer arguments a kernel may have.
        l1_bytes: first level data cache of a core, or the LOCAL memory of a group.
        l2_bytes: second level data cache of a core.
        local_bytes: most scratch (DEFINE_LOCAL) a kernel may have.
        float_model: how far float arithmetic keeps IEEE 754.
    """

    ops: frozenset[Ops]
    dtypes: frozenset[DType]
    vector_bits: int = 0
    vector_registers: int = 0
    has_threads: bool = False
    has_local: bool = False
    global_dims: int = 0
    local_dims: int = 0
    index_dtype: DType = _INT64
    max_buffers: int = 1 << 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    local_bytes: int = 512 << 10
    float_model: FloatModel = FloatModel()


class Renderer(ABC):
    """Turns linear kernels into source text. Stateless apart from its target.

    Attributes:
        render_api: the version of this contract it was written for.
        name: its entry point, upper case; the renderer part of `DEV`.
        compiler: the entry point of the compiler that takes its text.
        code_format: the format of what that compiler returns, as in `TinyELF.code_format`.
    """

    render_api: ClassVar[int]  # each implementation writes the number it was written for
    name: ClassVar[str]
    compiler: ClassVar[str]
    code_format: ClassVar[str]

    def __init__(self, target: Target) -> None:
        """Keep the target.

        Raises:
            TargetError: the arch is not one that this renderer knows.
        """
        self.target = target

    @property
    @abstractmethod
    def capabilities(self) -> TargetCapabilities:
        """What this renderer takes for its target."""

    @abstractmethod
    def render(self, kernel: Sequence[UOp], name: str) -> str:
        """Return the source text of a kernel.

        Args:
            kernel: the linear form, each node after its sources; satisfies `spec.linear_kernel`.
            name: the entry point, a C identifier.

        Raises:
            RenderError: a node that the capabilities do not offer; the message shows it.
        """

    def support_sources(self) -> dict[str, str]:
        """Return texts that help to run whole programs, by the name of their entry point.

        They are compiled like kernels and go with every program; a device takes those that it
        knows.
        """
        return {}

    def asm(self, kernel: Sequence[UOp], name: str) -> str | None:
        """Return the kernel as assembly, or None: this renderer leaves that to its compiler."""
        return None

    @property
    def cachekey(self) -> str:
        """What tells the code for this target from that for others; part of every cache key.

        A target that says `native` has to name here what native means on this machine.
        """
        return f"{self.name}:{self.target}"


class Compiler(ABC):
    """Turns source text into the bytes that a device loads.

    Attributes:
        render_api: the version of this contract it was written for.
        name: its entry point, upper case.
        code_format: the format of what it returns, as in `TinyELF.code_format`.
    """

    render_api: ClassVar[int]  # each implementation writes the number it was written for
    name: ClassVar[str]
    code_format: ClassVar[str]

    def __init__(self, target: Target) -> None:
        """Keep the target; the toolchain itself is loaded at the first `compile`."""
        self.target = target
        self._compiled: dict[bytes, bytes] = {}

    @abstractmethod
    def compile(self, source: str) -> bytes:
        """Return the code of `source`.

        Raises:
            CompileError: the source was refused; the message names the file that keeps it.
        """

    def compile_cached(self, source: str) -> bytes:
        """As `compile`, but a text that this object has compiled before costs nothing."""
        digest = hashlib.sha256(source.encode()).digest()
        known = self._compiled.get(digest)
        if known is None:
            known = self.compile(source)
            self._compiled[digest] = known
        return known

    @property
    def cachekey(self) -> str:
        """What the code depends on besides the source: toolchain, target, options."""
        return f"{self.name}:{self.target}"

    def refused(self, source: str, log: str) -> CompileError:
        """The error for a source that does not compile; source and log are kept in a new file.

        Args:
            source: what was to be compiled.
            log: what the toolchain said; its first line goes into the message.
        """
        with tempfile.NamedTemporaryFile(
            "w", prefix="tg-compile-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(f"{log.rstrip()}\n\n{source}")
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        reason = lines[0] if lines else "no reason given"
        return CompileError(
            f"compiler {self.name} refused a kernel: {reason}; source and log are in {file.name}"
        )

    def assembly(self, source: str) -> str:
        """Return what `source` compiles to as assembly text, for people to read.

        Raises:
            CompileError: as `compile`.
            NotImplementedError: this compiler has no such form.
        """
        raise NotImplementedError(f"compiler {self.name} has no assembly text; look at the source")

    def disassemble(self, code: bytes) -> str:
        """Return `code` as readable text.

        Raises:
            NotImplementedError: this compiler cannot; `assembly` may show the same from the source.
        """
        raise NotImplementedError(f"compiler {self.name} cannot disassemble {self.code_format}")
