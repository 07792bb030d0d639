"""Pipelines run passes in order, take those of others, verify them and name what failed."""

import pytest
from tg_ir.config import Context
from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError
from tg_ir.graph.errors import PassError, PipelineError
from tg_ir.graph.passes import Pass, Pipeline
from tg_ir.graph.uop import UOp


def number(value):
    return UOp.const(dtypes.int32, value)


def adding(name, amount, **fields):
    return Pass(name, lambda graph, context: number(graph.arg + amount * context), **fields)


def noted(name, notes):
    def run(graph, context):
        notes.append(name)
        return graph

    return Pass(name, run)


def test_passes_run_in_order_with_the_context():
    doubled = Pass("double", lambda graph, context: number(graph.arg * 2))
    assert Pipeline((adding("add", 1), doubled)).run(number(1), 10).arg == 22


@pytest.mark.parametrize(
    ("place", "expected"),
    [({"before": "b"}, ["a", "new", "b"]), ({"after": "b"}, ["a", "b", "new"])],
)
def test_insert_puts_a_pass_next_to_the_named_one(place, expected):
    notes = []
    pipeline = Pipeline((noted("a", notes), noted("b", notes)))
    pipeline.insert(noted("new", notes), **place).run(number(0), None)
    assert notes == expected
    assert pipeline.names == ("a", "b")


def test_without_leaves_a_pass_out():
    pipeline = Pipeline((noted("a", []), noted("b", [])))
    assert pipeline.without("a").names == ("b",)


def test_insert_next_to_an_unknown_pass_suggests_a_name():
    with pytest.raises(PipelineError, match="is called 'vectorise'; did you mean 'vectorize'"):
        Pipeline((noted("vectorize", []),)).insert(noted("new", []), before="vectorise")


@pytest.mark.parametrize("place", [{}, {"before": "a", "after": "a"}])
def test_insert_wants_exactly_one_place(place):
    with pytest.raises(PipelineError, match="either before= or after="):
        Pipeline((noted("a", []),)).insert(noted("new", []), **place)


def test_two_passes_of_one_name_are_refused():
    with pytest.raises(PipelineError, match="two passes are called 'a', number 0 and number 1"):
        Pipeline((noted("a", []), noted("a", [])))


def test_failure_inside_a_pass_names_the_pass():
    def fail(graph, context):
        raise ValueError("no such loop")

    with pytest.raises(PassError, match="pass 'split' failed: no such loop") as caught:
        Pipeline((Pass("split", fail),)).run(number(0), None)
    assert isinstance(caught.value.__cause__, ValueError)


def test_error_raised_on_purpose_keeps_its_type_and_names_the_pass():
    def refuse(graph, context):
        raise DTypeError("not this one")

    with pytest.raises(DTypeError) as caught:
        Pipeline((Pass("widen", refuse),)).run(number(0), None)
    assert caught.value.__notes__ == ["in pass 'widen'"]


def test_pass_that_gives_no_graph_is_named():
    with pytest.raises(PassError, match="pass 'forget' gave NoneType"):
        Pipeline((Pass("forget", lambda graph, context: None),)).run(number(0), None)


def refuse_two(graph):
    if graph.arg == 2:
        raise ValueError("two is refused")


@pytest.mark.parametrize(("level", "fails"), [(0, False), (1, False), (2, True)])
def test_every_pass_is_verified_at_spec_2(level, fails):
    pipeline = Pipeline((adding("to_two", 1), adding("to_three", 1)), refuse_two)
    with Context(SPEC=level):
        if fails:
            with pytest.raises(PassError, match="'to_two' made breaks a rule.*two is refused"):
                pipeline.run(number(1), 1)
        else:
            assert pipeline.run(number(1), 1).arg == 3


def test_borders_are_verified_at_spec_1():
    with Context(SPEC=1):
        with pytest.raises(PassError, match="to_two"):
            Pipeline((adding("to_two", 1),), refuse_two).run(number(1), 1)
        with pytest.raises(ValueError, match="two is refused"):
            Pipeline((adding("add", 1),), refuse_two).run(number(2), 1)


def test_check_of_a_pass_tells_what_it_ensures():
    step = adding("add", 1, ensures="no two", check=refuse_two)
    with Context(SPEC=2), pytest.raises(PassError, match="it ensures: no two"):
        Pipeline((step,)).run(number(1), 1)


def test_observer_sees_each_pass_with_the_graph_it_made():
    seen = []
    pipeline = Pipeline((adding("one", 1), adding("two", 2)))
    pipeline.run(number(0), 1, lambda step, graph: seen.append((step.name, graph.arg)))
    assert seen == [("one", 1), ("two", 3)]
