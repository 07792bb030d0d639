"""Creating tensors of sizes, bounds and counts that cannot be."""

from __future__ import annotations

import pytest
from tg_frontend import Tensor, dtypes

from .refusals import Case, case, each, message_of

nan = float("nan")

CREATION = [
    case("zeros_negative", lambda: Tensor.zeros(-1), ValueError, "zeros: sizes are 0 or more"),
    case("ones_negative", lambda: Tensor.ones(-2, -3), ValueError, "got (-2, -3)"),
    case("empty_negative", lambda: Tensor.empty(-5, -2), ValueError, "got (-5, -2)"),
    case("full_negative", lambda: Tensor.full((2, -1), 3), ValueError, "got (2, -1)"),
    case("rand_negative", lambda: Tensor.rand(-3), ValueError, "rand: sizes are 0 or more"),
    case("randn_negative", lambda: Tensor.randn(2, -3), ValueError, "got (2, -3)"),
    case("randint_negative", lambda: Tensor.randint(-3), ValueError, "got (-3,)"),
    case("eye_negative", lambda: Tensor.eye(-1), ValueError, "got (-1, -1)"),
    case("float", lambda: Tensor.zeros(2.5), TypeError, "zeros: expected an int", "float 2.5"),
    case("not_a_number", lambda: Tensor.zeros(nan), TypeError, "expected an int, got float nan"),
    case("text", lambda: Tensor.zeros("a"), TypeError, "expected an int, got str 'a'"),
    case("none", lambda: Tensor.zeros(None), TypeError, "expected an int, got NoneType"),
    case("nested", lambda: Tensor.zeros(([2, 3], 4)), TypeError, "got list [2, 3]"),
    case("eye_float", lambda: Tensor.eye(2.5), TypeError, "eye: expected an int"),
    case("linspace_float", lambda: Tensor.linspace(0, 1, 2.5), TypeError, "steps: expected an int"),
    case("linspace_negative", lambda: Tensor.linspace(0, 1, -1), ValueError, "steps is -1"),
    case("linspace_text", lambda: Tensor.linspace("a", 1, 3), TypeError, "got str 'a'"),
    case("huge", lambda: Tensor.zeros(10**20), ValueError, "can be addressed"),
    case("huge_product", lambda: Tensor.zeros(2**62, 2**62), ValueError, "can be addressed"),
    case("huge_expand", lambda: Tensor.zeros(1).expand(10**20), ValueError, "can be addressed"),
    case("full_text", lambda: Tensor.full((2,), "a"), TypeError, "number to fill with", "'a'"),
    case("full_none", lambda: Tensor.full((2,), None), TypeError, "number to fill with"),
    case("full_tensor", lambda: Tensor.full((2,), Tensor(3)), TypeError, "got Tensor"),
    case("arange_text", lambda: Tensor.arange("a"), TypeError, "arange: expected numbers"),
    case("arange_none", lambda: Tensor.arange(None), TypeError, "arange: expected numbers"),
    case("arange_endless", lambda: Tensor.arange(float("inf")), ValueError, "finite", "inf"),
    case("arange_nan", lambda: Tensor.arange(nan), ValueError, "finite numbers, got nan"),
    case("arange_no_step", lambda: Tensor.arange(0, 5, 0), ValueError, "step is 0"),
    case("arange_too_long", lambda: Tensor.arange(0, 1, 1e-300), ValueError, "be addressed"),
    case("arange_too_large", lambda: Tensor.arange(10**12), ValueError, "int32 cannot hold"),
    case("from_blob", lambda: Tensor.from_blob(b"abcd", (2,)), ValueError, "(1,)", "(2,)"),
]


@each(CREATION)
def test_tensors_that_cannot_be_made(wrong: Case) -> None:
    message_of(wrong)


RANDOM = [
    case("empty_range", lambda: Tensor.randint(3, low=5, high=2), ValueError, "high 2", "low 5"),
    case(
        "range_too_wide",
        lambda: Tensor.randint(3, high=10**12),
        ValueError,
        "int32 cannot hold 999999999999",
    ),
    case("float_bounds", lambda: Tensor.randint(3, high=2.5), TypeError, "high: expected an int"),
    case("ints_asked_of_rand", lambda: Tensor.rand(3, dtype="int32"), TypeError, "use randint"),
    case("randperm", lambda: Tensor.randperm(-1), ValueError, "randperm: sizes are 0 or more"),
    case("seed_text", lambda: Tensor.manual_seed("a"), TypeError, "manual_seed: expected an int"),
    case("seed_float", lambda: Tensor.manual_seed(1.5), TypeError, "got float 1.5"),
    case("glorot_scalar", lambda: Tensor.glorot_uniform(), ValueError, "one axis or more"),
    case("dropout_text", lambda: Tensor.ones(3).dropout("a"), ValueError, "got 'a'"),
    case("dropout", lambda: Tensor.ones(3).dropout(2.0), ValueError, "from 0 to 1, got 2.0"),
]


@each(RANDOM)
def test_draws_that_cannot_be(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_draw_takes_no_random_numbers() -> None:
    Tensor.manual_seed(3)
    expected = [Tensor.rand(4).tolist(), Tensor.rand(4).tolist()]
    Tensor.manual_seed(3)
    drawn = [Tensor.rand(4).tolist()]
    for program in (lambda: Tensor.rand(-6), lambda: Tensor.randint(2, high=2**40)):
        with pytest.raises(ValueError):
            program()
    drawn.append(Tensor.rand(4).tolist())
    assert drawn == expected


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0, 2)])
def test_sizes_of_zero_are_no_error(shape: tuple[int, ...]) -> None:
    made = [
        Tensor.zeros(*shape),
        Tensor.empty(*shape),
        Tensor.rand(*shape),
        Tensor.randint(*shape),
        Tensor.full(shape, 1),
    ]
    for tensor in made:
        assert tensor.shape == shape
        assert tensor.numpy().shape == shape
        assert (tensor + 1).sum().item() == 0


def test_contents_of_empty_may_be_read() -> None:
    assert len(Tensor.empty(3).tolist()) == 3
    assert Tensor.empty(2, dtype=dtypes.int8).numpy().shape == (2,)
