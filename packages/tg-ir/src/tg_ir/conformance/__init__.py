"""Suites that check whether an implementation keeps its contract, for us and third parties.

A back end that keeps its memory contract needs no more than this to show it:
`class TestMyMemory(AllocatorSuite): device = "MINE"`.
"""

from tg_ir.conformance.allocator_suite import AllocatorSuite
from tg_ir.conformance.graph_suite import GraphSuite
from tg_ir.conformance.renderer_suite import CompilerSuite, RendererSuite
from tg_ir.conformance.runtime_suite import RuntimeSuite
from tg_ir.conformance.suite import (
    ConformanceFailure,
    ConformanceSuite,
    SuiteDefinitionError,
    check,
    refuses,
)

__all__ = [
    "AllocatorSuite",
    "CompilerSuite",
    "ConformanceFailure",
    "ConformanceSuite",
    "GraphSuite",
    "RendererSuite",
    "RuntimeSuite",
    "SuiteDefinitionError",
    "check",
    "refuses",
]
