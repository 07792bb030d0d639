"""Finding, loading and opening devices, and what each failure says."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tg_ir.config import Context
from tg_ir.device import (
    Compiled,
    DeviceConflictError,
    DeviceOpenError,
    UnknownDeviceError,
    canonical_device_name,
    list_devices,
    load_device,
    open_device,
    register_device,
    registry,
    unregister_device,
)
from tg_ir.events import DeviceOpened, Event, subscribe


class Broken(Compiled[Any]):
    runtime_api = 1

    def __init__(self, device: str) -> None:
        raise OSError("the cable is not plugged in")


class FromTheFuture(Compiled[Any]):
    runtime_api = 99


def install(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str, str]) -> None:
    """Pretend that packages offer devices: (distribution, name, value)."""
    found = []
    for distribution, name, value in points:
        point = metadata.EntryPoint(name, value, "tg.runtimes")
        found.append(point._for(SimpleNamespace(name=distribution)))  # type: ignore[attr-defined]  # not in the stub
    monkeypatch.setattr(metadata, "entry_points", lambda group: found)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("CPU", "CPU"),
        ("cpu", "CPU"),
        ("CPU:0", "CPU"),
        ("cpu:1", "CPU:1"),
        ("CPU:01", "CPU:1"),
        ("disk:/Tmp/File.bin", "DISK:/Tmp/File.bin"),
    ],
)
def test_every_spelling_has_one_canonical_name(written: str, canonical: str) -> None:
    assert canonical_device_name(written) == canonical


@pytest.mark.parametrize("name", ["", ":1", "C PU", "9X"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UnknownDeviceError, match="is no device name; expected"):
        open_device(name)


def test_unknown_device_lists_the_installed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ("a", "CPU", "m:C"), ("a", "NULL", "m:N"))
    monkeypatch.setattr(registry, "installed_version", lambda distribution: None)
    with pytest.raises(
        UnknownDeviceError,
        match="no runtime offers device 'CUDA'; installed: CPU, .*NULL.*; "
        "install tg-runtime-gpu for it",
    ):
        open_device("CUDA:1")


def test_installed_package_without_the_device_is_not_to_be_installed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "installed_version", lambda distribution: "0.1.0")
    with pytest.raises(
        UnknownDeviceError, match="tg-runtime-gpu 0.1.0 is installed, but does not have it yet"
    ):
        open_device("CUDA")


def test_a_name_close_to_an_installed_one_is_suggested() -> None:
    with pytest.raises(UnknownDeviceError, match="did you mean 'TINY'"):
        open_device("TINNY")


@pytest.mark.parametrize("name", [None, 3, ("CPU",)])
def test_what_is_no_text_is_no_device_name(name: Any) -> None:
    with pytest.raises(UnknownDeviceError, match="is no device name; expected a name"):
        open_device(name)


def test_only_a_device_named_by_path_takes_more_than_an_index() -> None:
    with pytest.raises(UnknownDeviceError, match="after 'TINY:' comes an index, such as TINY:1"):
        open_device("TINY:LLVM")


def test_unknown_device_of_nobody_gets_no_package_to_install() -> None:
    with pytest.raises(UnknownDeviceError, match="no runtime offers device 'ABACUS'") as caught:
        open_device("abacus")
    assert "; install " not in str(caught.value)


def test_two_packages_with_one_name_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ("first-package", "CPU", "a:C"), ("second-package", "CPU", "b:C"))
    with pytest.raises(DeviceConflictError, match="'CPU'.*first-package.*second-package"):
        list_devices()


def test_registered_name_that_is_taken_is_refused() -> None:
    with pytest.raises(DeviceConflictError, match="'TINY' is offered by two packages"):
        register_device("tiny", Broken)


def test_listing_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ("p", "GHOST", "module_that_does_not_exist:GHOSTDevice"))
    entry = list_devices()["GHOST"]
    assert (entry.distribution, entry.module) == ("p", "module_that_does_not_exist")
    with pytest.raises(DeviceOpenError, match="device 'GHOST' of p cannot be loaded"):
        load_device("GHOST")


def test_package_entry_offers_each_of_its_ops_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "many_devices_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("one", "two"):
        (package / f"ops_{name}.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    install(monkeypatch, ("p", "many", "many_devices_package"))
    entries = list_devices()
    assert {"ONE", "TWO"} <= entries.keys()
    assert entries["ONE"].class_name == "ONEDevice"
    assert "many_devices_package" not in sys.modules


def test_device_that_does_not_open_gives_the_reason() -> None:
    register_device("BROKEN", Broken)
    try:
        with pytest.raises(
            DeviceOpenError, match="'BROKEN' does not open: the cable is not plugged in"
        ):
            open_device("BROKEN")
    finally:
        unregister_device("BROKEN")


def test_device_of_another_contract_is_refused() -> None:
    register_device("FUTURE", FromTheFuture)
    try:
        with pytest.raises(
            DeviceOpenError, match="written for runtime contract 99, this tg-ir has 1"
        ):
            open_device("FUTURE")
    finally:
        unregister_device("FUTURE")


def test_device_is_opened_once_and_announced(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Event] = []
    with subscribe(seen.append), Context(DEBUG=1):
        first = open_device("TINY:3")
        assert open_device("tiny:3") is first
    assert seen == [DeviceOpened("TINY:3")]
    assert capsys.readouterr().out == "opened device TINY:3\n"


def test_opened_devices_are_finalized_at_exit() -> None:
    code = """
from tg_ir.device import Compiled, open_device, register_device
class D(Compiled):
    runtime_api = 1
    def __init__(self, device): super().__init__(device, None, (), None)
    def synchronize(self): print("synchronize", self.device)
    def finalize(self): print("finalize", self.device)
register_device("D", D)
open_device("D:1")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["synchronize D:1", "finalize D:1"]
