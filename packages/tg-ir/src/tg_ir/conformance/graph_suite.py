"""`GraphSuite`: what every pass over graphs promises. Subclass it and say what to run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from tg_ir.conformance.graph_cases import KERNEL_CASES, TENSOR_CASES, GraphCase
from tg_ir.conformance.suite import ConformanceSuite, check
from tg_ir.dtype import dtypes, from_bytes
from tg_ir.graph import AxisType, KernelInfo, Ops, ParamArg, UOp
from tg_ir.graph.evaluate import evaluate, run_kernel_graph
from tg_ir.graph.spec import Spec, is_valid, kernel_graph, tensor_graph, verify
from tg_ir.graph.text import dump, parse

__all__ = ["GraphSuite"]

_DEPTH = 3000  # far beyond Python's recursion limit
Values = list[list[bool | int | float]]


class GraphSuite(ConformanceSuite):
    """Tests of a pass, or of a pipeline of them, from one stage to the same stage.

    Attributes:
        stage: the spec that graphs satisfy before and after; `kernel_graph` or `tensor_graph`.
        relative_error: how far float results may be off, for passes that reorder sums.
    """

    stage: ClassVar[Spec] = kernel_graph
    relative_error: ClassVar[float] = 0.0

    def rewrite(self, graph: UOp) -> UOp:
        """Run the pass on a SINK."""
        raise NotImplementedError("a subclass of GraphSuite says which pass to run")

    def cases(self) -> Iterator[GraphCase]:
        """The graphs of the stage."""
        for make in TENSOR_CASES if self.stage is tensor_graph else KERNEL_CASES:
            yield make()

    def values_of(self, case: GraphCase, graph: UOp) -> Values:
        """What `graph` computes from the inputs of `case`."""
        if self.stage is tensor_graph:
            inputs = dict(zip(case.leaves, case.buffers, strict=True))
            return [value.items for value in evaluate(graph, inputs)]
        memory = [bytearray(data) for data in case.buffers]
        run_kernel_graph(graph, memory, case.vals)
        kinds = {p.arg.slot: p.dtype for p in graph.toposort() if p.op is Ops.PARAM}
        return [
            from_bytes(data, kinds.get(slot, dtypes.uint8)) for slot, data in enumerate(memory)
        ]

    def test_result_satisfies_the_spec_of_the_stage(self) -> None:
        """What comes out may be handed to the next pass."""
        for case in self.cases():
            verify(case.graph, self.stage)
            verify(self.rewrite(case.graph), self.stage)

    def test_values_are_kept(self) -> None:
        """The evaluator computes the same before and after."""
        for case in self.cases():
            expected = self.values_of(case, case.graph)
            found = self.values_of(case, self.rewrite(case.graph))
            check(
                self._close(found, expected),
                f"'{case.name}' computes {expected} before and after, now it is {found}",
            )

    def _close(self, found: Values, expected: Values) -> bool:
        if [len(values) for values in found] != [len(values) for values in expected]:
            return False
        return all(
            _same(a, b, self.relative_error)
            for some, others in zip(found, expected, strict=True)
            for a, b in zip(some, others, strict=True)
        )

    def test_result_depends_on_the_graph_alone(self) -> None:
        """Two runs give one and the same graph."""
        for case in self.cases():
            check(
                self.rewrite(case.graph) is self.rewrite(case.graph),
                f"'{case.name}' gives the same graph each time",
            )

    def test_result_has_a_text(self) -> None:
        """Graphs are recorded and replayed as text."""
        for case in self.cases():
            result = self.rewrite(case.graph)
            check(parse(dump(result)) == [result], f"'{case.name}' comes back from its text")

    def test_deep_graphs_are_taken(self) -> None:
        """No recursion over a graph."""
        result = self.rewrite(_deep_tensor() if self.stage is tensor_graph else _deep_kernel())
        check(is_valid(result, self.stage), "a graph of any depth is taken")


def _same(found: bool | int | float, expected: bool | int | float, relative: float) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        both_nan = found != found and expected != expected
        return both_nan or math.isclose(found, expected, rel_tol=relative)
    return found == expected


def _chain(value: UOp, other: UOp) -> UOp:
    for _ in range(_DEPTH):
        value = value.alu(Ops.MAX, other).alu(Ops.ADD, other)
    return value


def _deep_kernel() -> UOp:
    i = UOp.range(2, 0, AxisType.GLOBAL)
    places = [
        UOp(Ops.PARAM, dtypes.float32, (), ParamArg(slot, 2, slot == 0)).index(i)
        for slot in range(3)
    ]
    store = places[0].store(_chain(places[1].load(), places[2].load()))
    return UOp.sink(store.end(i), arg=KernelInfo("deep"))


def _deep_tensor() -> UOp:
    x, y = (UOp.new_buffer("CPU", 2, dtypes.float32) for _ in range(2))
    return UOp.sink(_chain(x, y))
