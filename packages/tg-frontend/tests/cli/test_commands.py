"""The command `tg`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tg_frontend import Context
from tg_frontend.cli import main
from tg_ir.config import ContextVar
from tg_ir.device import Compiled, register_device, unregister_device


@pytest.fixture
def broken_device() -> Iterator[str]:
    class BROKENDevice(Compiled[int]):
        runtime_api = 1

        def __init__(self, device: str) -> None:
            raise OSError("libbroken.so.1: cannot open shared object file")

    register_device("BROKEN", BROKENDevice)
    yield "BROKEN"
    unregister_device("BROKEN")


def line_of(name: str, output: str) -> str:
    return next(line for line in output.splitlines() if line.split()[0] == name)


def test_devices_runs_a_kernel_on_each(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEV="CPU"):
        assert main(["devices"]) == 0
    output = capsys.readouterr().out
    cpu = line_of("CPU", output)
    assert "PASS" in cpu and "default" in cpu and "LLVM" in cpu and "IEEE 754" in cpu
    assert "kernel compiled and ran" in cpu
    assert "kernel compiled and ran" in line_of("PYTHON", output)
    assert "runs no kernels" in line_of("DISK", output)
    assert "stores no values" in line_of("NULL", output)


def test_default_follows_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEV="PYTHON"):
        main(["devices"])
    output = capsys.readouterr().out
    assert "default" in line_of("PYTHON", output)
    assert "default" not in line_of("CPU", output)


def test_device_that_does_not_open_fails_with_the_reason(
    broken_device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["devices"]) == 0
    line = line_of(broken_device, capsys.readouterr().out)
    assert "FAIL" in line and "libbroken.so.1: cannot open shared object file" in line


def test_default_device_that_fails_is_an_error_status(
    broken_device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Context(DEV=broken_device):
        assert main(["devices"]) == 1
    assert "FAIL" in line_of(broken_device, capsys.readouterr().out)


def test_env_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEBUG=0, THREADS=3):
        assert main(["env"]) == 0
    output = capsys.readouterr().out
    table = output.partition("\n\n")[0]
    named = {line.split()[0] for line in table.splitlines()[1:] if not line.startswith(" ")}
    assert named == set(ContextVar.registry)
    assert {"CACHEDIR", "CACHEMB"} <= named
    header, *lines = table.splitlines()
    assert max(len(line) - header.index("meaning") for line in lines) <= 64
    name, value, default, *_ = line_of("THREADS", output).split()
    assert (name, value, default) == ("THREADS", "3", "0")


def test_env_shows_the_folder_of_the_disk_cache(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(CACHEDIR="/somewhere/else", CCACHE=1):
        main(["env"])
    assert "disk cache: /somewhere/else\n" in capsys.readouterr().out
    with Context(CACHEDIR="/somewhere/else", CCACHE=0):
        main(["env"])
    assert "disk cache: /somewhere/else (not used: CCACHE=0)" in capsys.readouterr().out


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    main(["env"])
    header, *lines = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    for line in lines:
        assert line[header.index("value") - 1] == " "
        assert line[header.index("meaning") - 2 : header.index("meaning")] == "  "


def test_version_lists_every_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["tg-ir"] == "0.1.0"
    assert set(lines) == {
        *("tg-ir", "tg-codegen", "tg-renderers"),
        *("tg-runtime-cpu", "tg-runtime-gpu", "tg-frontend"),
    }


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr().out
    assert "devices" in output and "env" in output


def test_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["device"])
    assert caught.value.code == 2
    assert "invalid choice: 'device'" in capsys.readouterr().err


def test_it_is_installed_as_a_script() -> None:
    command = "import sys; from tg_frontend.cli import main; sys.exit(main(['--version']))"
    process = [sys.executable, "-c", command]
    output = subprocess.run(process, capture_output=True, text=True, check=True)
    assert "tg-frontend" in output.stdout
