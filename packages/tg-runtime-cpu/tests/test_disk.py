"""Files as memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tg_ir.device import Buffer, DeviceOpenError, TinyELF, UnsupportedByDevice, open_device
from tg_ir.dtype import dtypes


def test_file_is_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(range(100)))
    whole = Buffer(f"DISK:{path}", 100, dtypes.uint8).allocate()
    assert bytes(whole.view(10, dtypes.uint8, 50).as_memoryview()) == bytes(range(50, 60))


def test_written_bytes_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.bin"
    Buffer(f"DISK:{path}", 4, dtypes.uint8).copyin(b"wxyz")
    assert path.read_bytes() == b"wxyz"


def test_longer_buffer_makes_the_file_longer_and_keeps_its_contents(tmp_path: Path) -> None:
    path = tmp_path / "grow.bin"
    path.write_bytes(b"abc")
    buffer = Buffer(f"DISK:{path}", 6, dtypes.uint8).allocate()
    buffer.view(3, dtypes.uint8, 3).copyin(b"def")
    assert path.read_bytes() == b"abcdef"


def test_copy_to_cpu_and_back(tmp_path: Path) -> None:
    path = tmp_path / "copy.bin"
    on_cpu = Buffer("CPU", 5, dtypes.uint8).copyin(b"12345")
    Buffer(f"DISK:{path}", 5, dtypes.uint8).copy_from(on_cpu)
    back = Buffer("CPU", 5, dtypes.uint8).copy_from(
        Buffer(f"DISK:{path}", 5, dtypes.uint8).allocate()
    )
    assert bytes(back.as_memoryview()) == b"12345"


def test_name_without_path_is_refused() -> None:
    with pytest.raises(DeviceOpenError, match="needs a path, such as DISK:"):
        open_device("DISK")


def test_kernels_are_refused(tmp_path: Path, add_kernel: TinyELF) -> None:
    with pytest.raises(UnsupportedByDevice, match="DISK runs no kernels, so not 'add'"):
        open_device(f"DISK:{tmp_path / 'x.bin'}").runtime(add_kernel)


def test_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "file"
    with pytest.raises(FileNotFoundError, match="such"):
        Buffer(f"DISK:{path}", 4, dtypes.uint8).allocate()
