"""Calls that a captured program was not made for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit, Variable

from .refusals import Case, case, each, message_of

ones = Tensor.ones
Captured = Callable[..., Tensor]


def captured(function: Callable[..., object], *arguments: Callable[[], object]) -> Captured:
    """A JIT after its capture with fresh arguments."""
    jit = TinyJit(function)
    for _ in range(3):
        jit(*[make() for make in arguments])
    return jit


def plus_one(x: Tensor) -> Tensor:
    return (x + 1).realize()


def of_three() -> Tensor:
    return ones(3)


FORMS = "use one TinyJit for each form of call, or call reset() to capture anew"

CALLS = [
    case(
        "shape",
        lambda: captured(plus_one, of_three)(ones(4)),
        RuntimeError,
        "argument 0: expected float32 of shape (3,) on CPU, as at the capture, "
        "got float32 of shape (4,) on CPU",
        "reset()",
    ),
    case("dtype", lambda: captured(plus_one, of_three)(ones(3).int()), RuntimeError, "got int32"),
    case("device", lambda: captured(plus_one, of_three)(on_python()), RuntimeError, "on PYTHON"),
    case("more", lambda: captured(plus_one, of_three)(ones(3), ones(3)), RuntimeError, FORMS),
    case("fewer", lambda: captured(plus_one, of_three)(), RuntimeError, "got nothing", FORMS),
    case("by_name", lambda: captured(plus_one, of_three)(x=ones(3)), RuntimeError, FORMS),
    case(
        "python_value",
        lambda: captured(lambda x, n: (x + n).realize(), of_three, lambda: 1)(ones(3), 2),
        RuntimeError,
        "argument 1: expected 1, as at the capture, got 2",
        "frozen in the captured program",
    ),
    case(
        "nested_shape",
        lambda: captured(lambda x: plus_one(x[0]), lambda: [ones(3)])([ones(4)]),
        RuntimeError,
        "argument 0[0]: expected float32 of shape (3,)",
    ),
    case(
        "numpy",
        lambda: captured(lambda a: plus_one(Tensor(a)), lambda: np.ones(3)),
        RuntimeError,
        "an array of numpy",
        "pass Tensor(array)",
    ),
    case("empty", lambda: captured(plus_one, lambda: ones(0)), RuntimeError, "no elements", "(0,)"),
    case(
        "item_inside",
        lambda: captured(lambda x: x.sum().item(), of_three),
        RuntimeError,
        "item() inside a function that TinyJit captures",
        "return the tensor and read it outside",
    ),
    case("numpy_inside", lambda: captured(lambda x: x.numpy(), of_three), RuntimeError, "numpy()"),
    case("no_function", lambda: TinyJit(5), TypeError, "expected a function of tensors, got 5"),
]


def on_python() -> Tensor:
    return ones(3).to("PYTHON")


@each(CALLS)
def test_call_that_does_not_fit(wrong: Case) -> None:
    message_of(wrong)


VARIABLES = [
    case("bounds", lambda: Variable("n", 5, 1), ValueError, "'n': 5..1 holds no value"),
    case("name", lambda: Variable("", 1, 5), TypeError, "expected a name such as 'n', got ''"),
    case("name_of_two_words", lambda: Variable("a b", 1, 5), TypeError, "got 'a b'"),
    case("float_bound", lambda: Variable("n", 1.5, 5), TypeError, "expected an int, got float 1.5"),
    case("value", lambda: Variable("n", 1, 5).bind(7), ValueError, "'n' takes 1..5, got 7"),
    case("float_value", lambda: Variable("n", 1, 5).bind(2.5), TypeError, "takes an int", "2.5"),
]


@each(VARIABLES)
def test_variable_that_cannot_be(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_call_leaves_the_captured_program_as_it_was() -> None:
    state = Tensor([0.0]).realize()

    def step(x: Tensor) -> Tensor:
        state.assign(state + x.sum())
        return (x + state).realize()

    jit = captured(step, of_three)
    before = state.item()
    for wrong in ((ones(4),), (), (ones(3), ones(3)), (ones(3).int(),)):
        with pytest.raises(RuntimeError):
            jit(*wrong)
    assert state.item() == before
    assert jit(ones(3)).tolist() == [before + 4.0] * 3


def test_an_error_in_the_function_is_the_users_own_and_the_next_call_works() -> None:
    calls = []

    def function(x: Tensor) -> Tensor:
        calls.append(len(calls))
        if len(calls) == 2:
            raise KeyError("the user's")
        return plus_one(x)

    jit = TinyJit(function)
    jit(ones(3))
    with pytest.raises(KeyError, match="the user's"):
        jit(ones(3))
    assert [jit(ones(3) * k).tolist() for k in range(3)] == [[1.0] * 3, [2.0] * 3, [3.0] * 3]
