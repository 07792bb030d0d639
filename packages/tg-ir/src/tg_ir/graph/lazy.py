"""Derived facts of a `UOp`, imported on first use.

The modules that compute them build on `UOp` themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tg_ir.graph.ops import ConstType, Ops
    from tg_ir.graph.uop import UOp


def infer_shapes(node: UOp) -> None:
    """See `shape.infer_shapes`."""
    from tg_ir.graph.shape import infer_shapes as run

    run(node)


def infer_devices(node: UOp) -> None:
    """See `shape.infer_devices`."""
    from tg_ir.graph.shape import infer_devices as run

    run(node)


def bounds(node: UOp) -> tuple[ConstType, ConstType]:
    """See `symbolic.bounds`."""
    from tg_ir.graph.symbolic.bounds import bounds as run

    return run(node)


def simplify(node: UOp) -> UOp:
    """See `symbolic.simplify`."""
    from tg_ir.graph.symbolic.simplify import simplify as run

    return run(node)


def size_text(node: UOp) -> str | None:
    """See `size_text.size_text`."""
    from tg_ir.graph.size_text import size_text as run

    return run(node)


def content_keys(node: UOp) -> None:
    """See `content_key.content_keys`."""
    from tg_ir.graph.content_key import content_keys as run

    run(node)


def fold_index(op: Ops, values: Sequence[int]) -> int:
    """See `symbolic.bounds.fold_index`."""
    from tg_ir.graph.symbolic.bounds import fold_index as run

    return run(op, values)
