"""The LLVM target machine of a CPU arch. Names that LLVM does not know are refused here.

LLVM itself only complains on stderr and goes on for a CPU without any features, where the first
kernel may end the process.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from tg_ir.errors import TargetError, did_you_mean
from tg_ir.target import CpuArch

_TRIPLES = {
    "x86_64": "x86_64-unknown-linux-gnu",
    "arm64": "aarch64-unknown-linux-gnu",
    "riscv64": "riscv64-unknown-linux-gnu",
}
# What every object may use, whatever the cpu type: hard float and doubles, and on x86 64-bit code
# with the registers that its calling convention returns floats in.
_FAMILY_FEATURES = {"x86_64": "+64bit,+sse2", "riscv64": "+m,+a,+f,+d,+c"}

_REFUSED = re.compile(r"'(?P<name>[^']*)' is not a recognized (?P<kind>processor|feature)")
_LISTED = re.compile(r"^  (\S+) +- ", re.MULTILINE)
_FEATURES = "Available features"
_listings: dict[str, str] = {}  # by family: LLVM answers `help` once a process
_STDERR = 2
_stderr_lock = threading.Lock()


def make_target_machine(binding: Any, arch: CpuArch, opt_level: int) -> Any:
    """The llvmlite TargetMachine for an arch; `native` is the CPU of this machine.

    Args:
        binding: `llvmlite.binding`, initialised.
        arch: what to make code for.
        opt_level: of code generation, 0 to 3.

    Raises:
        TargetError: LLVM knows no such cpu type or feature in this family.
    """
    target = binding.Target.from_triple(_TRIPLES[arch.family])
    cpu, features = arch.cpu_type, [_FAMILY_FEATURES.get(arch.family, "")]
    if cpu == "native":
        cpu = binding.get_host_cpu_name()
        features.append(binding.get_host_cpu_features().flatten())
    features += [f"+{name}" for name in arch.enabled]
    features += [f"-{name}" for name in arch.disabled]

    def make(cpu_name: str) -> Any:
        return target.create_target_machine(
            cpu=cpu_name,
            features=",".join(feature for feature in features if feature),
            opt=opt_level,
            reloc="pic",
            codemodel="small",
        )

    if arch.cpu_type == "native" and not arch.features:
        return make(cpu)
    machine, complaint = _with_stderr(lambda: make(cpu))
    refused = _REFUSED.search(complaint)
    if refused is not None:
        if arch.family not in _listings:
            _listings[arch.family] = _with_stderr(lambda: make("help"))[1]
        raise _unknown_name(arch, refused, _listings[arch.family])
    return machine


def _unknown_name(arch: CpuArch, refused: re.Match[str], listing: str) -> TargetError:
    """The error for a name that LLVM refused.

    Args:
        arch: where it stands.
        refused: match of `_REFUSED`.
        listing: what LLVM says to `help`: the cpu types, then the features; may be empty.
    """
    name = refused["name"].lstrip("+-")
    is_type = refused["kind"] == "processor"
    types, features = (_LISTED.findall(part) for part in listing.partition(_FEATURES)[::2])
    what = "cpu type" if is_type else "feature"
    known = types if is_type else features
    close = did_you_mean(name, known) if known else ""
    if close.startswith("did"):
        hint = close
    elif is_type:
        hint = f"for example {', '.join(['native', *types[:1], *types[-1:]])}"
    else:
        hint = "features are named as for clang -m, such as avx2"
    if is_type and name in features:
        hint = f"that is a feature, and a cpu type comes first: {arch.family},native,{name}"
    text = str(arch)
    return TargetError(
        f"LLVM knows no {arch.family} {what} '{name}'; {hint}", text, text.index(name), len(name)
    )


def _with_stderr(make: Callable[[], Any]) -> tuple[Any, str]:
    """What `make` returns, and what native code wrote to stderr meanwhile."""
    with _stderr_lock, tempfile.TemporaryFile() as file:
        try:
            saved = os.dup(_STDERR)
        except OSError:  # closed, as in some services: then nothing can be read from it
            return make(), ""
        os.dup2(file.fileno(), _STDERR)
        try:
            made = make()
        finally:
            os.dup2(saved, _STDERR)
            os.close(saved)
        file.seek(0)
        return made, file.read().decode(errors="replace")
