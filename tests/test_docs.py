"""Pages are found and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("packages/*/*.md")])
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|^ {4}.*?$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def links(page: Path) -> list[str]:
    prose = CODE.sub("", page.read_text())
    found: list[str] = LINK.findall(prose)
    return [link for link in found if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_index_names_every_page() -> None:
    index = DOCS / "README.md"
    named = {(DOCS / link).resolve() for link in links(index)}
    pages = {page for page in DOCS.rglob("*.md") if page != index}
    missing = {str(page.relative_to(DOCS)) for page in pages - named}
    assert not missing, f"docs/README.md does not link to {sorted(missing)}"
