"""`GraphSuite` passes for passes that keep their promises, and fails for each promise broken."""

import itertools

import pytest
from tg_ir.conformance import ConformanceFailure, GraphSuite
from tg_ir.errors import TgError
from tg_ir.graph import Ops, UOp, toposort
from tg_ir.graph.spec import tensor_graph
from tg_ir.graph.uop import substitute


class TestNothingChanged(GraphSuite):
    def rewrite(self, graph):
        return graph


class TestNothingChangedInTensorGraphs(GraphSuite):
    stage = tensor_graph

    def rewrite(self, graph):
        return graph


class TestSumsOfTwo(GraphSuite):
    """x + x becomes x * 2."""

    def rewrite(self, graph):
        doubled = {
            node: node.src[0] * 2.0
            for node in toposort((graph,))
            if node.op is Ops.ADD and node.src[0] is node.src[1]
        }
        return substitute((graph,), doubled)[0]


_numbers = itertools.count(1000)


def renumbered(graph):
    """Not a function of the graph: every run names the loops differently."""
    loops = [node for node in toposort((graph,)) if node.op is Ops.RANGE]
    fresh = {loop: UOp.range(loop.src[0], next(_numbers), loop.arg.kind) for loop in loops}
    return substitute((graph,), fresh)[0]


def without_masks(graph):
    """Changes values: an INDEX loses its mask and is wrapped into range."""
    masked = {
        node: UOp(Ops.INDEX, node.dtype, (node.src[0], node.src[1] % 4))
        for node in toposort((graph,))
        if node.op is Ops.INDEX and len(node.src) == 3
    }
    return substitute((graph,), masked)[0]


def opened(graph):
    """Breaks the spec: loops are left open."""
    return UOp.sink(*[effect.src[0] for effect in graph.src], arg=graph.arg)


def recursive(graph):
    def copy(node):
        return UOp(node.op, node.dtype, tuple(copy(s) for s in node.src), node.arg)

    return copy(graph)


def with_an_argument_without_text(graph):
    return graph.replace(arg=frozenset())


@pytest.mark.parametrize(
    ("rewrite", "test", "error"),
    [
        (renumbered, "test_result_depends_on_the_graph_alone", ConformanceFailure),
        (without_masks, "test_values_are_kept", ConformanceFailure),
        (opened, "test_result_satisfies_the_spec_of_the_stage", TgError),
        (recursive, "test_deep_graphs_are_taken", RecursionError),
        (with_an_argument_without_text, "test_result_has_a_text", TypeError),
    ],
)
def test_broken_promise_fails(rewrite, test, error):
    suite = type("Broken", (GraphSuite,), {"rewrite": lambda self, graph: rewrite(graph)})()
    with pytest.raises(error):
        getattr(suite, test)()


def test_suite_without_a_pass_says_so():
    with pytest.raises(NotImplementedError, match="says which pass to run"):
        GraphSuite().test_values_are_kept()
