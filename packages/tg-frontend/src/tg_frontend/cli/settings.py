"""`tg env`: every setting with its value, default and meaning."""

from __future__ import annotations

from importlib import import_module

from tg_ir.config import settings_table
from tg_ir.device import list_devices
from tg_ir.graph.render_api import list_compilers, list_renderers

from tg_frontend.cli.table import table_text


def settings_text() -> str:
    """The table of all settings that the installed packages declare."""
    _import_declarations()
    return table_text(("setting", "value", "default", "meaning"), settings_table())


def _import_declarations() -> None:
    """Import what devices and toolchains are made of, since importing declares settings."""
    modules = {device.module for device in list_devices().values()}
    modules |= {tool.module for tool in (*list_renderers().values(), *list_compilers().values())}
    for module in sorted(modules):
        try:
            import_module(module)
        except Exception:  # `tg devices` says why it does not import
            continue
