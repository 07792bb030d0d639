"""The developer's matrix: what has to pass before a change lands.

`nox` alone runs everything but `bench`, `pin` and `torch_oracle`. Each session gets exactly what it
names: the tests of tg-ir see tg-ir, what it depends on and its own test group, nothing else.
`tox.ini` is the consumer's side (built wheels).
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2026.7"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.sessions = [
    "lint",
    "architecture",
    "typing",
    "tests",
    "dev_matrix",
    "docs",
]

ROOT = Path(__file__).resolve().parent
PACKAGES = (
    "tg-ir",
    "tg-codegen",
    "tg-renderers",
    "tg-runtime-cpu",
    "tg-runtime-gpu",
    "tg-frontend",
)
DEVS = ("CPU:LLVM", "PYTHON")
# Set on some machines against faults of old OpenBLAS builds; they slow a current numpy.
OPENBLAS_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@functools.cache
def lock() -> None:
    """Resolve once a run, so that all sessions see the same versions."""
    subprocess.run(["uv", "lock", "--quiet"], cwd=ROOT, check=True)


def sync(session: nox.Session, *options: str) -> None:
    """Make the session's environment hold exactly what `options` ask of uv."""
    lock()
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--frozen",
        "--no-default-groups",
        *options,
        f"--python={session.virtualenv.location}",
        external=True,
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
    )


def run_pytest(session: nox.Session, *paths: str, **env: str) -> None:
    """Run pytest on `paths`, or on what was given after `--`."""
    session.run("python", "-m", "pytest", "-q", *(session.posargs or paths), env=dict(env))


@nox.session
@nox.parametrize("package", [nox.param(name, id=name) for name in (*PACKAGES, "workspace")])
def tests(session: nox.Session, package: str) -> None:
    """Tests of one package with only what it depends on; `workspace`: of all together."""
    if package == "workspace":
        sync(session, "--group=dev")
        run_pytest(session, "tests", "--ignore=tests/backend")  # dev_matrix runs that part
    else:
        sync(session, f"--package={package}", "--group=test")
        run_pytest(session, f"packages/{package}/tests")


@nox.session
@nox.parametrize("dev", [nox.param(dev, id=dev, tags=[dev.replace(":", "-")]) for dev in DEVS])
def dev_matrix(session: nox.Session, dev: str) -> None:
    """The backend-independent tensor suite on one DEV."""
    sync(session, "--group=dev")
    run_pytest(session, "tests/backend", DEV=dev)


@nox.session
def architecture(session: nox.Session) -> None:
    """Who may import whom: the import-linter contracts in pyproject.toml."""
    sync(session, "--group=lint")
    session.run("lint-imports", "--no-logo", "--no-cache")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, file length, and a reason for each ignored check."""
    sync(session, "--only-group=lint")
    session.run("ruff", "check", ".")
    session.run("python", "tools/check_source.py")


@nox.session
def typing(session: nox.Session) -> None:
    """`mypy --strict` over everything but tests."""
    sync(session, "--group=dev", "--group=docs", "--group=typing")
    sources = [f"packages/{package}/src" for package in PACKAGES]
    session.run("mypy", *sources, "noxfile.py", "tools", "examples", "bench")


@nox.session
def docs(session: nox.Session) -> None:
    """Run the examples in README.md and docs/, and compare what they print."""
    sync(session, "--group=dev", "--group=docs")
    run_pytest(session, "-p", "tools.docs_examples", "README.md", "docs")


@nox.session(default=False, venv_backend="venv")
def torch_oracle(session: nox.Session) -> None:
    """Results and gradients against torch, which only this environment has, by pip."""
    sync(session, "--group=dev", "--inexact")  # a second run keeps torch
    session.install("torch==2.13.0")
    run_pytest(session, "tests/torch_oracle")


@nox.session(default=False)
def mutations(session: nox.Session) -> None:
    """Break each promise by one changed line: its test has to fail. `-- PROMISE ...` takes some."""
    sync(session, "--group=dev")
    session.run("python", "-m", "tools.run_mutations", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Speed, as ratios in one run. `nox -s bench -- NAME ...` takes some of them."""
    sync(session, "--group=dev")
    session.run("python", "-m", "bench", *session.posargs, env=dict.fromkeys(OPENBLAS_SETTINGS))


@nox.session(default=False)
def pin(session: nox.Session) -> None:
    """Move every third-party pin in pyproject.toml to the newest version that fits the ranges."""
    session.run("python", "tools/pin.py")
