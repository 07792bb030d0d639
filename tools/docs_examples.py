"""A pytest plugin that runs the Python examples of Markdown pages.

A ```python block that starts with `>>>` is a session: each printed value is compared. Any other
```python block just has to run. Blocks of one page share their names. Used by `nox -s docs`.
"""

from __future__ import annotations

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    path=str(Path(__file__).resolve().parent.parent),
    parsers=[PythonCodeBlockParser((), ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["*.md", "**/*.md"],
).pytest()
