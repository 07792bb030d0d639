"""The contracts of back ends: `Renderer`, `Compiler`, what they declare, finding them by name."""

from tg_ir.graph.render_api.contracts import (
    RENDER_API,
    WALKER_NAME,
    Compiler,
    Renderer,
    TargetCapabilities,
)
from tg_ir.graph.render_api.registry import (
    ToolchainEntry,
    list_compilers,
    list_renderers,
    load_compiler,
    load_renderer,
    missing_package_error,
    open_compiler,
    open_renderer,
)

__all__ = [
    "RENDER_API",
    "WALKER_NAME",
    "Compiler",
    "Renderer",
    "TargetCapabilities",
    "ToolchainEntry",
    "list_compilers",
    "list_renderers",
    "load_compiler",
    "load_renderer",
    "missing_package_error",
    "open_compiler",
    "open_renderer",
]
