"""Where a program runs: `Target`, the grammar of `DEV`, and the arch strings of CPUs.

    DEV      = target { ";" target }
    target   = [ interface [ ":" indices ] "+" ] device [ ":" [ renderer ] [ ":" arch ] ]
    indices  = index { "," index }          index = number | number "-" number
    CPU arch = family "," cpu-type { "," [ "-" ] feature }

Whether a device or a renderer exists is not known here; the registries say so.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from tg_ir.errors import TargetError, did_you_mean

__all__ = [
    "CPU_FAMILIES",
    "CpuArch",
    "Target",
    "parse_cpu_arch",
    "parse_target",
    "parse_targets",
]

CPU_FAMILIES = ("x86_64", "arm64", "riscv64")
_FAMILY_ALIASES = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64", "rv64": "riscv64"}

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INTERFACE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]*)(?::(?P<indices>[^+:;]*))?\+")
_INDEX = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?")
_ARCH = re.compile(r"[^;\s]+")
_CPU_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
_FEATURE = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_.\-]*")

_EXAMPLE = "for example CPU, CPU:LLVM or CPU:LLVM:x86_64,native"


@dataclass(frozen=True, slots=True)
class Target:
    """One place to run, as written in `DEV`. An empty field means "choose for me".

    Device, renderer and interface are upper-cased, the arch stays as written.
    `str(target)` is a text that parses to an equal target.

    Attributes:
        device: such as "CPU", "CUDA".
        renderer: such as "LLVM", or "".
        arch: such as "x86_64,znver2,avx2,-avx512f", "sm_70", or "".
        interface: how the device is reached, such as "USB", or "".
        indices: which devices of the interface, in the order given.
    """

    device: str
    renderer: str = ""
    arch: str = ""
    interface: str = ""
    indices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Upper-case the names.

        Raises:
            TargetError: a field has characters that its place in `DEV` cannot hold.
        """
        for field in ("device", "renderer", "interface"):
            object.__setattr__(self, field, getattr(self, field).upper())
        if self.indices and not self.interface:
            raise TargetError("indices belong to an interface, such as USB:0+AMD", str(self), 0)
        text = str(self)
        parsed = _TargetParser(text, 0).parse_fields()
        if parsed != (self.interface, self.indices, self.device, self.renderer, self.arch):
            raise TargetError(f"these fields are no target ({_EXAMPLE})", text, 0, len(text))

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Make the target from its text; see `parse_target`."""
        return parse_target(text)

    def __str__(self) -> str:
        """Return the text that `DEV` takes."""
        text = self.device
        if self.renderer or self.arch:
            text += f":{self.renderer}"
        if self.arch:
            text += f":{self.arch}"
        if not self.interface:
            return text
        indices = ",".join(map(str, self.indices))
        return f"{self.interface}{':' if indices else ''}{indices}+{text}"


class _TargetParser:
    """Reads one target from `position` of a `DEV` text; the rest is the caller's."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def parse_fields(self) -> tuple[str, tuple[int, ...], str, str, str]:
        """Interface, indices, device, renderer and arch, upper-cased where that is the rule."""
        interface, indices = self._interface()
        device = self._device()
        renderer = ""
        arch = ""
        if self._skip(":"):
            renderer = self._renderer()
            if self._skip(":"):
                arch = self._arch()
        self._end()
        return interface.upper(), indices, device.upper(), renderer.upper(), arch

    def _interface(self) -> tuple[str, tuple[int, ...]]:
        found = _INTERFACE.match(self.text, self.position)
        if found is None:
            return "", ()
        self.position = found.end()
        if found["indices"] is None:
            return found["name"], ()
        return found["name"], self._indices(found["indices"], found.start("indices"))

    def _indices(self, text: str, start: int) -> tuple[int, ...]:
        indices: list[int] = []
        for part in text.split(","):
            found = _INDEX.fullmatch(part)
            if found is None:
                message = f"expected a device index such as 0 or 0-3, got {part!r}"
                raise TargetError(message, self.text, start, len(part))
            first = int(found["first"])
            last = int(found["last"] or first)
            if last < first:
                message = f"a range of indices counts up, {part!r} does not"
                raise TargetError(message, self.text, start, len(part))
            indices += range(first, last + 1)
            start += len(part) + 1
        return tuple(indices)

    def _device(self) -> str:
        found = _NAME.match(self.text, self.position)
        if found is None:
            self._fail(f"expected a device name ({_EXAMPLE})")
        self.position = found.end()
        return found[0]

    def _renderer(self) -> str:
        if self._at_end() or self.text[self.position] == ":":
            return ""
        found = _NAME.match(self.text, self.position)
        if found is None:
            self._fail(
                "expected a renderer name, which starts with a letter "
                "(device indices go with an interface, as in PCI:0+AMD)"
            )
        self.position = found.end()
        return found[0]

    def _arch(self) -> str:
        found = _ARCH.match(self.text, self.position)
        if found is None:
            self._fail("expected an arch after ':', such as x86_64,native or sm_70")
        self.position = found.end()
        return found[0]

    def _end(self) -> None:
        if not self._at_end():
            self._fail("expected ':', ';' or the end of the target")

    def _at_end(self) -> bool:
        return self.position == len(self.text) or self.text[self.position] in "; \t"

    def _skip(self, character: str) -> bool:
        found = self.text.startswith(character, self.position)
        self.position += found
        return found

    def _fail(self, message: str) -> NoReturn:
        at = self.text[self.position : self.position + 1]
        got = f"got {at!r}" if at else "got the end of the text"
        raise TargetError(f"{message}, {got}", self.text, self.position)


def parse_targets(text: str) -> tuple[Target, ...]:
    """Parse a whole `DEV` text, several targets separated by ';'.

    Blanks around a target are ignored. A blank text gives no targets: choose the default.

    Raises:
        TargetError: shows the text with a caret at the fault.
    """
    if not text.strip():
        return ()
    targets = []
    start = 0
    for part in text.split(";"):
        blanks = len(part) - len(part.lstrip())
        parser = _TargetParser(text, start + blanks)
        interface, indices, device, renderer, arch = parser.parse_fields()
        rest = text[parser.position : start + len(part)]
        if rest.strip():
            position = parser.position + len(rest) - len(rest.lstrip())
            raise TargetError("a target has no blanks inside", text, position, len(rest.strip()))
        targets.append(Target(device, renderer, arch, interface, indices))
        start += len(part) + 1
    return tuple(targets)


def parse_target(text: str) -> Target:
    """Parse exactly one target.

    Raises:
        TargetError: the text is no target, or holds none or several.
    """
    targets = parse_targets(text)
    if len(targets) == 1:
        return targets[0]
    if targets:
        position = text.index(";")
        raise TargetError("expected one target, got several", text, position)
    raise TargetError(f"expected a target ({_EXAMPLE}), got nothing", text, 0)


@dataclass(frozen=True, slots=True)
class CpuArch:
    """What a CPU arch string says.

    Attributes:
        family: one of `CPU_FAMILIES`.
        cpu_type: a name that clang takes for -march, such as "znver2", or "native".
        features: LLVM feature names in the order written; a leading "-" turns one off.
    """

    family: str
    cpu_type: str
    features: tuple[str, ...] = ()

    @property
    def enabled(self) -> tuple[str, ...]:
        """The features that are asked for."""
        return tuple(feature for feature in self.features if not feature.startswith("-"))

    @property
    def disabled(self) -> tuple[str, ...]:
        """The features that are turned off, without their sign."""
        return tuple(feature[1:] for feature in self.features if feature.startswith("-"))

    def __str__(self) -> str:
        """Return the arch string, such as "x86_64,znver2,avx2,-avx512f"."""
        return ",".join((self.family, self.cpu_type, *self.features))


def parse_cpu_arch(text: str) -> CpuArch:
    """Parse the arch of a CPU target, such as "x86_64,znver2,avx2,-avx512f".

    Raises:
        TargetError: an unknown family, a missing cpu type, or a malformed feature; shows a caret.
    """
    family, *rest = text.split(",")
    if family not in CPU_FAMILIES:
        alias = _FAMILY_ALIASES.get(family.lower())
        hint = f"did you mean {alias!r}?" if alias else did_you_mean(family, CPU_FAMILIES)
        raise TargetError(f"unknown CPU family {family!r}; {hint}", text, 0, len(family))
    if not rest:
        message = f"expected a cpu type after the family, such as {family},native"
        raise TargetError(message, text, len(text))
    position = len(family) + 1
    cpu_type, *features = rest
    _check_part(text, position, cpu_type, _CPU_TYPE, "a cpu type such as native or znver2")
    position += len(cpu_type) + 1
    for feature in features:
        _check_part(text, position, feature, _FEATURE, "a feature such as avx2 or -avx512f")
        position += len(feature) + 1
    return CpuArch(family, cpu_type, tuple(features))


def _check_part(
    text: str, position: int, part: str, pattern: re.Pattern[str], expected: str
) -> None:
    """Raise a TargetError at `position` unless the part matches."""
    if pattern.fullmatch(part) is None:
        raise TargetError(f"expected {expected}, got {part!r}", text, position, len(part))
