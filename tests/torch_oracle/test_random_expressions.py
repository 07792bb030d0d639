"""Chains of 5 to 30 random operations, fused as the scheduler likes: values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, TinyJit

from .compare import as_float64, assert_same, check_gradients, tensor_of
from .expressions import STEPS, Program, redone

SHAPES = [[(3, 4), (4,), (3, 1)], [(2, 3, 4), (3, 4), (1,)], [(5,), (), (1, 5)], [(2, 1, 3), (3,)]]
SETTINGS = {
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}


def build(data: st.DataObject, dtype: torch.dtype) -> tuple[Program, list[Any], list[Any]]:
    """A program on random inputs; the inputs of both."""
    shapes = data.draw(st.sampled_from(SHAPES), label="shapes")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16), label="seed"))
    references = [
        torch.from_numpy(np.array(rng.uniform(-2, 2, shape))).to(dtype).requires_grad_()
        for shape in shapes
    ]
    tensors = [tensor_of(reference) for reference in references]
    program = Program(data.draw, list(zip(tensors, references, strict=True)))
    for _ in range(data.draw(st.integers(5, 30), label="steps")):
        data.draw(st.sampled_from(STEPS))(program)
    note("\n".join(program.log))
    return program, tensors, references


@settings(max_examples=60, **SETTINGS)
@given(data=st.data())
def test_random_expression_in_double(data: st.DataObject) -> None:
    program, tensors, references = build(data, torch.float64)
    results = program.pool[-3:]
    for mine, reference in results:
        assert_same(mine, reference, "value", (1e-9, 1e-10))
    check_gradients([p[0] for p in results], [p[1] for p in results], tensors, references,
                    (1e-7, 1e-8))


@settings(max_examples=25, **SETTINGS)
@given(data=st.data())
def test_gradient_of_an_expression_that_nothing_realised_before(data: st.DataObject) -> None:
    program, tensors, references = build(data, torch.float64)
    check_gradients([program.pool[-1][0]], [program.pool[-1][1]], tensors, references,
                    (1e-7, 1e-8))


@settings(max_examples=25, **SETTINGS)
@given(data=st.data())
def test_random_expression_in_single(data: st.DataObject) -> None:
    """Against torch in double where torch's own single precision is near that."""
    program, _, references = build(data, torch.float32)
    for mine, reference in program.pool[len(references):]:
        expected = as_float64(reference)
        scale = 1.0 + np.abs(expected).max(initial=0.0)
        assert mine.shape == tuple(reference.shape)
        np.testing.assert_allclose(as_float64(mine), expected, 5e-3, 5e-3 * scale)


@settings(max_examples=20, **SETTINGS)
@given(data=st.data())
def test_random_expression_with_gradient_replayed_by_the_jit(data: st.DataObject) -> None:
    program, tensors, references = build(data, torch.float64)

    # not the program: the JIT looks for state behind whatever a function refers to
    steps = program.steps

    def step(*inputs: Tensor) -> tuple[Tensor, ...]:
        value = redone(steps, 0, inputs)[-1]
        gradients = value.sum().gradient(*inputs, materialize_grads=True)
        return tuple(tensor.realize() for tensor in (value, *gradients))

    captured = TinyJit(step)
    for call in range(4):
        given = [reference.detach() * (1 - 0.01 * call) for reference in references]
        results = captured(*[tensor_of(value).realize() for value in given])
        fresh = [value.clone().requires_grad_() for value in given]
        expected = redone(steps, 1, fresh)[-1]
        wanted = torch.autograd.grad(
            expected.sum(), fresh, allow_unused=True, materialize_grads=True
        ) if expected.requires_grad else [torch.zeros_like(value) for value in given]
        for mine, reference in zip(results, (expected, *wanted), strict=True):
            assert_same(mine, reference, f"call {call}", (1e-7, 1e-7))


INTEGER_STEPS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // (y | 1),
    "mod": lambda x, y: x % (y | 1),
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "not": lambda x, y: ~x,
    "shift_left": lambda x, y: x << 3,
    "shift_right": lambda x, y: x >> 1,
    "maximum": lambda x, y: x.maximum(y),
    "minimum": lambda x, y: x.minimum(y),
    "less": lambda x, y: (x < y) * x,
    "flip": lambda x, y: x.flip(0) + y,
    "transpose": lambda x, y: (x.transpose(0, 1) * 3).transpose(0, 1) ^ y,
    "slice": lambda x, y: x - y[:, 1:2],
    "wrap_and_compare": lambda x, y: x * ((x + 1) < x),
}


@settings(max_examples=60, **SETTINGS)
@given(
    dtype=st.sampled_from(["int8", "int16", "int32", "int64", "uint8"]),
    names=st.lists(st.sampled_from(sorted(INTEGER_STEPS)), min_size=5, max_size=30),
    seed=st.integers(0, 2**16),
)
def test_random_expression_of_integers(dtype: str, names: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    arrays = [rng.integers(limits.min, limits.max, (3, 4), dtype, endpoint=True) for _ in range(2)]
    ours, theirs = [Tensor(a) for a in arrays], [torch.from_numpy(a) for a in arrays]
    for name in names:
        for pool in (ours, theirs):
            result = INTEGER_STEPS[name](pool[-1], pool[-2])
            pool.append(result)
    assert str(theirs[-1].dtype) == f"torch.{dtype}"
    assert np.array_equal(ours[-1].numpy(), theirs[-1].numpy())
    assert np.array_equal(ours[-1].sum(1).numpy(), ours[-1].numpy().sum(1, dtype=np.int64).astype(
        ours[-1].sum(1).numpy().dtype))
