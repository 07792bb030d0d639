"""The compile driver: a schedule becomes a `LinearProgram`, each kernel found in a cache or made.

The cache is keyed by the kernel graph *before* lowering, so a hit skips lowering, rendering and
compiling. Which renderer, compiler and lowering are used is the caller's choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeAlias

from tg_ir.config import ASSERT_COMPILE, DEBUG
from tg_ir.device import BufferParameter, Const, KernelSignature, LinearProgram, TinyELF
from tg_ir.events import CacheHit, CacheMissed, KernelCompiled, emit
from tg_ir.graph import Ops, UOp, toposort
from tg_ir.graph.render_api import Compiler, Renderer, TargetCapabilities

from tg_codegen.compile.cache_key import kernel_key, support_key
from tg_codegen.compile.compile_report import report_kernel
from tg_codegen.compile.disk_cache import open_disk_cache
from tg_codegen.compile.kernel_record import CompiledKernel, read_record, write_record
from tg_codegen.compile.launch_expressions import to_int_expr
from tg_codegen.compile.program_builder import ProgramBuilder
from tg_codegen.compile.variable_names import INTEGERS, VariableNames
from tg_codegen.errors import UnexpectedCompileError, UnsupportedCallError
from tg_codegen.kernel.workspace import Workspace

_CACHE = "kernel"


class KernelCost(Protocol):
    """Estimates for one launch."""

    @property
    def flops(self) -> int:
        """Arithmetic operations."""

    @property
    def nbytes(self) -> int:
        """Bytes moved."""


class LoweredKernel(Protocol):
    """What lowering gives; see `tg_codegen.kernel.pipeline`."""

    @property
    def name(self) -> str:
        """What the kernel does, for people."""

    @property
    def linear(self) -> Sequence[UOp]:
        """The linear kernel."""

    @property
    def thread_extent(self) -> UOp | int:
        """Iterations to share among the workers; 1 where there are none to share."""

    @property
    def cost(self) -> KernelCost:
        """Estimates for reports."""

    @property
    def opts(self) -> Sequence[str]:
        """The optimisations done, as text."""

    @property
    def workspaces(self) -> Sequence[Workspace]:
        """Extra buffers, in the order of their PARAM slots after those of the CALL."""


Lower: TypeAlias = Callable[[UOp, TargetCapabilities], Sequence[LoweredKernel]]
"""Turns the kernel graph of a CALL into linear kernels for a target, in the order they run."""

CompiledCall: TypeAlias = tuple[CompiledKernel, ...]
"""The programs of one CALL."""

_kernels: dict[bytes, CompiledCall] = {}


def compile_schedule(
    linear: UOp,
    renderer: Renderer,
    compiler: Compiler,
    device: str,
    lower: Lower,
    temporaries: Collection[UOp] = (),
) -> LinearProgram:
    """Compile every kernel of a schedule and put the steps together.

    Args:
        linear: LINEAR of CALL; each kernel satisfies `spec.kernel_graph`.
        renderer: writes the kernels.
        compiler: compiles what the renderer writes.
        device: where the kernels run; workspaces are allocated there.
        lower: the kernel pipeline.
        temporaries: the BUFFERs that nothing outside of the schedule reads or writes; they share
            memory.

    Returns:
        A program whose inputs are the other BUFFERs, in the order of `schedule_buffers`, and whose
        variables are those of the CALLs.

    Raises:
        CompileError: a kernel was refused; the message names a file with source and log.
        UnexpectedCompileError: `ASSERT_COMPILE` is set and a kernel is in no cache.
        UnsupportedCallError: a CALL of a kind that no step of a program expresses.
    """
    builder = ProgramBuilder(device, temporaries)
    for call in linear.src:
        match call.arg.kind:
            case "kernel":
                for kernel in compile_call(call, renderer, compiler, lower):
                    builder.add_launch(call, kernel)
            case "copy":
                builder.add_copy(call)
            case kind:
                raise UnsupportedCallError(
                    f"call {call.arg.name!r} is of kind {kind!r}; expected kernel or copy"
                )
    if builder.launch_count() > 1:
        for support in compile_support(renderer, compiler):
            builder.add_support(support)
    return builder.finish()


def compile_call(
    call: UOp, renderer: Renderer, compiler: Compiler, lower: Lower
) -> CompiledCall:
    """The programs of one CALL, from this process, the disk cache, or made now.

    Raises:
        CompileError, UnexpectedCompileError: as `compile_schedule`.
    """
    key = kernel_key(call, renderer, compiler)
    known = _kernels.get(key)
    if known is not None:
        return known
    kernels = _find_on_disk(key)
    if kernels is None:
        _refuse_to_compile(call.arg.name)
        lowered = lower(call.src[0], renderer.capabilities)
        kernels = tuple([_make_kernel(call, one, renderer, compiler) for one in lowered])
        _store_on_disk(key, kernels)
    _kernels[key] = kernels
    return kernels


def compile_support(renderer: Renderer, compiler: Compiler) -> tuple[TinyELF, ...]:
    """The texts that a renderer offers for running whole programs, compiled like kernels.

    Raises:
        CompileError, UnexpectedCompileError: as `compile_schedule`.
    """
    made: list[TinyELF] = []
    for name, source in renderer.support_sources().items():
        key = support_key(source, compiler)
        kernels = _kernels.get(key) or _find_on_disk(key)
        if kernels is None:
            _refuse_to_compile(name)
            signature = KernelSignature((), ())
            code = compiler.compile_cached(source)
            target = str(renderer.target)
            elf = TinyELF(name, code, compiler.code_format, target, signature)
            kernels = (CompiledKernel(elf),)
            _store_on_disk(key, kernels)
        _kernels[key] = kernels
        made.extend(kernel.elf for kernel in kernels)
    return tuple(made)


def clear_kernel_cache() -> None:
    """Forget the kernels of this process; the disk cache stays."""
    _kernels.clear()


def schedule_buffers(linear: UOp) -> tuple[UOp, ...]:
    """The BUFFERs of a schedule, each storage once, in the order in which a program lists them."""
    builder = ProgramBuilder("", ())
    for call in linear.src:
        builder.add_buffers(call)
    return builder.buffer_nodes()


def bound_values(linear: UOp) -> dict[str, int]:
    """The values that the BINDs of a schedule give to the variables of its program."""
    names = VariableNames()
    values: dict[str, int] = {}
    for call in linear.src:
        if call.arg.kind != "kernel":
            continue
        for source in call.src[1:]:
            if source.op in INTEGERS:
                name = names.name_of(source)
                if source.op is Ops.BIND:
                    values[name] = source.unbind()[1]
    return values


def _find_on_disk(key: bytes) -> CompiledCall | None:
    # What DEBUG shows exists only while a kernel is made, so it is made again, once a process.
    if DEBUG >= 3 and not ASSERT_COMPILE:
        return None
    cache = open_disk_cache()
    data = None if cache is None else cache.get(_CACHE, key)
    kernels = None if data is None else read_record(data)
    emit(CacheMissed(_CACHE, key.hex()) if kernels is None else CacheHit(_CACHE, key.hex()))
    return kernels


def _store_on_disk(key: bytes, kernels: CompiledCall) -> None:
    cache = open_disk_cache()
    if cache is not None:
        cache.put(_CACHE, key, write_record(kernels))


def _refuse_to_compile(name: str) -> None:
    if ASSERT_COMPILE:
        raise UnexpectedCompileError(
            f"ASSERT_COMPILE is set and kernel {name!r} is in no cache; "
            "run the program once without it, with the same settings and target"
        )


def _make_kernel(
    call: UOp, lowered: LoweredKernel, renderer: Renderer, compiler: Compiler
) -> CompiledKernel:
    started = time.perf_counter()
    name = _entry_point(lowered.name)
    source = renderer.render(lowered.linear, name)
    report_kernel(name, call.src[0], lowered.linear, lowered.opts, source, compiler)
    code = compiler.compile_cached(source)
    elf = TinyELF(
        name, code, compiler.code_format, str(renderer.target), _signature(call, lowered)
    )
    emit(KernelCompiled(name, elf.target, time.perf_counter() - started, len(code)))
    return CompiledKernel(
        elf,
        to_int_expr(lowered.thread_extent),
        tuple(lowered.workspaces),
        Const(lowered.cost.flops),
        Const(lowered.cost.nbytes),
    )


def _signature(call: UOp, lowered: LoweredKernel) -> KernelSignature:
    """Buffers in slot order, as the kernel itself describes them, then one integer a variable."""
    given = [source for source in call.src[1:] if source.op not in INTEGERS]
    buffers = {slot: BufferParameter(node.dtype.name, False) for slot, node in enumerate(given)}
    for slot, workspace in enumerate(lowered.workspaces, len(given)):
        buffers[slot] = BufferParameter(workspace.dtype, True)
    for node in (*toposort((call.src[0],)), *lowered.linear):
        if node.op is Ops.PARAM:
            buffers[node.arg.slot] = BufferParameter(node.dtype.name, node.arg.writable)
    integers = len(call.src) - 1 - len(given)
    return KernelSignature(
        tuple(buffers[slot] for slot in sorted(buffers)),
        tuple(f"v{number}" for number in range(integers)),
    )


def _entry_point(name: str) -> str:
    """`name` as a C identifier, so that it can be a symbol."""
    cleaned = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    return cleaned if cleaned.isidentifier() else f"k_{cleaned}"

