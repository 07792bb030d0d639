"""The pass that turns ops a target does not have into ops that it has."""

from __future__ import annotations

from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.uop import UOp


def decompose(sink: UOp, capabilities: TargetCapabilities) -> UOp:
    return sink
