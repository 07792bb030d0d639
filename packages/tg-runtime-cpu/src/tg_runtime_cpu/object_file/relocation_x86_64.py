"""Relocations of x86-64.

From the System V ABI, "AMD64 Architecture Processor Supplement", table 4.10.
"""

from __future__ import annotations

from tg_runtime_cpu.object_file.relocation import RelocationRules

R_64 = 1
R_PC32 = 2
R_PLT32 = 4
R_GOTPCREL = 9
R_32 = 10
R_32S = 11
R_PC64 = 24
R_GOTPCRELX = 41
R_REX_GOTPCRELX = 42


class X8664Relocations(RelocationRules):
    """The relocations that LLVM and gcc make for position-independent and small-model code."""

    machine = 62
    names = {
        R_64: "R_X86_64_64",
        R_PC32: "R_X86_64_PC32",
        R_PLT32: "R_X86_64_PLT32",
        R_GOTPCREL: "R_X86_64_GOTPCREL",
        R_32: "R_X86_64_32",
        R_32S: "R_X86_64_32S",
        R_PC64: "R_X86_64_PC64",
        R_GOTPCRELX: "R_X86_64_GOTPCRELX",
        R_REX_GOTPCRELX: "R_X86_64_REX_GOTPCRELX",
    }
    through_table = frozenset({R_GOTPCREL, R_GOTPCRELX, R_REX_GOTPCRELX})
    calls = frozenset({R_PLT32, R_PC32})
    low_address = frozenset({R_32, R_32S})

    def stub(self, target: int) -> bytes:
        """Return `jmp [rip+0]` followed by the address."""
        return b"\xff\x25\x00\x00\x00\x00" + target.to_bytes(8, "little")

    def reaches(self, kind: int, place: int, target: int) -> bool:
        """Return whether the distance fits in 32 bits."""
        return -(2**31) <= target - place < 2**31

    def apply(self, memory: memoryview, at: int, kind: int, place: int, target: int) -> None:
        """Patch one field."""
        match kind:
            case 1:  # R_64
                self.write_int(memory, at, kind, target % 2**64, 8, signed=False)
            case 24:  # R_PC64
                self.write_int(memory, at, kind, target - place, 8, signed=True)
            case 10:  # R_32
                self.write_int(memory, at, kind, target, 4, signed=False)
            case 11:  # R_32S
                self.write_int(memory, at, kind, target, 4, signed=True)
            case _:  # PC32, PLT32 and the ones through the table
                self.write_int(memory, at, kind, target - place, 4, signed=True)
