"""`tg devices`: try every device that an installed package offers, and say how it went."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from tg_ir.device import AnyCompiled, Buffer, list_devices, open_device
from tg_ir.dtype import dtypes
from tg_ir.errors import TgError
from tg_ir.float_model import FloatModel

from tg_frontend.cli.table import table_text
from tg_frontend.device import Device
from tg_frontend.tensor import Tensor
from tg_frontend.toolchain import fitting_renderers

# Devices whose name needs more than the kind; `{folder}` is an empty one.
_NAMES_TO_TRY = {"DISK": "DISK:{folder}/probe"}
_PATTERN = bytes(range(64))


class DeviceReport(NamedTuple):
    """What trying one device gave.

    Attributes:
        name: of the device.
        passed: whether everything it offers works.
        renderers: names of those it accepts, best first, with a note where one is not installed.
        float_model: how its float arithmetic differs from IEEE 754.
        detail: what was done, or the reason of the failure, in one line.
    """

    name: str
    passed: bool
    renderers: str
    float_model: str
    detail: str


def devices_text() -> tuple[str, bool]:
    """The table of all devices, and whether the default one passed.

    A line below the table says why there is no default one.
    """
    default, problem = _default_name()
    reports = [try_device(name) for name in sorted(list_devices())]
    rows = [
        (
            report.name,
            "PASS" if report.passed else "FAIL",
            "default" if report.name == default else "",
            report.renderers,
            report.float_model,
            report.detail,
        )
        for report in reports
    ]
    header = ("device", "result", "", "renderers", "floats", "detail")
    passed = any(report.passed and report.name == default for report in reports)
    return table_text(header, rows) + problem, passed


def try_device(name: str) -> DeviceReport:
    """Open a device, write and read its memory, and run a kernel if it runs any."""
    with tempfile.TemporaryDirectory(prefix="tg-devices-") as folder:
        full_name = _NAMES_TO_TRY.get(name, name).format(folder=Path(folder).as_posix())
        renderers = "-"
        floats = "-"
        try:
            device = open_device(full_name)
            renderers = _renderers_of(device)
            if device.capabilities.runs_programs:
                floats = _described(device.capabilities.float_model)
            return DeviceReport(name, True, renderers, floats, _try_opened(full_name))
        except Exception as error:  # whatever it is, it is the reason to show
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            return DeviceReport(name, False, renderers, floats, reason)


def _try_opened(name: str) -> str:
    capabilities = open_device(name).capabilities
    memory = Buffer(name, len(_PATTERN), dtypes.uint8).copyin(_PATTERN)
    read = bytes(memory.copyout(bytearray(len(_PATTERN))))
    if capabilities.stores_values and read != _PATTERN:
        raise RuntimeError("what was written to its memory is not what was read back")
    if not capabilities.runs_programs:
        return "memory works; runs no kernels"
    started = perf_counter()
    computed = (Tensor([1.0, 2.0, 3.0], device=name) * 2 + 1).realize()
    milliseconds = (perf_counter() - started) * 1e3
    if not capabilities.stores_values:
        return f"kernel compiled and counted in {milliseconds:.0f} ms; stores no values"
    result = computed.tolist()
    if result != [3.0, 5.0, 7.0]:
        raise RuntimeError(f"a kernel gave {result} instead of [3.0, 5.0, 7.0]")
    return f"kernel compiled and ran in {milliseconds:.0f} ms"


def _default_name() -> tuple[str, str]:
    """The kind of the default device, or a line that says why there is none."""
    try:
        return Device.DEFAULT.partition(":")[0], ""
    except TgError as error:
        return "", f"\nno default device: {error}"


def _renderers_of(device: AnyCompiled) -> str:
    fitting = fitting_renderers(device)
    missing = [name for name in device.renderers if name not in fitting]
    return ", ".join([*fitting, *(f"{name} (not installed)" for name in missing)]) or "-"


def _described(model: FloatModel) -> str:
    plain = FloatModel()
    differences = [
        f"{field.name}={getattr(model, field.name)}"
        for field in fields(model)
        if getattr(model, field.name) != getattr(plain, field.name)
    ]
    return ", ".join(differences) or "IEEE 754"
