"""What a machine says so that the loader can patch its code, and the checks all share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from tg_runtime_cpu.errors import ObjectFileError


class RelocationRules(ABC):
    """The relocations of one machine.

    Attributes:
        machine: ELF machine number.
        names: every known relocation by its number, for messages and for refusing the others.
        through_table: those that reach their symbol through a table of addresses (GOT).
        calls: those that may go through a stub when an external function is out of reach.
        low_address: those that need the code below 2 GiB.
        stub_size: bytes of one stub, a multiple of 16.
    """

    machine: ClassVar[int]
    names: ClassVar[dict[int, str]]
    through_table: ClassVar[frozenset[int]]
    calls: ClassVar[frozenset[int]]
    low_address: ClassVar[frozenset[int]]
    stub_size: ClassVar[int] = 16

    @abstractmethod
    def stub(self, target: int) -> bytes:
        """Return code of at most `stub_size` bytes that jumps to an absolute address."""

    @abstractmethod
    def reaches(self, kind: int, place: int, target: int) -> bool:
        """Return whether a call at `place` reaches `target` without a stub."""

    @abstractmethod
    def apply(self, memory: memoryview, at: int, kind: int, place: int, target: int) -> None:
        """Patch `memory[at:]`, which is loaded at address `place`, to refer to `target` (S + A).

        Raises:
            ObjectFileError: the distance does not fit in the field.
        """

    def name_of(self, kind: int) -> str:
        """Return the ABI's name of a relocation.

        Raises:
            ObjectFileError: the loader does not know it.
        """
        if kind not in self.names:
            raise ObjectFileError(
                f"relocation type {kind} of machine {self.machine} is not known to the loader; "
                f"known: {', '.join(self.names.values())}; "
                "compile for the small code model, with -fPIC and without -fno-plt"
            )
        return self.names[kind]

    def write_int(
        self, memory: memoryview, at: int, kind: int, value: int, size: int, signed: bool
    ) -> None:
        """Write a field of `size` bytes, or say that the value does not fit."""
        try:
            memory[at : at + size] = value.to_bytes(size, "little", signed=signed)
        except OverflowError as error:
            raise ObjectFileError(
                f"relocation {self.name_of(kind)}: {value:#x} does not fit in {size} bytes"
            ) from error
