"""Buffers: when memory exists, views of it, and what misuse says."""

from __future__ import annotations

import gc
import weakref

import pytest
from tg_ir.device import Buffer, BufferSizeError, BufferStateError, UnsupportedByDevice, open_device
from tg_ir.dtype import dtypes


def filled(count: int = 16) -> Buffer:
    return Buffer("TINY", count, dtypes.uint8).copyin(bytes(range(count)))


def test_memory_exists_from_first_use_on() -> None:
    buffer = Buffer("TINY", 4, dtypes.float32)
    assert not buffer.is_allocated
    assert buffer.nbytes == 16
    buffer.copyin(bytes(16))
    assert buffer.is_allocated


def test_memory_is_freed_with_the_last_reference() -> None:
    buffer = filled()
    used = open_device("TINY").allocator.bytes_in_use
    del buffer
    assert open_device("TINY").allocator.bytes_in_use == used - 16


def test_view_keeps_its_base_alive() -> None:
    view = filled().view(4, dtypes.uint8, 8)
    gc.collect()
    assert bytes(view.as_memoryview()) == bytes([8, 9, 10, 11])


def test_view_of_a_view_counts_from_the_base() -> None:
    view = filled().view(8, dtypes.uint8, 4).view(1, dtypes.uint16, 2)
    assert (view.offset, view.base is not None and view.base.base) == (6, None)
    assert bytes(view.as_memoryview()) == bytes([6, 7])


def test_view_made_before_the_memory_exists_works() -> None:
    base = Buffer("TINY", 4, dtypes.uint8)
    view = base.view(2, dtypes.uint8, 1)
    assert not view.is_allocated
    base.copyin(b"abcd")
    assert bytes(view.as_memoryview()) == b"bc"


@pytest.mark.parametrize(("size", "offset"), [(17, 0), (1, 16), (4, -1)])
def test_view_may_not_leave_its_base(size: int, offset: int) -> None:
    with pytest.raises(BufferSizeError, match="leaves its base of 16 bytes"):
        filled().view(size, dtypes.uint8, offset)


def test_copy_of_another_size_is_refused() -> None:
    with pytest.raises(BufferSizeError, match="expected 16 bytes of host memory, got 3"):
        filled().copyin(b"abc")
    with pytest.raises(BufferSizeError, match="expected 16 bytes of host memory, got 17"):
        filled().copyout(bytearray(17))
    with pytest.raises(BufferSizeError, match="the sizes in bytes differ"):
        filled(4).copy_from(filled(5))


def test_copyout_into_read_only_memory_is_refused() -> None:
    with pytest.raises(BufferSizeError, match="read-only"):
        filled().copyout(memoryview(bytes(16)))


def test_strided_host_memory_is_refused() -> None:
    with pytest.raises(BufferSizeError, match="not contiguous"):
        filled().copyin(memoryview(bytes(32))[::2])


def test_reading_before_writing_is_refused() -> None:
    with pytest.raises(BufferStateError, match="not allocated; write to it first"):
        Buffer("TINY", 4, dtypes.uint8).copyout(bytearray(4))


def test_use_after_free_is_refused() -> None:
    buffer = filled()
    view = buffer.view(4, dtypes.uint8, 0)
    buffer.deallocate()
    for use in (buffer.as_memoryview, view.as_memoryview, buffer.deallocate):
        with pytest.raises(BufferStateError):
            use()


def test_memory_that_is_looked_at_is_not_freed() -> None:
    buffer = filled()
    view = buffer.as_memoryview()
    with pytest.raises(BufferStateError, match="a memoryview of .* is in use"):
        buffer.deallocate()
    del view
    buffer.deallocate()


def test_host_view_keeps_the_buffer_alive() -> None:
    buffer = filled()
    alive = weakref.ref(buffer)
    view = buffer.as_memoryview()[2:]
    del buffer
    gc.collect()
    assert alive() is not None
    assert view[0] == 2
    del view
    gc.collect()
    assert alive() is None


def test_allocating_twice_is_refused() -> None:
    with pytest.raises(BufferStateError, match="use ensure_allocated"):
        filled().allocate()
    assert filled().ensure_allocated().is_allocated


def test_view_reads_new_memory_after_its_base_was_freed_and_allocated_again() -> None:
    base = filled()
    view = base.view(2, dtypes.uint8, 4)
    assert view.get_buf().view.nbytes == 2
    base.deallocate()
    base.copyin(bytes(range(100, 116)))
    assert bytes(view.as_memoryview()) == bytes([104, 105])


def test_handle_of_a_view_is_stable() -> None:
    view = filled().view(2, dtypes.uint8, 4)
    assert view.get_buf() is view.get_buf()


def test_empty_buffer_has_memory_but_no_bytes() -> None:
    buffer = Buffer("TINY", 0, dtypes.float32).copyin(b"")
    assert buffer.get_buf() is not None
    assert bytes(buffer.as_memoryview()) == b""
    assert bytes(buffer.copyout(bytearray())) == b""


def test_dtype_without_size_is_refused() -> None:
    with pytest.raises(BufferSizeError, match="a sized dtype"):
        Buffer("TINY", 4, dtypes.index)


def test_memory_of_another_device_is_mapped_or_refused() -> None:
    with pytest.raises(UnsupportedByDevice, match="GRAPHED cannot reach memory of TINY"):
        filled().get_buf("GRAPHED")


def test_copy_between_devices() -> None:
    copy = Buffer("GRAPHED", 16, dtypes.uint8).copy_from(filled())
    assert bytes(copy.as_memoryview()) == bytes(range(16))


def test_names_of_one_device_are_equal() -> None:
    assert Buffer("tiny:0", 1, dtypes.uint8).device == "TINY"


def test_repr_says_what_and_where() -> None:
    assert repr(filled()) == "<Buffer TINY 16 x uint8>"
    assert repr(filled().view(2, dtypes.uint8, 3)) == "<Buffer TINY 2 x uint8 at byte 3 of 16>"
