"""What a wrong program is told: what was expected, what came, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor, dtypes
from tg_frontend.errors import (
    AxisError,
    DataError,
    EmptyReductionError,
    IndexOutOfRangeError,
    ItemError,
    WriteError,
)
from tg_ir.errors import DTypeError, LiteralError, ShapeError


def zeros(*shape: int, dtype=dtypes.float32) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype)


def set_item(x: Tensor, key, value) -> None:
    x[key] = value


CASES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "broadcast": (
        lambda: zeros(2, 3) + zeros(4),
        ShapeError,
        "shapes (2, 3) and (4,) do not broadcast",
    ),
    "matmul": (
        lambda: zeros(2, 3) @ zeros(4, 5),
        ShapeError,
        "matmul: shapes (2, 3) and (4, 5) do not fit: the inner extents 3 and 4 differ",
    ),
    "matmul_of_scalars": (
        lambda: zeros(2) @ Tensor(1.0),
        ShapeError,
        "matmul takes tensors with axes, got shapes (2,) and ()",
    ),
    "conv_channels": (
        lambda: zeros(1, 3, 8, 8).conv2d(zeros(4, 2, 3, 3)),
        ShapeError,
        "input (1, 3, 8, 8) and weight (4, 2, 3, 3) do not fit: 3 input channels",
    ),
    "conv_axes": (
        lambda: zeros(3, 8, 8).conv2d(zeros(4, 3, 3, 3)),
        ShapeError,
        "input (3, 8, 8) and weight (4, 3, 3, 3)",
    ),
    "conv_kernel_too_large": (
        lambda: zeros(1, 1, 2, 2).conv2d(zeros(1, 1, 3, 3)),
        ShapeError,
        "weight (1, 1, 3, 3) does not fit into input (1, 1, 2, 2)",
    ),
    "cat": (
        lambda: zeros(2, 3).cat(zeros(2, 4)),
        ShapeError,
        "cat: shapes (2, 3) and (2, 4) differ in an axis other than 0",
    ),
    "stack": (lambda: zeros(2).stack(zeros(3)), ShapeError, "stack: shapes (2,) and (3,) differ"),
    "reshape": (
        lambda: zeros(2, 3).reshape(4, 2),
        ShapeError,
        "reshape: (2, 3) has 6 elements, (4, 2) has 8",
    ),
    "reshape_unknown": (
        lambda: zeros(2, 3).reshape(4, -1),
        ShapeError,
        "reshape: (2, 3) has 6 elements, which (4, -1) does not divide",
    ),
    "reshape_two_unknown": (
        lambda: zeros(2, 3).reshape(-1, -1),
        ShapeError,
        "(-1, -1) has more than one -1",
    ),
    "expand": (
        lambda: zeros(2, 3).expand(4, 3),
        ShapeError,
        "expand: (2, 3) does not expand to (4, 3)",
    ),
    "permute": (lambda: zeros(2, 3).permute(0, 0), ShapeError, "(0, 0) does not name each axis"),
    "axis": (
        lambda: zeros(2, 3).sum(2),
        AxisError,
        "axis 2 is out of range for a tensor of 2 axes; expected -2..1",
    ),
    "index": (
        lambda: zeros(2, 3)[2],
        IndexOutOfRangeError,
        "index 2 is out of range for axis 0 of shape (2, 3); expected -2..1",
    ),
    "list_index": (
        lambda: zeros(2, 3)[:, [0, 3]],
        IndexOutOfRangeError,
        "index 3 is out of range for axis 1 of shape (2, 3)",
    ),
    "too_many_indices": (
        lambda: zeros(2)[0, 0],
        IndexOutOfRangeError,
        "2 indices for a tensor of 1 axes",
    ),
    "float_index": (
        lambda: zeros(2)[Tensor([1.0])],
        DTypeError,
        "an index tensor has an int or bool dtype, got float32",
    ),
    "string_index": (lambda: zeros(2)["a"], DTypeError, "cannot index with str 'a'"),
    "item": (
        lambda: zeros(2, 3).item(),
        ItemError,
        "item() of a tensor of shape (2, 3), which has 6 elements; expected one",
    ),
    "bool": (lambda: bool(zeros(1)), TypeError, "use .item() for one element"),
    "len": (lambda: len(Tensor(1.0)), TypeError, "len() of a tensor without axes"),
    "max_of_nothing": (
        lambda: zeros(2, 0).max(1),
        EmptyReductionError,
        "max over axis 1 of shape (2, 0), which is empty",
    ),
    "argmin_of_nothing": (lambda: zeros(0).argmin(), EmptyReductionError, "argmin over axis 0"),
    "literal": (
        lambda: Tensor([1], dtype=dtypes.uint8) + 300,
        LiteralError,
        "uint8 cannot hold 300 (0..255)",
    ),
    "literal_in_data": (
        lambda: Tensor([1, 300], dtype=dtypes.uint8),
        LiteralError,
        "uint8 cannot hold 300",
    ),
    "literal_in_comparison": (
        lambda: Tensor([1], dtype=dtypes.int8) < 1000,
        LiteralError,
        "int8 cannot hold 1000",
    ),
    "bits_of_floats": (lambda: zeros(2) & 1, DTypeError, "bitwise and takes ints or bools"),
    "difference_of_bools": (
        lambda: Tensor([True]) - Tensor([False]),
        DTypeError,
        "bools do not subtract; use ^",
    ),
    "int_to_a_negative_power": (
        lambda: Tensor([2]) ** -1,
        DTypeError,
        "int32 to the power of -1 is no integer; cast to a float first",
    ),
    "bitcast": (
        lambda: zeros(2).bitcast(dtypes.float16),
        DTypeError,
        "bitcast keeps the size: float32 has 4 bytes, float16 2",
    ),
    "unknown_dtype": (lambda: zeros(2).cast("flot32"), DTypeError, "did you mean 'float32'"),
    "assign_dtype": (
        lambda: zeros(2).assign(Tensor([1, 2])),
        DTypeError,
        "assign: the value is int32, the tensor float32; cast the value to float32 first",
    ),
    "assign_shape": (
        lambda: zeros(2).assign(zeros(3)),
        ShapeError,
        "assign: a value of shape (3,) does not broadcast to (2,)",
    ),
    "in_place_kind": (
        lambda: Tensor([1]).__iadd__(0.5),
        DTypeError,
        "the value is float32, the tensor int32",
    ),
    "setitem_shape": (
        lambda: set_item(zeros(2, 3), 0, zeros(4)),
        ShapeError,
        "setitem: a value of shape (4,) does not broadcast to (3,)",
    ),
    "expanded_target": (
        lambda: set_item(zeros(1, 3).expand(4, 3), 0, 1.0),
        WriteError,
        "is an expanded view: several of its elements are one in storage; write to a clone()",
    ),
    "mask_shape": (
        lambda: zeros(2, 3)[Tensor([True, False, True])],
        ShapeError,
        "a mask of shape (3,) does not fit axes 0.. of shape (2, 3)",
    ),
    "ragged_lists": (lambda: Tensor([[1, 2], [3]]), DataError, "different lengths at depth 1"),
    "mixed_lists": (lambda: Tensor([[1], 2]), DataError, "lists and numbers are mixed at depth 1"),
    "objects": (lambda: Tensor("abc"), DataError, "no tensor can be made of str"),
    "arange_step": (lambda: Tensor.arange(3, 0, 0), ValueError, "arange: step is 0"),
    "randint": (lambda: Tensor.randint(3, low=5, high=5), ValueError, "high 5 is not above low 5"),
    "cross_entropy": (
        lambda: zeros(4, 10).cross_entropy(Tensor([1, 2])),
        ShapeError,
        "logits (4, 10) and targets (2,) do not fit",
    ),
    "reduction_name": (
        lambda: zeros(2).mse_loss(zeros(2), reduction="avg"),
        ValueError,
        "reduction is 'mean', 'sum' or 'none', got 'avg'",
    ),
    "gather": (
        lambda: zeros(2, 3).gather(1, Tensor([[0], [0], [0]])),
        ShapeError,
        "an index of shape (3, 1) does not fit into (2, 3)",
    ),
    "pad_mode": (lambda: zeros(3).pad((1, 1), mode="x"), ValueError, "got 'x'"),
    "reflect_too_far": (
        lambda: zeros(3).pad((3, 0), mode="reflect"),
        ShapeError,
        "mode reflect adds at most 2 to axis 0",
    ),
    "split": (lambda: zeros(5).split([2, 2]), ShapeError, "(2, 2) do not add up to axis 0"),
    "shrink": (lambda: zeros(3).shrink(((1, 5),)), ShapeError, "bounds (1, 5) outside an axis"),
    "dropout": (lambda: zeros(3).dropout(1.5), ValueError, "p is a probability from 0 to 1"),
    "einsum": (
        lambda: Tensor.einsum("ij,jk", zeros(2, 3), zeros(4, 5)),
        ShapeError,
        "axis j is 3 and 4 in shapes (2, 3), (4, 5)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_program_is_told_what_to_do(name):
    program, error, message = CASES[name]
    with pytest.raises(error, match=re.escape(message)):
        program()


def test_numpy_objects_are_refused():
    with pytest.raises(DataError, match="elements of type object"):
        Tensor(np.array([object()]))
