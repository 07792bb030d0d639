"""What the pyproject files promise each other: pins cover the resolution, ranges admit siblings."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
MEMBERS = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
FILES_OF_A_PACKAGE = ("README.md", "CHANGELOG.md", "LICENSE", "changelog.d", "src", "tests")


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def project(member: Path) -> dict[str, Any]:
    return load(member / "pyproject.toml")["project"]


def pinned() -> set[tuple[str, str]]:
    root = load(ROOT / "pyproject.toml")
    requirements = [Requirement(line) for line in root["tool"]["uv"]["constraint-dependencies"]]
    pins = set()
    for requirement in requirements:
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{requirement} is no exact version"
        pins.add((canonicalize_name(requirement.name), specifier.version))
    return pins


def resolved() -> set[tuple[str, str]]:
    subprocess.run([ROOT / "uvw", "lock", "--quiet"], cwd=ROOT, check=True)
    packages = load(ROOT / "uv.lock")["package"]
    return {(p["name"], p["version"]) for p in packages if "registry" in p["source"]}


def test_pins_cover_the_resolution() -> None:
    missing = resolved() - pinned()
    assert not missing, f"run `nox -s pin`: no exact pin for {sorted(missing)}"


def test_no_pin_is_left_over() -> None:
    unused = pinned() - resolved()
    assert not unused, f"run `nox -s pin`: nothing needs {sorted(unused)}"


def test_lock_file_is_not_tracked() -> None:
    command = ["git", "ls-files", "uv.lock"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert tracked.stdout == "", "uv.lock names the index it was made with; pins do its work"


def test_root_depends_on_every_member() -> None:
    root = load(ROOT / "pyproject.toml")
    names = {project(member)["name"] for member in MEMBERS}
    assert {Requirement(line).name for line in root["project"]["dependencies"]} == names
    assert root["tool"]["uv"]["sources"] == {name: {"workspace": True} for name in names}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_ranges_on_siblings_admit_the_sibling_that_is_here(member: Path) -> None:
    versions = {project(other)["name"]: project(other)["version"] for other in MEMBERS}
    data = project(member)
    lines = list(data["dependencies"])
    for extra in data.get("optional-dependencies", {}).values():
        lines += extra
    for requirement in map(Requirement, lines):
        if requirement.name in versions:
            assert Version(versions[requirement.name]) in requirement.specifier, str(requirement)
            bounds = {specifier.operator for specifier in requirement.specifier}
            assert bounds == {">=", "<"}, f"{requirement}: a sibling range has both bounds"


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_package_has_its_files(member: Path) -> None:
    for name in FILES_OF_A_PACKAGE:
        assert (member / name).exists(), f"{member.name} lacks {name}"
    door = member / "src" / member.name.replace("-", "_")
    assert (door / "__init__.py").exists()
    assert (door / "py.typed").exists()
    assert "test" in load(member / "pyproject.toml")["dependency-groups"]
    assert (member / "README.md").read_text().startswith(f"# {member.name}\n")


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_package_takes_python_and_licence_from_the_root(member: Path) -> None:
    root = load(ROOT / "pyproject.toml")["project"]
    assert project(member)["requires-python"] == root["requires-python"]
    assert (member / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("group", ["tg.runtimes", "tg.renderers", "tg.compilers"])
def test_each_entry_point_loads_and_names_one_thing(group: str) -> None:
    entries = importlib.metadata.entry_points(group=group)
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names)), names
    for entry in entries:
        assert isinstance(entry.load(), type), entry


def test_decision_records_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(match[1]) for name in names if (match := re.match(r"(\d{4})-", name))]
    assert len(numbers) == len(names)
    assert numbers == list(range(1, len(numbers) + 1))
