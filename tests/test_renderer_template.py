"""The example package examples/renderer_template works when it is installed as any other package
is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

TEMPLATE = Path(__file__).parent.parent / "examples" / "renderer_template"


def install(source: Path, target: Path) -> None:
    """What an installer does with a pure Python package: its modules, and metadata beside them."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    shutil.copytree(source / "src", target, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    header = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(header)
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


def test_the_template_is_found_and_keeps_its_contracts(tmp_path: Path) -> None:
    install(TEMPLATE, tmp_path / "site")
    paths = [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=TEMPLATE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
