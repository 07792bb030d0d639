"""Runs one kernel graph in every form that lowering gives it, down to machine code.

`check_kernel` evaluates the graph as given, after each pass, as linear kernel, and runs the code
that the LLVM renderer, its compiler and the CPU runtime make of it. The first form that differs
from the expected arrays fails the test, by its name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tg_codegen.kernel.pipeline import KERNEL_PASSES, LoweredKernel, LoweringContext, lower_kernel
from tg_codegen.optimize import Opt
from tg_ir.config import Context
from tg_ir.graph import Ops, UOp, toposort
from tg_ir.graph.evaluate import run_kernel_graph, run_linear_kernel
from tg_ir.graph.passes import Pass, Pipeline
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.target import Target
from tg_renderers.compilers.llvm import LLVMCompiler
from tg_renderers.llvm import LLVMRenderer
from tg_runtime_cpu.object_file import load_object

Array = NDArray[np.generic]

_TARGET = Target.parse("CPU:LLVM")
_PROTOTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


@dataclass(frozen=True)
class Checked:
    """What became of a kernel: its lowered form and the LLVM text."""

    lowered: LoweredKernel
    text: str

    def count(self, op: Ops) -> int:
        """How many nodes of the linear kernel are of this op."""
        return sum(node.op is op for node in self.lowered.linear)


@cache
def renderer() -> LLVMRenderer:
    """The renderer for this machine."""
    return LLVMRenderer(_TARGET)


def capabilities() -> TargetCapabilities:
    """What the CPU of this machine takes."""
    return renderer().capabilities


class _Form:
    """Buffers for one run, the contents that a kernel expects in the first ones, scratch behind."""

    def __init__(self, arrays: Sequence[Array], nodes: Sequence[UOp]) -> None:
        self.arrays = [np.array(array, order="C", copy=True) for array in arrays]
        sizes = {n.arg.slot: n.arg.size * n.dtype.itemsize for n in nodes if n.op is Ops.PARAM}
        scratch = range(len(arrays), max(sizes, default=-1) + 1)
        self.buffers = self.arrays + [np.full(sizes[s], 0x5A, np.uint8) for s in scratch]

    def views(self) -> list[memoryview]:
        return [memoryview(array.reshape(-1)).cast("B") for array in self.buffers]


def check_kernel(
    sink: UOp,
    arrays: Sequence[Array],
    expected: dict[int, Array],
    opts: Sequence[Opt] | None = (),
    *,
    vals: Sequence[int] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
    passes: Pipeline[LoweringContext] = KERNEL_PASSES,
) -> Checked:
    """Run `sink` in all its forms.

    Args:
        sink: a kernel graph.
        arrays: the contents of each PARAM by slot before the kernel runs, outputs included.
        expected: contents afterwards by slot; the other slots have to stay as they were.
        opts: moves of the optimiser; None leaves the choice to its heuristic.
        vals: the value of each DEFINE_VAR.
        rtol, atol: tolerances for floats; ints are compared exactly.
        passes: the pipeline that lowers.
    """

    def compare(form: _Form, name: str) -> None:
        for slot, array in enumerate(form.arrays):
            wanted = expected.get(slot, arrays[slot])
            moves = "of the heuristic" if opts is None else [str(opt) for opt in opts]
            message = f"slot {slot} {name}, moves {moves}"
            if array.dtype.kind == "f":
                np.testing.assert_allclose(array, wanted, rtol, atol, err_msg=message)
            else:
                np.testing.assert_array_equal(array, wanted, message)

    def evaluate(graph: UOp, name: str) -> None:
        form = _Form(arrays, list(toposort((graph,))))
        run_kernel_graph(graph, form.views(), vals)
        compare(form, name)

    def after_pass(step: Pass[LoweringContext], graph: UOp) -> None:
        evaluate(graph, f"after pass '{step.name}'")

    evaluate(sink, "of the kernel graph")
    with Context(SPEC=2):
        context = LoweringContext(capabilities(), None if opts is None else tuple(opts))
        passes.run(sink, context, after_pass)
        lowered = lower_kernel(sink, capabilities(), opts, passes)
    extent = _extent(lowered, vals)
    form = _Form(arrays, lowered.linear)
    run_linear_kernel(lowered.linear, form.views(), vals, 0, extent)
    compare(form, "of the linear kernel")
    text = renderer().render(lowered.linear, "kernel")
    form = _Form(arrays, lowered.linear)
    run_machine_code(text, form.views(), vals, [(0, extent)])
    compare(form, "of the machine code")
    return Checked(lowered, text)


def _extent(lowered: LoweredKernel, vals: Sequence[int]) -> int:
    bound = lowered.thread_extent
    if isinstance(bound, int):
        return bound
    variables = [n for n in toposort((bound,)) if n.op is Ops.DEFINE_VAR]
    values = {v: v.const_like(x) for v, x in zip(variables, vals, strict=True)}
    return int(bound.substitute(values).vmax)


def run_machine_code(
    text: str, buffers: Sequence[memoryview], vals: Sequence[int], parts: Sequence[tuple[int, int]]
) -> None:
    """Compile LLVM text and call the kernel once for each part of its THREAD range."""
    code = load_object(LLVMCompiler(_TARGET).compile(text))
    function = _PROTOTYPE(code.address("kernel"))
    raw = [(ctypes.c_char * max(1, len(view))).from_buffer(view) if len(view) else None
           for view in buffers]
    addresses = [0 if view is None else ctypes.addressof(view) for view in raw]
    table = (ctypes.c_void_p * max(1, len(raw)))(*addresses)
    integers = (ctypes.c_int64 * max(1, len(vals)))(*vals)
    for begin, end in parts:
        function(ctypes.addressof(table), ctypes.addressof(integers), begin, end)
