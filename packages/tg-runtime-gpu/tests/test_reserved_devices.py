"""The package promises names, and advertises none that it cannot open."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import tg_runtime_gpu


def test_reserved_names_are_distinct_and_upper_case() -> None:
    names = tg_runtime_gpu.RESERVED_DEVICES
    assert len(set(names)) == len(names)
    assert all(name == name.upper() for name in names)


def test_no_reserved_device_is_advertised_yet() -> None:
    advertised = importlib.metadata.entry_points(group="tg.runtimes").names
    assert not advertised & set(tg_runtime_gpu.RESERVED_DEVICES)


def test_import_loads_nothing_but_the_standard_library() -> None:
    code = "import sys, tg_runtime_gpu; print(*sorted(m.split('.')[0] for m in sys.modules))"
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(output.stdout.split())
    assert loaded & {"tg_ir", "tg_codegen", "tg_renderers", "numpy", "llvmlite"} == set()
