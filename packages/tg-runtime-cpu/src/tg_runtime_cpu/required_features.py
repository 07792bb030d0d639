"""Whether this machine has the instructions that code was compiled to use.

A kernel for a CPU that this machine is not would end the process at its first unknown
instruction. Only features that the host's description is sure to name are looked at.
"""

from __future__ import annotations

import sys

from tg_ir.errors import TargetError
from tg_ir.host import host_cpu
from tg_ir.target import parse_cpu_arch, parse_target

from tg_runtime_cpu.errors import ForeignCodeError

_AVX2 = ("avx", "avx2", "f16c", "fma")
_AVX512 = (*_AVX2, "avx512bw", "avx512dq", "avx512f", "avx512vl")

# What code for a named cpu type may use of the features below; other types are taken on trust.
_FEATURES_OF_TYPE = {
    "x86-64-v2": ("ssse3", "sse4.2"),
    **dict.fromkeys(("x86-64-v3", "haswell", "broadwell", "skylake"), _AVX2),
    **dict.fromkeys(("znver1", "znver2", "znver3"), _AVX2),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake"), (*_AVX2, "avxvnni")),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "cascadelake"), _AVX512),
    **dict.fromkeys(("icelake-client", "icelake-server", "tigerlake"), _AVX512),
    **dict.fromkeys(("cooperlake", "znver4"), (*_AVX512, "avx512bf16")),
    "znver5": (*_AVX512, "avx512bf16", "avxvnni"),
    **dict.fromkeys(
        ("sapphirerapids", "emeraldrapids", "graniterapids"),
        (*_AVX512, "avx512bf16", "avx512fp16", "avxvnni"),
    ),
}
_CHECKED = frozenset(feature for given in _FEATURES_OF_TYPE.values() for feature in given) | {
    "amx-bf16",
    "amx-int8",
    "amx-tile",
}


def require_features(target_text: str) -> None:
    """Check that code for a target can run here.

    Args:
        target_text: what it was compiled for, in the grammar of DEV.

    Raises:
        ForeignCodeError: it may use instructions that this machine lacks.
    """
    try:
        arch = parse_cpu_arch(parse_target(target_text).arch)
    except TargetError:
        return  # says nothing about the CPU
    if sys.platform != "linux" or arch.family != "x86_64":
        return
    wanted = (set(_FEATURES_OF_TYPE.get(arch.cpu_type, ())) | set(arch.enabled)) & _CHECKED
    missing = sorted(wanted - set(arch.disabled) - host_cpu().features)
    if missing:
        raise ForeignCodeError(
            f"code for {arch} may use {', '.join(missing)}, which this machine's CPU lacks; "
            f"compile for {arch.family},native or turn {'them' if missing[1:] else 'it'} off, "
            f"as in {arch},{','.join(f'-{name}' for name in missing)}"
        )
