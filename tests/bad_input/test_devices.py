"""Devices, renderers and arches that do not exist: the message says what does."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tg_frontend import Context, Device, Tensor
from tg_frontend.cli import main

from .refusals import Case, assert_stands_alone, case, each, message_of

NOT_OFFERED = "no runtime offers device 'CPUU'; installed: CPU, DISK, NPY, NULL, PYTHON"

DEVICES = [
    case("data", lambda: Tensor([1], device="CPUU"), RuntimeError, NOT_OFFERED, "mean 'CPU'"),
    case("number", lambda: Tensor(1, device="CPUU"), RuntimeError, NOT_OFFERED),
    case("empty_list", lambda: Tensor([], device="CPUU"), RuntimeError, NOT_OFFERED),
    case("empty", lambda: Tensor.empty(2, device="CPUU"), RuntimeError, NOT_OFFERED),
    case("zeros", lambda: Tensor.zeros(2, device="CPUU"), RuntimeError, NOT_OFFERED),
    case("zeros_of_ints", lambda: ints_on("CPUU"), RuntimeError, NOT_OFFERED),
    case("rand", lambda: Tensor.rand(2, device="CPUU"), RuntimeError, NOT_OFFERED),
    case("arange", lambda: Tensor.arange(2, device="CPUU"), RuntimeError, NOT_OFFERED),
    case("to", lambda: Tensor([1]).to("CPUU"), RuntimeError, NOT_OFFERED),
    case("device", lambda: Device["CPUU"], RuntimeError, NOT_OFFERED),
    case("no_name", lambda: Device["C PU"], RuntimeError, "'C PU' is no device name; expected"),
    case("no_text", lambda: Device[3], RuntimeError, "3 is no device name; expected a name"),
    case("to_no_text", lambda: Tensor([1]).to(3), RuntimeError, "3 is no device name"),
    case("list", lambda: Tensor([1], device=["CPU"]), TypeError, "name of one device", "['CPU']"),
    case("several", lambda: Tensor([1], device=("CPU", "CPU:1")), TypeError, "by to()"),
    case("renderer", lambda: Tensor([1], device="CPU:LLVM"), RuntimeError, "setting DEV"),
    case("index", lambda: Device["CPU:-1"], RuntimeError, "after 'CPU:' comes an index"),
    case("disk_without_path", lambda: Device["DISK"], RuntimeError, "DISK:/tmp/weights.bin"),
]


def ints_on(device: str) -> Tensor:
    return Tensor.zeros(2, device=device, dtype="int32")


@each(DEVICES)
def test_device_that_does_not_exist(wrong: Case) -> None:
    message_of(wrong)


def computed(setting: str) -> list[float]:
    with Context(DEV=setting):
        result: list[float] = (Tensor([1.0]) + 1).tolist()
    return result


SETTINGS = [
    case("device", lambda: computed("FOO"), RuntimeError, "device 'FOO'; installed: CPU, DISK"),
    case("second_device", lambda: computed("CPU;FOO"), RuntimeError, "device 'FOO'; installed"),
    case("planned_device", lambda: computed("CUDA"), RuntimeError, "tg-runtime-gpu"),
    case(
        "renderer",
        lambda: computed("CPU:FOO"),
        ValueError,
        "no installed package offers renderer 'FOO'; CPU takes: LLVM (default LLVM)",
        "    CPU:FOO\n        ^^^",
    ),
    case("renderer_of_another", lambda: computed("PYTHON:LLVM"), ValueError, "takes: SERIAL"),
    case(
        "family",
        lambda: computed("CPU:LLVM:sparc,native"),
        ValueError,
        "unknown CPU family 'sparc'; known: arm64, riscv64, x86_64",
        "^^^^^",
    ),
    case("family_alias", lambda: computed("CPU::aarch64,native"), ValueError, "mean 'arm64'"),
    case("family_alone", lambda: computed("CPU::x86_64"), ValueError, "such as x86_64,native"),
    case("no_arch", lambda: computed("CPU::"), ValueError, "expected an arch after ':'", "^"),
    case("comma", lambda: computed("CPU,PYTHON"), ValueError, "expected ':', ';'", "got ','"),
    case("interface", lambda: computed("USB+CPU"), ValueError, "leave out 'USB+'", "^^^"),
    case("nothing", lambda: computed(";"), ValueError, "expected a device name (for example CPU"),
    case(
        "cpu_type",
        lambda: computed("CPU::x86_64,znver99"),
        ValueError,
        "LLVM knows no x86_64 cpu type 'znver99'",
        "x86_64,znver99\n           ^^^^^^^",
    ),
    case(
        "cpu_type_unlike_any",
        lambda: computed("CPU::x86_64,nonsense"),
        ValueError,
        "cpu type 'nonsense'; for example native, ",
    ),
    case(
        "feature_before_the_type",
        lambda: computed("CPU::x86_64,avx512f"),
        ValueError,
        "'avx512f'; that is a feature, and a cpu type comes first: x86_64,native,avx512f",
    ),
    case(
        "feature",
        lambda: computed("CPU::x86_64,x86-64-v3,avx51f"),
        ValueError,
        "LLVM knows no x86_64 feature 'avx51f'",
        "^^^^^^",
    ),
    case("feature_off", lambda: computed("CPU::x86_64,x86-64,-sse2"), ValueError, "leave it on"),
    case("soft_float", lambda: computed("CPU::x86_64,x86-64,soft-float"), ValueError, "off"),
]


@each(SETTINGS)
def test_setting_that_names_what_does_not_exist(wrong: Case) -> None:
    message_of(wrong)


def test_native_of_another_family_is_refused() -> None:
    own = Device["CPU"].arch or ""
    other = "riscv64" if "riscv64" not in own else "arm64"
    with pytest.raises(ValueError, match=f"name a cpu type of {other} instead") as caught:
        computed(f"CPU::{other},native")
    assert_stands_alone(caught.value)


def test_a_wrong_arch_does_not_end_the_process() -> None:
    script = (
        "from tg_frontend import Context, Tensor\n"
        "for arch in ('x86_64,znver99', 'x86_64,i386', 'x86_64,x86-64,-64bit', 'arm64,apple-m1'):\n"
        "    try:\n"
        "        with Context(DEV=f'CPU::{arch}', CCACHE=0):\n"
        "            (Tensor([1.0]) + 1).tolist()\n"
        "    except ValueError:\n"
        "        pass\n"
        "print((Tensor([1.0]) + 1).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[2.0]\n", done.stderr
    assert done.stderr == ""


def test_a_refused_device_leaves_the_next_program_alone() -> None:
    with pytest.raises(RuntimeError):
        computed("FOO")
    assert computed("CPU") == [2.0]


def test_devices_says_why_there_is_no_default(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEV="FOO"):
        assert main(["devices"]) == 1
    output = capsys.readouterr().out
    assert "no default device: no runtime offers device 'FOO'; installed: CPU" in output
    assert "PASS" in output


def test_devices_says_what_is_wrong_with_the_renderer(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEV="CPU:FOO"):
        assert main(["devices"]) == 1
    output = capsys.readouterr().out
    assert "no installed package offers renderer 'FOO'; CPU takes: LLVM" in output
