"""Write the exact version of every third-party package into the root pyproject.toml.

uv resolves a copy of the workspace without the present pins; what it chose becomes the list
`[tool.uv] constraint-dependencies`. A lock file would record the address of the index it was made
with, hence a plain list. `nox -s pin` runs this.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = re.compile(r"^constraint-dependencies = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
EXPORT = [
    "uv",
    "export",
    "--quiet",
    "--no-hashes",
    "--no-annotate",
    "--no-header",
    "--no-emit-workspace",
    "--all-packages",
    "--all-groups",
    "--all-extras",
]


def with_pins(pyproject: str, pins: list[str]) -> str:
    """The text of pyproject.toml with its list of pins replaced.

    Raises:
        ValueError: there is no `constraint-dependencies` list to replace.
    """
    lines = "".join(f"  {json.dumps(pin)},\n" for pin in pins)
    text, count = PINS.subn(lambda _: f"constraint-dependencies = [\n{lines}]\n", pyproject)
    if count != 1:
        raise ValueError(f"expected one constraint-dependencies list in pyproject, found {count}")
    return text


def copy_workspace(target: Path) -> None:
    """Copy what a resolution reads: the pyproject files, the root one without its pins."""
    root_text = (ROOT / "pyproject.toml").read_text()
    (target / "pyproject.toml").write_text(with_pins(root_text, []))
    for member in sorted(ROOT.glob("packages/*/pyproject.toml")):
        folder = target / member.parent.relative_to(ROOT)
        folder.mkdir(parents=True)
        shutil.copy(member, folder)


def resolve() -> list[str]:
    """Newest versions that fit the ranges, as requirement lines with markers, sorted by name."""
    with tempfile.TemporaryDirectory() as folder:
        copy_workspace(Path(folder))
        command = [*EXPORT, "--directory", folder]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(line.strip() for line in output.splitlines() if line.strip())


def main() -> int:
    """Rewrite the list; say what changed."""
    path = ROOT / "pyproject.toml"
    before = path.read_text()
    after = with_pins(before, resolve())
    path.write_text(after)
    old, new = set(before.splitlines()), set(after.splitlines())
    for line in sorted(old - new):
        print(f"-{line}")
    for line in sorted(new - old):
        print(f"+{line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
