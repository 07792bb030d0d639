"""`tg env`: every setting with its value, default and meaning."""

from __future__ import annotations

import textwrap
from importlib import import_module

from tg_codegen.compile import cache_folder  # which declares the settings of the cache
from tg_ir.config import CCACHE, settings_table
from tg_ir.device import list_devices
from tg_ir.graph.render_api import list_compilers, list_renderers

from tg_frontend.cli.table import table_text

_MEANING_WIDTH = 64  # of the last column, so that a line fits a usual terminal


def settings_text() -> str:
    """The table of all settings that the installed packages declare, and where the cache is."""
    folder = cache_folder()
    _import_declarations()
    rows: list[tuple[str, str, str, str]] = []
    for name, value, default, meaning in settings_table():
        first, *more = textwrap.wrap(meaning, _MEANING_WIDTH, break_on_hyphens=False) or [""]
        rows.append((name, value, default, first))
        rows += [("", "", "", line) for line in more]
    use = "" if CCACHE else " (not used: CCACHE=0)"
    table = table_text(("setting", "value", "default", "meaning"), rows)
    return f"{table}\n\ndisk cache: {folder}{use}"


def _import_declarations() -> None:
    """Import what devices and toolchains are made of, since importing declares settings."""
    modules = {device.module for device in list_devices().values()}
    modules |= {tool.module for tool in (*list_renderers().values(), *list_compilers().values())}
    for module in sorted(modules):
        try:
            import_module(module)
        except Exception:  # `tg devices` says why it does not import
            continue
