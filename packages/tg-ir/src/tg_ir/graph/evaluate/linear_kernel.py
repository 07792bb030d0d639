"""Runs a linear kernel: what DEV=PYTHON does, and what every renderer must agree with.

A kernel is translated to Python source once and kept, keyed by its nodes (equal kernels are the
same nodes).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.evaluate.memory import Buffer, Memory, private_memory
from tg_ir.graph.evaluate.node_source import bind_buffers, write_arguments, write_value
from tg_ir.graph.evaluate.python_source import PythonSource
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import UOp, toposort

_KERNELS_KEPT = 512
_GROUP_SPECIALS = ("g2", "g1", "g0")
_ITEM_SPECIALS = ("l2", "l1", "l0")


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A translated kernel.

    run: `(buffers, vals, begin, end, grid, shared)`; a generator function where `is_generator`.
    grid: `(vals)` -> the extent of each SPECIAL.
    shared: sizes of the memories that the items of a group share, empty where there is one item.
    """

    nodes: tuple[UOp, ...]
    source: PythonSource
    run: Callable[..., Any]
    grid: Callable[[Sequence[int]], dict[str, int]] | None
    shared: tuple[int, ...]
    is_generator: bool


def run_linear_kernel(
    kernel: Sequence[UOp],
    buffers: Sequence[Buffer],
    vals: Sequence[int] = (),
    begin: int = 0,
    end: int = 1,
) -> None:
    """Run `kernel` on the bytes of `buffers`, in place.

    Args:
        kernel: nodes that satisfy `spec.linear_kernel`.
        buffers: the bytes of each PARAM by slot; those stored to must be writable.
        vals: the value of each DEFINE_VAR.
        begin: first iteration of the THREAD range.
        end: one past its last iteration. Kernels with SPECIALs run over their whole grid.

    Raises:
        OutOfRangeError: an element outside a buffer is touched; names the node.
        EvaluationError: an argument is missing or too small, or the nodes are no kernel.
    """
    translated = _translate(tuple(kernel))
    memories = bind_buffers(translated.nodes, buffers)
    try:
        if translated.grid is None:
            translated.run(memories, vals, begin, end, {}, ())
        else:
            _run_grid(translated, memories, vals, begin, end)
    except Exception as error:
        raise translated.source.explain(error, "linear kernel") from error


def python_source_of(kernel: Sequence[UOp]) -> str:
    """The Python that `run_linear_kernel` executes; for people and for DEBUG=4."""
    return "\n".join(_translate(tuple(kernel)).source.lines) + "\n"


def clear_kernels() -> None:
    """Forget all translated kernels."""
    _translate.cache_clear()


def _run_grid(
    kernel: _Kernel, memories: list[Memory], vals: Sequence[int], begin: int, end: int
) -> None:
    """Groups one after another; in a group, all items run up to each barrier before any goes on."""
    extents = {} if kernel.grid is None else kernel.grid(vals)
    for group in _positions(extents, _GROUP_SPECIALS):
        shared = tuple(private_memory(size) for size in kernel.shared)
        items = [
            kernel.run(memories, vals, begin, end, {**group, **item}, shared)
            for item in _positions(extents, _ITEM_SPECIALS)
        ]
        if kernel.is_generator:
            _run_items(items)


def _run_items(items: list[Iterator[None]]) -> None:
    waiting = items
    while waiting:
        arrived = [item for item in waiting if next(item, _DONE) is not _DONE]
        if arrived and len(arrived) != len(waiting):
            raise EvaluationError(
                f"{len(arrived)} work-items wait at a barrier that {len(waiting) - len(arrived)} "
                "items of their group never reach"
            )
        waiting = arrived


_DONE: Any = object()


def _positions(extents: dict[str, int], names: Sequence[str]) -> Iterator[dict[str, int]]:
    present = [name for name in names if name in extents]
    for position in itertools.product(*(range(extents[name]) for name in present)):
        yield dict(zip(present, position, strict=True))


@lru_cache(maxsize=_KERNELS_KEPT)
def _translate(nodes: tuple[UOp, ...]) -> _Kernel:
    specials = [node for node in nodes if node.op is Ops.SPECIAL]
    has_items = any(node.arg in _ITEM_SPECIALS for node in specials)
    is_generator = has_items and any(node.op is Ops.BARRIER for node in nodes)
    source = PythonSource(yields=is_generator)
    source.open_function("kernel(buffers, vals, begin, end, grid, shared)")
    write_arguments(source, nodes)
    shared = _write_shared(source, nodes) if has_items else ()
    _LoopWriter(source, nodes).write()
    if is_generator:
        source.line("yield from ()")
    return _Kernel(
        nodes=nodes,
        source=source,
        run=source.compile("kernel"),
        grid=_grid_function(specials) if specials else None,
        shared=shared,
        is_generator=is_generator,
    )


def _write_shared(source: PythonSource, nodes: tuple[UOp, ...]) -> tuple[int, ...]:
    """Local memory is made once a group and handed to each of its items."""
    sizes: list[int] = []
    for node in nodes:
        if node.op is Ops.DEFINE_LOCAL:
            source.define(node, f"shared[{len(sizes)}]")
            sizes.append(node.arg.size)
    return tuple(sizes)


def _grid_function(specials: list[UOp]) -> Callable[[Sequence[int]], dict[str, int]]:
    source = PythonSource()
    source.open_function("grid(vals)")
    bounds = toposort([special.src[0] for special in specials])
    write_arguments(source, bounds)
    for node in bounds:
        if node not in source.names:
            write_value(source, node)
    items = ", ".join(f"{s.arg!r}: {source.name(s.src[0])}" for s in specials)
    source.line(f"return {{{items}}}")
    return source.compile("grid")


class _LoopWriter:
    """Writes the nodes of a kernel in their order, and checks that its loops are nested."""

    def __init__(self, source: PythonSource, nodes: tuple[UOp, ...]) -> None:
        self._source = source
        self._nodes = nodes
        self._open: list[UOp] = []

    def write(self) -> None:
        for node in self._nodes:
            self._write(node)
        if self._open:
            raise EvaluationError(f"a linear kernel never ends {self._open[-1]!r}")

    def _write(self, node: UOp) -> None:
        source = self._source
        source.at(node)
        match node.op:
            case Ops.RANGE:
                self._open_range(node)
            case Ops.END:
                for opened in reversed([s for s in node.src if s.op is Ops.RANGE]):
                    self._close(node, opened)
            case Ops.IF:
                source.open_if(source.name(node.src[0]))
                self._open.append(node)
            case Ops.ENDIF:
                self._close(node, node.src[0])
            case Ops.SPECIAL:
                source.define(node, f"grid[{node.arg!r}]")
            case _ if node not in source.names:
                write_value(source, node)

    def _open_range(self, node: UOp) -> None:
        counter = self._source.new_name("r")
        if node.arg.kind is AxisType.THREAD:
            iterations = "range(begin, end)"
        else:
            iterations = f"range({self._source.name(node.src[0])})"
        self._source.open_loop(counter, iterations)
        self._source.names[node] = counter
        self._open.append(node)

    def _close(self, node: UOp, opened: UOp) -> None:
        if not self._open or self._open[-1] is not opened:
            innermost = repr(self._open[-1]) if self._open else "nothing"
            raise EvaluationError(
                f"a linear kernel ends {opened!r} where {innermost} is open\n{neighbourhood(node)}"
            )
        self._open.pop()
        if opened.op is Ops.RANGE:
            self._source.close_loop()
        else:
            self._source.close_if()
