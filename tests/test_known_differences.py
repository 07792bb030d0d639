"""The lists of known differences name tests that exist, each with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parent / "backend"
LISTS = sorted((BACKEND / "known_differences").glob("*.txt"))
LINE = re.compile(r"(?P<file>test_\w+\.py)::(?P<test>test_\w+)(\[.*\])?: (?P<reason>.{8,})")


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_each_line_names_a_test_and_a_reason(path: Path) -> None:
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, f"expected 'test_file.py::test_name: reason', got {line!r}"
        source = (BACKEND / match["file"]).read_text()
        assert f"def {match['test']}(" in source, f"no such test: {line!r}"
