"""How many kernels known programs become, and that they compute what numpy does."""

from __future__ import annotations

import numpy as np
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Combine, Ops, ReduceArg, SkewArg
from tg_ir.graph.uop import UOp

random = np.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def wide(x, shape):
    return x.expand(shape)


def scalar(value, shape, dtype=dtypes.float32):
    return UOp.const(dtype, value).reshape((1,) * len(shape)).expand(shape)


def softmax(x):
    m = x.reduce_axis(Ops.MAX, (x.ndim - 1,))
    e = ((x - m.expand(x.shape)) * scalar(1.4426950408889634, x.shape)).alu(Ops.EXP2)
    return e / e.reduce_axis(Ops.ADD, (x.ndim - 1,)).expand(x.shape)


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    left = a.reshape((m, 1, k)).expand((m, n, k))
    right = b.permute((1, 0)).reshape((1, n, k)).expand((m, n, k))
    return (left * right).reduce_axis(Ops.ADD, (2,)).reshape((m, n))


def layernorm(x):
    n = x.shape[-1]
    axis = (x.ndim - 1,)
    mean = x.reduce_axis(Ops.ADD, axis)
    mean = mean * scalar(1 / n, mean.shape)
    centred = x - mean.expand(x.shape)
    var = (centred * centred).reduce_axis(Ops.ADD, axis)
    var = var * scalar(1 / n, var.shape) + scalar(1e-5, var.shape)
    return centred * var.alu(Ops.SQRT).alu(Ops.RECIPROCAL).expand(x.shape)


def test_elementwise_chain_is_one_kernel(world):
    x, y = world.tensor(floats(4, 6)), world.tensor(floats(4, 6))
    world.check((x + y) * y - x, kernels=1)


def test_equal_layouts_make_equal_kernels(world):
    first = world.tensor(floats(4, 6))
    second = world.tensor(floats(2, 12))
    a = world.schedule(first + first).linear.src[0].src[0]
    b = world.schedule(second + second).linear.src[0].src[0]
    assert a is b
    assert len([n for n in a.toposort() if n.op is Ops.RANGE]) == 1


def test_movement_is_folded_into_the_index(world):
    x = world.tensor(floats(4, 6))
    y = x.permute((1, 0)).reshape((3, 8)).flip((True, False)).shrink(((0, 2), (1, 7)))
    world.check(y.pad(((1, 2), (0, 3))) + scalar(1.0, (5, 9)), kernels=1)


def test_pad_of_a_function_that_is_not_zero_at_zero_is_zero(world):
    x = world.tensor(floats(3, 4))
    y = (x + scalar(1.0, (3, 4))).pad(((1, 0), (0, 2)))
    world.check(y + y, kernels=1)


def test_reduce(world):
    x = world.tensor(floats(3, 4, 5))
    world.check(x.reduce_axis(Ops.ADD, (1,)), kernels=1)
    world.check(x.reduce_axis(Ops.MAX, (0, 2)), kernels=1)
    world.check(x.reduce_axis(Ops.ADD, (0, 1, 2)), kernels=1)


def test_softmax_is_one_kernel(world):
    world.check(softmax(world.tensor(floats(5, 7))), kernels=1)


def test_layernorm_is_one_kernel(world):
    world.check(layernorm(world.tensor(floats(5, 8))), kernels=1)


def test_log_sum_exp_is_one_kernel(world):
    x = world.tensor(floats(5, 7))
    m = x.reduce_axis(Ops.MAX, (1,))
    s = (x - m.expand((5, 7))).alu(Ops.EXP2).reduce_axis(Ops.ADD, (1,)).alu(Ops.LOG2) + m
    world.check(s, kernels=1)


def test_matmul_with_bias_and_relu_is_one_kernel(world):
    a, b, bias = world.tensor(floats(4, 5)), world.tensor(floats(5, 3)), world.tensor(floats(3))
    out = matmul(a, b) + bias.reshape((1, 3)).expand((4, 3))
    world.check(out.maximum(scalar(0.0, (4, 3))), kernels=1)


def test_outputs_computed_from_one_matmul_are_one_kernel_that_stores_only_them(world):
    a, b = world.tensor(floats(4, 5)), world.tensor(floats(5, 3))
    product = matmul(a, b)
    zero = scalar(0.0, (4, 3))
    world.check(product.maximum(zero), zero < product, kernels=1)
    assert len(world.last.linear.src[0].src) == 1 + 4


def test_sums_over_the_same_elements_are_one_kernel(world):
    x, y = world.tensor(floats(4, 6)), world.tensor(floats(4, 6))
    total, weighted = x.reduce_axis(Ops.ADD, (1,)), (x * y).reduce_axis(Ops.ADD, (1,))
    world.check(total, weighted, kernels=1)


def test_matmuls_with_a_common_operand_stay_apart(world):
    a, b, c = (world.tensor(floats(4, 4)) for _ in range(3))
    world.check(matmul(a, b), matmul(a, c), kernels=2)


def test_two_matmuls_are_two_kernels(world):
    a, b, c = (world.tensor(floats(4, 4)) for _ in range(3))
    world.check(matmul(matmul(a, b).maximum(scalar(0.0, (4, 4))), c), kernels=2)


def test_the_steps_of_an_activation_are_repeated_for_its_gradient_and_not_stored(world):
    a, b = world.tensor(floats(8, 16)), world.tensor(floats(16, 32))
    c, d = world.tensor(floats(32, 16)), world.tensor(floats(16, 32))
    h = matmul(a, b)
    square = h * h
    gate = square * scalar(0.1, h.shape) + h
    odd = gate * square + gate
    act = odd * gate
    # what comes back depends on what went on, so that the two cannot be one kernel
    back = matmul(matmul(act, c), d)
    results = (back * (gate + odd * square + act),)
    world.check(*results)
    calls = world.schedule(*results).linear.src
    stored = {source for call in calls for source in call.src[1:]}
    # what is given, h, act, its product with c, and the result
    assert len(stored) == 4 + 4


def test_softmax_of_a_matmul_stores_the_matmul(world):
    a, b = world.tensor(floats(4, 6)), world.tensor(floats(6, 5))
    world.check(softmax(matmul(a, b)), kernels=2)


def test_attention_is_three_kernels(world):
    q, k, v = (world.tensor(floats(6, 4)) for _ in range(3))
    world.check(matmul(softmax(matmul(q, k.permute((1, 0)))), v), kernels=3)


def test_batch_norm_in_training_is_at_most_three_kernels(world):
    x = world.tensor(floats(3, 4, 5, 2))
    count = 3 * 5 * 2
    mean = x.reduce_axis(Ops.ADD, (0, 2, 3)) * scalar(1 / count, (1, 4, 1, 1))
    centred = x - mean.expand(x.shape)
    var = (centred * centred).reduce_axis(Ops.ADD, (0, 2, 3)) * scalar(1 / count, (1, 4, 1, 1))
    scale = (var + scalar(1e-5, (1, 4, 1, 1))).alu(Ops.SQRT).alu(Ops.RECIPROCAL)
    world.check(centred * scale.expand(x.shape))
    assert len(world.last.linear.src) <= 3


def convolution(x, w):
    (n, c, h, wd), (o, _, kh, kw) = x.shape, w.shape
    oh, ow = h - kh + 1, wd - kw + 1
    windows = x.reshape((n, c, h, 1, wd, 1)).expand((n, c, h, kh, wd, kw))
    windows = UOp(Ops.SKEW, x.dtype, (windows,), SkewArg(2, 3, 1, 1, oh))
    windows = UOp(Ops.SKEW, x.dtype, (windows,), SkewArg(4, 5, 1, 1, ow))
    windows = windows.reshape((n, 1, c, oh, kh, ow, kw)).expand((n, o, c, oh, kh, ow, kw))
    weights = w.reshape((1, o, c, 1, kh, 1, kw)).expand((n, o, c, oh, kh, ow, kw))
    return (windows * weights).reduce_axis(Ops.ADD, (2, 4, 6)).reshape((n, o, oh, ow))


def test_convolution_is_one_kernel(world):
    x, w = world.tensor(floats(2, 3, 5, 5)), world.tensor(floats(4, 3, 3, 3))
    world.check(convolution(x, w), kernels=1)


def test_unskew_is_the_transpose_of_skew(world):
    x = world.tensor(floats(3, 4))
    world.check(
        UOp(Ops.UNSKEW, x.dtype, (x,), SkewArg(0, 1, 2, 1, 9)) + scalar(0.0, (9, 4)), kernels=1
    )


def test_iota_and_casts(world):
    n = UOp(Ops.IOTA, dtypes.int32, (), 12).reshape((3, 4))
    x = world.tensor(floats(3, 4))
    world.check(n.cast(dtypes.float32) * x, kernels=1)


def test_empty_axis_gives_the_identity(world):
    x = world.tensor(floats(3, 0))
    y = world.tensor(floats(3, 1))
    world.check(x.reduce_axis(Ops.ADD, (1,)) + y, kernels=1)


def test_view_needs_no_kernel(world):
    x = world.tensor(floats(3, 4))
    world.check(x.permute((1, 0)).shrink(((1, 3), (0, 2))), kernels=0)


def test_contiguous_of_a_view_is_a_kernel(world):
    x = world.tensor(floats(3, 4))
    world.check(x.permute((1, 0)).contiguous(), kernels=1)


def test_scan(world):
    x = world.tensor(floats(3, 4))
    for axis in (0, 1):
        arg = ReduceArg(Combine.of(Ops.ADD, dtypes.float32), (axis,))
        world.check(UOp(Ops.SCAN_AXIS, x.dtype, ((x + x),), arg), kernels=1)


def test_gather_reads_by_index_without_a_loop_over_the_axis(world):
    table = world.tensor(floats(50, 3))
    index = world.tensor(np.array([[1, -1], [49, 50], [-51, 7]], np.int32))
    rows = UOp(Ops.GATHER, table.dtype, (table, index), (0,))
    world.check(rows + rows, kernels=1)
    kernel = world.last.linear.src[0].src[0]
    bounds = [n.src[0].arg for n in kernel.toposort() if n.op is Ops.RANGE]
    assert sorted(bounds) == [3, 6]


def test_gather_of_a_computed_value(world):
    table = world.tensor(floats(5, 4))
    index = world.tensor(np.array([0, 7, -2], np.int8))
    other = world.tensor(np.array([3, 1, -1], np.int64))
    shifted = table + scalar(1.0, (5, 4))
    world.check(UOp(Ops.GATHER, table.dtype, (shifted, index, other), (0, 1)), kernels=1)


def test_gather_by_a_gathered_index(world):
    table = world.tensor(floats(5))
    first = world.tensor(np.array([2, 9, -1, 0], np.int32))
    second = world.tensor(np.array([3, 1, 1], np.int32))
    inner = UOp(Ops.GATHER, first.dtype, (first, second), (0,))
    world.check(UOp(Ops.GATHER, table.dtype, (table, inner), (0,)), kernels=1)
