"""`tg --version`: the installed version of each package of the stack."""

from __future__ import annotations

from importlib import metadata

from tg_frontend.cli.table import GAP

PACKAGES = (
    "tg-ir",
    "tg-codegen",
    "tg-renderers",
    "tg-runtime-cpu",
    "tg-runtime-gpu",
    "tg-frontend",
)


def versions_text() -> str:
    """A line for each package, with its version or "not installed"."""
    width = max(len(package) for package in PACKAGES)
    return "\n".join(f"{package:<{width}}{GAP}{_version(package)}" for package in PACKAGES)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
