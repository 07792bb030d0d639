"""Lowering keeps what a kernel computes.

Every stage against numpy, with and without optimisations.
"""

from __future__ import annotations

import kernel_cases as kernels
import numpy as np
import pytest
from tg_codegen.kernel.pipeline import lower_kernel
from tg_codegen.optimize import Opt, OptOps, apply_opts, choose_opts
from tg_ir.dtype import dtypes
from tg_ir.graph.evaluate import run_kernel_graph, run_linear_kernel
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.uop import UOp

AVX512 = TargetCapabilities(
    ops=frozenset(GroupOp.ALU | {Ops.CAST, Ops.BITCAST}),
    dtypes=frozenset(dtypes.all),
    vector_bits=512,
    vector_registers=32,
    has_threads=True,
)
SCALAR = TargetCapabilities(
    ops=frozenset(GroupOp.ALU | {Ops.CAST, Ops.BITCAST}), dtypes=frozenset(dtypes.all)
)
V, U, N, S = OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL, OptOps.STAGE

CASES = {
    "matmul": kernels.matmul(7, 18, 5),
    "matmul_large": kernels.matmul(30, 50, 17),
    "softmax": kernels.softmax(3, 20),
    "convolution": kernels.convolution(2, 3, 5, 6),
    "weight_gradient": kernels.weight_gradient(2, 3, 4, 5, 3),
    "input_gradient": kernels.input_gradient(2, 3, 5, 6),
    "sum_rows": kernels.sum_axis(3, 150, 1),
    "sum_columns": kernels.sum_axis(9, 70, 0),
    "argmax": kernels.argmax(3, 11),
    "cumulative_sum": kernels.cumulative_sum(3, 9),
    "embedding": kernels.embedding(6, 5, 18),
    "scatter_add": kernels.scatter_add(12, 4),
    "two_outputs": kernels.two_outputs(4, 20),
}

MOVES = {
    "matmul": [
        [Opt(V, (1,), 8)],
        [Opt(V, (1,), 16), Opt(U, (0,), 3)],
        [Opt(V, (2,), 4)],
        [Opt(N, (2,), 2)],
        [Opt(V, (1,), 8), Opt(U, (0,), 4), Opt(S, None, 1)],
        [Opt(V, (1,), 8), Opt(OptOps.SPLIT, (0,), 3), Opt(OptOps.THREAD, (0, 0)), Opt(S, None, 1)],
        [Opt(OptOps.ORDER, None, ((1,), (0,))), Opt(V, (1,), 4), Opt(S, None, 0)],
    ],
    "softmax": [
        [Opt(V, (1,), 8), Opt(V, (2,), 8), Opt(V, (3,), 8)],
        [Opt(N, (3,), 4), Opt(V, (2,), 16)],
    ],
    "convolution": [
        [Opt(V, (3,), 4), Opt(U, (1,), 2)],
        [Opt(V, (1,), 8), Opt(U, (3,), 4), Opt(S, None, 1)],
        [Opt(N, (6,), 3), Opt(N, (5,), 3)],
        [Opt(U, (2,), 4), Opt(V, (0,), 2)],
    ],
    "sum_rows": [[Opt(V, (1,), 16), Opt(N, (1, 0), 4)], [Opt(V, (1,), 64)], [Opt(N, (1,), 7)]],
    "sum_columns": [[Opt(V, (1,), 16), Opt(U, (1, 0), 2)], [Opt(N, (0,), 4), Opt(V, (1,), 8)]],
    "argmax": [[Opt(V, (0,), 2)], [Opt(U, (0,), 2)]],
    "cumulative_sum": [[Opt(V, (0,), 4)], [Opt(U, (0,), 2)]],
    "embedding": [[Opt(V, (1,), 16)], [Opt(V, (0,), 4)], [Opt(U, (0,), 4)]],
}


def run_linear(case: kernels.Case, linear: tuple[UOp, ...], extent: int) -> kernels.Array:
    arrays = kernels.inputs_of(case)
    shape, dtype = case.buffers[0]
    out = np.zeros(shape, kernels.NUMPY_DTYPES[dtype])
    views = [memoryview(a).cast("B") for a in (out, *map(np.ascontiguousarray, arrays))]
    run_linear_kernel(linear, views, (), 0, extent)
    return out


def run_lowered(
    case: kernels.Case, capabilities: TargetCapabilities, opts: list[Opt] | None
) -> kernels.Array:
    lowered = lower_kernel(case.sink, capabilities, opts)
    assert isinstance(lowered.thread_extent, int)
    return run_linear(case, lowered.linear, lowered.thread_extent)


def expected(case: kernels.Case) -> kernels.Array:
    return case.oracle(*kernels.inputs_of(case))


@pytest.mark.parametrize("name", CASES)
def test_lowering_without_moves_keeps_the_result(name: str) -> None:
    got = run_lowered(CASES[name], SCALAR, [])
    np.testing.assert_allclose(got, expected(CASES[name]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_heuristic_keeps_the_result(name: str) -> None:
    got = run_lowered(CASES[name], AVX512, None)
    np.testing.assert_allclose(got, expected(CASES[name]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "opts"),
    [(name, opts) for name, several in MOVES.items() for opts in several],
    ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)),
)
def test_moves_keep_the_result(name: str, opts: list[Opt]) -> None:
    got = run_lowered(CASES[name], AVX512, opts)
    np.testing.assert_allclose(got, expected(CASES[name]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "opts"),
    [(name, opts) for name, several in MOVES.items() for opts in several],
    ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)),
)
def test_the_optimised_kernel_graph_computes_the_same_as_the_plain_one(
    name: str, opts: list[Opt]
) -> None:
    case = CASES[name]
    results = []
    for sink in (case.sink, apply_opts(case.sink, opts)):
        shape, dtype = case.buffers[0]
        out = np.zeros(shape, kernels.NUMPY_DTYPES[dtype])
        arrays = (out, *map(np.ascontiguousarray, kernels.inputs_of(case)))
        run_kernel_graph(sink, [memoryview(a).cast("B") for a in arrays], ())
        results.append(out)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(results[0], expected(case), rtol=1e-5, atol=1e-5)


SHAPES = [(1, 1, 1), (1, 17, 3), (2, 3, 33), (13, 31, 2), (16, 16, 16), (40, 5, 9)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_the_heuristic_handles_any_matmul(m: int, n: int, k: int) -> None:
    case = kernels.matmul(m, n, k)
    got = run_lowered(case, AVX512, None)
    np.testing.assert_allclose(got, expected(case), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 9, 16])
@pytest.mark.parametrize("channels", [(1, 1), (1, 4), (3, 2), (2, 18)])
@pytest.mark.parametrize("kind", ["forward", "weight", "input"])
def test_the_heuristic_handles_any_convolution(
    size: int, channels: tuple[int, int], kind: str
) -> None:
    cin, cout = channels
    case = {
        "forward": lambda: kernels.convolution(2, cin, cout, size),
        "weight": lambda: kernels.weight_gradient(2, cin, cout, size, 3),
        "input": lambda: kernels.input_gradient(2, cin, cout, size),
    }[kind]()
    got = run_lowered(case, AVX512, None)
    np.testing.assert_allclose(got, expected(case), rtol=1e-3, atol=1e-4)


def test_a_register_tile_has_one_fma_a_vector_and_step() -> None:
    opts = [Opt(V, (1,), 16), Opt(U, (1, 0), 2), Opt(U, (0,), 14), Opt(S, None, 1)]
    linear = lower_kernel(kernels.matmul(28, 64, 128).sink, AVX512, opts).linear
    fused = [n for n in linear if n.op is Ops.MULACC]
    assert len(fused) == 28
    assert {n.dtype.count for n in fused} == {16}


def test_the_number_of_nodes_does_not_grow_with_the_lanes() -> None:
    sink = kernels.matmul(8, 64, 8).sink
    sizes = {
        lanes: len(lower_kernel(sink, AVX512, [Opt(V, (1,), lanes)]).linear)
        for lanes in (4, 16, 32)
    }
    assert sizes[4] == sizes[16] == sizes[32]


def test_gather_has_no_loop_over_the_indexed_axis() -> None:
    linear = lower_kernel(kernels.embedding(6, 5, 18).sink, SCALAR, []).linear
    bounds = sorted(int(n.src[0].arg) for n in linear if n.op is Ops.RANGE)
    assert bounds == [6, 18]


def test_the_heuristic_lists_what_it_did() -> None:
    opts = choose_opts(kernels.matmul(128, 128, 128).sink, AVX512)
    lowered = lower_kernel(kernels.matmul(128, 128, 128).sink, AVX512)
    assert lowered.opts == tuple(map(str, opts))
    assert any(opt.op is OptOps.VECTOR for opt in opts)


@pytest.mark.parametrize(
    ("opt", "reason"),
    [
        (Opt(V, (7,), 4), "no axis 7 in this kernel; there are 0, 1, 2"),
        (Opt(U, (2,), 4), "expected an axis of kind GLOBAL, this one is REDUCE"),
        (Opt(OptOps.THREAD, (2,)), "only a GLOBAL axis can be threaded"),
        (Opt(OptOps.ORDER, None, ((5,),)), "no store and no reduction has all of these axes"),
    ],
)
def test_a_move_that_the_kernel_does_not_allow_says_why(opt: Opt, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        lower_kernel(CASES["matmul"].sink, AVX512, [opt])


def test_two_vector_axes_on_one_value_are_refused() -> None:
    with pytest.raises(ValueError, match="two vector axes"):
        lower_kernel(CASES["matmul"].sink, AVX512, [Opt(V, (1,), 4), Opt(V, (0,), 4)])
