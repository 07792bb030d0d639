"""Patching of 64-bit Arm instructions, against the encodings of the architecture manual."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_runtime_cpu.errors import ObjectFileError
from tg_runtime_cpu.object_file import relocation_aarch64 as arm

RULES = arm.AArch64Relocations()


def patched(instruction: int, kind: int, place: int, target: int) -> int:
    memory = memoryview(bytearray(instruction.to_bytes(4, "little")))
    RULES.apply(memory, 0, kind, place, target)
    return int.from_bytes(memory, "little")


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


@given(st.integers(-(2**25), 2**25 - 1))
def test_call_holds_the_distance_in_instructions(words: int) -> None:
    place = 1 << 32
    instruction = patched(0x94000000, arm.CALL26, place, place + 4 * words)
    assert instruction >> 26 == 0x94000000 >> 26
    assert signed(instruction & 0x3FFFFFF, 26) == words


@given(st.integers(0, 2**40), st.integers(-(2**20), 2**20 - 1))
def test_page_address_is_relative_to_the_page_of_the_instruction(place: int, pages: int) -> None:
    place = (place // 4) * 4 + 2**33
    target = ((place >> 12) + pages << 12) + 0x123
    instruction = patched(0x90000000, arm.ADR_PREL_PG_HI21, place, target)
    low = instruction >> 29 & 3
    high = instruction >> 5 & 0x7FFFF
    assert instruction & 0x9F00001F == 0x90000000
    assert signed(high << 2 | low, 21) == pages


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        (arm.ADD_ABS_LO12_NC, 1),
        (arm.LDST8_ABS_LO12_NC, 1),
        (arm.LDST16_ABS_LO12_NC, 2),
        (arm.LDST32_ABS_LO12_NC, 4),
        (arm.LDST64_ABS_LO12_NC, 8),
        (arm.LDST128_ABS_LO12_NC, 16),
    ],
)
def test_offset_in_the_page_is_scaled_by_the_access(kind: int, scale: int) -> None:
    target = 0x7F0012340000 + 0xFF0
    instruction = patched(0xF9400000, kind, 0, target)
    assert (instruction >> 10 & 0xFFF) * scale == 0xFF0
    assert instruction & ~(0xFFF << 10) == 0xF9400000


def test_absolute_pointer_fills_eight_bytes() -> None:
    memory = memoryview(bytearray(8))
    RULES.apply(memory, 0, arm.ABS64, 0, 0x7F0012345678)
    assert int.from_bytes(memory, "little") == 0x7F0012345678


def test_call_out_of_reach_is_refused_and_needs_a_stub() -> None:
    assert not RULES.reaches(arm.CALL26, 0, 1 << 27)
    with pytest.raises(ObjectFileError, match="R_AARCH64_CALL26.*does not fit in 26 bits"):
        patched(0x94000000, arm.CALL26, 0, 1 << 27)


def test_stub_loads_its_address_and_branches() -> None:
    stub = RULES.stub(0x1122334455667788)
    words = [int.from_bytes(stub[i : i + 4], "little") for i in (0, 4)]
    assert words == [0x58000050, 0xD61F0200]  # ldr x16, .+8 ; br x16
    assert int.from_bytes(stub[8:], "little") == 0x1122334455667788
