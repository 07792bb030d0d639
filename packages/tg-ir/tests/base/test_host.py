"""The host CPU, from recorded texts of other machines and from this one."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tg_ir.config import Context
from tg_ir.host import (
    CacheSizes,
    HostCpu,
    cores_available,
    describe_macos,
    host_cpu,
    parse_cpu_quota,
    parse_cpuinfo,
    parse_size,
    read_sysfs_caches,
    worker_count,
)

ZEN5_CPUINFO = """\
processor\t: 0
model name\t: AMD EPYC 9B45
flags\t\t: fpu sse sse2 ht pni ssse3 sse4_1 sse4_2 avx f16c rdrand abm bmi1 avx2 avx512f avx512_bf16

processor\t: 1
model name\t: another
flags\t\t: fpu
"""
GRAVITON_CPUINFO = """\
processor\t: 0
Features\t: fp asimd aes pmull sha2 crc32 atomics fphp asimdhp asimddp sve i8mm bf16 paca
CPU part\t: 0xd40
"""
RISCV_CPUINFO = """\
processor\t: 0
isa\t\t: rv64imafdcv_zicsr_zba
uarch\t\t: sifive,p550
"""


def cpu_with(*features: str) -> HostCpu:
    return HostCpu("x86_64", "", frozenset(features), 1, CacheSizes())


def test_an_x86_cpuinfo_is_read_in_llvms_names() -> None:
    model, features = parse_cpuinfo(ZEN5_CPUINFO, "x86_64")
    assert model == "AMD EPYC 9B45"
    expected = "sse sse2 sse3 ssse3 sse4.1 sse4.2 avx f16c rdrnd lzcnt bmi avx2 avx512f avx512bf16"
    assert features == set(expected.split())


def test_an_arm_cpuinfo_is_read_in_llvms_names() -> None:
    model, features = parse_cpuinfo(GRAVITON_CPUINFO, "arm64")
    assert model == "0xd40"
    expected = "fp-armv8 neon aes sha2 crc lse fullfp16 dotprod sve i8mm bf16"
    assert features == set(expected.split())


def test_a_riscv_cpuinfo_is_read_from_its_isa_string() -> None:
    model, features = parse_cpuinfo(RISCV_CPUINFO, "riscv64")
    assert model == "sifive,p550"
    assert features == {"m", "a", "f", "d", "c", "v", "zicsr", "zba"}
    assert "d" in parse_cpuinfo("isa : rv64gc", "riscv64")[1]


def test_an_unreadable_cpuinfo_claims_nothing() -> None:
    assert parse_cpuinfo("", "x86_64") == ("", frozenset())


@pytest.mark.parametrize(
    ("features", "bits"),
    [
        (("sse2", "avx", "avx512f"), 512),
        (("sse2", "avx"), 256),
        (("sse2",), 128),
        (("neon", "sve"), 128),
        (("m", "v"), 128),
        (("m", "a"), 0),
    ],
)
def test_vector_width_follows_from_the_features(features: tuple[str, ...], bits: int) -> None:
    assert cpu_with(*features).vector_bits == bits


def test_arch_is_the_family_and_native() -> None:
    assert cpu_with().arch == "x86_64,native"


@pytest.mark.parametrize(
    ("text", "size"),
    [("48K", 48 << 10), ("32M\n", 32 << 20), ("1G", 1 << 30), ("512", 512), ("", 0), ("?", 0)],
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


def write_cache(folder: Path, index: int, level: str, kind: str, size: str) -> None:
    entry = folder / f"index{index}"
    entry.mkdir()
    (entry / "level").write_text(level)
    (entry / "type").write_text(kind)
    (entry / "size").write_text(size)


def test_caches_are_read_without_the_instruction_cache(tmp_path: Path) -> None:
    write_cache(tmp_path, 0, "1", "Data", "48K")
    write_cache(tmp_path, 1, "1", "Instruction", "32K")
    write_cache(tmp_path, 2, "2", "Unified", "1024K")
    write_cache(tmp_path, 3, "3", "Unified", "32M")
    assert read_sysfs_caches(tmp_path) == CacheSizes(48 << 10, 1 << 20, 32 << 20)


def test_typical_caches_stand_in_for_unknown_ones(tmp_path: Path) -> None:
    assert read_sysfs_caches(tmp_path) == CacheSizes()


@pytest.mark.parametrize(
    ("text", "cores"), [("200000 100000\n", 2), ("150000 100000", 2), ("max 100000\n", 0), ("", 0)]
)
def test_a_container_quota_is_rounded_up(text: str, cores: int) -> None:
    assert parse_cpu_quota(text) == cores


def test_a_mac_is_described_by_sysctl() -> None:
    values = {
        "machdep.cpu.brand_string": "Apple M3",
        "hw.optional.arm.FEAT_BF16": "1",
        "hw.optional.arm.FEAT_FP16": "1",
        "hw.optional.arm.FEAT_I8MM": "0",
        "hw.l1dcachesize": "65536",
        "hw.l2cachesize": "4194304",
    }
    model, features, caches = describe_macos("arm64", lambda name: values.get(name, ""))
    assert model == "Apple M3"
    assert features == {"bf16", "fullfp16"}
    assert caches == CacheSizes(65536, 4194304, 0)


def test_this_machine_is_known() -> None:
    cpu = host_cpu()
    assert cpu is host_cpu()
    assert cpu.family == {"aarch64": "arm64", "amd64": "x86_64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    assert cpu.vector_bits >= 128
    assert cpu.caches.l1 >= 8 << 10


def test_a_fallback_platform_has_the_features_of_its_family(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(platform, "machine", lambda: "AMD64")
    monkeypatch.setattr(platform, "processor", lambda: "Some CPU")
    cpu = host_cpu.__wrapped__()
    assert (cpu.family, cpu.model, cpu.vector_bits) == ("x86_64", "Some CPU", 128)
    assert cpu.cores == os.cpu_count()


def test_threads_0_means_one_worker_for_each_core() -> None:
    with Context(THREADS=0):
        assert worker_count() == cores_available() >= 1
    with Context(THREADS=3):
        assert worker_count() == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads the affinity of a Linux process")
def test_cores_follow_the_affinity() -> None:
    one_core = min(os.sched_getaffinity(0))
    code = (
        "import os, tg_ir.host; "
        f"os.sched_setaffinity(0, [{one_core}]); print(tg_ir.host.cores_available())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
