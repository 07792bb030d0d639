"""Layers and optimisers that cannot be made, or get what they do not take."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor, nn

from .refusals import Case, case, each, message_of

ones = Tensor.ones

LAYERS = [
    case(
        "linear_input",
        lambda: nn.Linear(3, 4)(ones(2, 5)),
        ValueError,
        "Linear(3, 4) got an input of shape (2, 5); its last axis has to be 3",
    ),
    case("linear_negative", lambda: nn.Linear(-3, 4), ValueError, "Linear(-3, 4)", "1 or more"),
    case("linear_float", lambda: nn.Linear(2.5, 4), TypeError, "Linear: expected an int"),
    case("linear_text", lambda: nn.Linear("a", 4), TypeError, "got str 'a'"),
    case("linear_array", lambda: nn.Linear(3, 4)(np.ones((2, 3))), TypeError, "got ndarray"),
    case(
        "conv_channels",
        lambda: nn.Conv2d(3, 4, 3)(ones(1, 5, 8, 8)),
        ValueError,
        "Conv2d of 3 input channels got an input of shape (1, 5, 8, 8)",
    ),
    case("conv_axes", lambda: nn.Conv2d(3, 4, 3)(ones(3, 8, 8)), ValueError, "(batch, 3, height"),
    case("conv_small", lambda: nn.Conv2d(3, 4, 3)(ones(1, 3, 2, 2)), ValueError, "(1, 3, 2, 2)"),
    case("conv_kernel", lambda: nn.Conv2d(3, 4, 0), ValueError, "sizes have to be 1 or more"),
    case("conv_kernel_float", lambda: nn.Conv2d(3, 4, 1.5), TypeError, "kernel_size"),
    case("conv_groups", lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "into 2 groups"),
    case("conv_padding", lambda: nn.Conv2d(3, 4, 3, padding="foo"), ValueError, "'foo'", "same"),
    case("conv_stride", lambda: nn.Conv2d(3, 4, 3, stride=0)(ones(1, 3, 8, 8)), ValueError, "0"),
    case("batchnorm", lambda: nn.BatchNorm(3)(ones(1, 4, 8, 8)), ValueError, "(batch, 3, ...)"),
    case("batchnorm_size", lambda: nn.BatchNorm(-3), ValueError, "BatchNorm(-3)", "1 or more"),
    case("embedding", lambda: nn.Embedding(5, 3)(ones(2)), ValueError, "cast them with .int()"),
    case("embedding_size", lambda: nn.Embedding(-5, 3), ValueError, "Embedding(-5, 3)"),
    case("embedding_number", lambda: nn.Embedding(5, 3)(3), TypeError, "got int"),
    case("layernorm", lambda: nn.LayerNorm(3)(ones(2, 4)), ValueError, "(2, 4)", "(3,)"),
    case("groupnorm", lambda: nn.GroupNorm(3, 4), ValueError, "do not fall into 3 groups"),
]


@each(LAYERS)
def test_layer_that_does_not_fit(wrong: Case) -> None:
    message_of(wrong)


MODEL = "give it get_parameters(model)"

OPTIMISERS = [
    case("nothing", lambda: nn.optim.SGD([]), RuntimeError, "none of 0 tensors", MODEL),
    case("one_tensor", lambda: nn.optim.SGD(ones(3)), TypeError, "a list of tensors", MODEL),
    case("numbers", lambda: nn.optim.SGD([5]), TypeError, "got one of 5", MODEL),
    case("text", lambda: nn.optim.SGD("abc"), TypeError, "got str", MODEL),
    case("none", lambda: nn.optim.SGD(None), TypeError, "got NoneType", MODEL),
    case("ints", lambda: nn.optim.SGD([Tensor([1])]), RuntimeError, "requires a gradient"),
    case("rate", lambda: nn.optim.SGD([ones(3)], lr="a"), TypeError, "SGD: lr", "str 'a'"),
    case("decay", lambda: nn.optim.AdamW([ones(3)], weight_decay="a"), TypeError, "decay"),
    case("moments", lambda: nn.optim.Adam([ones(3)], b1=2.0), RuntimeError, "below 1, got 2.0"),
    case("not_training", lambda: nn.optim.Adam([ones(3)]).step(), RuntimeError, "Tensor.train()"),
    case("no_gradient", lambda: step_without_backward(), RuntimeError, "call loss.backward()"),
]


def step_without_backward() -> None:
    with Tensor.train():
        nn.optim.Adam([ones(3)]).step()


@each(OPTIMISERS)
def test_optimiser_that_has_nothing_to_do(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_step_moves_nothing() -> None:
    weight = ones(3)
    optimiser = nn.optim.Adam([weight])
    with pytest.raises(RuntimeError), Tensor.train():
        optimiser.step()
    assert weight.tolist() == [1.0] * 3
    assert optimiser.b1_t.tolist() == [1.0]
