"""Shapes that do not fit together: the message shows them."""

from __future__ import annotations

import numpy as np
from tg_frontend import Tensor

from .refusals import Case, case, each, message_of

ones = Tensor.ones

SHAPES = [
    case(
        "broadcast",
        lambda: ones(2, 3) + ones(4, 3),
        ValueError,
        "shapes (2, 3) and (4, 3) do not broadcast",
        "extents must be equal or 1",
    ),
    case("broadcast_where", lambda: Tensor([True, False]).where(ones(3), 0), ValueError, "(2,)"),
    case(
        "matmul_inner",
        lambda: ones(2, 3) @ ones(2, 3),
        ValueError,
        "matmul: shapes (2, 3) and (2, 3) do not fit: the inner extents 3 and 2 differ",
    ),
    case(
        "matmul_leading",
        lambda: ones(2, 2, 3) @ ones(3, 3, 4),
        ValueError,
        "matmul: shapes (2, 2, 3) and (3, 3, 4) do not fit: the leading axes (2,) and (3,)",
    ),
    case("matmul_scalar", lambda: Tensor(1.0) @ ones(2, 3), ValueError, "shapes () and (2, 3)"),
    case(
        "matmul_array",
        lambda: ones(2, 3) @ np.ones((4, 5)),
        ValueError,
        "matmul: shapes (2, 3) and (4, 5)",
    ),
    case("matmul_none", lambda: ones(2, 3) @ None, TypeError, "None is no operand"),
    case(
        "linear_bias",
        lambda: ones(2, 3).linear(ones(3, 5), ones(4)),
        ValueError,
        "shapes (2, 5) and (4,)",
    ),
    case(
        "cat_shapes",
        lambda: ones(2, 3).cat(ones(2, 4)),
        ValueError,
        "cat: shapes (2, 3) and (2, 4) differ in an axis other than 0",
    ),
    case("cat_number", lambda: ones(2).cat(5), TypeError, "cat: expected a tensor, got int"),
    case("cat_list", lambda: ones(2).cat([ones(2), ones(2)]), TypeError, "cat(*tensors)"),
    case("cat_scalars", lambda: Tensor(1.0).cat(Tensor(2.0)), ValueError, "without axes"),
    case(
        "stack_shapes",
        lambda: ones(2).stack(ones(3)),
        ValueError,
        "stack: shapes (2,) and (3,) differ",
    ),
    case("stack_list", lambda: ones(2).stack([ones(2)]), TypeError, "stack(*tensors)"),
    case(
        "reshape_count",
        lambda: ones(2, 3).reshape(4, 2),
        ValueError,
        "reshape: (2, 3) has 6 elements, (4, 2) has 8",
    ),
    case(
        "reshape_rest",
        lambda: ones(2, 3).reshape(-1, 4),
        ValueError,
        "(2, 3) has 6 elements, which (-1, 4) does not divide",
    ),
    case("reshape_two_rests", lambda: ones(6).reshape(-1, -1), ValueError, "more than one -1"),
    case("reshape_negative", lambda: ones(6).reshape(-2, -3, 1), ValueError, "(-2, -3, 1)"),
    case("reshape_float", lambda: ones(6).reshape(2.0, 3), TypeError, "expected an int", "2.0"),
    case("reshape_text", lambda: ones(6).reshape("6"), TypeError, "expected an int", "'6'"),
    case("reshape_tensor", lambda: ones(6).reshape(ones(1)), TypeError, "got Tensor"),
    case(
        "reshape_none",
        lambda: ones(6).reshape(None, None),
        ValueError,
        "None at place 1",
        "shape (6,) does not have",
    ),
    case(
        "expand",
        lambda: ones(2, 3).expand(4, 3),
        ValueError,
        "expand: (2, 3) does not expand to (4, 3): only axes of size 1 do",
    ),
    case("expand_fewer", lambda: ones(2, 3).expand(3), ValueError, "(2, 3) has more axes"),
    case("expand_negative", lambda: ones(2, 1).expand(2, -5), ValueError, "0 or more", "-5"),
    case("permute_doubled", lambda: ones(2, 3).permute(0, 0), ValueError, "(0, 0)", "(2, 3)"),
    case("shrink_number", lambda: ones(2, 3).shrink(5), ValueError, "a pair (begin, end)"),
    case("shrink_flat", lambda: ones(2, 3).shrink((1, 2)), ValueError, "a pair (begin, end)"),
    case("shrink_outside", lambda: ones(2).shrink(((0, 3),)), ValueError, "(0, 3)", "axis of 2"),
    case("flatten_backwards", lambda: ones(2, 3).flatten(1, 0), ValueError, "(2, 3)"),
    case("unflatten", lambda: ones(2, 3).unflatten(1, (2, 2)), ValueError, "(3,)", "(2, 2)"),
    case("repeat_negative", lambda: ones(2).repeat(-1), ValueError, "0 or more", "(-1,)"),
    case("repeat_float", lambda: ones(2).repeat(2.5), TypeError, "expected an int", "2.5"),
    case("interleave_negative", lambda: ones(2).repeat_interleave(-1), ValueError, "got -1"),
    case("split_sizes", lambda: ones(2, 3).split((1, 2)), ValueError, "(1, 2) do not add up"),
    case("split_zero", lambda: ones(2).split(0), ValueError, "expected 1 or more, got 0"),
    case("chunk_zero", lambda: ones(2).chunk(0), ValueError, "expected 1 or more, got 0"),
    case("unfold_large", lambda: ones(2).unfold(0, 5, 1), ValueError, "window of 5", "(2,)"),
    case("unfold_no_step", lambda: ones(2).unfold(0, 1, 0), ValueError, "step", "got 0"),
    case("pad_pairs", lambda: ones(2, 3).pad(((1, 1),)), ValueError, "pair for each of 2 axes"),
    case("pad_mode", lambda: ones(2).pad((1, 1), mode="x"), ValueError, "circular, got 'x'"),
    case("pad_text", lambda: ones(2).pad(((1, "a"),)), TypeError, "pad: expected an int"),
    case("pad_value", lambda: ones(2).pad((1, 1), value="a"), TypeError, "number to pad", "'a'"),
    case("roll_text", lambda: ones(2).roll("a", 0), TypeError, "shifts: expected an int"),
    case("roll_count", lambda: ones(2).roll((1, 2), 0), ValueError, "(1, 2)", "(0,)"),
    case("meshgrid", lambda: ones(2).meshgrid("a"), TypeError, "got str"),
    case("topk", lambda: ones(2).topk("a"), TypeError, "topk: k: expected an int"),
    case("norm_text", lambda: ones(2).norm("a"), TypeError, "p is a number, got str 'a'"),
    case("norm_of_order_0", lambda: ones(2).norm(0), ValueError, "count with x.ne(0).sum()"),
    case(
        "attention",
        lambda: ones(2, 3).scaled_dot_product_attention(
            ones(2, 3), ones(2, 3), enable_gqa=True
        ),
        ValueError,
        "queries (2, 3), keys (2, 3) and values (2, 3) need heads",
    ),
    case("split_scalar", lambda: Tensor(1.0).split(1), ValueError, "split: a tensor without axes"),
    case("chunk_scalar", lambda: Tensor(1.0).chunk(1), ValueError, "chunk: a tensor without axes"),
    case("topk_scalar", lambda: Tensor(1.0).topk(1), ValueError, "topk: a tensor without axes"),
    case("nonzero_scalar", lambda: Tensor(1.0).nonzero(), ValueError, "nonzero: a tensor without"),
    case("unflatten_number", lambda: ones(4).unflatten(0, 3), ValueError, "(4,)", "(3,)"),
    case("linear_tuple", lambda: ones(2, 3).linear((3, 4)), TypeError, "linear: expected a tensor"),
    case("rearrange", lambda: ones(2, 3).rearrange(5), TypeError, "such as 'a b -> b a', got 5"),
    case("interpolate", lambda: ones(2, 3).interpolate(2.5), TypeError, "expected an int"),
    case("array_as_axis", lambda: ones(2).sum(np.array([0, 1])), TypeError, "expected an int"),
    case("diagonal", lambda: ones(3).diagonal(), ValueError, "two axes or more", "(3,)"),
    case("diag", lambda: ones(2, 3).diag(), ValueError, "expected a vector", "(2, 3)"),
    case("triangle", lambda: ones(3).tril(), ValueError, "two axes", "(3,)"),
    case(
        "einsum_extents",
        lambda: Tensor.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)),
        ValueError,
        "axis j is 3 and 4 in shapes (2, 3), (4, 5)",
    ),
    case(
        "einsum_operands",
        lambda: Tensor.einsum("ij,jk->ik", ones(2, 3)),
        ValueError,
        "is for 2 tensors, 1 were given",
    ),
    case("einsum_axes", lambda: Tensor.einsum("ijk", ones(2, 3)), ValueError, "3 axes of 2"),
    case("einsum_result", lambda: Tensor.einsum("ij->z", ones(2, 3)), ValueError, "names axis z"),
    case("einsum_twice", lambda: Tensor.einsum("ij->ii", ones(2, 3)), ValueError, "names axis i"),
    case("einsum_text", lambda: Tensor.einsum(5, ones(2)), TypeError, "formula such as", "got 5"),
    case("einsum_signs", lambda: Tensor.einsum("i1->i", ones(2, 3)), ValueError, "of letters"),
    case(
        "cross_entropy",
        lambda: ones(2, 3).cross_entropy(Tensor([1, 2, 3])),
        ValueError,
        "logits (2, 3) and targets (3,)",
    ),
    case(
        "sparse_cross_entropy",
        lambda: ones(2, 3).sparse_categorical_crossentropy(Tensor([1, 2, 3])),
        ValueError,
        "need targets of shape (2,), got (3,)",
    ),
    case("nll", lambda: ones(2, 3).nll_loss(Tensor([1, 2, 3])), ValueError, "(2, 3)", "(3,)"),
    case(
        "batchnorm",
        lambda: ones(2, 3).batchnorm(ones(3), ones(3), ones(4), ones(3)),
        ValueError,
        "batchnorm: mean (4,) does not fit axis 1 of (2, 3)",
    ),
]


@each(SHAPES)
def test_shapes_that_do_not_fit(wrong: Case) -> None:
    message_of(wrong)


CONVOLUTIONS = [
    case(
        "channels",
        lambda: ones(1, 3, 8, 8).conv2d(ones(4, 2, 3, 3)),
        ValueError,
        "input (1, 3, 8, 8) and weight (4, 2, 3, 3) do not fit: 3 input channels",
    ),
    case(
        "axes",
        lambda: ones(3, 8, 8).conv2d(ones(4, 3, 3, 3)),
        ValueError,
        "input (3, 8, 8) and weight (4, 3, 3, 3)",
    ),
    case(
        "kernel_too_large",
        lambda: ones(1, 3, 8, 8).conv2d(ones(4, 3, 9, 9)),
        ValueError,
        "weight (4, 3, 9, 9) does not fit into input (1, 3, 8, 8)",
    ),
    case("kernel_empty", lambda: ones(1, 1, 4, 4).conv2d(ones(1, 1, 0, 3)), ValueError, "empty"),
    case("array", lambda: ones(1, 1, 4, 4).conv2d(np.ones((1, 1, 3, 3))), TypeError, "ndarray"),
    case(
        "bias",
        lambda: ones(1, 3, 8, 8).conv2d(ones(4, 3, 3, 3), bias=ones(3)),
        ValueError,
        "bias of shape (3,) does not fit weight (4, 3, 3, 3); expected (4,)",
    ),
    case("stride_zero", lambda: conv(stride=0), ValueError, "stride: expected 1 or more, got 0"),
    case("stride_negative", lambda: conv(stride=-1), ValueError, "expected 1 or more, got -1"),
    case("stride_float", lambda: conv(stride=1.5), TypeError, "stride: expected an int", "1.5"),
    case("stride_count", lambda: conv(stride=(1, 2, 3)), ValueError, "2 numbers", "(1, 2, 3)"),
    case("dilation_zero", lambda: conv(dilation=0), ValueError, "dilation", "got 0"),
    case("groups_zero", lambda: conv(groups=0), ValueError, "groups: expected 1 or more, got 0"),
    case("padding_text", lambda: conv(padding="a"), TypeError, "padding: expected an int"),
    case(
        "transposed_channels",
        lambda: ones(1, 3, 8, 8).conv_transpose2d(ones(4, 3, 3, 3)),
        ValueError,
        "input (1, 3, 8, 8) and weight (4, 3, 3, 3) do not fit",
    ),
    case(
        "transposed_padding",
        lambda: ones(1, 3, 8, 8).conv_transpose2d(ones(3, 4, 3, 3), padding=20),
        ValueError,
        "padding 20 cuts off more",
    ),
    case("pool_too_large", lambda: ones(1, 1, 8, 8).max_pool2d(9), ValueError, "window of (9, 9)"),
    case("pool_empty", lambda: ones(1, 1, 8, 8).max_pool2d(0), ValueError, "kernel_size", "got 0"),
    case("pool_negative", lambda: ones(1, 1, 8, 8).avg_pool2d(-1), ValueError, "got -1"),
    case("pool_float", lambda: ones(1, 1, 8, 8).max_pool2d(2.5), TypeError, "expected an int"),
    case("pool_stride", lambda: ones(1, 1, 8, 8).max_pool2d(2, stride=0), ValueError, "stride"),
    case("pool_axes", lambda: ones(3).max_pool2d(), ValueError, "pooling over 2 axes", "(3,)"),
]


def conv(**options: object) -> Tensor:
    return ones(1, 3, 8, 8).conv2d(ones(4, 3, 3, 3), **options)


@each(CONVOLUTIONS)
def test_windows_that_do_not_fit(wrong: Case) -> None:
    message_of(wrong)


def test_error_comes_from_the_line_that_wrote_the_operator() -> None:
    x = ones(2, 3)
    try:
        x.expand(4, 3)
    except ValueError as error:
        assert "(2, 3)" in str(error)
    else:
        raise AssertionError("expand took a shape that does not fit")
    assert x.sum().item() == 6.0
