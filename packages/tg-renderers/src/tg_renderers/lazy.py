"""Third-party packages, imported on first use, with an error that says what to install."""

from __future__ import annotations

from typing import Any

from tg_ir.graph.render_api import missing_package_error


def llvmlite_binding() -> Any:
    """`llvmlite.binding` with all targets initialised.

    Raises:
        ToolchainLoadError: llvmlite is not installed.
    """
    try:
        import llvmlite.binding as binding
    except ImportError:
        raise missing_package_error("compiler", "LLVM", "llvmlite") from None
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding
