"""Tensor graphs give what numpy gives."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.evaluate import TensorValue, evaluate, register_custom
from tg_ir.graph.ops import Combine, CustomArg, FunctionArg, Ops, ParamArg, ReduceArg, SkewArg
from tg_ir.graph.uop import UOp

F32, I32 = dtypes.float32, dtypes.int32


def buffer(array, inputs, dtype=None):
    kinds = {"float32": F32, "int32": I32, "bool": dtypes.bool, "float64": dtypes.float64}
    node = UOp.new_buffer("CPU", array.size, dtype or kinds[array.dtype.name])
    inputs[node] = array.tobytes()
    return node.reshape(array.shape)


def result(graph, inputs=None):
    value = evaluate(graph, inputs)[0]
    return np.array(value.items).reshape(value.shape)


def counting(*shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.int32).reshape(shape)


# ---- movement


@st.composite
def moved(draw):
    """A chain of movement ops, as a graph and as an array."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    array = counting(*shape)
    inputs = {}
    graph = buffer(array, inputs)
    for _ in range(draw(st.integers(1, 5))):
        graph, array = draw(st.sampled_from(STEPS))(draw, graph, array)
    return graph, array, inputs


def permute(draw, graph, array):
    axes = draw(st.permutations(range(array.ndim)))
    return graph.permute(axes), array.transpose(axes)


def flip(draw, graph, array):
    flags = [draw(st.booleans()) for _ in array.shape]
    return graph.flip(flags), np.flip(array, [axis for axis, f in enumerate(flags) if f])


def pad(draw, graph, array):
    padding = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in array.shape]
    if array.size > 500:
        return graph, array
    return graph.pad(padding), np.pad(array, padding)


def shrink(draw, graph, array):
    bounds = []
    for extent in array.shape:
        begin = draw(st.integers(0, max(0, extent - 1)))
        bounds.append((begin, draw(st.integers(begin, extent))))
    return graph.shrink(bounds), array[tuple(slice(*b) for b in bounds)]


def reshape(draw, graph, array):
    shapes = [(array.size,), (1, *array.shape), (array.size, 1), array.shape[::-1]]
    shape = draw(st.sampled_from(shapes))
    return graph.reshape(shape), array.reshape(shape)


def expand(draw, graph, array):
    if array.size > 500:
        return graph, array
    shape = tuple(draw(st.integers(0, 3)) if extent == 1 else extent for extent in array.shape)
    return graph.expand(shape), np.broadcast_to(array, shape)


STEPS = [permute, flip, pad, shrink, reshape, expand]


@settings(max_examples=200, deadline=None)
@given(moved())
def test_chain_of_movement_ops(case):
    graph, array, inputs = case
    assert graph.shape == array.shape
    found = evaluate(graph, inputs)[0]
    assert found.shape == array.shape
    assert found.items == array.ravel().tolist()


def skew(node, **fields):
    return UOp(Ops.SKEW, node.dtype, (node,), SkewArg(**fields))


def unskew(node, **fields):
    return UOp(Ops.UNSKEW, node.dtype, (node,), SkewArg(**fields))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans()
)
def test_skew_gives_windows(extent, window, stride, dilation, window_first):
    size = (extent - (window - 1) * dilation - 1) // stride + 1
    if size < 1:
        return
    array = counting(2, extent)
    inputs = {}
    x = buffer(array, inputs)
    if window_first:
        wide = x.reshape((1, 2, extent)).expand((window, 2, extent))
        graph = skew(wide, axis=2, window_axis=0, stride=stride, dilation=dilation, size=size)
    else:
        wide = x.reshape((2, extent, 1)).expand((2, extent, window))
        graph = skew(wide, axis=1, window_axis=2, stride=stride, dilation=dilation, size=size)
    expected = np.stack(
        [array[:, k * dilation :][:, ::stride][:, :size] for k in range(window)],
        0 if window_first else 2,
    )
    assert np.array_equal(result(graph, inputs), expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_unskew_is_the_transpose_of_skew(extent, window, stride, dilation):
    size = (extent - (window - 1) * dilation - 1) // stride + 1
    if size < 1:
        return
    # <skew(x), y> == <x, unskew(y)> for all x and y
    x, y = counting(extent, window), counting(size, window)[::-1].copy()
    inputs = {}
    fields = {"axis": 0, "window_axis": 1, "stride": stride, "dilation": dilation}
    forward = result(skew(buffer(x, inputs), size=size, **fields), inputs)
    backward = result(unskew(buffer(y, inputs), size=extent, **fields), inputs)
    assert (forward * y).sum() == (x * backward).sum()


def test_skew_that_reads_beyond_its_axis_is_refused():
    inputs = {}
    x = buffer(counting(4, 3), inputs)
    with pytest.raises(EvaluationError, match="skew: reads row 5"):
        evaluate(skew(x, axis=0, window_axis=1, stride=1, dilation=1, size=4), inputs)


def test_symbolic_sizes_take_their_values_from_bind_and_inputs():
    n = UOp.variable("n", 1, 4)
    inputs = {n: 2}
    x = buffer(counting(4), inputs)
    assert result(x.shrink(((0, n),)), inputs).tolist() == [1, 2]
    assert result(x.shrink(((0, n.bind(3)),)), inputs).tolist() == [1, 2, 3]
    assert result(UOp(Ops.IOTA, I32, (n,)), inputs).tolist() == [0, 1]


# ---- elementwise, reductions, gather


def test_elementwise_ops_round_to_their_dtype():
    inputs = {}
    left, right = np.float32([0.1, 3e38, -0.0]), np.float32([0.2, 3e38, 0.0])
    with np.errstate(over="ignore"):
        expected = left + right
    total = buffer(left, inputs) + buffer(right, inputs)
    assert result(total, inputs).astype(np.float32).tobytes() == expected.tobytes()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_reduction_along_any_axes(shape, data):
    array = counting(*shape)
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    inputs = {}
    graph = buffer(array, inputs).reduce_axis(Ops.ADD, axes)
    expected = array.sum(tuple(axes), keepdims=True)
    assert np.array_equal(result(graph, inputs), expected)
    assert graph.shape == expected.shape


def test_reduction_of_a_tuple_of_states():
    old, new = (UOp(Ops.STATE, F32, (), (side, 0)) for side in (0, 1))
    old_at, new_at = (UOp(Ops.STATE, I32, (), (side, 1)) for side in (0, 1))
    better = old.alu(Ops.CMPLT, new)
    combine = Combine(
        "argmax",
        (float("-inf"), 0),
        (better.where(new, old), better.where(new_at, old_at)),
    )
    array = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    inputs = {}
    x = buffer(array, inputs)
    place = UOp(Ops.IOTA, I32, (), 5).reshape((1, 5)).expand((4, 5))
    both = UOp(Ops.REDUCE_AXIS, F32, (x, place), ReduceArg(combine, (1,)))
    assert np.array_equal(result(both.get_tuple(1, I32), inputs)[:, 0], array.argmax(1))
    assert np.array_equal(result(both.get_tuple(0, F32), inputs)[:, 0], array.max(1))
    with pytest.raises(EvaluationError, match="several results"):
        evaluate(both, inputs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scan_gives_prefixes(axis):
    array = counting(2, 3, 4)
    inputs = {}
    arg = ReduceArg(Combine.of(Ops.ADD, I32), (axis,))
    graph = UOp(Ops.SCAN_AXIS, I32, (buffer(array, inputs),), arg)
    assert np.array_equal(result(graph, inputs), array.cumsum(axis))


def test_gather_wraps_negatives_once_and_reads_zero_out_of_range():
    array = counting(3, 4, 2)
    inputs = {}
    places = np.int32([[0, -1, 3], [-4, 2, -3]])
    graph = UOp(Ops.GATHER, I32, (buffer(array, inputs), buffer(places, inputs)), (0,))
    expected = np.where(
        ((places >= -3) & (places < 3))[..., None, None], array[places % 3], 0
    )
    assert graph.shape == (2, 3, 4, 2)
    assert np.array_equal(result(graph, inputs), expected)


def test_gather_along_two_axes():
    array = counting(3, 4, 2)
    inputs = {}
    first, second = np.int32([0, 2]), np.int32([1, 3])
    sources = tuple(buffer(a, inputs) for a in (array, first, second))
    graph = UOp(Ops.GATHER, I32, sources, (0, 2 - 1))
    assert np.array_equal(result(graph, inputs), array[first, second])


# ---- writes


def written(array, target_of, value, accumulate=None):
    """The array after a STORE of `value` to `target_of(buffer)`."""
    inputs = {}
    node = buffer(array.ravel(), inputs)
    target = target_of(node.reshape(array.shape))
    store = target.store(buffer(value, inputs), accumulate)
    return result(node.after(store), inputs).reshape(array.shape)


def test_store_to_a_view_writes_the_elements_of_the_view():
    array, value = counting(3, 4), counting(2, 2) * 100
    found = written(array, lambda x: x.shrink(((1, 3), (0, 2))).flip((True, False)), value)
    expected = array.copy()
    expected[1:3, 0:2][::-1] = value
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("accumulate", [None, Ops.ADD])
def test_scatter_drops_what_is_out_of_range_and_the_last_duplicate_wins(accumulate):
    array = counting(4)
    places, value = np.int32([1, -1, 1, 4, -5]), np.int32([10, 20, 30, 40, 50])
    inputs = {}
    node = buffer(array, inputs)
    target = UOp(Ops.GATHER, I32, (node, buffer(places, inputs)), (0,))
    graph = node.after(target.store(buffer(value, inputs), accumulate))
    expected = [1, 42, 3, 24] if accumulate else [1, 30, 3, 20]
    assert result(graph, inputs).tolist() == expected


def test_a_read_sees_the_version_that_it_names():
    array = counting(3)
    inputs = {}
    before = buffer(array, inputs)
    after = before.after(before.store(before + before))
    both = UOp.sink(before.shrink(((0, 1),)), after)
    first, second = evaluate(both, inputs)
    assert first.items == [1]
    assert second.items == [2, 4, 6]


def test_swap_through_versions():
    inputs = {}
    a, b = buffer(counting(2), inputs), buffer(counting(2) * 10, inputs)
    new_a, new_b = a.after(a.store(b)), b.after(b.store(a))
    assert [v.items for v in evaluate([new_a, new_b], inputs)] == [[10, 20], [1, 2]]


def test_store_to_another_version_is_refused():
    inputs = {}
    a, b = buffer(counting(2), inputs), buffer(counting(2), inputs)
    with pytest.raises(EvaluationError, match="movement over the version that AFTER names"):
        evaluate(a.after(b.store(a)), inputs)


def test_history_of_a_realised_value_is_not_computed():
    inputs = {}
    a = buffer(counting(2), inputs)
    unknown = UOp.new_buffer("CPU", 2, I32)
    graph = UOp(Ops.REALIZED, I32, (a, unknown)) + a
    assert result(graph, inputs).tolist() == [2, 4]


# ---- calls


def test_function_binds_its_parameters_and_gives_several_results():
    x, y = (UOp(Ops.PARAM, I32, (), ParamArg(slot, shape=(3,))) for slot in (0, 1))
    body = UOp(Ops.TUPLE, dtypes.void, (x + y, x * y))
    inputs = {}
    args = (buffer(counting(3), inputs), buffer(counting(3) * 2, inputs))
    call = UOp(Ops.FUNCTION, dtypes.void, (body, *args), FunctionArg("both"))
    swapped = UOp(Ops.FUNCTION, dtypes.void, (body, args[1], args[1]), FunctionArg("both"))
    found = evaluate([call.get_tuple(0, I32), swapped.get_tuple(1, I32)], inputs)
    assert [value.items for value in found] == [[3, 6, 9], [4, 16, 36]]


def test_custom_kernel_runs_its_registered_function():
    def reversed_items(args):
        return [TensorValue(args[0].shape, args[0].items[::-1])]

    register_custom("reversed_items", reversed_items)
    inputs = {}
    arg = CustomArg("rev", "C", "...", (((3,), I32),), evaluate="reversed_items")
    call = UOp(Ops.CUSTOM, dtypes.void, (buffer(counting(3), inputs),), arg)
    assert result(call.get_tuple(0, I32), inputs).tolist() == [3, 2, 1]
    unknown = CustomArg("rev", "C", "...", (((3,), I32),), evaluate="reversed_item")
    with pytest.raises(EvaluationError, match="did you mean 'reversed_items'"):
        evaluate(UOp(Ops.CUSTOM, dtypes.void, call.src, unknown).get_tuple(0, I32), inputs)
    with pytest.raises(EvaluationError, match="two functions evaluate"):
        register_custom("reversed_items", lambda args: [])


# ---- limits and errors


def test_graphs_of_any_depth():
    inputs = {}
    x = buffer(np.int32([1]), inputs)
    for _ in range(20 * sys.getrecursionlimit()):
        x = x + buffer_one(inputs)
    assert result(x, inputs).tolist() == [1 + 20 * sys.getrecursionlimit()]


def buffer_one(inputs):
    one = UOp.const(I32, 1)
    return one.reshape((1,))


def test_missing_and_wrong_inputs_name_the_node():
    x = UOp.new_buffer("CPU", 3, I32)
    with pytest.raises(EvaluationError, match="no input is given for <UOp BUFFER"):
        evaluate(x + x)
    with pytest.raises(EvaluationError, match="has 3 elements, its input has 2"):
        evaluate(x, {x: [1, 2]})


def test_kernel_ops_have_no_place_in_a_tensor_graph():
    with pytest.raises(EvaluationError, match="LANES has no place in a tensor graph"):
        evaluate(UOp(Ops.LANES, I32.vec(4)))
