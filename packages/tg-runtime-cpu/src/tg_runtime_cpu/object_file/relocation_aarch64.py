"""Relocations of 64-bit Arm, from "ELF for the Arm 64-bit Architecture" (AAELF64), section 5.7."""

from __future__ import annotations

from tg_runtime_cpu.errors import ObjectFileError
from tg_runtime_cpu.object_file.relocation import RelocationRules

ABS64 = 257
ABS32 = 258
PREL64 = 260
PREL32 = 261
ADR_PREL_LO21 = 274
ADR_PREL_PG_HI21 = 275
ADD_ABS_LO12_NC = 277
LDST8_ABS_LO12_NC = 278
CONDBR19 = 280
JUMP26 = 282
CALL26 = 283
LDST16_ABS_LO12_NC = 284
LDST32_ABS_LO12_NC = 285
LDST64_ABS_LO12_NC = 286
LDST128_ABS_LO12_NC = 299
ADR_GOT_PAGE = 311
LD64_GOT_LO12_NC = 312

# A load or store scales its 12-bit offset by the size of what it moves: log2 of that size.
_SCALED_OFFSETS = {
    ADD_ABS_LO12_NC: 0,
    LDST8_ABS_LO12_NC: 0,
    LDST16_ABS_LO12_NC: 1,
    LDST32_ABS_LO12_NC: 2,
    LDST64_ABS_LO12_NC: 3,
    LDST128_ABS_LO12_NC: 4,
    LD64_GOT_LO12_NC: 3,
}

# size in bytes, relative to the place
_DATA = {ABS64: (8, False), ABS32: (4, False), PREL64: (8, True), PREL32: (4, True)}


class AArch64Relocations(RelocationRules):
    """The relocations that LLVM and gcc make for the small code model."""

    machine = 183
    names = {
        ABS64: "R_AARCH64_ABS64",
        ABS32: "R_AARCH64_ABS32",
        PREL64: "R_AARCH64_PREL64",
        PREL32: "R_AARCH64_PREL32",
        ADR_PREL_LO21: "R_AARCH64_ADR_PREL_LO21",
        ADR_PREL_PG_HI21: "R_AARCH64_ADR_PREL_PG_HI21",
        ADD_ABS_LO12_NC: "R_AARCH64_ADD_ABS_LO12_NC",
        LDST8_ABS_LO12_NC: "R_AARCH64_LDST8_ABS_LO12_NC",
        CONDBR19: "R_AARCH64_CONDBR19",
        JUMP26: "R_AARCH64_JUMP26",
        CALL26: "R_AARCH64_CALL26",
        LDST16_ABS_LO12_NC: "R_AARCH64_LDST16_ABS_LO12_NC",
        LDST32_ABS_LO12_NC: "R_AARCH64_LDST32_ABS_LO12_NC",
        LDST64_ABS_LO12_NC: "R_AARCH64_LDST64_ABS_LO12_NC",
        LDST128_ABS_LO12_NC: "R_AARCH64_LDST128_ABS_LO12_NC",
        ADR_GOT_PAGE: "R_AARCH64_ADR_GOT_PAGE",
        LD64_GOT_LO12_NC: "R_AARCH64_LD64_GOT_LO12_NC",
    }
    through_table = frozenset({ADR_GOT_PAGE, LD64_GOT_LO12_NC})
    calls = frozenset({JUMP26, CALL26})
    low_address = frozenset()

    def stub(self, target: int) -> bytes:
        """Return `ldr x16, #8; br x16` followed by the address."""
        return b"\x50\x00\x00\x58" + b"\x00\x02\x1f\xd6" + target.to_bytes(8, "little")

    def reaches(self, kind: int, place: int, target: int) -> bool:
        """Return whether the distance fits in 26 bits of instructions, 128 MiB."""
        return -(2**27) <= target - place < 2**27

    def apply(self, memory: memoryview, at: int, kind: int, place: int, target: int) -> None:
        """Patch one field or the immediate of one instruction."""
        if kind in _DATA:
            size, relative = _DATA[kind]
            value = target - place if relative else target
            self.write_int(memory, at, kind, value, size, signed=relative)
            return
        instruction = int.from_bytes(memory[at : at + 4], "little")
        patched = self._patch(instruction, kind, place, target)
        memory[at : at + 4] = patched.to_bytes(4, "little")

    def _patch(self, instruction: int, kind: int, place: int, target: int) -> int:
        if kind in _SCALED_OFFSETS:
            offset = (target & 0xFFF) >> _SCALED_OFFSETS[kind]
            return instruction & ~(0xFFF << 10) | offset << 10
        if kind in self.calls:
            distance = self._signed_field(kind, (target - place) >> 2, 26)
            return instruction & ~0x3FFFFFF | distance
        if kind == CONDBR19:
            distance = self._signed_field(kind, (target - place) >> 2, 19)
            return instruction & ~(0x7FFFF << 5) | distance << 5
        if kind == ADR_PREL_LO21:
            distance = self._signed_field(kind, target - place, 21)
        else:  # ADR_PREL_PG_HI21, ADR_GOT_PAGE: in pages of 4 KiB
            distance = self._signed_field(kind, (target >> 12) - (place >> 12), 21)
        cleared = instruction & ~(0x3 << 29 | 0x7FFFF << 5)
        return cleared | (distance & 0x3) << 29 | (distance >> 2) << 5

    def _signed_field(self, kind: int, value: int, bits: int) -> int:
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ObjectFileError(
                f"relocation {self.name_of(kind)}: {value:#x} does not fit in {bits} bits"
            )
        return value & (1 << bits) - 1
