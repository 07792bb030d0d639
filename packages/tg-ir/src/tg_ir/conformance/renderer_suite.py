"""`RendererSuite` and `CompilerSuite`: what every renderer and every compiler promises.

The values that a rendered kernel computes are compared with `tg_ir.graph.evaluate`.
"""

from __future__ import annotations

import math
import re
import unittest
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tg_ir.conformance.kernel_cases import (
    COUNT,
    KernelCase,
    condition_case,
    elementwise_case,
    gather_case,
    masked_case,
    reduction_case,
    repeated_case,
    sample_values,
    scatter_case,
    scratch_case,
    spread_case,
    thread_case,
)
from tg_ir.conformance.suite import ConformanceSuite, check, refuses
from tg_ir.dtype import DType, dtypes
from tg_ir.dtype.storage import from_bytes, to_bytes
from tg_ir.errors import CompileError, RenderError
from tg_ir.graph import GroupOp, Ops
from tg_ir.graph.evaluate import run_linear_kernel
from tg_ir.graph.render_api import RENDER_API, Compiler, Renderer

__all__ = ["CompilerSuite", "LoadedKernel", "RendererSuite"]

Value = bool | int | float

# Not in this list: ops whose result is only bounded (EXP2, LOG2, SIN) and those of one dtype.
_FLOAT_OPS = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.SQRT, Ops.TRUNC, Ops.NEG)
_INT_OPS = (
    *(Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.NEG, Ops.AND, Ops.OR, Ops.XOR),
    *(Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD),
)
_BOOL_OPS = (Ops.AND, Ops.OR, Ops.XOR)
_RELATIVE_ERROR = 1e-4  # of sums in another order


class LoadedKernel(Protocol):
    """A kernel that can be run on the bytes of its buffers, in place."""

    def __call__(
        self, buffers: Sequence[bytearray], vals: Sequence[int], begin: int, end: int
    ) -> None:
        """Run iterations `[begin, end)` of the THREAD range."""


class RendererSuite(ConformanceSuite):
    """Tests of one renderer with the compiler that takes its text.

    A subclass makes both, and `load`s the code where this machine can run it.
    """

    def renderer(self) -> Renderer:
        """The renderer under test."""
        raise NotImplementedError("a subclass makes the renderer")

    def compiler(self) -> Compiler:
        """The compiler that its `compiler` attribute names."""
        raise NotImplementedError("a subclass makes the compiler")

    def load(self, code: bytes, name: str) -> LoadedKernel:
        """Make compiled code callable; a subclass without a machine to run it keeps this.

        Raises:
            SkipTest: code cannot be run here.
        """
        raise unittest.SkipTest("compiled code cannot be run here")

    def run_cases(self, cases: Iterator[KernelCase]) -> None:
        """Render, compile and run each case, and compare with the evaluator."""
        renderer, compiler = self.renderer(), self.compiler()
        for case in cases:
            code = compiler.compile(renderer.render(case.kernel, "kernel_under_test"))
            run = self.load(code, "kernel_under_test")
            expected = _buffers_of(case)
            got = [bytearray(buffer) for buffer in expected]
            run_linear_kernel(case.kernel, expected, case.vals, case.begin, case.end)
            run(got, case.vals, case.begin, case.end)
            _compare(case, got, expected)

    def lane_counts(self) -> tuple[int, ...]:
        """1, and for a renderer with vectors half, whole and double registers of float32."""
        bits = self.renderer().capabilities.vector_bits
        return (1,) if bits == 0 else (1, 4, 8, 16)

    def dtypes_of(self, kinds: tuple[str, ...]) -> list[DType]:
        """The dtypes of these kinds that the renderer takes, in a fixed order."""
        taken = self.renderer().capabilities.dtypes
        return [dtype for dtype in sorted(taken) if dtype.kind in kinds]

    def test_contract_version_and_names_are_declared(self) -> None:
        """A renderer says what it is written for and which compiler takes its text."""
        renderer, compiler = self.renderer(), self.compiler()
        check(renderer.render_api == RENDER_API, f"render_api is {RENDER_API}")
        check(renderer.name == renderer.name.upper() != "", "the name is in capitals")
        check(renderer.compiler == compiler.name, "`compiler` names the compiler")
        check(renderer.code_format == compiler.code_format, "both name the same code format")
        check(renderer.cachekey != "", "the cache key is not empty")

    def test_capabilities_are_consistent(self) -> None:
        """Ops are elementwise, dtypes are scalars, the index type is one of them."""
        declared = self.renderer().capabilities
        check(declared.ops <= GroupOp.Elementwise, "`ops` holds elementwise ops only")
        check(all(d.count == 1 for d in declared.dtypes), "`dtypes` holds scalar types")
        check(declared.index_dtype in declared.dtypes, "the index type is one of the dtypes")
        check(declared.vector_bits % 8 == 0, "vector_bits is a whole number of bytes")

    def test_equal_kernels_give_equal_text(self) -> None:
        """The text depends on the kernel and the target, and on nothing that ran before."""
        case = reduction_case(dtypes.float32, 1)
        first = self.renderer().render(case.kernel, "same")
        self.renderer().render(thread_case().kernel, "other")
        check(self.renderer().render(case.kernel, "same") == first, "the text is the same again")

    def test_an_op_that_is_not_declared_is_refused(self) -> None:
        """Not rendered as something else: RenderError names the op."""
        missing = [op for op in (Ops.EXP2, Ops.THREEFRY, Ops.FLOORDIV) if not self._has(op)]
        if not missing:
            raise unittest.SkipTest("the renderer takes every op")
        dtype = dtypes.float32 if missing[0] is Ops.EXP2 else dtypes.uint64
        case = elementwise_case(missing[0], [dtype] * _arity(missing[0]), dtype)
        promise = f"{missing[0].name} is refused"
        error = refuses(RenderError, promise, lambda: self.renderer().render(case.kernel, "k"))
        check(missing[0].name in str(error), f"the message names {missing[0].name}: {error}")

    def test_float_ops_agree_with_the_evaluator(self) -> None:
        """To the last bit, NaN, infinities, signed zeros and subnormals among the operands."""
        self.run_cases(self._elementwise(_FLOAT_OPS, ("float",)))

    def test_fma_rounds_once(self) -> None:
        """MULACC of every dtype."""
        self.run_cases(self._elementwise((Ops.MULACC,), ("float", "int", "uint")))

    def test_int_ops_wrap_and_never_trap(self) -> None:
        """Division by zero, INT_MIN / -1 and shifts by the width or more among the cases."""
        self.run_cases(self._elementwise(_INT_OPS, ("int", "uint")))

    def test_bool_ops_agree_with_the_evaluator(self) -> None:
        """AND, OR, XOR of bools."""
        self.run_cases(self._elementwise(_BOOL_OPS, ("bool",)))

    def test_comparisons_agree_with_the_evaluator(self) -> None:
        """NaN compares unequal to everything."""
        ops = [op for op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ) if self._has(op)]
        self.run_cases(
            elementwise_case(op, [dtype, dtype], dtypes.bool, lanes)
            for op in ops
            for dtype in self.dtypes_of(("bool", "int", "uint", "float"))
            for lanes in self.lane_counts()
        )

    def test_where_agrees_with_the_evaluator(self) -> None:
        """A choice lane by lane."""
        self.run_cases(
            elementwise_case(Ops.WHERE, [dtypes.bool, dtype, dtype], dtype, lanes)
            for dtype in self.dtypes_of(("bool", "int", "uint", "float"))
            for lanes in self.lane_counts()
        )

    def test_casts_agree_with_the_evaluator(self) -> None:
        """Every pair of dtypes: one rounding to floats, saturation or wrapping to ints."""
        taken = self.dtypes_of(("bool", "int", "uint", "float"))
        self.run_cases(
            elementwise_case(Ops.CAST, [source], dest, lanes)
            for source in taken
            for dest in taken
            for lanes in (self.lane_counts()[0], self.lane_counts()[-1])
            if source is not dest
        )

    def test_bitcasts_keep_the_bits(self) -> None:
        """Every pair of dtypes of one size."""
        taken = self.dtypes_of(("int", "uint", "float"))
        self.run_cases(
            elementwise_case(Ops.BITCAST, [source], dest, self.lane_counts()[-1])
            for source in taken
            for dest in taken
            if source is not dest and source.itemsize == dest.itemsize
        )

    def test_accumulators_survive_their_loop(self) -> None:
        """A DEFINE_REG that a loop stores to, read after the loop; lanes joined at the end."""
        self.run_cases(
            reduction_case(dtype, lanes, op)
            for dtype in (dtypes.float32, dtypes.int32)
            for op in (Ops.ADD, Ops.MAX)
            for lanes in self.lane_counts()
        )

    def test_masked_off_elements_are_not_touched(self) -> None:
        """Neither read, outside the buffer too, nor written."""
        self.run_cases(masked_case(lanes) for lanes in self.lane_counts())

    def test_gathers_and_scatters(self) -> None:
        """Positions from data, of every index type, some of them masked off."""
        for index_dtype in (dtypes.int64, dtypes.int32, dtypes.uint8):
            self.run_cases(gather_case(lanes, index_dtype) for lanes in self.lane_counts())
        self.run_cases(scatter_case(lanes) for lanes in self.lane_counts() if lanes > 1)

    def test_lanes_at_a_distance(self) -> None:
        """Strided rows of every width of element, with each kind of mask; gaps stay untouched."""
        widths = (dtypes.bool, dtypes.float16, dtypes.int32, dtypes.float64)
        taken = self.renderer().capabilities.dtypes
        self.run_cases(
            spread_case(dtype, lanes, stride, mask)
            for dtype in widths
            for lanes in self.lane_counts()[1::2]
            for stride in (1, 2, 3)
            for mask in ("none", "lanes", "value", "all")
            if dtype in taken
        )
        self.run_cases(
            repeated_case(dtype, lanes, repeats)
            for dtype in widths
            for lanes in self.lane_counts()[1::2]
            for repeats in (2, 4, 8)
            if dtype in taken and repeats <= lanes
        )

    def test_conditions_and_integer_arguments(self) -> None:
        """IF inside a loop whose extent is an argument."""
        self.run_cases(iter([condition_case()]))

    def test_a_worker_runs_its_part_of_the_threads(self) -> None:
        """Only iterations `[begin, end)` of the THREAD range."""
        if not self.renderer().capabilities.has_threads:
            raise unittest.SkipTest("the renderer has no threads")
        self.run_cases(iter([thread_case()]))

    def test_scratch_memory_holds_what_was_written(self) -> None:
        """DEFINE_LOCAL, written in one loop and read in another."""
        self.run_cases(iter([scratch_case()]))

    def _has(self, op: Ops) -> bool:
        return op in self.renderer().capabilities.ops

    def _elementwise(self, ops: Sequence[Ops], kinds: tuple[str, ...]) -> Iterator[KernelCase]:
        for op in ops:
            if not self._has(op):
                continue
            for dtype in self.dtypes_of(kinds):
                for lanes in self.lane_counts():
                    yield elementwise_case(op, [dtype] * _arity(op), dtype, lanes)


class CompilerSuite(ConformanceSuite):
    """Tests of one compiler. A subclass makes it and gives a text that it takes."""

    good_source: str
    bad_source: str = "this is the source of no kernel"

    def compiler(self) -> Compiler:
        """The compiler under test."""
        raise NotImplementedError("a subclass makes the compiler")

    def test_contract_version_and_names_are_declared(self) -> None:
        """A compiler says what it is written for and what it makes."""
        compiler = self.compiler()
        check(compiler.render_api == RENDER_API, f"render_api is {RENDER_API}")
        check(compiler.name == compiler.name.upper() != "", "the name is in capitals")
        check(compiler.code_format != "", "the code format has a name")
        check(compiler.name in compiler.cachekey, "the cache key names the compiler")

    def test_equal_sources_give_equal_code(self) -> None:
        """In another compiler object too."""
        first = self.compiler().compile(self.good_source)
        check(len(first) > 0, "the code is not empty")
        check(self.compiler().compile(self.good_source) == first, "the code is the same again")

    def test_cached_code_is_the_compiled_code(self) -> None:
        """`compile_cached` differs from `compile` in time only."""
        compiler = self.compiler()
        code = compiler.compile_cached(self.good_source)
        check(code == compiler.compile(self.good_source), "the code is the same")
        check(compiler.compile_cached(self.good_source) is code, "the second time it is kept")

    def test_a_bad_source_is_refused_and_kept(self) -> None:
        """CompileError names a file that holds the source."""
        compile_bad = self.compiler().compile
        error = refuses(
            CompileError, "a bad source is refused", lambda: compile_bad(self.bad_source)
        )
        named = re.findall(r"[^\s'\"]*[/\\][^\s'\"]+", str(error))
        files = [Path(name) for name in named if Path(name).is_file()]
        check(bool(files), f"the message names a file: {error}")
        kept = files[0].read_text(encoding="utf-8")
        files[0].unlink()
        check(self.bad_source in kept, "the file holds the source")


def _arity(op: Ops) -> int:
    return 1 if op in GroupOp.Unary else 3 if op in GroupOp.Ternary else 2


def _buffers_of(case: KernelCase) -> list[bytearray]:
    result, *sources = case.dtypes
    buffers = [bytearray(to_bytes(sample_values(result, "result"), result))]
    for slot, dtype in enumerate(sources):
        buffers.append(bytearray(to_bytes(sample_values(dtype, str(slot)), dtype)))
    return buffers


def _compare(case: KernelCase, got: list[bytearray], expected: list[bytearray]) -> None:
    dtype = case.dtypes[0]
    pairs = zip(from_bytes(got[0], dtype), from_bytes(expected[0], dtype), strict=True)
    for position, (value, wanted) in enumerate(pairs):
        close = _same(value, wanted) if case.exact else _close(value, wanted)
        check(close, f"{case.name}: element {position} of {COUNT} is {wanted!r}, got {value!r}")
    untouched = got[1:] == expected[1:]
    check(untouched, f"{case.name}: buffers that are only read stay as they are")


def _same(left: Value, right: Value) -> bool:
    """Equal to the last bit, but for which NaN it is."""
    if left != left or right != right:
        return left != left and right != right
    return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)


def _close(left: Value, right: Value) -> bool:
    return _same(left, right) or math.isclose(left, right, rel_tol=_RELATIVE_ERROR)
