"""A device or renderer whose package is not installed: the message says which is."""

from __future__ import annotations

import subprocess
import sys

import pytest

HIDE = """
import importlib.metadata, sys
hidden = set({hidden!r})
offered, version = importlib.metadata.entry_points, importlib.metadata.version
def entry_points(**selection):
    return [point for point in offered(**selection) if point.dist.name not in hidden]
def version_of(name):
    if name in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.entry_points, importlib.metadata.version = entry_points, version_of
for module in {modules!r}:
    sys.modules[module] = None
from tg_frontend import Context, Tensor
try:
    with Context(DEV={device!r}, CCACHE=0):
        print((Tensor([1.0]) + 1).tolist())
except Exception as error:
    print(type(error).__name__, isinstance(error, (RuntimeError, LookupError)), error)
    print(error.__cause__ or (error.__suppress_context__ is False and error.__context__) or "alone")
"""


def run_without(hidden: tuple[str, ...], device: str = "", modules: tuple[str, ...] = ()) -> str:
    """What a program prints in a process that has some packages hidden."""
    script = HIDE.format(hidden=hidden, device=device, modules=modules)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_with_everything_installed_it_runs() -> None:
    assert run_without(()) == "[2.0]\n"


@pytest.mark.parametrize(
    ("hidden", "device", "texts"),
    [
        (("tg-runtime-cpu",), "", ("no device opens", "install tg-runtime-cpu for the CPU")),
        (("tg-runtime-cpu",), "CPU", ("offers device 'CPU'", "install tg-runtime-cpu for it")),
        (("tg-runtime-cpu",), "PYTHON", ("device 'PYTHON'", "install tg-runtime-cpu for it")),
        (("tg-runtime-gpu",), "CUDA", ("device 'CUDA'", "install tg-runtime-gpu for it")),
        (("tg-renderers",), "CPU", ("renderer 'LLVM'", "pip install 'tg-renderers[llvm]'")),
        (("tg-renderers",), "PYTHON", ("renderer 'SERIAL'", "pip install 'tg-renderers'")),
    ],
)
def test_hidden_distribution_is_named(
    hidden: tuple[str, ...], device: str, texts: tuple[str, ...]
) -> None:
    error, chained = run_without(hidden, device).splitlines()
    assert error.split()[1] == "True", error
    for text in texts:
        assert text in error
    assert chained == "alone"


def test_renderer_without_its_third_party_package_names_the_extra() -> None:
    output = run_without((), "CPU", ("llvmlite", "llvmlite.binding"))
    error, chained = output.splitlines()
    assert "compiler 'LLVM' needs the package llvmlite, which is not installed" in error
    assert "pip install 'tg-renderers[llvm]'" in error
    assert chained == "alone"


def test_installed_package_that_lacks_the_device_is_not_to_be_installed_again() -> None:
    error = run_without((), "CUDA").splitlines()[0]
    assert "tg-runtime-gpu 0.1.0 is installed, but does not have it yet" in error
