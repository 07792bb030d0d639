"""FASTMATH: lowering uses rules that are not exact, and such kernels have keys of their own."""

from __future__ import annotations

import kernel_cases as kernels
from tg_codegen.compile.cache_key import kernel_key
from tg_codegen.kernel.pipeline import lower_kernel
from tg_ir.config import Context
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import AxisType, CallArg, GroupOp, Ops
from tg_ir.graph.render_api import Compiler, Renderer, TargetCapabilities
from tg_ir.graph.uop import UOp
from tg_ir.target import Target

SCALAR = TargetCapabilities(
    ops=frozenset(GroupOp.ALU | {Ops.CAST, Ops.BITCAST}), dtypes=frozenset(dtypes.all)
)


class NoRenderer(Renderer):
    name = "NONE"

    @property
    def capabilities(self) -> TargetCapabilities:
        return SCALAR

    def render(self, kernel: object, name: str) -> str:
        return ""


class NoCompiler(Compiler):
    name = "NONE"

    def compile(self, source: str) -> bytes:
        return b""


def times_zero() -> UOp:
    """`x * 0.0`, which is NaN for infinities."""
    i = UOp.range(8, 0, AxisType.GLOBAL)
    value = kernels.param(1, (8,)).index(i).load() * UOp.const(dtypes.float32, 0.0)
    return UOp.sink(kernels.param(0, (8,)).index(i).store(value).end(i))


def loads(sink: UOp) -> int:
    return sum(node.op is Ops.LOAD for node in lower_kernel(sink, SCALAR, []).linear)


def test_rules_that_are_not_exact_wait_for_the_setting() -> None:
    assert loads(times_zero()) == 1
    with Context(FASTMATH=1):
        assert loads(times_zero()) == 0
    assert loads(times_zero()) == 1


def test_the_setting_is_part_of_the_key_of_a_kernel() -> None:
    buffers = [UOp.new_buffer("CPU", 8, dtypes.float32) for _ in range(2)]
    call = UOp(Ops.CALL, dtypes.void, (times_zero(), *buffers), CallArg("times_zero"))
    target = Target.parse("CPU")
    renderer, compiler = NoRenderer(target), NoCompiler(target)
    exact = kernel_key(call, renderer, compiler)
    with Context(FASTMATH=1):
        assert kernel_key(call, renderer, compiler) != exact
    assert kernel_key(call, renderer, compiler) == exact
