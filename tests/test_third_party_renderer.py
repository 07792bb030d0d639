"""A renderer of another package works on our devices, without a change to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = '''
from tg_renderers.llvm import LLVMRenderer

class MyRenderer(LLVMRenderer):
    name = "MYC"

class OtherFormat(LLVMRenderer):
    name = "ODD"
    code_format = "punched cards"
'''
ENTRY_POINTS = "[tg.renderers]\nMYC = my_renderer:MyRenderer\nODD = my_renderer:OtherFormat\n"
PROGRAM = "from tg_frontend import Tensor; print((Tensor([1.0, 2.0]) * 2 + 1).tolist())"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the installed package."""
    (tmp_path / "my_renderer.py").write_text(SOURCE)
    metadata = tmp_path / "my_renderer-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-renderer\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def run_with(site: Path, dev: str, *command: str, debug: int = 0) -> str:
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    settings = {"DEV": dev, "DEBUG": str(debug)}
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_device_takes_any_renderer_of_a_format_that_it_loads(site: Path) -> None:
    output = run_with(site, "CPU:MYC", "-c", PROGRAM, debug=1)
    assert "[3.0, 5.0]" in output
    assert "kernels of CPU: renderer MYC, compiler LLVM" in output


def test_a_renderer_of_another_format_is_refused_by_both_names(site: Path) -> None:
    output = run_with(site, "CPU:ODD", "-c", PROGRAM)
    assert (
        "CPU takes no code of renderer 'ODD', which is of format 'punched cards'; "
        "it takes: LLVM, MYC (default LLVM)"
    ) in output


def test_devices_lists_it(site: Path) -> None:
    main = "from tg_frontend.cli import main; main(['devices'])"
    lines = run_with(site, "CPU", "-c", main).splitlines()
    cpu = next(line for line in lines if line.startswith("CPU "))
    assert "LLVM, MYC, CLANG (not installed)" in cpu
