"""Renderers and compilers by name, from the entry points `tg.renderers` and `tg.compilers`.

Listing reads metadata only, loading imports, opening makes one for a target and may fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from tg_ir.errors import (
    ToolchainConflictError,
    ToolchainLoadError,
    UnknownToolchainError,
    did_you_mean,
)
from tg_ir.graph.render_api.contracts import RENDER_API, Compiler, Renderer
from tg_ir.target import Target

__all__ = [
    "ToolchainEntry",
    "list_compilers",
    "list_renderers",
    "load_compiler",
    "load_renderer",
    "open_compiler",
    "open_renderer",
]

# Which extra brings what our own packages offer; only used to say what to install.
_INSTALL = {
    ("renderer", "LLVM"): "tg-renderers[llvm]",
    ("renderer", "SERIAL"): "tg-renderers",
    ("compiler", "LLVM"): "tg-renderers[llvm]",
    ("compiler", "SERIAL"): "tg-renderers",
}
_GROUPS = {"renderer": "tg.renderers", "compiler": "tg.compilers"}


@dataclass(frozen=True)
class ToolchainEntry:
    """Where a renderer or compiler comes from, known without importing it.

    Attributes:
        kind: "renderer" or "compiler".
        name: upper case.
        distribution: the installed package that offers it.
        module: where its class lives.
        class_name: the class.
    """

    kind: str
    name: str
    distribution: str
    module: str
    class_name: str


def list_renderers() -> dict[str, ToolchainEntry]:
    """Return every installed renderer by name, reading metadata only.

    Raises:
        ToolchainConflictError: two packages offer one name.
    """
    return _collect("renderer", _installed("renderer"))


def list_compilers() -> dict[str, ToolchainEntry]:
    """Return every installed compiler by name, reading metadata only.

    Raises:
        ToolchainConflictError: two packages offer one name.
    """
    return _collect("compiler", _installed("compiler"))


def load_renderer(name: str) -> type[Renderer]:
    """Import and return the class of a renderer.

    Raises:
        UnknownToolchainError: no installed package offers it; says what to install.
        ToolchainLoadError: it does not import, or was written for another contract.
    """
    loaded: type[Renderer] = _load("renderer", name, list_renderers(), Renderer)
    return loaded


def load_compiler(name: str) -> type[Compiler]:
    """Import and return the class of a compiler.

    Raises:
        UnknownToolchainError: no installed package offers it; says what to install.
        ToolchainLoadError: it does not import, or was written for another contract.
    """
    loaded: type[Compiler] = _load("compiler", name, list_compilers(), Compiler)
    return loaded


def open_renderer(name: str, target: Target) -> Renderer:
    """Make the renderer `name` for a target.

    Raises:
        UnknownToolchainError, ToolchainLoadError: as `load_renderer`.
        TargetError: the renderer does not know the arch.
    """
    return load_renderer(name)(target)


def open_compiler(name: str, target: Target) -> Compiler:
    """Make the compiler `name` for a target.

    Raises:
        UnknownToolchainError, ToolchainLoadError: as `load_compiler`; a toolchain that is not
            installed may show here or at the first compile.
        TargetError: the compiler does not know the arch.
    """
    return load_compiler(name)(target)


def missing_package_error(kind: str, name: str, package: str) -> ToolchainLoadError:
    """The error for a renderer or compiler whose third-party `package` is not installed."""
    return ToolchainLoadError(
        f"{kind} '{name}' needs the package {package}, which is not installed"
        f"{_what_to_install(kind, name)}"
    )


def _installed(kind: str) -> Iterable[ToolchainEntry]:
    for point in metadata.entry_points(group=_GROUPS[kind]):
        distribution = point.dist.name if point.dist is not None else "an unnamed package"
        yield ToolchainEntry(kind, point.name.upper(), distribution, point.module, point.attr)


def _collect(kind: str, entries: Iterable[ToolchainEntry]) -> dict[str, ToolchainEntry]:
    collected: dict[str, ToolchainEntry] = {}
    for entry in entries:
        known = collected.setdefault(entry.name, entry)
        if known != entry:
            raise ToolchainConflictError(
                f"{kind} '{entry.name}' is offered by two packages: {known.distribution} "
                f"({known.module}) and {entry.distribution} ({entry.module}); "
                "uninstall one of them"
            )
    return collected


def _load(kind: str, name: str, entries: dict[str, ToolchainEntry], contract: type[Any]) -> Any:
    entry = entries.get(name.upper())
    if entry is None:
        installed = ", ".join(sorted(entries)) or "none"
        close = did_you_mean(name, entries)
        hint = f"; {close}" if close.startswith("did") else ""
        hint = _what_to_install(kind, name.upper()) or hint
        raise UnknownToolchainError(
            f"no installed package offers {kind} '{name.upper()}'; installed: {installed}{hint}"
        )
    try:
        loaded = getattr(import_module(entry.module), entry.class_name)
    except (ImportError, AttributeError, OSError) as error:
        raise ToolchainLoadError(
            f"{kind} '{entry.name}' of {entry.distribution} cannot be loaded: {error}"
            f"{_what_to_install(kind, entry.name)}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, contract)):
        raise ToolchainLoadError(
            f"{kind} '{entry.name}' of {entry.distribution}: {entry.module}.{entry.class_name} "
            f"is no subclass of {contract.__name__}"
        )
    version = getattr(loaded, "render_api", None)
    if version != RENDER_API:
        raise ToolchainLoadError(
            f"{kind} '{entry.name}' of {entry.distribution} was written for render contract "
            f"{version}, this tg-ir has {RENDER_API}; install versions that fit each other"
        )
    return loaded


def _what_to_install(kind: str, name: str) -> str:
    requirement = _INSTALL.get((kind, name))
    return f"; pip install '{requirement}'" if requirement else ""
