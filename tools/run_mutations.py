"""Applies each mutation of tests/mutations.py to a copy of the sources: does its test fail?

    python -m tools.run_mutations [PROMISE ...]

The working tree is not changed. Each run has a cache of its own, since a cached kernel would hide a
change of what makes it. Exits with 1 if a mutation survived.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "packages"
# a change that makes a program run for ever is noticed too
LIMIT_SECONDS = 120
TEST_FAILED = 1


def copy_sources(folder: Path) -> list[Path]:
    """Copy the source folder of every package below `folder`; the folders to import from."""
    copies = []
    for package in sorted(PACKAGES.iterdir()):
        if (package / "src").is_dir():
            copy = folder / package.name / "src"
            shutil.copytree(package / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
            copies.append(copy)
    return copies


def mutated_text(mutation: Mutation, text: str) -> str:
    """`text` with the line changed.

    Raises:
        ValueError: the line does not stand there once.
    """
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if line.strip() == mutation.line]
    if len(places) != 1:
        raise ValueError(
            f"{mutation.path}: {mutation.line!r} is to stand there once, found {len(places)} times"
        )
    line = lines[places[0]]
    lines[places[0]] = line[: len(line) - len(line.lstrip())] + mutation.mutated
    return "\n".join(lines)


def settings(sources: list[Path], cache: Path) -> list[str]:
    """What is different in the environment of a run: the code, an empty cache, fixed draws."""
    folders = os.pathsep.join(map(str, sources))
    return [
        f"PYTHONPATH={folders}",
        "PYTHONDONTWRITEBYTECODE=1",
        f"XDG_CACHE_HOME={cache}",
        "CI=1",
    ]


def is_killed(mutation: Mutation, folder: Path, sources: list[Path]) -> bool:
    """Whether the test of a mutation fails with it."""
    path = folder / mutation.path
    original = path.read_text()
    path.write_text(mutated_text(mutation, original))
    try:
        return fails([mutation.test], sources)
    finally:
        path.write_text(original)


def fails(tests: list[str], sources: list[Path]) -> bool:
    """Whether one of some tests fails with the code in `sources`.

    A program that crashes or does not end has failed.

    Raises:
        RuntimeError: a test cannot be run; shows what pytest printed.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += [f"tests/backend/{test}" for test in tests]
    with tempfile.TemporaryDirectory() as cache:
        try:
            run = subprocess.run(
                ["env", *settings(sources, Path(cache)), *command],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
    if run.returncode > TEST_FAILED:
        raise RuntimeError(f"pytest cannot run {tests}:\n{run.stdout}{run.stderr}")
    return run.returncode != 0


def main(promises: list[int]) -> int:
    """Run the mutations of some promises, or all; the number of those that survived."""
    chosen = [mutation for mutation in MUTATIONS if not promises or mutation.promise in promises]
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = copy_sources(folder)
        tests = sorted({mutation.test for mutation in chosen})
        if fails(tests, sources):
            print("a test fails without any mutation; run nox -s dev_matrix first")
            return len(chosen)
        for mutation in chosen:
            killed = is_killed(mutation, folder, sources)
            survivors += not killed
            word = "killed  " if killed else "SURVIVED"
            place = f"promise {mutation.promise:2} {mutation.path}"
            print(f"{word} {place}: {mutation.line}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutations killed")
    return survivors


if __name__ == "__main__":
    sys.exit(main([int(argument) for argument in sys.argv[1:]]) > 0)
