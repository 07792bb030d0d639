"""Runs a kernel graph, before or after any of its passes.

Each node is computed in the innermost of the loops that its value depends on (`UOp.ranges`), once
for each of their iterations. Loops of every axis kind run one iteration after another; what must
not depend on that order is for the verifier to reject.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.evaluate.expressions import literal
from tg_ir.graph.evaluate.memory import Buffer
from tg_ir.graph.evaluate.node_source import bind_buffers, write_arguments, write_value
from tg_ir.graph.evaluate.python_source import PythonSource
from tg_ir.graph.ops import AxisType, Ops, StageArg
from tg_ir.graph.uop import UOp, toposort
from tg_ir.graph.work_items import split_at_barriers

_KERNELS_KEPT = 256
_CLOSING = frozenset({Ops.REDUCE, Ops.STAGE, Ops.END})
_EFFECTS = frozenset({Ops.AFTER, Ops.STORE, Ops.END})


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A translated kernel graph: `run(buffers, vals)`."""

    nodes: tuple[UOp, ...]
    source: PythonSource
    run: Callable[..., Any]


def run_kernel_graph(sink: UOp, buffers: Sequence[Buffer], vals: Sequence[int] = ()) -> None:
    """Run the kernel `sink` on the bytes of `buffers`, in place.

    Args:
        sink: a graph that satisfies `spec.kernel_graph`, lowered or not.
        buffers: the bytes of each PARAM by slot; those stored to must be writable.
        vals: the value of each DEFINE_VAR.

    Raises:
        OutOfRangeError: an element outside a buffer is touched; names the node.
        EvaluationError: an argument is missing or too small, or the graph is no kernel.
    """
    kernel = _translate(sink)
    memories = bind_buffers(kernel.nodes, buffers)
    try:
        kernel.run(memories, vals)
    except Exception as error:
        raise kernel.source.explain(error, "kernel graph") from error


def kernel_graph_source(sink: UOp) -> str:
    """The Python that `run_kernel_graph` executes; for people."""
    return "\n".join(_translate(sink).source.lines) + "\n"


def clear_kernel_graphs() -> None:
    """Forget all translated kernel graphs."""
    _translate.cache_clear()


@lru_cache(maxsize=_KERNELS_KEPT)
def _translate(sink: UOp) -> _Kernel:
    source = PythonSource()
    _refuse_barriers_of_a_grid(tuple(toposort((sink,))))
    sink = split_at_barriers(sink)
    nodes = tuple(toposort((sink,)))
    source.open_function("kernel(buffers, vals)")
    write_arguments(source, nodes)
    for node in nodes:
        # once for the whole kernel, wherever it is first used
        if node.op in (Ops.DEFINE_LOCAL, Ops.DEFINE_REG):
            write_value(source, node)
    writer = _GraphWriter(source)
    for node in nodes:
        # outside of all loops: one effect may fill several of them, in loops that end before a read
        if node.op in (Ops.DEFINE_LOCAL, Ops.DEFINE_REG):
            writer.write(node)
    specials = [node for node in nodes if node.op is Ops.SPECIAL]
    for special in sorted(specials, key=lambda node: str(node.arg)):
        writer.write(special.src[0])
        writer.open_loop(special)
    writer.write(sink)
    for _ in specials:
        writer.close_loop()
    return _Kernel(nodes, source, source.compile("kernel"))


def _refuse_barriers_of_a_grid(nodes: Sequence[UOp]) -> None:
    has_items = any(n.op is Ops.SPECIAL and str(n.arg).startswith("l") for n in nodes)
    if has_items and any(node.op is Ops.BARRIER for node in nodes):
        raise EvaluationError(
            "work-items that meet at a BARRIER have no order in a kernel graph: "
            "linearise it and use run_linear_kernel"
        )


class _GraphWriter:
    """Decides in which loop each node of a kernel graph is computed, and writes it there.

    It recurses once for each level of loops, which Python's own limit on indentation bounds.
    """

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        self._open: list[UOp] = []
        # for each open loop, the nodes written inside it: their names end with it
        self._written: list[list[UOp]] = [[]]
        self._done: set[UOp] = set()
        self._scan_states: dict[UOp, str] = {}
        # values that every iteration computes anew, though their loops do not say so
        self._renewed: frozenset[UOp] = frozenset()

    # ---- values

    def write(self, root: UOp) -> None:
        """Write `root` and whatever it needs at the current place."""
        for node in toposort((root,), self._is_to_enter):
            if not self._is_written(node):
                self._write_node(node)
                self._mark(node)

    def _is_to_enter(self, node: UOp) -> bool:
        return not self._is_written(node) and node.op not in _CLOSING and node.op is not Ops.RANGE

    def _is_written(self, node: UOp) -> bool:
        return node in self._done or node in self._source.names

    def _mark(self, node: UOp) -> None:
        self._done.add(node)
        self._written[-1].append(node)

    def _write_node(self, node: UOp) -> None:
        source = self._source
        source.at(node)
        match node.op:
            case Ops.RANGE:
                raise EvaluationError(
                    f"the loop {node!r} is used outside of the END, REDUCE or STAGE that closes it"
                )
            case Ops.REDUCE:
                self._reduce(node)
            case Ops.SCAN:
                self._scan(node)
            case Ops.STAGE:
                self._stage(node)
            case Ops.END:
                self._end(node)
            case Ops.TUPLE:
                # several effects under one END: each is written by now
                pass
            case Ops.GETTUPLE:
                source.define(node, f"{source.name(node.src[0])}[{node.arg}]")
            case _:
                write_value(source, node)

    # ---- loops

    def open_loop(self, loop: UOp) -> None:
        """Open the loop of a RANGE or SPECIAL whose bound is written."""
        bound = self._source.name(loop.src[0])
        counter = self._source.new_name("r")
        self._source.open_loop(counter, f"range({bound})")
        self._open.append(loop)
        self._written.append([loop])
        self._source.names[loop] = counter

    def close_loop(self) -> None:
        """Close the innermost loop and forget what was computed in it."""
        self._source.close_loop()
        self._open.pop()
        for node in self._written.pop():
            self._done.discard(node)
            self._source.names.pop(node, None)

    def _nest(
        self, values: Sequence[UOp], loops: Sequence[UOp], body: Callable[[], None]
    ) -> None:
        """Write `body` inside `loops`, and further out what depends on outer ones only."""
        for loop in loops:
            if loop.op is not Ops.RANGE or loop in self._open:
                raise EvaluationError(f"expected loops that are not open, got {loop!r}")
            self.write(loop.src[0])
            scans = self._hoist(values, loop)
            for scan in scans:
                self._source.at(scan)
                state = self._source.new_name("scan")
                self._source.line(f"{state} = {{}}")
                self._scan_states[scan] = state
            self.open_loop(loop)
        self._hoist(values, None)
        body()
        for _ in loops:
            self.close_loop()

    def _hoist(self, values: Sequence[UOp], next_loop: UOp | None) -> list[UOp]:
        """Write what depends on open loops only; returns the SCANs along `next_loop`."""
        opened = frozenset(self._open)
        # where the loop may not run at all, a LOAD in it may have nothing to read
        may_be_empty = next_loop is not None and next_loop.src[0].vmin < 1
        ready: list[UOp] = []
        scans: list[UOp] = []

        def enter(node: UOp) -> bool:
            if self._is_written(node):
                return False
            if node.ranges <= opened and self._is_movable(node, may_be_empty):
                ready.append(node)
                return False
            if node.op is Ops.SCAN and node.src[-1] is next_loop:
                scans.append(node)
            return True

        toposort(values, enter)
        for node in ready:
            self.write(node)
        return list(dict.fromkeys(scans))

    def _is_movable(self, node: UOp, may_be_empty: bool) -> bool:
        """Whether `node` may be written outside of the loop that is about to open."""
        if node in self._renewed:
            return False
        return node.op in _EFFECTS if may_be_empty else not _is_bare(node)

    def _end(self, node: UOp) -> None:
        effect, loops = node.src[0], node.src[1:]
        outer = self._renewed
        self._renewed = outer | _values_that_change(effect, loops)
        self._nest((effect,), loops, lambda: self.write(effect))
        self._renewed = outer

    # ---- reductions

    def _initial(self, node: UOp, states: Sequence[UOp]) -> list[str]:
        initial = []
        for state, start in zip(states, node.arg.combine.init, strict=True):
            text = literal(start)
            count = state.dtype.count
            initial.append(text if count == 1 else f"({text},) * {count}")
        return initial

    def _joined(self, node: UOp, states: Sequence[UOp], old: list[str]) -> list[str]:
        new = [self._source.name(state) for state in states]
        dtypes = [state.dtype for state in states]
        return self._source.combine(node.arg.combine, dtypes, old, new)

    def _reduce(self, node: UOp) -> None:
        source = self._source
        count = len(node.arg.combine.init)
        states, loops = node.src[:count], node.src[count:]
        # lists, because an assignment in a loop that is outlined would not reach out of it
        accumulator = source.new_name("acc")
        source.line(f"{accumulator} = [{', '.join(self._initial(node, states))}]")

        def update() -> None:
            for state in states:
                self.write(state)
            source.at(node)
            old = []
            for position in range(count):
                name = source.new_name()
                source.line(f"{name} = {accumulator}[{position}]")
                old.append(name)
            joined = self._joined(node, states, old)
            source.line(f"{accumulator}[:] = ({', '.join(joined)},)")

        self._nest(states, loops, update)
        source.at(node)
        source.define(node, f"{accumulator}[0]" if count == 1 else f"tuple({accumulator})")

    def _scan(self, node: UOp) -> None:
        """The state is kept for each value of the loops inside the scanned one that matter.

        A loop inside that does not matter comes by several times; each step is taken once.
        """
        source = self._source
        states, loop = node.src[:-1], node.src[-1]
        if loop not in self._open or node not in self._scan_states:
            raise EvaluationError(f"SCAN along a loop that is not open: {loop!r}")
        inner = self._open[self._open.index(loop) + 1 :]
        key = "".join(f"{source.name(r)}, " for r in inner if r in node.ranges)
        table = self._scan_states[node]
        step, old = source.name(loop), source.new_name()
        start = ", ".join(self._initial(node, states))
        source.line(f"{old} = {table}.get(({key}), (-1, ({start},)))")
        result = source.new_name()
        source.line(f"{result} = {old}[1]")
        source.open_if(f"{old}[0] != {step}")
        names = []
        for position in range(len(states)):
            names.append(source.new_name())
            source.line(f"{names[-1]} = {old}[1][{position}]")
        joined = ", ".join(self._joined(node, states, names))
        source.line(f"{result} = ({joined},)")
        source.line(f"{table}[({key})] = ({step}, {result})")
        source.close_if()
        source.names[node] = result
        if len(states) == 1:
            source.define(node, f"{result}[0]")

    # ---- staged tiles

    def _stage(self, node: UOp) -> None:
        source = self._source
        value, loops = node.src[0], node.src[1:]
        size, strides = stage_layout(node.arg)
        tile = source.new_name("tile")
        source.line(f"{tile} = [None] * {size}")

        def put() -> None:
            self.write(value)
            source.at(node)
            terms = [
                f"{source.name(r)} * {stride}" for r, stride in zip(loops, strides, strict=True)
            ]
            source.line(f"{tile}[{' + '.join(terms) or 0}] = {source.name(value)}")

        self._nest((value,), loops, put)
        source.names[node] = tile


def _values_that_change(effect: UOp, loops: Sequence[UOp]) -> frozenset[UOp]:
    """What depends on a LOAD of memory that loops in order store to: it reads what they wrote."""
    if all(loop.arg.kind is not AxisType.LOOP for loop in loops):
        return frozenset()
    stores = effect.src if effect.op is Ops.TUPLE else (effect,)
    written = {store.src[0].src[0] for store in stores if store.op is Ops.STORE}
    found: set[UOp] = set()
    for node in toposort((effect,)):
        reads = node.op is Ops.LOAD and node.src[0].src[0] in written
        if reads or not found.isdisjoint(node.src):
            found.add(node)
    return frozenset(found)


def _is_bare(node: UOp) -> bool:
    """Nodes that only name memory: writing them where they are used costs nothing."""
    return node.op in {Ops.INDEX, Ops.RANGE}


def stage_layout(arg: StageArg) -> tuple[int, tuple[int, ...]]:
    """The number of elements of a STAGE, and the distance between neighbours along each axis."""
    strides = [0] * len(arg.shape)
    distance = 1
    for position, axis in enumerate(reversed(arg.order)):
        strides[axis] = distance
        distance *= arg.shape[axis] + (arg.pad if position == 0 else 0)
    return distance, tuple(strides)

