"""EXP2, LOG2 and SIN out of basic ops: accuracy over all exponents, special values."""

import numpy as np
import pytest
from tg_codegen.kernel.decompose import decompose
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.uop import UOp

from .graph_in_numpy import TYPES, run_graph

TRANSCENDENTAL = {Ops.EXP2, Ops.LOG2, Ops.SIN}
FUSED = TargetCapabilities(GroupOp.Elementwise - TRANSCENDENTAL, frozenset(dtypes.all))
UNFUSED = TargetCapabilities(FUSED.ops - {Ops.MULACC}, FUSED.dtypes)
NO_64_BITS = TargetCapabilities(
    UNFUSED.ops, FUSED.dtypes - {dtypes.int64, dtypes.uint64, dtypes.float64}
)
REFERENCES = {Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin}


def compute(op, values, capabilities):
    dtype = next(known for known, kind in TYPES.items() if kind == values.dtype.type)
    leaf = UOp(Ops.LOAD, dtype, (), "x")
    graph = decompose(leaf.alu(op), capabilities)
    used = {node.op for node in graph.toposort() if node.src}
    assert used <= capabilities.ops
    return run_graph(graph, {leaf: values})


def samples(kind, count):
    """Random mantissas for every exponent and both signs, and all powers of two."""
    random = np.random.default_rng(7)
    layout = np.finfo(kind)
    exponents = np.arange(2**layout.iexp, dtype=np.uint64)
    mantissas = random.integers(0, 2**layout.nmant, (len(exponents), count), dtype=np.uint64)
    mantissas[:, 0] = 0
    mantissas[:, 1] = 2**layout.nmant - 1
    bits = (exponents[:, None] << np.uint64(layout.nmant) | mantissas).ravel()
    values = bits.astype(f"u{layout.bits // 8}").view(kind)
    return np.concatenate([values, -values])


def ulp_errors(result, exact, kind):
    """Errors in units of the last place of `kind`; where both are NaN or equal, 0."""
    layout = np.finfo(kind)
    with np.errstate(all="ignore"):
        same = (result == exact.astype(kind)) | (np.isnan(result) & np.isnan(exact))
        exponent = np.maximum(np.frexp(exact)[1] - 1, layout.minexp)
        unit = np.ldexp(np.ones_like(exact), exponent - layout.nmant)
        errors = np.abs(result.astype(exact.dtype) - exact) / unit
    return np.where(same, 0, errors)


# the arguments nearest to a multiple of pi/2 (Kahan's search; Muller, Elementary Functions, 11.3)
NEAREST = {np.float32: np.float32(16367173 * 2.0**72), np.float64: 6381956970095103 * 2.0**797}
ARGUMENTS = {
    Ops.EXP2: lambda kind: np.linspace(-1100, 1100, 200001).astype(kind),
    Ops.LOG2: lambda kind: np.linspace(0.4, 2.5, 100001).astype(kind),
    # near multiples of pi/2 the remainder cancels most
    Ops.SIN: lambda kind: np.append(np.arange(1, 100001) * (np.pi / 2), NEAREST[kind]).astype(kind),
}


@pytest.mark.parametrize("capabilities", [FUSED, UNFUSED, NO_64_BITS], ids=["fma", "no fma", "32"])
@pytest.mark.parametrize("op", sorted(TRANSCENDENTAL), ids=lambda op: op.name)
def test_float32_is_within_2_ulp(op, capabilities):
    values = np.concatenate([samples(np.float32, 300), ARGUMENTS[op](np.float32)])
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](values.astype(np.float64))
    errors = ulp_errors(compute(op, values, capabilities), exact, np.float32)
    assert np.nanmax(errors) <= 2
    assert not np.isnan(errors).any()


@pytest.mark.parametrize("capabilities", [FUSED, UNFUSED], ids=["fma", "no fma"])
@pytest.mark.parametrize("op", sorted(TRANSCENDENTAL), ids=lambda op: op.name)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no longer float to compare to")
def test_float64_is_within_2_ulp(op, capabilities):
    values = np.concatenate([samples(np.float64, 20), ARGUMENTS[op](np.float64)])
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](values.astype(np.longdouble))
    errors = ulp_errors(compute(op, values, capabilities), exact, np.float64)
    assert np.nanmax(errors) <= 2
    assert not np.isnan(errors).any()


@pytest.mark.parametrize("op", sorted(TRANSCENDENTAL), ids=lambda op: op.name)
def test_float16_is_rounded_from_float32(op):
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](values.astype(np.float64))
    assert np.nanmax(ulp_errors(compute(op, values, FUSED), exact, np.float16)) <= 0.51


INF, NAN = np.inf, np.nan
SPECIAL = {
    Ops.EXP2: [(INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (10.0, 1024.0), (2000.0, INF)],
    Ops.LOG2: [(0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (1.0, 0.0)],
    Ops.SIN: [(INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0)],
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("op", sorted(TRANSCENDENTAL), ids=lambda op: op.name)
def test_special_values_are_those_of_annex_f(op, kind):
    arguments = np.array([argument for argument, _ in SPECIAL[op]] + [NAN], kind)
    expected = np.array([value for _, value in SPECIAL[op]] + [NAN], kind)
    result = compute(op, arguments, FUSED)
    np.testing.assert_array_equal(result, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("op", sorted(TRANSCENDENTAL), ids=lambda op: op.name)
def test_lanes_do_not_add_nodes(op):
    sizes = []
    for count in (4, 16):
        leaf = UOp(Ops.LOAD, dtypes.float32.vec(count), (), "x")
        sizes.append(len(decompose(leaf.alu(op), FUSED).toposort()))
    assert sizes[0] == sizes[1]


def test_every_power_of_two_is_exact():
    exponents = np.arange(-149, 129, dtype=np.float32)
    expected = np.ldexp(np.float32(1), exponents[:-1].astype(np.int32))
    expected = np.append(expected, np.float32(INF))
    np.testing.assert_array_equal(compute(Ops.EXP2, exponents, FUSED), expected)
    finite = np.arange(-149, 128, dtype=np.float32)
    powers = np.ldexp(np.float32(1), finite.astype(np.int32))
    np.testing.assert_array_equal(compute(Ops.LOG2, powers, FUSED), finite)
