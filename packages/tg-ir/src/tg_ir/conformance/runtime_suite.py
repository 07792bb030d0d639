"""`RuntimeSuite`: what every device promises that runs programs.

Subclass it, set `device`, and supply two small kernels.
"""

from __future__ import annotations

import threading
import unittest
from array import array
from collections.abc import Sequence
from typing import ClassVar

from tg_ir.conformance.suite import ConformanceSuite, check, refuses
from tg_ir.device import (
    RUNTIME_API,
    AnyCompiled,
    Buffer,
    BufferDecl,
    Const,
    Copy,
    Executor,
    Launch,
    LinearProgram,
    TinyELF,
    Var,
    VariableBounds,
    View,
    load_device,
    open_device,
    program_from_bytes,
    program_to_bytes,
)
from tg_ir.dtype import dtypes

__all__ = ["RuntimeSuite"]

_COUNT = 64
_NBYTES = _COUNT * 4


class RuntimeSuite(ConformanceSuite):
    """Tests of opening, loading, launching, and running whole programs.

    Attributes:
        device: name of the device to test.
    """

    device: ClassVar[str]

    def add_kernel(self) -> TinyELF:
        """Return a kernel with int32 buffers (out, left, right) and no integers.

        It computes `out[i] = left[i] + right[i]` for i in `[0, global_size[0])`.
        """
        raise NotImplementedError("supply add_kernel()")

    def fill_kernel(self) -> TinyELF:
        """Return a kernel with one int32 buffer and one integer `value`: `out[i] = value`.

        It writes i in `[0, global_size[0])`.
        """
        raise NotImplementedError("supply fill_kernel()")

    @property
    def opened(self) -> AnyCompiled:
        """The device under test."""
        return open_device(self.device)

    def ints(self, values: Sequence[int]) -> Buffer:
        """Return an int32 buffer with these values."""
        buffer = Buffer(self.device, len(values), dtypes.int32)
        return buffer.copyin(array("i", values).tobytes())

    def expect(self, buffer: Buffer, values: Sequence[int], promise: str) -> None:
        """Check the contents of an int32 buffer, unless the device stores none."""
        self.opened.synchronize()
        if self.opened.capabilities.stores_values:
            got = array("i", bytes(buffer.copyout(bytearray(buffer.nbytes)))).tolist()
            check(
                got == list(values), f"{promise}: expected {list(values)[:8]}..., got {got[:8]}..."
            )

    def test_opening_twice_gives_the_same_device(self) -> None:
        """A device is opened once a process, whatever its name looks like."""
        check(open_device(self.device.lower()) is self.opened, "lower case names the same device")
        check(self.opened.count() >= 1, "the machine has at least one")

    def test_contract_version_is_declared(self) -> None:
        """The class says which contract it was written for."""
        check(load_device(self.device).runtime_api == RUNTIME_API, "runtime_api is the current one")

    def test_renderers_are_named(self) -> None:
        """A device that runs programs accepts the code of some renderer."""
        check(len(self.opened.renderers) > 0, "there is at least one renderer name")

    def test_kernel_computes_every_element(self) -> None:
        """A launch writes what the kernel says, for every position of the grid."""
        left = self.ints(range(_COUNT))
        right = self.ints(range(0, 2 * _COUNT, 2))
        out = Buffer(self.device, _COUNT, dtypes.int32)
        program = self.opened.runtime(self.add_kernel())
        program(
            out.get_buf(), left.get_buf(), right.get_buf(), global_size=(_COUNT, 1, 1), wait=True
        )
        self.expect(out, range(0, 3 * _COUNT, 3), "out = left + right")

    def test_integers_arrive_with_their_sign(self) -> None:
        """Integer arguments keep their value."""
        out = Buffer(self.device, _COUNT, dtypes.int32)
        program = self.opened.runtime(self.fill_kernel())
        for value in (7, -7, 2**31 - 1, -(2**31)):
            program(out.get_buf(), global_size=(_COUNT, 1, 1), vals=(value,), wait=True)
            self.expect(out, [value] * _COUNT, f"filled with {value}")

    def test_a_launch_is_timed_if_waited_for(self) -> None:
        """`wait` decides whether there is a time."""
        out = Buffer(self.device, _COUNT, dtypes.int32)
        program = self.opened.runtime(self.fill_kernel())
        waited = program(out.get_buf(), global_size=(_COUNT, 1, 1), vals=(1,), wait=True)
        check(waited is not None and waited >= 0, f"wait=True gives seconds, got {waited}")
        not_waited = program(out.get_buf(), global_size=(_COUNT, 1, 1), vals=(1,))
        check(not_waited is None, f"wait=False gives None, got {not_waited}")

    def test_a_launch_touches_only_its_part(self) -> None:
        """Views and grids bound what is written."""
        out = self.ints([0] * _COUNT)
        part = out.view(16, dtypes.int32, 64)
        program = self.opened.runtime(self.fill_kernel())
        program(part.get_buf(), global_size=(8, 1, 1), vals=(5,), wait=True)
        self.expect(out, [0] * 16 + [5] * 8 + [0] * (_COUNT - 24), "8 elements from element 16")

    def test_launches_happen_in_order(self) -> None:
        """A launch sees what the one before it wrote."""
        program = self.opened.runtime(self.add_kernel())
        total = self.ints([1] * _COUNT)
        for _ in range(10):
            handle = total.get_buf()
            program(handle, handle, handle, global_size=(_COUNT, 1, 1))
        self.expect(total, [2**10] * _COUNT, "doubled ten times")

    def test_code_that_is_no_code_is_refused(self) -> None:
        """Loading checks; a process does not die of a damaged file."""
        if not self.opened.capabilities.stores_values:
            raise unittest.SkipTest(f"{self.device} looks at no code")
        kernel = self.add_kernel()
        broken = TinyELF(
            kernel.name, b"not code", kernel.code_format, kernel.target, kernel.signature
        )
        refuses(Exception, "loading b'not code'", lambda: self.opened.runtime(broken))

    def test_wrong_number_of_arguments_is_refused(self) -> None:
        """A launch with too few buffers raises rather than reading what is not there."""
        if not self.opened.capabilities.stores_values:
            raise unittest.SkipTest(f"{self.device} looks at no arguments")
        program = self.opened.runtime(self.add_kernel())
        out = Buffer(self.device, _COUNT, dtypes.int32)
        refuses(
            Exception,
            "a launch with one of three buffers",
            lambda: program(out.get_buf(), wait=True),
        )

    def test_program_runs_again_with_other_inputs_and_sizes(self) -> None:
        """The executor rebinds; from the second run on it may use the device's graph."""
        executor = Executor(self._doubling_program())
        for count in (_COUNT, 8, _COUNT, 16, 16):
            source = self.ints(range(_COUNT))
            out = self.ints([-1] * _COUNT)
            executor.run([source, out], {"n": count})
            expected = [4 * i for i in range(count)] + [-1] * (_COUNT - count)
            self.expect(out, expected, f"four times the input, {count} elements")

    def test_program_survives_being_saved(self) -> None:
        """An artifact computes what the program computed."""
        program = self._doubling_program()
        loaded = program_from_bytes(program_to_bytes(program))
        check(loaded == program, "a program is equal to itself after save and load")
        out = self.ints([0] * _COUNT)
        Executor(loaded).run([self.ints(range(_COUNT)), out], {"n": _COUNT}, wait=True)
        self.expect(out, range(0, 4 * _COUNT, 4), "four times the input")

    def test_program_with_copies_and_views(self) -> None:
        """Views share memory with their source, and copies do not."""
        program = LinearProgram(
            buffers=(
                BufferDecl(_NBYTES, self.device, "input"),
                BufferDecl(_NBYTES // 2, self.device, "temporary"),
                BufferDecl(_NBYTES // 2, self.device, "temporary"),
                BufferDecl(_NBYTES // 2, self.device, "constant"),
            ),
            kernels=(self.add_kernel(),),
            steps=(
                View(1, 0, Const(_NBYTES // 2)),
                Copy(2, 1),
                Launch(0, (1, 2, 3), global_size=(Const(_COUNT // 2), Const(1), Const(1))),
            ),
            constants=(array("i", [1000] * (_COUNT // 2)).tobytes(),),
        )
        executor = Executor(program)
        for _ in range(3):
            buffer = self.ints(range(_COUNT))
            executor.run([buffer])
            half = _COUNT // 2
            expected = [*range(half), *range(1000 + half, 1000 + _COUNT)]
            self.expect(buffer, expected, "1000 added to the second half")

    def test_launches_from_several_threads(self) -> None:
        """Devices may be used from any thread."""
        program = self.opened.runtime(self.fill_kernel())
        buffers = [Buffer(self.device, _COUNT, dtypes.int32) for _ in range(4)]

        def work(value: int) -> None:
            for _ in range(20):
                handle = buffers[value].get_buf()
                program(handle, global_size=(_COUNT, 1, 1), vals=(value,), wait=True)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for value, buffer in enumerate(buffers):
            self.expect(buffer, [value] * _COUNT, f"thread {value} filled its own buffer")

    def _doubling_program(self) -> LinearProgram:
        """`out[:n] = 4 * source[:n]` in two launches with a planned temporary between."""
        size = (Var("n"), Const(1), Const(1))
        return LinearProgram(
            buffers=(
                BufferDecl(_NBYTES, self.device, "input"),
                BufferDecl(_NBYTES, self.device, "input"),
                BufferDecl(_NBYTES, self.device, "temporary", arena=0, offset=64),
            ),
            kernels=(self.add_kernel(),),
            steps=(
                Launch(0, (2, 0, 0), global_size=size, flops=Var("n"), bytes=Var("n") * 8),
                Launch(0, (1, 2, 2), global_size=size, flops=Var("n"), bytes=Var("n") * 8),
            ),
            variables=(VariableBounds("n", 1, _COUNT),),
            name="doubling",
        )
