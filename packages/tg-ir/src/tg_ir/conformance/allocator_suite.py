"""`AllocatorSuite`: what every allocator promises. Subclass it and set `device`."""

from __future__ import annotations

import gc
import threading
import unittest
from functools import partial
from typing import ClassVar

from tg_ir.conformance.suite import ConformanceSuite, check, refuses
from tg_ir.device import AnyCompiled, Buffer, BufferSpec, open_device
from tg_ir.dtype import dtypes

__all__ = ["AllocatorSuite"]

_PATTERN = bytes(range(256))


class AllocatorSuite(ConformanceSuite):
    """Tests of memory through the public functions of `Allocator` and through `Buffer`.

    Attributes:
        device: name of the device to test.
        impossible_size: bytes that the device can never give; None if it can give any number.
    """

    device: ClassVar[str]
    impossible_size: ClassVar[int | None] = 1 << 60

    @property
    def opened(self) -> AnyCompiled:
        """The device under test."""
        return open_device(self.device)

    def require_stored_values(self) -> None:
        """Skip the test for a device whose memory keeps nothing."""
        if not self.opened.capabilities.stores_values:
            raise unittest.SkipTest(f"{self.device} stores no values")

    def filled(self, nbytes: int = 256) -> Buffer:
        """Return a buffer that holds 0, 1, ... 255, again from 0."""
        contents = (_PATTERN * (nbytes // 256 + 1))[:nbytes]
        return Buffer(self.device, nbytes, dtypes.uint8).copyin(contents)

    def test_bytes_come_back_as_they_went_in(self) -> None:
        """Small and large pieces, whole huge pages among them."""
        self.require_stored_values()
        for nbytes in (1, 255, 4096, (4 << 20) + 3):
            expected = (_PATTERN * (nbytes // 256 + 1))[:nbytes]
            got = bytes(self.filled(nbytes).copyout(bytearray(nbytes)))
            check(got == expected, f"{nbytes} bytes come back as they went in")

    def test_offset_reaches_the_bytes_from_there_on(self) -> None:
        """A handle made by `offset` refers to the same memory."""
        self.require_stored_values()
        base = self.filled()
        view = base.view(16, dtypes.uint8, 64)
        got = bytes(view.copyout(bytearray(16)))
        check(got == _PATTERN[64:80], f"an offset of 64 bytes reads byte 64 on, got {list(got)}")
        view.copyin(bytes(16))
        whole = bytes(base.copyout(bytearray(256)))
        expected = _PATTERN[:64] + bytes(16) + _PATTERN[80:]
        check(whole == expected, "writing through an offset changes those bytes and no others")

    def test_offset_of_an_offset_adds_up(self) -> None:
        """Views nest."""
        self.require_stored_values()
        view = self.filled().view(128, dtypes.uint8, 32).view(8, dtypes.uint8, 16)
        got = bytes(view.copyout(bytearray(8)))
        check(got == _PATTERN[48:56], f"offset 32 then 16 reads byte 48 on, got {list(got)}")

    def test_two_allocations_do_not_overlap(self) -> None:
        """Filling one leaves the other as it was."""
        self.require_stored_values()
        first = self.filled()
        Buffer(self.device, 256, dtypes.uint8).copyin(bytes(256))
        check(bytes(first.copyout(bytearray(256))) == _PATTERN, "allocations do not overlap")

    def test_sizes_that_are_not_positive_are_refused(self) -> None:
        """`size` > 0 is part of the contract."""
        for size in (0, -1):
            refuses(ValueError, f"alloc({size})", partial(self.opened.allocator.alloc, size))

    def test_use_is_counted_while_it_lasts(self) -> None:
        """`bytes_in_use` follows alloc and free exactly."""
        allocator = self.opened.allocator
        gc.collect()
        before = allocator.bytes_in_use
        handle = allocator.alloc(12345)
        during = allocator.bytes_in_use
        allocator.free(handle, 12345)
        after = allocator.bytes_in_use
        check(during == before + 12345, f"12345 bytes more in use, got {during - before}")
        check(
            after == before, f"as many bytes in use after free as before, got {after - before} more"
        )

    def test_a_full_device_names_itself_and_recovers(self) -> None:
        """The error has the facts, and the next allocation works."""
        if (size := self.impossible_size) is None:
            raise unittest.SkipTest(f"{self.device} is never full")
        keep = Buffer(self.device, 1000, dtypes.uint8).allocate()
        in_use = self.opened.allocator.bytes_in_use
        error = refuses(MemoryError, f"alloc({size})", lambda: self.opened.allocator.alloc(size))
        for fact in (self.opened.device, str(size), str(in_use)):
            check(fact in str(error), f"the message names {fact}, got: {error}")
        check(
            self.opened.allocator.bytes_in_use == in_use,
            "a failed allocation leaves nothing in use",
        )
        Buffer(self.device, 1000, dtypes.uint8).allocate()
        check(keep.is_allocated, "earlier allocations survive")

    def test_zero_starts_with_zeros(self) -> None:
        """`BufferSpec(zero=True)` never hands out old contents."""
        self.require_stored_values()
        for _ in range(3):
            buffer = Buffer(self.device, 4096, dtypes.uint8, BufferSpec(zero=True)).allocate()
            check(not any(buffer.copyout(bytearray(4096))), "zero=True starts with zeros")
            buffer.copyin(b"\xff" * 4096)

    def test_host_view_is_the_memory_itself(self) -> None:
        """`as_buffer` copies nothing."""
        self.require_stored_values()
        if not self.opened.allocator.supports_as_buffer:
            raise unittest.SkipTest(f"memory of {self.device} is not addressable by the host")
        buffer = self.filled()
        buffer.as_memoryview()[3] = 99
        check(
            buffer.copyout(bytearray(256))[3] == 99, "writing to the host view changes the buffer"
        )

    def test_transfer_copies_within_the_device(self) -> None:
        """Direct copies, where they are offered."""
        self.require_stored_values()
        copy = Buffer(self.device, 256, dtypes.uint8).copy_from(self.filled())
        check(bytes(copy.copyout(bytearray(256))) == _PATTERN, "a copy has the same contents")

    def test_many_threads_may_allocate_at_once(self) -> None:
        """Nothing is lost from the accounts, and no memory is handed out twice."""
        allocator = self.opened.allocator
        gc.collect()  # an earlier test may have left buffers in cycles
        before = allocator.bytes_in_use
        problems: list[BaseException] = []

        def work(value: int) -> None:
            try:
                for _ in range(50):
                    self._fill_and_compare(value)
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(not problems, f"threads allocate without errors, got {problems[:1]}")
        check(allocator.bytes_in_use == before, "everything is given back")

    def _fill_and_compare(self, value: int) -> None:
        contents = bytes([value]) * 777
        buffer = Buffer(self.device, 777, dtypes.uint8).copyin(contents)
        got = bytes(buffer.copyout(bytearray(777)))
        stores = self.opened.capabilities.stores_values
        check(got == contents or not stores, "memory is not handed out twice")
