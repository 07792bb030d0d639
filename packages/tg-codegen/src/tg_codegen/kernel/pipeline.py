"""The lowering of one kernel.

From the kernel graph that the scheduler made to the linear kernel that a renderer takes.

The list of passes is the table of contents; the reasons for their order stand next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.config import FASTMATH, NOOPT, SPEC
from tg_ir.graph import AxisType, KernelInfo, Ops, UOp, toposort
from tg_ir.graph.passes import Pass, Pipeline
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.spec import kernel_graph, linear_kernel, verify
from tg_ir.graph.symbolic import simplify
from tg_ir.graph.work_items import split_at_barriers

from tg_codegen.kernel.cost import KernelCost, kernel_cost
from tg_codegen.kernel.decompose import decompose
from tg_codegen.kernel.linearize import linearize
from tg_codegen.kernel.lower_index_dtype import lower_index_dtype
from tg_codegen.kernel.lower_stage import lower_stage
from tg_codegen.kernel.order_scans import order_scans
from tg_codegen.kernel.place_workspaces import place_workspaces
from tg_codegen.kernel.separate_loops import separate_loops
from tg_codegen.kernel.simplify_guards import simplify_guards
from tg_codegen.kernel.split_outputs import split_outputs
from tg_codegen.kernel.unroll import unroll
from tg_codegen.kernel.vectorize import vectorize
from tg_codegen.kernel.workspace import Workspace
from tg_codegen.optimize import Opt, apply_opts, optimize


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """What passes may know.

    `capabilities` of the renderer; `opts`: the moves to make, None for the default choice; `noopt`:
    make none; `fast_math`: rules that are not exact may be used.
    """

    capabilities: TargetCapabilities
    opts: tuple[Opt, ...] | None = None
    noopt: bool = False
    fast_math: bool = False


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel ready to be rendered.

    `thread_extent`: the iterations shared by the workers, a scalar index expression over the
    kernel's variables, 1 where there is nothing to share. `opts`: the moves made, as text.
    """

    name: str
    linear: tuple[UOp, ...]
    thread_extent: UOp | int
    cost: KernelCost
    opts: tuple[str, ...]
    workspaces: tuple[Workspace, ...] = ()


def _optimise(sink: UOp, context: LoweringContext) -> UOp:
    if context.opts is not None:
        return apply_opts(sink, list(context.opts))
    return sink if context.noopt else optimize(sink, context.capabilities)


def _split_at_barriers(sink: UOp, context: LoweringContext) -> UOp:
    return sink if context.capabilities.has_local else split_at_barriers(sink)


def _place_workspaces(sink: UOp, context: LoweringContext) -> UOp:
    return place_workspaces(sink, context.capabilities.local_bytes)


def _simplify(sink: UOp, context: LoweringContext) -> UOp:
    return simplify(sink, context.fast_math)


def _decompose(sink: UOp, context: LoweringContext) -> UOp:
    return decompose(sink, context.capabilities)


def _lower_index_dtype(sink: UOp, context: LoweringContext) -> UOp:
    return lower_index_dtype(sink, context.capabilities.index_dtype)


KERNEL_PASSES: Pipeline[LoweringContext] = Pipeline(
    (
        # before the choice of moves, which looks at strides and masks
        Pass("simplify_kernel", _simplify, "", "canonical index arithmetic"),
        Pass("simplify_guards", lambda sink, _: simplify_guards(sink), "", "guards do not nest"),
        # on whole axes, before any axis has turned into lanes or copies
        Pass("optimise", _optimise, "axes are GLOBAL, LOOP or REDUCE", "opts are listed"),
        # a work-item is an iteration where groups do not exist; what it stages is then per item
        Pass("split_at_barriers", _split_at_barriers, "", "no BARRIER, but for groups"),
        # a tile is filled by loops of its own, which the next two passes treat like any other
        Pass("lower_stage", lambda sink, _: lower_stage(sink), "", "no STAGE"),
        # lanes first: the copies that unrolling makes are then of vectors
        Pass("vectorize", lambda sink, _: vectorize(sink), "one VECTOR axis a value", "no VECTOR"),
        Pass("unroll", lambda sink, _: unroll(sink), "constant UNROLL extents", "no UNROLL"),
        # copies made constants
        Pass("simplify", _simplify, "", "canonical index arithmetic"),
        # after unrolling, when constants have folded most divisions away
        Pass("decompose", _decompose, "", "only ops that the target has"),
        Pass("lower_index_dtype", _lower_index_dtype, "", "no index dtype"),
        # the size of all scratch is known now
        Pass("place_workspaces", _place_workspaces, "machine dtypes", "scratch fits a worker"),
        # before loops are told apart, whose order it changes
        Pass("order_scans", lambda sink, _: order_scans(sink), "", "scanned loops are innermost"),
        # last: no pass after it may make two loops of one
        Pass("separate_loops", lambda sink, _: separate_loops(sink), "no STAGE", "a loop a range"),
    ),
    verify=lambda sink: verify(sink, kernel_graph),
)


def lower_kernel(
    sink: UOp,
    capabilities: TargetCapabilities,
    opts: Sequence[Opt] | None = None,
    passes: Pipeline[LoweringContext] = KERNEL_PASSES,
) -> LoweredKernel:
    """The linear kernel of `sink` for a target.

    Args:
        sink: satisfies `spec.kernel_graph`.
        capabilities: what the renderer of the target takes.
        opts: the moves to make; None leaves the choice to the heuristic.
        passes: a pipeline with passes of your own in it.

    Raises:
        OptError: one of `opts` is not allowed on this kernel.
    """
    chosen = None if opts is None else tuple(opts)
    context = LoweringContext(capabilities, chosen, bool(NOOPT), bool(FASTMATH))
    lowered = passes.run(sink, context)
    info: KernelInfo = lowered.arg or KernelInfo()
    fused = Ops.MULACC in capabilities.ops
    linear = tuple(linearize(lowered, fused, capabilities.index_dtype))
    if SPEC:
        verify(linear, linear_kernel)
    return LoweredKernel(
        info.name,
        linear,
        _thread_extent(linear),
        kernel_cost(linear),
        info.opts,
        _workspaces(sink, linear),
    )


def lower_call(sink: UOp, capabilities: TargetCapabilities) -> tuple[LoweredKernel, ...]:
    """The programs of one CALL, in the order in which they run.

    All take the buffers of the CALL, each its own workspaces after them.

    Args:
        sink: satisfies `spec.kernel_graph`.
        capabilities: what the renderer of the target takes.
    """
    parts = split_outputs(sink) if capabilities.has_threads and not NOOPT else (sink,)
    return tuple([lower_kernel(part, capabilities) for part in parts])


def _workspaces(sink: UOp, linear: Sequence[UOp]) -> tuple[Workspace, ...]:
    """What lowering added to the PARAMs of the kernel, by slot."""
    given = {node for node in toposort((sink,)) if node.op is Ops.PARAM}
    added = [node for node in linear if node.op is Ops.PARAM and node not in given]
    added.sort(key=lambda node: node.arg.slot)
    return tuple([Workspace(n.arg.size * n.dtype.itemsize, n.dtype.name) for n in added])


def _thread_extent(linear: Sequence[UOp]) -> UOp | int:
    for node in linear:
        if node.op is Ops.RANGE and node.arg.kind is AxisType.THREAD:
            bound = node.src[0]
            return int(bound.arg) if bound.op is Ops.CONST else bound
    return 1
