"""The same function in both libraries: values, shapes, dtypes and gradients have to agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from tg_frontend import Tensor, dtypes

torch.set_num_threads(1)

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "int64", "uint8")
TORCH_DTYPES = {name: getattr(torch, name) for name in (*FLOATS, *INTS, "bool")}

# (relative, absolute) distance that is allowed, by the dtype computed in
TOLERANCES = {
    "float64": (1e-11, 1e-12),
    "float32": (2e-5, 2e-6),
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 1.6e-2),
}

Function = Callable[..., Any]


def tensor_of(theirs: torch.Tensor) -> Tensor:
    """Our tensor with the same dtype and elements."""
    theirs = theirs.detach()
    if theirs.dtype is torch.bfloat16:
        return Tensor(theirs.float().numpy().copy()).cast(dtypes.bfloat16).realize()
    return Tensor(theirs.numpy().copy())


def torch_tensor(array: Any, dtype: str | None = None) -> torch.Tensor:
    """A torch tensor of an array; floats take `dtype` where it is given."""
    made = torch.from_numpy(np.array(array))
    return made.to(TORCH_DTYPES[dtype]) if dtype and made.is_floating_point() else made


def as_float64(value: Tensor | torch.Tensor) -> np.ndarray:
    """The elements of either library's tensor, as doubles."""
    if isinstance(value, Tensor):
        narrow = value.cast(dtypes.float32) if value.dtype is dtypes.bfloat16 else value
        return np.asarray(narrow.numpy()).astype(np.float64)
    value = value.detach()
    return (value.float() if value.dtype is torch.bfloat16 else value).numpy().astype(np.float64)


def dtype_name(value: Tensor | torch.Tensor) -> str:
    """The dtype by numpy's name."""
    if isinstance(value, Tensor):
        return value.dtype.name
    return str(value.dtype).removeprefix("torch.")


def assert_same(
    ours: Tensor, theirs: torch.Tensor, what: str = "", tolerance: tuple[float, float] | None = None
) -> None:
    """Same shape, and same elements within the tolerance of the dtype."""
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape} != {theirs.shape}"
    expected = as_float64(theirs)
    actual = as_float64(ours)
    relative, absolute = tolerance or TOLERANCES.get(dtype_name(theirs), (0.0, 0.0))
    np.testing.assert_allclose(actual, expected, relative, absolute, err_msg=what)


def listed(value: Any) -> list[Any]:
    """One result or several, as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def check(
    ours: Function,
    theirs: Function,
    *arrays: Any,
    dtype: str | None = "float32",
    gradient: bool = True,
    same_dtype: bool = True,
    tolerance: tuple[float, float] | None = None,
) -> None:
    """Compare a function and its gradients by all float arguments.

    Args:
        ours: of our tensors.
        theirs: of torch's.
        arrays: arguments, as numpy arrays; floats are cast to `dtype`.
        dtype: of the float arguments; None leaves them.
        gradient: whether to compare gradients by them, under random weights of the results.
        same_dtype: whether the results have to have the same dtype.
        tolerance: relative and absolute; None takes that of the dtype.
    """
    references = [torch_tensor(array, dtype) for array in arrays]
    tensors = [tensor_of(reference) for reference in references]
    floats = [k for k, reference in enumerate(references) if reference.is_floating_point()]
    for k in floats if gradient else []:
        references[k].requires_grad_()
    expected = listed(theirs(*references))
    actual = listed(ours(*tensors))
    assert len(actual) == len(expected)
    for number, (mine, reference) in enumerate(zip(actual, expected, strict=True)):
        if same_dtype:
            assert dtype_name(mine) == dtype_name(reference), f"dtype of result {number}"
        assert_same(mine, reference, f"result {number}", tolerance)
    if gradient and floats:
        check_gradients(
            actual, expected, [tensors[k] for k in floats], [references[k] for k in floats],
            tolerance,
        )


def check_gradients(
    actual: Sequence[Tensor],
    expected: Sequence[torch.Tensor],
    tensors: Sequence[Tensor],
    references: Sequence[torch.Tensor],
    tolerance: tuple[float, float] | None = None,
) -> None:
    """Compare the gradients of all float results together, each under random weights."""
    rng = np.random.default_rng(7)
    pairs = [
        (mine, reference)
        for mine, reference in zip(actual, expected, strict=True)
        if reference.requires_grad and reference.numel()
    ]
    if not pairs:
        return
    our_total, their_total = None, None
    for mine, reference in pairs:
        weights = rng.uniform(0.5, 1.5, tuple(reference.shape))
        # in double, so that the sum adds no rounding of its own
        ours = (mine.cast(dtypes.float64) * Tensor(weights)).sum()
        theirs = (reference.double() * torch.from_numpy(np.array(weights))).sum()
        our_total = ours if our_total is None else our_total + ours
        their_total = theirs if their_total is None else their_total + theirs
    wanted = torch.autograd.grad(their_total, references, allow_unused=True)
    given = our_total.gradient(*tensors, materialize_grads=True)
    for number, (mine, reference, source) in enumerate(
        zip(given, wanted, references, strict=True)
    ):
        reference = torch.zeros_like(source) if reference is None else reference
        assert dtype_name(mine) == dtype_name(source)
        assert_same(mine, reference, f"gradient {number}", tolerance)
