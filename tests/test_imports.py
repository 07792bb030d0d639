"""What importing a package loads: what the import contracts promise, seen at run time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"numpy", "llvmlite", "sqlite3"}


def loaded_after(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after `statement`."""
    command = [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(output.stdout.split())


def imported_roots(path: Path) -> set[str]:
    """First names of all modules that a file imports, wherever the import stands."""
    roots = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add(str(node.module).partition(".")[0])
    return roots


def test_ir_imports_the_standard_library_only() -> None:
    allowed = sys.stdlib_module_names | {"tg_ir"}
    for path in sorted((ROOT / "packages/tg-ir/src").rglob("*.py")):
        assert imported_roots(path) <= allowed, path


def test_door_of_ir_loads_no_part() -> None:
    loaded = loaded_after("import tg_ir")
    assert not {name for name in loaded if name.startswith(("tg_ir.graph", "tg_ir.device"))}


def test_graph_and_device_load_without_each_other() -> None:
    assert "tg_ir.device" not in loaded_after("import tg_ir.graph")
    assert "tg_ir.graph" not in loaded_after("import tg_ir.device")


def test_running_compiled_programs_loads_nothing_heavy() -> None:
    loaded = loaded_after("import tg_ir.device; import tg_runtime_cpu.ops_cpu")
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("tg_ir.graph")}


@pytest.mark.parametrize("module", ["tg_ir.graph", "tg_codegen", "tg_renderers", "tg_frontend"])
def test_import_loads_nothing_heavy(module: str) -> None:
    assert not loaded_after(f"import {module}") & HEAVY


def test_frontend_and_codegen_load_no_renderer_and_no_runtime() -> None:
    loaded = loaded_after("import tg_frontend, tg_codegen")
    concrete = ("tg_renderers", "tg_runtime_")
    assert not {name for name in loaded if name.startswith(concrete)}
