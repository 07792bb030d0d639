"""Reading a value that is not one, and gradients that do not exist."""

from __future__ import annotations

import copy
import pickle

import pytest
from tg_frontend import Tensor, nn

from .refusals import Case, case, each, message_of

ones = Tensor.ones


def parameter() -> Tensor:
    return Tensor([1.0, 2.0], requires_grad=True)


VALUES = [
    case(
        "item_of_many",
        lambda: ones(2, 3).item(),
        ValueError,
        "item() of a tensor of shape (2, 3), which has 6 elements; expected one",
        "use tolist()",
    ),
    case("item_of_none", lambda: ones(0).item(), ValueError, "shape (0,), which has 0 elements"),
    case("truth", lambda: bool(ones(2)), TypeError, "use .item()", ".any() or .all()"),
    case("length", lambda: len(Tensor(1.0)), TypeError, "len() of a tensor without axes"),
    case("iteration", lambda: list(Tensor(1.0)), TypeError, "iteration over a tensor without axes"),
    case("format", lambda: f"{ones(2):.2f}", ValueError, "shape (2,), which has 2 elements"),
    case("pickle", lambda: pickle.dumps(ones(2)), TypeError, "nn.state.safe_save"),
    case("many_axes", lambda: ones(1).reshape((1,) * 70).numpy(), ValueError, "at most 64 axes"),
    case("realize", lambda: ones(2).realize("a"), TypeError, "expected tensors, got str"),
    case("realize_list", lambda: ones(2).realize([ones(1)]), TypeError, "realize(*tensors)"),
]


@each(VALUES)
def test_value_that_is_not_there(wrong: Case) -> None:
    message_of(wrong)


GRADIENTS = [
    case(
        "backward_of_many",
        lambda: (parameter() * 2).backward(),
        RuntimeError,
        "gradient of a tensor of shape (2,); expected one element: reduce it, by sum() or mean()",
    ),
    case("backward_of_nothing", lambda: ones(2).sum().backward(), RuntimeError, "requires_grad"),
    case("backward_detached", lambda: parameter().detach().sum().backward(), RuntimeError, "none"),
    case("backward_of_ints", lambda: Tensor([1]).sum().backward(), TypeError, "this one is int32"),
    case(
        "gradient_shape",
        lambda: (parameter() * 2).backward(ones(3)),
        ValueError,
        "the gradient given is (3,), the tensor (2,)",
    ),
    case("gradient_text", lambda: parameter().backward("a"), TypeError, "expected a tensor"),
    case("target_text", lambda: parameter().sum().gradient("a"), TypeError, "got str"),
    case(
        "target_apart",
        lambda: parameter().sum().gradient(ones(3)),
        RuntimeError,
        "target 0 of shape (3,) is not reached",
        "materialize_grads=True",
    ),
    case("target_ints", lambda: parameter().sum().gradient(Tensor([1])), TypeError, "int32"),
]


@each(GRADIENTS)
def test_gradient_that_does_not_exist(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_backward_leaves_gradients_as_they_were() -> None:
    x = parameter()
    (x * 3).sum().backward()
    for program in (lambda: (x * 2).backward(), lambda: (x * 2).backward(ones(3))):
        with pytest.raises((RuntimeError, ValueError)):
            program()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_copy_of_a_model_is_its_own() -> None:
    model = nn.Linear(2, 1)
    model.weight.assign(ones(1, 2))
    copied = copy.deepcopy(model)
    model.weight.assign(ones(1, 2) * 3)
    assert copied.weight.tolist() == [[1.0, 1.0]]
    assert copy.copy(ones(2)).tolist() == [1.0, 1.0]


def test_a_copy_keeps_the_gradient() -> None:
    x = parameter()
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    x.grad = None
    assert copied.requires_grad
    assert copied.grad is not None
    assert copied.grad.tolist() == [2.0, 4.0]
