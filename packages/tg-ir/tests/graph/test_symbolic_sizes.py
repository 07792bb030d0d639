"""Sizes over variables: how they compare, and how they are shown."""

from __future__ import annotations

import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp, as_size, prod, same_extent

N = UOp.variable("n", 1, 10)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (N, "n"),
        (N.bind(4), "n=4"),
        (N * 64 + 1, "n*64 + 1"),
        ((N + 1) * 3, "(n + 1)*3"),
        (10 - N, "10 - n"),
        (N - 2, "n - 2"),
        (N.bind(4) // 2 % 3, "((n=4) // 2) % 3"),
        (N < 3, "n < 3"),
    ],
)
def test_size_is_shown_as_people_write_it(size: UOp, text: str) -> None:
    assert str(size) == text


def test_other_nodes_and_long_sizes_are_shown_by_their_parts() -> None:
    assert str(UOp.new_buffer("CPU", 4, dtypes.int32)).startswith("<UOp BUFFER")
    size = N
    for k in range(100):
        size = size * 3 + (k + 1)
    assert str(size) == "<UOp ADD dtypes.index src=(MUL, CONST)>"
    assert str(UOp(Ops.BIND, dtypes.index, (N,))).startswith("<UOp BIND")


def test_equal_sizes_are_one_node() -> None:
    bound = N.bind(4)
    assert as_size((bound + 3) - bound) == 3
    assert prod((bound, 4, 16)) is prod((bound, 64))
    assert same_extent(bound * 64 // 64, bound)
    assert not same_extent(bound, N.bind(5))
    assert not same_extent(bound, 4)


def test_symbolic_size_is_no_int() -> None:
    assert int(UOp.const(dtypes.index, 3)) == 3
    with pytest.raises(TypeError, match="n=4 is symbolic"):
        int(N.bind(4))
