"""The CPU of this machine: family, model, features, cores, caches; found without llvmlite.

Linux is read from /proc and /sys, macOS from sysctl; elsewhere the platform's name for the
processor has to do, with the features every CPU of the family has. Feature names are LLVM's.
"""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tg_ir.config import THREADS

__all__ = ["CacheSizes", "HostCpu", "cores_available", "host_cpu", "worker_count"]

_FAMILY_OF_MACHINE = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "arm64": "arm64",
    "aarch64": "arm64",
    "riscv64": "riscv64",
}

# What every CPU of a family has, in LLVM's names.
_BASE_FEATURES = {
    "x86_64": frozenset({"cx8", "fxsr", "mmx", "sse", "sse2"}),
    "arm64": frozenset({"fp-armv8", "neon"}),
    "riscv64": frozenset({"m", "a", "f", "d", "c"}),
}

# /proc/cpuinfo flags whose LLVM feature has another name. The rest are spelled alike.
_RENAMED_FLAGS = {
    "x86_64": {
        "abm": "lzcnt",
        "amx_bf16": "amx-bf16",
        "amx_int8": "amx-int8",
        "amx_tile": "amx-tile",
        "avx512_bf16": "avx512bf16",
        "avx512_bitalg": "avx512bitalg",
        "avx512_fp16": "avx512fp16",
        "avx512_vbmi2": "avx512vbmi2",
        "avx512_vnni": "avx512vnni",
        "avx512_vp2intersect": "avx512vp2intersect",
        "avx512_vpopcntdq": "avx512vpopcntdq",
        "avx_vnni": "avxvnni",
        "bmi1": "bmi",
        "pclmulqdq": "pclmul",
        "pni": "sse3",
        "rdrand": "rdrnd",
        "sha_ni": "sha",
        "sse4_1": "sse4.1",
        "sse4_2": "sse4.2",
    },
    "arm64": {
        "asimd": "neon",
        "asimddp": "dotprod",
        "asimdhp": "fullfp16",
        "asimdrdm": "rdm",
        "atomics": "lse",
        "crc32": "crc",
        "fp": "fp-armv8",
        "pmull": "aes",
        "sha512": "sha3",
    },
}

# Only flags known to mean something to LLVM are passed on: the kernel lists many others.
_KNOWN_FEATURES = {
    "x86_64": frozenset(
        "adx aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl "
        "bmi2 cx16 f16c fma fma4 gfni movbe popcnt rdseed sse sse2 sse4a ssse3 vaes vpclmulqdq "
        "xop".split()
    ),
    "arm64": frozenset("aes bf16 i8mm sha2 sha3 sve sve2".split()),
}


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Data caches as one core sees them, in bytes.

    Attributes:
        l1: first level, data.
        l2: second level.
        l3: third level, shared; 0 where there is none.
    """

    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 0


@dataclass(frozen=True, slots=True)
class HostCpu:
    """What is known of this machine's CPU.

    Attributes:
        family: "x86_64", "arm64" or "riscv64"; the platform's own word for any other.
        model: the name its maker gave it, for people to read.
        features: LLVM feature names that are present; never a wrong one, perhaps not all.
        cores: cores this process may use, at least 1.
        caches: sizes of the data caches; typical ones where unknown.
    """

    family: str
    model: str
    features: frozenset[str]
    cores: int
    caches: CacheSizes

    @property
    def vector_bits(self) -> int:
        """Width of the widest vector registers in bits; 0 where there are none."""
        if "avx512f" in self.features:
            return 512
        if "avx" in self.features:
            return 256
        # Scalable vectors are counted at their guaranteed 128 bits.
        return 128 if self.features & {"sse2", "neon", "v"} else 0

    @property
    def arch(self) -> str:
        """The arch string of a CPU target that means this machine, such as "x86_64,native"."""
        return f"{self.family},native"


@cache
def host_cpu() -> HostCpu:
    """Look at this machine, once a process."""
    machine = platform.machine().lower()
    family = _FAMILY_OF_MACHINE.get(machine, machine)
    if sys.platform == "linux":
        model, features = parse_cpuinfo(_read_text(Path("/proc/cpuinfo")), family)
        caches = read_sysfs_caches(Path("/sys/devices/system/cpu/cpu0/cache"))
    elif sys.platform == "darwin":
        model, features, caches = describe_macos(family, _sysctl)
    else:
        model, features, caches = "", frozenset(), CacheSizes()
    features |= _BASE_FEATURES.get(family, frozenset())
    return HostCpu(family, model or platform.processor(), features, cores_available(), caches)


def cores_available() -> int:
    """Cores this process may use: its CPU affinity, held by a container's quota; at least 1."""
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
        quota = parse_cpu_quota(_read_text(Path("/sys/fs/cgroup/cpu.max")))
        return max(1, min(cores, quota or cores))
    return os.cpu_count() or 1


def worker_count() -> int:
    """CPU threads to work with: the setting THREADS, where 0 means one for each core."""
    return THREADS.value or cores_available()


def parse_cpu_quota(text: str) -> int:
    """Whole cores that the text of a cgroup's cpu.max allows, rounded up; 0 for no limit."""
    found = re.fullmatch(r"(\d+) (\d+)\s*", text)
    if found is None:
        return 0
    return -(-int(found[1]) // int(found[2]))


def parse_cpuinfo(text: str, family: str) -> tuple[str, frozenset[str]]:
    """Model name and LLVM features of the first CPU in the text of /proc/cpuinfo."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        entries.setdefault(key.strip(), value.strip())
    model = entries.get("model name") or entries.get("uarch") or entries.get("CPU part", "")
    if family == "riscv64":
        return model, _riscv_features(entries.get("isa", ""))
    flags = entries.get("flags") or entries.get("Features", "")
    return model, _llvm_features(flags.split(), family)


def _llvm_features(flags: list[str], family: str) -> frozenset[str]:
    """The flags of the kernel in LLVM's names, those without one left out."""
    renamed = _RENAMED_FLAGS.get(family, {})
    known = _KNOWN_FEATURES.get(family, frozenset())
    names = {renamed[flag] for flag in flags if flag in renamed}
    return frozenset(names | (known & set(flags)))


def _riscv_features(isa: str) -> frozenset[str]:
    """Features of an isa string such as "rv64imafdcv_zicsr_zba"."""
    base, *extensions = isa.lower().split("_")
    letters = base.removeprefix("rv64").replace("g", "imafd")
    # The base integer set is no feature of its own in LLVM.
    return frozenset({*letters, *extensions} - {"i", ""})


def read_sysfs_caches(folder: Path) -> CacheSizes:
    """Cache sizes from a Linux `.../cpu0/cache` folder; typical ones where it lacks them."""
    found: dict[int, int] = {}
    for index in sorted(folder.glob("index*")):
        if _read_text(index / "type").strip() == "Instruction":
            continue
        level = _read_text(index / "level").strip()
        size = parse_size(_read_text(index / "size"))
        if level.isdigit() and size:
            found[int(level)] = size
    return _caches_of(found)


def _caches_of(found: Mapping[int, int]) -> CacheSizes:
    """Known sizes by level, typical ones elsewhere."""
    typical = CacheSizes()
    return CacheSizes(found.get(1, typical.l1), found.get(2, typical.l2), found.get(3, typical.l3))


def parse_size(text: str) -> int:
    """Bytes in a text such as "48K" or "1M"; 0 where it is none."""
    found = re.fullmatch(r"(\d+)([KMG]?)\s*", text)
    if found is None:
        return 0
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


# macOS names what it has as hw.optional.*; these are the ones that matter to vector code.
_MACOS_FEATURES = {
    "arm64": {
        "hw.optional.arm.FEAT_BF16": "bf16",
        "hw.optional.arm.FEAT_DotProd": "dotprod",
        "hw.optional.arm.FEAT_FP16": "fullfp16",
        "hw.optional.arm.FEAT_I8MM": "i8mm",
        "hw.optional.arm.FEAT_LSE": "lse",
    },
    "x86_64": {
        "hw.optional.avx1_0": "avx",
        "hw.optional.avx2_0": "avx2",
        "hw.optional.avx512f": "avx512f",
        "hw.optional.f16c": "f16c",
        "hw.optional.fma": "fma",
        "hw.optional.sse4_2": "sse4.2",
    },
}


def describe_macos(
    family: str, sysctl: Callable[[str], str]
) -> tuple[str, frozenset[str], CacheSizes]:
    """Model, features and caches of a Mac.

    Args:
        family: "arm64" or "x86_64".
        sysctl: gives the value of a name as text, "" where it does not exist.
    """
    names = _MACOS_FEATURES.get(family, {})
    features = frozenset(feature for key, feature in names.items() if sysctl(key) == "1")
    levels = {1: "hw.l1dcachesize", 2: "hw.l2cachesize", 3: "hw.l3cachesize"}
    sizes = {level: parse_size(sysctl(key)) for level, key in levels.items()}
    caches = _caches_of({level: size for level, size in sizes.items() if size})
    return sysctl("machdep.cpu.brand_string"), features, caches


def _sysctl(name: str) -> str:
    """Ask macOS for one value."""
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()


def _read_text(path: Path) -> str:
    """The text of a file, "" where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
