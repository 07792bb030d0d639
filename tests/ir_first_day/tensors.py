"""Runs one tensor graph in every form: evaluated, scheduled, compiled and run by the executor.

`check_tensors` names the first form whose values differ from the expected ones.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence

import numpy as np
from tg_codegen.compile import bound_values, compile_schedule, schedule_buffers
from tg_codegen.kernel.pipeline import LoweredKernel, lower_call
from tg_codegen.schedule import Schedule, create_schedule
from tg_ir.device import Buffer, LinearProgram, canonical_device_name
from tg_ir.device.execute import Executor
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp, toposort
from tg_ir.graph.evaluate import evaluate, run_kernel_graph
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.spec import schedule, tensor_graph, verify
from tg_renderers.compilers.llvm import LLVMCompiler

from .stages import Array, renderer

Lower = Callable[[UOp, TargetCapabilities], Sequence[LoweredKernel]]

_contents: weakref.WeakKeyDictionary[UOp, Array] = weakref.WeakKeyDictionary()


def dtype_of(array: Array) -> DType:
    """Our name of a numpy dtype."""
    return dtypes.from_name(array.dtype.name)


def holding(array: Array, device: str = "CPU") -> UOp:
    """A BUFFER with these contents, in this shape."""
    buffer = UOp.new_buffer(device, array.size, dtype_of(array))
    _contents[buffer] = np.array(array, order="C", copy=True).reshape(-1)
    return buffer.reshape(array.shape) if array.ndim != 1 else buffer


def inputs_of(graph: UOp) -> dict[UOp, bytes]:
    """The contents of the BUFFERs below `graph`, for the evaluator."""
    return {n: _contents[n].tobytes() for n in toposort((graph,)) if n in _contents}


def check_tensors(
    values: Sequence[UOp],
    expected: Sequence[Array],
    *,
    pinned: Collection[UOp] = (),
    kernels: int | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> Schedule:
    """Compute `values` in all forms.

    Args:
        values: of a tensor graph over buffers made by `holding`.
        expected: one array a value.
        pinned: versions that are read elsewhere too.
        kernels: how many kernels the schedule has to have.
        rtol, atol: tolerances for floats.
    """

    def compare(found: Sequence[Array], name: str) -> None:
        for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            message = f"value {number} {name}"
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=message)
            else:
                np.testing.assert_array_equal(ours, theirs, message)

    sink = UOp.sink(*values)
    verify(sink, tensor_graph)
    results = evaluate(sink, inputs_of(sink))
    compare(
        [np.array(r.items).reshape(r.shape) for r in results], "of the tensor graph, evaluated"
    )
    made = create_schedule(sink, pinned)
    verify(made.linear, schedule)
    if kernels is not None:
        assert len(made.linear.src) == kernels
    compare(_run_by_evaluating(made, values), "of the schedule, evaluated")
    compare(run_compiled(made, values), "of the program on CPU")
    return made


def _run_by_evaluating(made: Schedule, values: Sequence[UOp]) -> list[Array]:
    memory = {n.arg.id: bytearray(a.tobytes()) for n, a in _contents.items()}

    def bytes_of(node: UOp) -> bytearray:
        size = node.arg.size * node.dtype.itemsize
        return memory.setdefault(node.arg.id, bytearray(b"\x5a" * size))

    for call in made.linear.src:
        buffers = [bytes_of(s) for s in call.src[1:] if s.op is Ops.BUFFER]
        vals = [s.unbind()[1] for s in call.src[1:] if s.op is Ops.BIND]
        assert call.arg.kind == "kernel"
        run_kernel_graph(call.src[0], buffers, vals)
    return [_read(made.becomes[value], lambda node: bytes(bytes_of(node))) for value in values]


def compiled(
    made: Schedule, kept: Collection[UOp] = (), lower: Lower = lower_call
) -> tuple[LinearProgram, list[UOp]]:
    """The program of a schedule, and the BUFFERs that are its inputs."""
    wanted = {_storage(value).arg.id for value in kept}
    buffers = schedule_buffers(made.linear)
    given = {node.arg.id for node in _contents} | wanted
    temporaries = [node for node in buffers if node.arg.id not in given]
    llvm = renderer()
    device = canonical_device_name("CPU")
    program = compile_schedule(
        made.linear, llvm, LLVMCompiler(llvm.target), device, lower, temporaries
    )
    return program, [node for node in buffers if node.arg.id in given]


def run_compiled(
    made: Schedule, values: Sequence[UOp], lower: Lower = lower_call
) -> list[Array]:
    """What the machine code of a schedule gives for `values`, whose inputs stay as they are."""
    results = [made.becomes[value] for value in values]
    program, inputs = compiled(made, results, lower)
    by_id = {n.arg.id: a for n, a in _contents.items()}
    memory: dict[int, Buffer] = {}
    for node in inputs:
        memory[node.arg.id] = Buffer("CPU", node.arg.size, node.dtype)
        if node.arg.id in by_id:
            memory[node.arg.id].copyin(by_id[node.arg.id].tobytes())
    if program.steps:
        Executor(program).run([memory[node.arg.id] for node in inputs], bound_values(made.linear))

    def contents(node: UOp) -> bytes:
        if node.arg.id not in memory:
            return by_id[node.arg.id].tobytes()
        return bytes(memory[node.arg.id].as_memoryview())

    return [_read(result, contents) for result in results]


def _storage(view: UOp) -> UOp:
    while view.op is not Ops.BUFFER:
        view = view.src[0]
    return view


def _read(view: UOp, contents: Callable[[UOp], bytes]) -> Array:
    storage = _storage(view)
    (value,) = evaluate([view], {storage: contents(storage)})
    return np.array(value.items).reshape(value.shape)
