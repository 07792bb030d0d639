"""The suites of the contract, for every device of this package."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tg_ir.conformance import AllocatorSuite, RuntimeSuite
from tg_ir.device import BufferParameter, KernelSignature, TinyELF
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import AxisType, Ops, ParamArg, RangeArg, VarArg
from tg_ir.graph.text import dump
from tg_ir.graph.uop import UOp

COUNT = 64

ValueOf = Callable[[list[UOp], list[UOp]], UOp]


def python_kernel(name: str, buffers: int, vals: tuple[str, ...], value_of: ValueOf) -> TinyELF:
    """A linear kernel `out[i] = value` over the THREAD range."""
    bound = UOp.const(dtypes.int64, COUNT)
    i = UOp(Ops.RANGE, dtypes.int64, (bound,), RangeArg((0,), AxisType.THREAD))
    params = [
        UOp(Ops.PARAM, dtypes.int32, (), ParamArg(slot, 1, writable=slot == 0))  # 1: any size
        for slot in range(buffers)
    ]
    values = [UOp(Ops.DEFINE_VAR, dtypes.int64, (), VarArg(name, -(2**31), 2**31)) for name in vals]
    loads = [param.index(i).load() for param in params[1:]]
    store = params[0].index(i).store(value_of(loads, values))
    end = UOp(Ops.END, dtypes.void, (i,))
    before = list(store.toposort())
    signature = KernelSignature(
        tuple(BufferParameter("int32", n == 0) for n in range(buffers)), vals
    )
    text = dump([*before, end])
    return TinyELF(name, text.encode(), "text", "PYTHON", signature)


class FromFixtures(RuntimeSuite):
    """Takes the two kernels from fixtures, as the machine code of the session."""

    @pytest.fixture(autouse=True)
    def _kernels(self, add_kernel: TinyELF, fill_kernel: TinyELF) -> None:
        self._add = add_kernel
        self._fill = fill_kernel

    def add_kernel(self) -> TinyELF:
        return self._add

    def fill_kernel(self) -> TinyELF:
        return self._fill


class TestCpuRuntime(FromFixtures):
    device = "CPU"


class TestSecondCpuRuntime(FromFixtures):
    device = "CPU:1"


class TestPythonRuntime(RuntimeSuite):
    device = "PYTHON"

    def add_kernel(self) -> TinyELF:
        return python_kernel("add", 3, (), lambda loads, vals: loads[0] + loads[1])

    def fill_kernel(self) -> TinyELF:
        return python_kernel("fill", 1, ("value",), lambda loads, vals: vals[0].cast(dtypes.int32))


class TestNullRuntime(FromFixtures):
    device = "NULL"


class TestCpuMemory(AllocatorSuite):
    device = "CPU"


class TestPythonMemory(AllocatorSuite):
    device = "PYTHON"


class TestNumpyMemory(AllocatorSuite):
    device = "NPY"


class TestNullMemory(AllocatorSuite):
    device = "NULL"
    impossible_size = None
