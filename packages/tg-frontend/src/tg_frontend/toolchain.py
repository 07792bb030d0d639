"""Which renderer and compiler make the kernels of a device.

As DEV says, else the device's first that is here. A device takes the renderers that it names, and
any other installed one whose code is in a format that it loads.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.config import DEBUG, DEV
from tg_ir.device import AnyCompiled, open_device
from tg_ir.errors import TargetError, ToolchainLoadError, UnknownToolchainError
from tg_ir.graph.render_api import (
    Compiler,
    Renderer,
    list_renderers,
    load_renderer,
    open_compiler,
    open_renderer,
)
from tg_ir.target import Target, parse_targets


@dataclass(frozen=True)
class Toolchain:
    """A renderer, and the compiler that takes its text."""

    renderer: Renderer
    compiler: Compiler


_OPENED: dict[tuple[str, str], Toolchain] = {}  # by device and text of DEV


def toolchain_of(device: str) -> Toolchain:
    """The toolchain for the kernels of a device, given by its canonical name.

    Raises:
        TargetError: DEV names a renderer that this device does not take.
        UnknownToolchainError, ToolchainLoadError: it is not installed; the message says which
            extra is.
    """
    key = (device, DEV.value)
    found = _OPENED.get(key)
    if found is None:
        found = _open(device)
        _OPENED[key] = found
    return found


def _open(device: str) -> Toolchain:
    opened = open_device(device)
    kind = device.partition(":")[0]
    wanted = next((t for t in parse_targets(DEV.value) if t.device == kind), Target(kind))
    name = _renderer_name(opened, wanted)
    target = Target(kind, name, wanted.arch or opened.arch or "")
    renderer = open_renderer(name, target)
    if DEBUG >= 1:
        arch = target.arch or "of its own choice"
        print(f"kernels of {device}: renderer {name}, compiler {renderer.compiler}, arch {arch}")
    return Toolchain(renderer, open_compiler(renderer.compiler, target))


def fitting_renderers(device: AnyCompiled) -> list[str]:
    """The installed renderers whose code a device runs: those that it names, best first, others."""
    installed = list_renderers()
    named = [name for name in device.renderers if name in installed]
    others = [name for name in sorted(installed) if name not in named]
    return [*named, *(name for name in others if _format_fits(device, name))]


def _format_fits(device: AnyCompiled, name: str) -> bool:
    if not device.code_formats:
        return False
    try:
        return load_renderer(name).code_format in device.code_formats
    except ToolchainLoadError:
        return False  # who asks for it by name is told why


def _renderer_name(device: AnyCompiled, wanted: Target) -> str:
    if wanted.renderer:
        if wanted.renderer not in device.renderers:
            _check_fits(device, wanted)
        return wanted.renderer
    takes = device.renderers
    if not takes:
        raise UnknownToolchainError(
            f"{device.device} runs no kernels; copy to another device first"
        )
    installed = list_renderers()
    return next((name for name in takes if name in installed), takes[0])


def _check_fits(device: AnyCompiled, wanted: Target) -> None:
    """Check that a device runs the code of a renderer that it does not name.

    Raises:
        TargetError: it does not, or the renderer is not installed.
        ToolchainLoadError: the renderer is installed and does not load.
    """
    name = wanted.renderer
    if name not in list_renderers():
        reason = f"no installed package offers renderer '{name}'; {device.device} takes"
    else:
        code_format = load_renderer(name).code_format
        if code_format in device.code_formats:
            return
        reason = (
            f"{device.device} takes no code of renderer '{name}', which is of format "
            f"'{code_format}'; it takes"
        )
    fitting = fitting_renderers(device)
    takes = ", ".join(fitting) or "none that is installed"
    default = f" (default {fitting[0]})" if fitting else ""
    text = str(wanted)
    raise TargetError(f"{reason}: {takes}{default}", text, text.index(name), len(name))
