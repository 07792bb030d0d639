"""Launch sizes against Python's own integers."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.device import (
    Add,
    ArtifactFormatError,
    Const,
    FloorDiv,
    FloorMod,
    IntExpr,
    Max,
    Min,
    Mul,
    Sub,
    TruncDiv,
    TruncMod,
    UnboundVariableError,
    Var,
    as_int_expr,
    int_expr_from_json,
)

BINARY = (Add, Sub, Mul, FloorDiv, FloorMod, TruncDiv, TruncMod, Min, Max)

leaves = st.one_of(st.integers(-100, 100).map(Const), st.sampled_from("xyz").map(Var))
exprs: st.SearchStrategy[IntExpr] = st.recursive(
    leaves,
    lambda inner: st.builds(lambda cls, a, b: cls(a, b), st.sampled_from(BINARY), inner, inner),
    max_leaves=12,
)
small = st.integers(-50, 50)


@given(exprs)
def test_written_form_reads_back_equal(expr: IntExpr) -> None:
    assert int_expr_from_json(json.loads(json.dumps(expr.to_json()))) == expr


@given(small, small.filter(bool))
def test_division_is_as_in_python_and_c(a: int, b: int) -> None:
    left, right = Const(a), Const(b)
    assert FloorDiv(left, right).evaluate({}) == math.floor(a / b)
    assert FloorMod(left, right).evaluate({}) == a - b * math.floor(a / b)
    assert TruncDiv(left, right).evaluate({}) == math.trunc(a / b)
    assert TruncMod(left, right).evaluate({}) == int(math.fmod(a, b))


@pytest.mark.parametrize("cls", [FloorDiv, FloorMod, TruncDiv, TruncMod])
def test_division_by_zero_gives_zero(cls: type[FloorDiv]) -> None:
    assert cls(Const(7), Const(0)).evaluate({}) == 0


@given(small, small)
def test_operators_build_what_they_say(a: int, b: int) -> None:
    x = Var("x")
    values = {"x": a}
    assert (x + b).evaluate(values) == a + b
    assert (x - b).evaluate(values) == a - b
    assert (x * b).evaluate(values) == a * b
    assert (x // b).evaluate(values) == (a // b if b else 0)
    assert (x % b).evaluate(values) == (a % b if b else 0)
    assert Min(x, Const(b)).evaluate(values) == min(a, b)
    assert Max(x, Const(b)).evaluate(values) == max(a, b)


def test_depth_is_not_limited() -> None:
    expr: IntExpr = Var("x")
    for _ in range(50_000):
        expr = Add(expr, Const(1))
    assert expr.evaluate({"x": 1}) == 50_001
    assert expr.variables() == {"x"}
    assert int_expr_from_json(expr.to_json()).evaluate({"x": 0}) == 50_000


def test_missing_variable_is_named() -> None:
    with pytest.raises(UnboundVariableError, match="no value for the variable 'n'; given: m"):
        (Var("n") + 1).evaluate({"m": 3})


@pytest.mark.parametrize("items", [[], ["+"], [1, 2], [1, "+"], [{"var": 3}], [1, 2, "pow"], [1.5]])
def test_malformed_form_is_refused(items: list[object]) -> None:
    with pytest.raises(ArtifactFormatError, match="integer expression"):
        int_expr_from_json(items)


def test_python_integers_become_constants() -> None:
    assert as_int_expr(3) == Const(3)
    assert as_int_expr(Var("x")) == Var("x")
