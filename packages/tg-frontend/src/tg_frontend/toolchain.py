"""Which renderer and compiler make the kernels of a device.

As DEV says, else the device's first that is here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.config import DEV
from tg_ir.device import AnyCompiled, open_device
from tg_ir.errors import TargetError, UnknownToolchainError
from tg_ir.graph.render_api import (
    Compiler,
    Renderer,
    list_renderers,
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
    return Toolchain(renderer, open_compiler(renderer.compiler, target))


def _renderer_name(device: AnyCompiled, wanted: Target) -> str:
    takes = device.renderers
    if wanted.renderer:
        if wanted.renderer not in takes:
            text = str(wanted)
            raise TargetError(
                f"{device.device} takes no code of renderer '{wanted.renderer}'; "
                f"it takes: {', '.join(takes) or 'none'} (default {takes[0] if takes else 'none'})",
                text,
                text.index(wanted.renderer),
                len(wanted.renderer),
            )
        return wanted.renderer
    if not takes:
        raise UnknownToolchainError(
            f"{device.device} runs no kernels; copy to another device first"
        )
    installed = list_renderers()
    return next((name for name in takes if name in installed), takes[0])
