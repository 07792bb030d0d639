"""Code is never writable and executable at once, and goes away with its last reference."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest
from tg_ir.device import Program, TinyELF, open_device
from tg_runtime_cpu.executable_memory import (
    PAGE,
    Protection,
    Segment,
    allocate_executable,
    round_to_page,
)
from tg_runtime_cpu.object_file import load_object

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")


def permissions(address: int) -> str:
    """The permissions of the mapping that holds an address, or '' if there is none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, flags = line.split()[:2]
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if start <= address < end:
            return flags
    return ""


@linux_only
def test_memory_is_writable_first_and_sealed_by_segment() -> None:
    memory = allocate_executable(3 * PAGE)
    assert permissions(memory.address) == "rw-p"
    memory.view()[:4] = b"\xc3" * 4
    memory.seal(
        [
            Segment(0, PAGE, Protection.READ_EXECUTE),
            Segment(PAGE, PAGE, Protection.READ),
            Segment(2 * PAGE, PAGE, Protection.READ_WRITE),
        ]
    )
    found = [permissions(memory.address + n * PAGE) for n in range(3)]
    assert found == ["r-xp", "r--p", "rw-p"]


@linux_only
def test_no_page_of_a_loaded_kernel_is_writable_and_executable(add_kernel: TinyELF) -> None:
    loaded = load_object(add_kernel.code)
    assert permissions(loaded.address(add_kernel.name)) == "r-xp"
    # The interpreter's own libffi may keep such a page; ours are the ones inside `memory`.
    start = loaded.memory.address
    pages = [permissions(at) for at in range(start, start + loaded.memory.size, PAGE)]
    assert pages
    assert not [flags for flags in pages if "w" in flags and "x" in flags]


@linux_only
def test_memory_is_unmapped_with_its_last_reference(add_kernel: TinyELF) -> None:
    loaded = load_object(add_kernel.code)
    address = loaded.address(add_kernel.name)
    del loaded
    gc.collect()
    assert "x" not in permissions(address)


@linux_only
def test_a_program_keeps_its_code_mapped(add_kernel: TinyELF) -> None:
    program: Program[object] = open_device("CPU").runtime(add_kernel)
    gc.collect()
    address = program._loaded.address(add_kernel.name)  # type: ignore[attr-defined]  # looks inside
    assert permissions(address) == "r-xp"


def test_no_protection_allows_writing_and_executing() -> None:
    write, execute = 2, 4
    assert not [p for p in Protection if p.value & write and p.value & execute]


@pytest.mark.parametrize(("size", "pages"), [(1, 1), (PAGE, 1), (PAGE + 1, 2)])
def test_sizes_are_whole_pages(size: int, pages: int) -> None:
    assert round_to_page(size) == pages * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="MAP_32BIT is Linux's")
def test_low_memory_is_below_2_gib() -> None:
    assert allocate_executable(PAGE, below_2_gib=True).address < 2**31
