"""The page of public names lists what there is."""

from __future__ import annotations

import re

from tools.api_page import PAGE, names_on, page_text, public_names

WRITE = "; write the page anew: python -m tools.api_page"


def test_every_public_name_has_a_line() -> None:
    missing = set(public_names()) - names_on(PAGE.read_text())
    assert not missing, f"{PAGE.name} lacks {sorted(missing)}{WRITE}"


def test_every_line_is_about_a_public_name() -> None:
    extra = names_on(PAGE.read_text()) - set(public_names())
    assert not extra, f"{PAGE.name} lists {sorted(extra)}, which do not exist{WRITE}"


def test_no_line_is_empty() -> None:
    empty = [line for line in page_text().splitlines() if line.endswith("` |  |")]
    assert not empty, f"these have no docstring: {empty}"


def test_names_that_the_differences_call_missing_are_missing() -> None:
    """So that the list shrinks when something is built."""
    page = (PAGE.parent / "differences.md").read_text()
    rows = page.partition("## Names of tinygrad that are not here")[2].split("\n| ")[2:]
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row.partition(" | ")[0])}
    assert {"nn.optim.LARS", "qr"} <= listed
    present = {name.rpartition(".")[2] for name in listed} & set(public_names())
    assert not present, f"differences.md says that these do not exist: {sorted(present)}"
