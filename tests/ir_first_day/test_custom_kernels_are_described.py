"""CUSTOM: a user-written kernel, described, verified, evaluated and differentiated.

No toolchain runs its text yet; the scheduler says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tg_codegen.schedule import create_schedule
from tg_codegen.schedule.errors import ScheduleError
from tg_frontend import Tensor
from tg_frontend.autograd import gradients, register_gradient
from tg_frontend.errors import GradientError
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import EvaluationError, VerificationError
from tg_ir.graph.evaluate import TensorValue, evaluate, register_custom
from tg_ir.graph.ops import CustomArg, Ops
from tg_ir.graph.spec import tensor_graph, verify
from tg_ir.graph.text import dump, parse

from .kernels import floats
from .tensors import holding, inputs_of

F32, I32 = dtypes.float32, dtypes.int32
SOURCE = "void sort(float *values, int *order, const float *x) { /* ... */ }"


def sorted_rows(operands: Sequence[TensorValue]) -> list[TensorValue]:
    """What the kernel computes: each row sorted, and where its elements were."""
    (x,) = operands
    array = np.array(x.items, np.float32).reshape(x.shape)
    order = np.argsort(array, 1, kind="stable")
    values = np.take_along_axis(array, order, 1)
    return [TensorValue(x.shape, a.ravel().tolist()) for a in (values, order)]


register_custom("tests.sorted_rows", sorted_rows)


def unsorted_gradient(
    arguments: Sequence[UOp], by_result: Sequence[UOp | None]
) -> list[UOp | None]:
    """Each element's gradient goes back to where the element was: a second CUSTOM kernel."""
    by_values, _ = by_result
    assert by_values is not None
    x = arguments[0]
    arg = CustomArg("unsort", "C", "...", ((x.shape, F32),), "tests.unsorted", "")
    return [UOp(Ops.CUSTOM, dtypes.void, (x, by_values), arg).get_tuple(0, F32)]


def unsorted(operands: Sequence[TensorValue]) -> list[TensorValue]:
    x, gradient = (np.array(o.items, np.float32).reshape(o.shape) for o in operands)
    result = np.zeros_like(x)
    np.put_along_axis(result, np.argsort(x, 1, kind="stable"), gradient, 1)
    return [TensorValue(result.shape, result.ravel().tolist())]


register_custom("tests.unsorted", unsorted)
register_gradient("tests.unsorted_gradient", unsorted_gradient)


def sort_call(x: UOp, **changes: Any) -> UOp:
    parts: dict[str, Any] = {
        "name": "sort",
        "renderer": "C",
        "source": SOURCE,
        "results": ((x.shape, F32), (x.shape, I32)),
        "evaluate": "tests.sorted_rows",
        "gradient": "tests.unsorted_gradient",
    }
    return UOp(Ops.CUSTOM, dtypes.void, (x,), CustomArg(**(parts | changes)))


def test_its_registered_function_says_what_it_computes() -> None:
    x = floats(3, 7)
    call = sort_call(holding(x))
    values, order = call.get_tuple(0, F32), call.get_tuple(1, I32)
    sink = UOp.sink(values + values, order)
    verify(sink, tensor_graph)
    doubled, places = evaluate(sink, inputs_of(sink))
    np.testing.assert_array_equal(np.reshape(doubled.items, (3, 7)), 2 * np.sort(x, 1))
    np.testing.assert_array_equal(np.reshape(places.items, (3, 7)), np.argsort(x, 1))
    assert values.shape == (3, 7) and order.dtype is I32


def test_its_registered_gradient_is_used() -> None:
    x, weights = floats(3, 7), floats(3, 7, seed=1)
    source = holding(x)
    value = sort_call(source).get_tuple(0, F32) * holding(weights)
    total = value.reduce_axis(Ops.ADD, (0, 1))
    (found,) = gradients(total, total.const_like(1), [source])
    assert found is not None
    verify(UOp.sink(found), tensor_graph)
    (result,) = evaluate([found], inputs_of(found))
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.argsort(x, 1), weights, 1)
    np.testing.assert_allclose(np.reshape(result.items, (3, 7)), expected, rtol=1e-6)


def test_a_kernel_without_a_gradient_says_so() -> None:
    source = holding(floats(3, 7))
    total = sort_call(source, gradient="").get_tuple(0, F32).reduce_axis(Ops.ADD, (0, 1))
    with pytest.raises(GradientError, match="'sort' has no gradient"):
        gradients(total, total.const_like(1), [source])


def test_the_scheduler_says_that_nothing_runs_it_yet() -> None:
    value = sort_call(holding(floats(3, 7))).get_tuple(0, F32)
    with pytest.raises(ScheduleError, match="CUSTOM kernel 'sort'.*evaluate"):
        create_schedule(UOp.sink(value))
    tensor = Tensor(floats(2, 2))
    with pytest.raises(ScheduleError, match="CUSTOM kernel 'sort'"):
        Tensor(sort_call(tensor.uop).get_tuple(0, F32)).realize()


def test_results_are_checked_against_what_was_said() -> None:
    x = holding(floats(3, 7))
    call = sort_call(x, results=(((2, 7), F32), ((3, 7), I32)))
    with pytest.raises(EvaluationError, match=r"CUSTOM 'sort' gave shapes .* expected \[\(2, 7\)"):
        evaluate([call.get_tuple(0, F32)], inputs_of(x))


def test_a_function_that_nobody_registered_is_named() -> None:
    x = holding(floats(3, 7))
    call = sort_call(x, evaluate="tests.sorted_row")
    message = "no function evaluates 'tests.sorted_row'.*tests.sorted_rows"
    with pytest.raises(EvaluationError, match=message):
        evaluate([call.get_tuple(0, F32)], inputs_of(x))


def test_one_name_is_for_one_function() -> None:
    register_custom("tests.sorted_rows", sorted_rows)
    with pytest.raises(EvaluationError, match="two functions evaluate 'tests.sorted_rows'"):
        register_custom("tests.sorted_rows", unsorted)
    register_gradient("tests.unsorted_gradient", unsorted_gradient)
    with pytest.raises(GradientError, match="two functions are the gradient"):
        register_gradient("tests.unsorted_gradient", lambda arguments, by_result: [])


@pytest.mark.parametrize("position", [0, 2])
def test_a_result_has_the_dtype_that_was_said(position: int) -> None:
    value = sort_call(holding(floats(3, 7))).get_tuple(position, I32)
    with pytest.raises(VerificationError, match="GETTUPLE: (result 0 is|takes result 2 of 2)"):
        verify(UOp.sink(value), tensor_graph)


def test_a_kernel_has_results() -> None:
    call = sort_call(holding(floats(3, 7)), results=())
    with pytest.raises(VerificationError, match="CUSTOM: has at least one result"):
        verify(UOp.sink(call), tensor_graph)


def test_the_text_of_a_graph_keeps_the_kernel() -> None:
    graph = UOp.sink(sort_call(holding(floats(3, 7))).get_tuple(1, I32))
    assert parse(dump(graph))[-1] is graph
