"""FUNCTION: a differentiable call with several results, inlined where it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tg_frontend as tg
from tg_frontend import Tensor, TinyJit
from tg_frontend.errors import ArgumentError, GradientError, WriteError
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import FunctionArg, Ops, ParamArg
from tg_ir.graph.spec import tensor_graph, verify

from .kernels import floats
from .tensors import check_tensors, holding

F32 = dtypes.float32


def parameter(slot: int, *shape: int) -> UOp:
    return UOp(Ops.PARAM, F32, (), ParamArg(slot, shape=shape, device="CPU"))


def called(results: Sequence[UOp], *args: UOp, name: str = "f") -> list[UOp]:
    body = UOp(Ops.TUPLE, dtypes.void, tuple(results))
    call = UOp(Ops.FUNCTION, dtypes.void, (body, *args), FunctionArg(name))
    return [call.get_tuple(k, result.dtype) for k, result in enumerate(results)]


# ---- as a graph


def test_the_results_of_a_call_are_computed_in_the_kernels_around_it() -> None:
    a, b = parameter(0, 6), parameter(1, 6)
    x, y = floats(6), floats(6, seed=1)
    total, product = called([a + b, a * b], holding(x), holding(y))
    check_tensors([total * product + total], [(x + y) * (x * y) + (x + y)], kernels=1)


def test_one_body_is_called_with_several_arguments() -> None:
    a = parameter(0, 6)
    x, y = floats(6), floats(6, seed=1)
    (square_x,) = called([a * a], holding(x))
    (square_y,) = called([a * a], holding(y))
    (twice,) = called([a * a], square_x)
    check_tensors([square_x + square_y, twice], [x * x + y * y, x**4])


def test_a_call_inside_of_a_body_has_parameters_of_its_own() -> None:
    """PARAM 0 of the inner body is not PARAM 0 of the outer one."""
    a, b = parameter(0, 6), parameter(1, 6)
    (inner,) = called([a - b], b, a, name="difference")
    (outer,) = called([inner * a], holding(floats(6)), holding(floats(6, seed=1)), name="outer")
    x, y = floats(6), floats(6, seed=1)
    check_tensors([outer], [(y - x) * x])


def test_a_call_whose_arguments_do_not_fit_is_refused() -> None:
    other, second = parameter(0, 5), parameter(1, 6)
    (value,) = called([other + other], holding(floats(6)))
    with pytest.raises(VerificationError, match=r"argument 0 .* the body wants dtypes.float32 of"):
        verify(UOp.sink(value), tensor_graph)
    (value,) = called([second + second], holding(floats(6)))
    with pytest.raises(VerificationError, match="its body reads argument 1 of 1"):
        verify(UOp.sink(value), tensor_graph)


def test_a_result_that_a_call_has_not_is_refused() -> None:
    a = parameter(0, 6)
    (value,) = called([a * a], holding(floats(6)))
    wrong = value.src[0].get_tuple(1, F32)
    with pytest.raises(VerificationError, match="GETTUPLE: takes result 1 of 1"):
        verify(UOp.sink(wrong), tensor_graph)


# ---- as the frontend makes it


@tg.function
def moments(x: Tensor, bias: float = 0.0) -> tuple[Tensor, Tensor]:
    mean = x.mean()
    return mean + bias, ((x - mean) * (x - mean)).mean()


def calls_below(tensor: Tensor) -> int:
    return sum(node.op is Ops.FUNCTION for node in tensor.uop.toposort())


def test_a_function_of_tensors_is_one_call() -> None:
    x = floats(4, 5)
    mean, variance = moments(Tensor(x), bias=2.0)
    assert calls_below(mean + variance) == 1
    np.testing.assert_allclose(mean.item(), x.mean() + 2, rtol=1e-5)
    np.testing.assert_allclose(variance.item(), x.var(), rtol=1e-5)


def test_gradients_go_through_the_body() -> None:
    x = floats(4, 5)
    tensor = Tensor(x)
    mean, variance = moments(tensor * 2)
    (gradient,) = (mean * 3 + variance).gradient(tensor)
    expected = 2 * (3 / 20 + 2 * (2 * x - 2 * x.mean()) / 20)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_gradients_by_the_result_of_a_call() -> None:
    mean, variance = moments(Tensor(floats(6)))
    by_mean, by_variance = (mean * variance).gradient(mean, variance)
    np.testing.assert_allclose(by_mean.item(), variance.item(), rtol=1e-5)
    np.testing.assert_allclose(by_variance.item(), mean.item(), rtol=1e-5)


def test_a_body_may_read_other_tensors_and_their_gradients_are_right() -> None:
    weight = Tensor(floats(6), requires_grad=True)

    @tg.function
    def scaled(x: Tensor) -> Tensor:
        return x * weight

    x = floats(6, seed=1)
    scaled(Tensor(x)).sum().backward()
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad.numpy(), x, rtol=1e-6)


def test_realising_between_changes_nothing() -> None:
    x = Tensor(floats(6), requires_grad=True)
    (middle, spread) = moments(x * x)
    middle.realize()
    (middle * spread).backward()
    assert x.grad is not None
    y = Tensor(floats(6), requires_grad=True)
    (other, other_spread) = moments(y * y)
    (other * other_spread).backward()
    assert y.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5)


def test_a_function_may_call_another_and_work_under_the_jit() -> None:
    @tg.function
    def normalised(x: Tensor) -> Tensor:
        mean, variance = moments(x)
        return (x - mean) / (variance + 1e-5).sqrt()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        return normalised(x).realize()

    for seed in range(4):
        x = floats(12, seed=seed)
        expected = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        found = step(Tensor(x).realize()).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_methods_can_be_functions() -> None:
    class Layer:
        def __init__(self) -> None:
            self.scale = 3.0

        @tg.function
        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    assert Layer().forward(Tensor([1.0, 2.0])).tolist() == [3.0, 6.0]


# ---- with a gradient of its own


def straight_through(
    arguments: Sequence[Tensor], by_result: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """As if rounding were the identity; the scale gets none."""
    (by_value,) = by_result
    return [by_value, None]


@tg.function(gradient=straight_through)
def quantised(x: Tensor, scale: Tensor) -> Tensor:
    return (x * scale).round() / scale


def test_a_gradient_that_is_given_is_used() -> None:
    x, scale = Tensor([0.3, 1.6, -2.2]), Tensor([2.0])
    value = quantised(x, scale)
    assert value.tolist() == [0.5, 1.5, -2.0]
    (gradient,) = (value * Tensor([1.0, 2.0, 3.0])).sum().gradient(x)
    assert gradient.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(GradientError, match="target 0 .* is not reached"):
        quantised(x, scale).sum().gradient(scale)


def test_a_given_gradient_sees_all_results_and_inner_calls() -> None:
    def of_sum_and_product(
        arguments: Sequence[Tensor], by_result: Sequence[Tensor | None]
    ) -> list[Tensor | None]:
        x, y = arguments
        by_sum, by_product = by_result
        assert by_sum is not None and by_product is None
        return [by_sum * 10, by_sum * y]

    @tg.function(gradient=of_sum_and_product)
    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x + y, x * y

    @tg.function
    def outer(y: Tensor, x: Tensor) -> Tensor:
        return both(x, y)[0] * 2

    x, y = Tensor([1.0, 2.0]), Tensor([5.0, 7.0])
    by_x, by_y = outer(y, x).sum().gradient(x, y)
    assert by_x.tolist() == [20.0, 20.0]
    assert by_y.tolist() == [10.0, 14.0]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (lambda x: [x, x], "gave 2 gradients for 1 tensor arguments"),
        (lambda x: [x.sum()], r"gave shape \(\) for an argument of shape \(3,\)"),
    ],
    ids=["too many", "another shape"],
)
def test_a_gradient_that_does_not_fit_is_refused(
    answers: Callable[[Tensor], list[Tensor]], message: str
) -> None:
    @tg.function(gradient=lambda arguments, by_result: answers(arguments[0]))
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    x = Tensor([1.0, 2.0, 3.0])
    with pytest.raises(GradientError, match=message):
        doubled(x).sum().gradient(x)


def test_a_given_gradient_covers_all_floats_that_the_body_reads() -> None:
    hidden = Tensor([1.0, 2.0]).realize()

    @tg.function(gradient=lambda arguments, by_result: by_result)
    def scaled(x: Tensor) -> Tensor:
        return x * hidden

    with pytest.raises(GradientError, match="reads a float32 tensor of 2 elements that is no arg"):
        scaled(Tensor([1.0, 2.0]))


def test_a_function_returns_tensors_and_writes_to_none_of_its_arguments() -> None:
    with pytest.raises(ArgumentError, match="returned int; expected a tensor"):
        tg.function(lambda x: 3)(Tensor([1.0]))

    def overwrites(x: Tensor) -> Tensor:
        x[0] = 7
        return x

    with pytest.raises(WriteError, match=r"writes to its argument of shape \(2,\)"):
        tg.function(overwrites)(Tensor([1.0, 2.0]))
