"""Chains of IEEE operations, bit for bit: however they are fused, each one rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

from .compare import FLOATS, TORCH_DTYPES, as_float64, tensor_of

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, float("inf"), float("-inf"), float("nan"), 1e-6, 6e4, 3.14159]


def square_root(x: Any) -> Any:
    """Rounded right: torch's own is an ulp off in float32, where it calls a vector library.

    Twice the bits and two more make the second rounding harmless.
    """
    if isinstance(x, Tensor):
        return x.sqrt()
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.sqrt(x.double().numpy())).to(x.dtype)


OPS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "abs": lambda x, y: x.abs(),
    "sqrt": lambda x, y: square_root(x),
    "floor": lambda x, y: x.floor(),
    "ceil": lambda x, y: x.ceil(),
    "trunc": lambda x, y: x.trunc(),
    "round": lambda x, y: x.round(),
    # which of two zeros is the larger is not fixed; adding 0 makes both positive
    "maximum": lambda x, y: x.maximum(y) + 0.0,
    "minimum": lambda x, y: x.minimum(y) + 0.0,
    "times_2.5": lambda x, y: x * 2.5,
    "plus_0": lambda x, y: x + 0.0,
    "times_0": lambda x, y: x * 0.0,
    "self_minus_self": lambda x, y: x - x,
    "self_over_self": lambda x, y: x / x,
    "square": lambda x, y: x.square(),
    "relu": lambda x, y: x.relu() + 0.0,
    "masked": lambda x, y: x * (x < y),
    "mul_add": lambda x, y: x * y + x,
    "turned": lambda x, y: x.flip(0),
    "shifted": lambda x, y: x.roll(1, 0) + y,
}


def bits(value: Any) -> np.ndarray:
    """The elements as doubles, NaN of one kind, the sign of zeros kept."""
    elements = as_float64(value)
    return np.where(np.isnan(elements), np.float64("nan"), elements).view(np.int64)


@settings(max_examples=120)
@given(
    dtype=st.sampled_from(FLOATS),
    names=st.lists(st.sampled_from(sorted(OPS)), min_size=3, max_size=25),
    seed=st.integers(0, 2**16),
    scale=st.sampled_from([1.0, 1e-3, 1e3, 1e-7]),
)
def test_chain(dtype: str, names: list[str], seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    values = [
        np.concatenate([rng.standard_normal(20) * scale, rng.permutation(SPECIAL)])
        for _ in range(2)
    ]
    theirs = [torch.from_numpy(v).to(TORCH_DTYPES[dtype]) for v in values]
    ours: list[Tensor] = [tensor_of(value) for value in theirs]
    for name in names:
        ours.append(OPS[name](ours[-1], ours[-2]))
        theirs.append(OPS[name](theirs[-1], theirs[-2]))
    wrong = np.flatnonzero(bits(ours[-1]) != bits(theirs[-1]))
    note(f"at {wrong[:5]}: {as_float64(ours[-1])[wrong[:5]]} {as_float64(theirs[-1])[wrong[:5]]}")
    assert not wrong.size


@settings(max_examples=60)
@given(
    path=st.lists(
        st.sampled_from([*FLOATS, "int32", "int64", "int16", "uint8", "bool"]),
        min_size=2, max_size=8,
    ),
    seed=st.integers(0, 2**16),
)
def test_chain_of_casts_within_range(path: list[str], seed: int) -> None:
    """Small values, so that every cast is defined; each rounds or truncates."""
    x = np.random.default_rng(seed).uniform(0, 100, 50)
    theirs, ours = torch.from_numpy(x), Tensor(x)
    for name in path:
        theirs, ours = theirs.to(TORCH_DTYPES[name]), ours.cast(name)
        if name.startswith(("float", "bfloat")):
            theirs, ours = theirs + 0.3, ours + 0.3
    assert np.array_equal(bits(ours), bits(theirs))
