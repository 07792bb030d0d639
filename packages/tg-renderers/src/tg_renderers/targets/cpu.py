"""What a CPU target has: vector registers and caches, from its arch string or from this machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tg_ir.errors import TargetError
from tg_ir.host import CacheSizes, HostCpu, host_cpu
from tg_ir.target import CpuArch, Target, parse_cpu_arch

__all__ = ["CpuFacts", "cpu_facts", "resolve_arch"]

# Widest vectors of cpu types that are named rather than native; anything else gets its family's
# base.
_VECTOR_BITS_OF_TYPE = {
    "x86-64-v3": 256,
    "x86-64-v4": 512,
    "haswell": 256,
    "broadwell": 256,
    "skylake": 256,
    "skylake-avx512": 512,
    "cascadelake": 512,
    "icelake-client": 512,
    "icelake-server": 512,
    "sapphirerapids": 512,
    "alderlake": 256,
    "znver1": 256,
    "znver2": 256,
    "znver3": 256,
    "znver4": 512,
    "znver5": 512,
}
_NEEDED_FEATURES = {"x86_64": ("64bit", "sse", "sse2", "x87", "cmov", "cx8")}
_EXAMPLES = {"x86_64": "x86-64-v3", "arm64": "cortex-a72", "riscv64": "generic-rv64"}
_BASE_VECTOR_BITS = {"x86_64": 128, "arm64": 128, "riscv64": 0}


@dataclass(frozen=True)
class CpuFacts:
    """What generated code may use on a CPU.

    Attributes:
        arch: what the target says; `native` where it says nothing.
        vector_bits: width of the widest vector registers, 0 for none.
        vector_registers: how many there are.
        l1_bytes: first level data cache of a core.
        l2_bytes: second level cache of a core.
        converts_float16: whether there are instructions for float16 to float32 and back; without
            them LLVM calls library functions that no object may rely on.
        fingerprint: differs between CPUs for which different code may be made.
    """

    arch: CpuArch
    vector_bits: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    converts_float16: bool
    fingerprint: str


def resolve_arch(target: Target) -> CpuArch:
    """The CPU arch of a target; this machine's where the target names none.

    Raises:
        TargetError: the arch is no CPU arch string.
    """
    return parse_cpu_arch(target.arch or host_cpu().arch)


def cpu_facts(target: Target) -> CpuFacts:
    """Look up the facts of a CPU target.

    Raises:
        TargetError: the arch is no CPU arch string.
    """
    arch = resolve_arch(target)
    _refuse_impossible(arch)
    native = arch.cpu_type == "native"
    host = host_cpu()
    bits = _vector_bits(arch, host if native else None)
    caches = host.caches if native else CacheSizes()
    fingerprint = str(arch)
    if native:
        features = hashlib.sha256(" ".join(sorted(host.features)).encode()).hexdigest()[:12]
        fingerprint = f"{arch}/{host.model}/{features}"
    registers = 0 if bits == 0 else 16 if arch.family == "x86_64" and bits < 512 else 32
    float16 = _converts_float16(arch, bits, host if native else None)
    return CpuFacts(arch, bits, registers, caches.l1, caches.l2, float16, fingerprint)


def _refuse_impossible(arch: CpuArch) -> None:
    """Refuse what no code can be made for.

    Raises:
        TargetError: `native` of another family than this machine's, or x86 code without the
            registers that its calling convention needs.
    """
    text = str(arch)
    own = parse_cpu_arch(host_cpu().arch).family
    if arch.cpu_type == "native" and arch.family != own:
        raise TargetError(
            f"native is the CPU of this machine, which is {own}; "
            f"name a cpu type of {arch.family} instead, such as {_EXAMPLES[arch.family]}",
            text,
            text.index("native"),
            len("native"),
        )
    needed = _NEEDED_FEATURES.get(arch.family, ())
    missing = next((name for name in needed if name in arch.disabled), None)
    if missing is not None:
        raise TargetError(
            f"{arch.family} code needs {missing}; leave it on",
            text,
            text.index(f"-{missing}"),
            len(missing) + 1,
        )
    if "soft-float" in arch.enabled:
        raise TargetError(
            "floats are computed by the CPU's float unit; leave soft-float off",
            text,
            text.index("soft-float"),
            len("soft-float"),
        )


def _vector_bits(arch: CpuArch, host: HostCpu | None) -> int:
    """Width of the widest vectors, after the features that the arch string turns on and off."""
    if host is not None:
        bits = host.vector_bits
    else:
        base = _BASE_VECTOR_BITS[arch.family]
        bits = _VECTOR_BITS_OF_TYPE.get(arch.cpu_type, base)
    if "avx512f" in arch.enabled:
        bits = 512
    elif {"avx", "avx2"} & set(arch.enabled):
        bits = max(bits, 256)
    if "avx512f" in arch.disabled:
        bits = min(bits, 256)
    if {"avx", "avx2"} & set(arch.disabled):
        bits = min(bits, 128)
    return bits


def _converts_float16(arch: CpuArch, vector_bits: int, host: HostCpu | None) -> bool:
    if arch.family != "x86_64":
        return arch.family == "arm64"
    if "f16c" in arch.enabled or "f16c" in arch.disabled:
        return "f16c" in arch.enabled
    if host is not None:
        return "f16c" in host.features
    return vector_bits >= 256  # F16C came between AVX and AVX2, and every type listed here has it
