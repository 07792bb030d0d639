"""The finished kernel graph of a kernel.

Loops merged and numbered, buffers as PARAMs, variables as v0, v1, ...

Ensures: equal computations have equal kernel graphs, whichever buffers and variables they use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tg_ir.dtype import dtypes
from tg_ir.graph import CallArg, KernelInfo, Ops, ParamArg, UOp, VarArg, as_index, toposort
from tg_ir.graph.symbolic import simplify

from tg_codegen.schedule.finished_kernel import Kernel
from tg_codegen.schedule.merge_loops import merged_loops
from tg_codegen.schedule.tensor_order import order_by

_CLOSING = frozenset({Ops.END, Ops.REDUCE})
_FOLDING = frozenset({Ops.ADD, Ops.MUL, Ops.FLOORDIV, Ops.FLOORMOD})
_VARIABLES = frozenset({Ops.BIND, Ops.DEFINE_VAR})


def resolve_gathers(effect: UOp, mapping: dict[UOp, UOp]) -> UOp:
    """`effect` with the placeholders of gathers replaced, and masks that became true left out."""
    if not mapping:
        return effect

    def sources(node: UOp) -> tuple[UOp, ...]:
        meant = mapping.get(node)
        return node.src if meant is None else (meant,)

    new: dict[UOp, UOp] = {}
    for node in order_by((effect,), sources):
        meant = mapping.get(node)
        if meant is not None:
            new[node] = new[meant]
            continue
        src = tuple([new[source] for source in node.src])
        if src == node.src:
            new[node] = node
            continue
        if node.op is Ops.INDEX and len(src) == 3:
            mask = simplify(src[2])
            always = mask.op is Ops.CONST and mask.arg
            src = src[:2] if always else (src[0], src[1], mask)
        new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new[effect]


def canonical_call(kernel: Kernel, moved: dict[UOp, UOp]) -> UOp:
    """The CALL of `kernel`.

    `moved`: BUFFER versions that it must read elsewhere, from a snapshot.
    """
    if kernel.call is not None:
        return kernel.call.substitute(moved) if moved else kernel.call
    order = list(toposort(kernel.effects))
    mapping: dict[UOp, UOp] = {}
    for loop, merged in merged_loops(order).items():
        mapping[loop] = as_index(merged) if isinstance(merged, int) else merged
    loops = _number_loops(kernel.effects, order, mapping)
    arguments = _number_params(kernel, order, moved, mapping)
    variables = _number_variables(order, mapping)
    new = _rebuild(order, mapping)
    name = _kernel_name(order, [new[loop] for loop in loops])
    sink = UOp.sink(*[new[effect] for effect in kernel.effects], arg=KernelInfo(name))
    src = (sink, *arguments, *variables)
    return UOp(Ops.CALL, dtypes.void, src, CallArg(name, "kernel"))


def _number_loops(
    effects: Sequence[UOp], order: Sequence[UOp], mapping: dict[UOp, UOp]
) -> list[UOp]:
    """Loops around the stores are numbered first, then reductions in the order they are met.

    Returns the old loops that have a number, in that order.
    """
    loops: dict[UOp, None] = {}
    for effect in effects:
        if effect.op is Ops.END:
            loops.update(dict.fromkeys(effect.src[1:]))
    loops.update(dict.fromkeys(node for node in order if node.op is Ops.RANGE))
    numbered: list[UOp] = []
    for loop in loops:
        merged = mapping.get(loop, loop)
        if merged.op is Ops.RANGE:
            mapping[loop] = UOp.range(merged.src[0], len(numbered), merged.arg.kind)
            numbered.append(loop)
    return numbered


def _number_params(
    kernel: Kernel, order: Sequence[UOp], moved: dict[UOp, UOp], mapping: dict[UOp, UOp]
) -> list[UOp]:
    """PARAMs for all BUFFERs, outputs first.

    The versions of one buffer share one. Returns the arguments.
    """
    written = {buffer.arg.id for buffer in kernel.writes}
    slots: dict[int, int] = {}
    arguments: list[UOp] = []
    used = [node for node in order if node.op is Ops.BUFFER]
    for buffer in (*kernel.writes, *used):
        held = buffer if buffer in kernel.writes else moved.get(buffer, buffer)
        slot = slots.setdefault(held.arg.id, len(slots))
        if slot == len(arguments):
            arguments.append(held)
        is_written = held.arg.id in written
        param = ParamArg(slot, held.arg.size, is_written, image=held.arg.image)
        mapping[buffer] = UOp(Ops.PARAM, buffer.dtype, (), param)
    return arguments


def _number_variables(order: Sequence[UOp], mapping: dict[UOp, UOp]) -> list[UOp]:
    variables: list[UOp] = []
    bound = {node.src[0] for node in order if node.op is Ops.BIND}
    for node in order:
        if node.op in _VARIABLES and node not in bound:
            variable = node.src[0] if node.op is Ops.BIND else node
            arg = VarArg(f"v{len(variables)}", variable.arg.vmin, variable.arg.vmax)
            mapping[node] = UOp(Ops.DEFINE_VAR, dtypes.index, (), arg)
            variables.append(node)
    return variables


def _rebuild(order: Sequence[UOp], mapping: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Each node of the kernel over what `mapping` says."""
    new: dict[UOp, UOp] = {}
    for node in order:
        if node.op is Ops.RANGE:
            found = mapping[node]
            if found.op is Ops.RANGE:
                bound = _substituted(found.src[0], new)
                found = UOp(Ops.RANGE, dtypes.index, (bound,), found.arg)
            new[node] = found
            continue
        if node in mapping:
            new[node] = mapping[node]
            continue
        src = tuple([new[source] for source in node.src])
        if src == node.src:
            new[node] = node
        elif node.op in _CLOSING:
            kept = tuple(s for s, old in zip(src, node.src, strict=True) if _stays(s, old))
            new[node] = UOp(node.op, node.dtype, kept, node.arg)
        elif node.op in _FOLDING and node.dtype is dtypes.index:
            new[node] = _folded(node.op, src[0], src[1])
        else:
            new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new


def _substituted(bound: UOp, new: dict[UOp, UOp]) -> UOp:
    # the extent of a merged loop is a new constant, all others were met before their loop
    return new.get(bound, bound)


def _stays(source: UOp, old: UOp) -> bool:
    return old.op is not Ops.RANGE or source.op is Ops.RANGE


def _folded(op: Ops, left: UOp, right: UOp) -> UOp:
    match op:
        case Ops.ADD:
            return left + right
        case Ops.MUL:
            return left * right
        case Ops.FLOORDIV:
            return left // right
        case _:
            return left % right


def _kernel_name(order: Iterable[UOp], loops: Iterable[UOp]) -> str:
    """A name that says what sort of kernel it is and the extents of its loops, reductions last."""
    found = {node.op for node in order}
    kind = "r" if Ops.REDUCE in found else "s" if Ops.SCAN in found else "e"
    return "_".join((kind, *(_extent_name(loop) for loop in loops)))


def _extent_name(loop: UOp) -> str:
    bound = loop.src[0]
    if bound.op is Ops.CONST:
        return str(bound.arg)
    return str(bound.arg.name) if bound.op is Ops.DEFINE_VAR else "n"
