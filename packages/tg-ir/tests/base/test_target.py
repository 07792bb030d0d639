"""The grammar of DEV and of CPU arch strings, and the carets in its errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.errors import TargetError
from tg_ir.target import CPU_FAMILIES, CpuArch, Target, parse_cpu_arch, parse_target, parse_targets

NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True)
ARCHES = st.from_regex(r"[a-z0-9_.,+:=\-]{1,20}", fullmatch=True)
TARGETS = st.builds(
    Target,
    device=NAMES,
    renderer=st.just("") | NAMES,
    arch=st.just("") | ARCHES,
    interface=NAMES,
    indices=st.lists(st.integers(0, 99)).map(tuple),
) | st.builds(Target, device=NAMES, renderer=st.just("") | NAMES, arch=st.just("") | ARCHES)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("CPU", Target("CPU")),
        ("cpu:llvm", Target("CPU", "LLVM")),
        ("CPU:CLANG", Target("CPU", "CLANG")),
        (
            "CPU:LLVM:x86_64,znver2,avx2,-avx512f",
            Target("CPU", "LLVM", "x86_64,znver2,avx2,-avx512f"),
        ),
        ("AMD::gfx950", Target("AMD", arch="gfx950")),
        ("AMD::gfx90a:sramecc+:xnack-", Target("AMD", arch="gfx90a:sramecc+:xnack-")),
        ("USB+AMD", Target("AMD", interface="USB")),
        ("usb:1+amd", Target("AMD", interface="USB", indices=(1,))),
        ("PCI:0,2-4+NV:CUDA", Target("NV", "CUDA", interface="PCI", indices=(0, 2, 3, 4))),
        ("NV:CUDA:sm_70", Target("NV", "CUDA", "sm_70")),
        ("CUDA:PTX", Target("CUDA", "PTX")),
        ("CPU:", Target("CPU")),
        ("  CL\t", Target("CL")),
    ],
)
def test_a_target_is_read(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert Target.parse(text) == target


def test_several_targets_are_separated_by_semicolons() -> None:
    assert parse_targets("CPU:LLVM; CL ;AMD::gfx942") == (
        Target("CPU", "LLVM"),
        Target("CL"),
        Target("AMD", arch="gfx942"),
    )


@pytest.mark.parametrize("text", ["", "  "])
def test_a_blank_text_names_no_target(text: str) -> None:
    assert parse_targets(text) == ()


def test_names_are_upper_cased_and_the_arch_is_not() -> None:
    target = Target("cpu", "llvm", "x86_64,native", "usb")
    assert (target.device, target.renderer, target.interface) == ("CPU", "LLVM", "USB")
    assert target.arch == "x86_64,native"


@given(TARGETS)
def test_the_text_of_a_target_parses_to_it(target: Target) -> None:
    assert parse_target(str(target)) == target


@given(st.lists(TARGETS, min_size=1, max_size=4))
def test_the_text_of_several_targets_parses_to_them(targets: list[Target]) -> None:
    assert parse_targets(";".join(map(str, targets))) == tuple(targets)


@given(st.text("CPUcl:+;,- 0_9", max_size=12))
def test_any_text_gives_targets_or_a_caret_inside_it(text: str) -> None:
    try:
        targets = parse_targets(text)
    except TargetError as error:
        assert 0 <= error.position <= len(text)
        assert error.text == text
    else:
        assert parse_targets(";".join(map(str, targets))) == targets


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("CPU;;CL", "expected a device name (for example CPU, CPU:LLVM or", "    ^"),
        ("CPU;", "got the end of the text", "    ^"),
        (":LLVM", "expected a device name", "^"),
        ("USB+", "expected a device name", "    ^"),
        ("CPU:1", "expected a renderer name, which starts with a letter (device indices", "    ^"),
        ("CPU:LLVM:", "expected an arch after ':', such as x86_64,native or sm_70", "         ^"),
        ("CPU::", "expected an arch after ':'", "     ^"),
        ("CPU LLVM", "a target has no blanks inside", "    ^^^^"),
        ("CPU-LLVM", "expected ':', ';' or the end of the target, got '-'", "   ^"),
        ("USB:0,x1+AMD", "expected a device index such as 0 or 0-3, got 'x1'", "      ^^"),
        ("USB:+AMD", "expected a device index such as 0 or 0-3, got ''", "    ^"),
        ("USB:3-1+AMD", "a range of indices counts up, '3-1' does not", "    ^^^"),
    ],
)
def test_a_malformed_target_is_shown_with_a_caret(text: str, message: str, marked: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_targets(text)
    first, shown, carets = str(caught.value).split("\n")
    assert message in first
    assert shown == f"    {text}"
    assert carets == f"    {marked}"


def test_the_caret_stands_in_the_whole_text() -> None:
    with pytest.raises(TargetError) as caught:
        parse_targets("CPU:LLVM; CL:9")
    assert caught.value.position == 13


def test_one_target_is_not_several() -> None:
    with pytest.raises(TargetError, match="expected one target, got several"):
        parse_target("CPU;CL")


def test_one_target_is_not_none() -> None:
    with pytest.raises(TargetError, match="expected a target .*, got nothing"):
        parse_target(" ")


@pytest.mark.parametrize(
    ("device", "renderer", "arch"),
    [("C PU", "", ""), ("", "", ""), ("CPU", "1", ""), ("CPU", "", "a b"), ("CPU", "", "a;b")],
)
def test_fields_that_dev_cannot_spell_are_refused(device: str, renderer: str, arch: str) -> None:
    with pytest.raises(TargetError):
        Target(device, renderer, arch)


def test_indices_need_an_interface() -> None:
    with pytest.raises(TargetError, match="indices belong to an interface, such as USB:0"):
        Target("AMD", indices=(0,))


def test_a_cpu_arch_is_read() -> None:
    arch = parse_cpu_arch("x86_64,znver2,avx2,-avx512f,sse4.2")
    assert arch == CpuArch("x86_64", "znver2", ("avx2", "-avx512f", "sse4.2"))
    assert arch.enabled == ("avx2", "sse4.2")
    assert arch.disabled == ("avx512f",)
    assert str(arch) == "x86_64,znver2,avx2,-avx512f,sse4.2"


@given(
    st.sampled_from(CPU_FAMILIES),
    st.from_regex(r"[a-z][a-z0-9\-]{0,8}", fullmatch=True),
    st.lists(st.from_regex(r"-?[a-z][a-z0-9.\-]{0,8}", fullmatch=True)).map(tuple),
)
def test_the_text_of_a_cpu_arch_parses_to_it(
    family: str, cpu_type: str, features: tuple[str, ...]
) -> None:
    arch = CpuArch(family, cpu_type, features)
    assert parse_cpu_arch(str(arch)) == arch


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("mips,native", "unknown CPU family 'mips'; known: arm64, riscv64, x86_64", "^^^^"),
        ("aarch64,native", "unknown CPU family 'aarch64'; did you mean 'arm64'?", "^^^^^^^"),
        ("x86_46,native", "unknown CPU family 'x86_46'; did you mean 'x86_64'?", "^^^^^^"),
        ("arm64", "expected a cpu type after the family, such as arm64,native", "     ^"),
        ("x86_64,", "expected a cpu type such as native or znver2, got ''", "       ^"),
        (
            "x86_64,-avx2",
            "expected a cpu type such as native or znver2, got '-avx2'",
            "       ^^^^^",
        ),
        (
            "x86_64,native,+avx2",
            "expected a feature such as avx2 or -avx512f, got '+avx2'",
            "              ^^^^^",
        ),
    ],
)
def test_a_malformed_cpu_arch_is_shown_with_a_caret(text: str, message: str, marked: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_cpu_arch(text)
    assert str(caught.value) == f"{message}\n    {text}\n    {marked}"
