"""The list of pins is replaced as a whole, and nothing else is."""

from __future__ import annotations

import tomllib

import pytest

from tools.pin import with_pins

PYPROJECT = """[tool.uv]
package = false
constraint-dependencies = [
  "a==1",
]

[tool.other]
x = [
]
"""


def test_pins_replace_the_old_ones_and_nothing_else() -> None:
    text = with_pins(PYPROJECT, ["b==2 ; python_version < '3.12'", "c==3"])
    data = tomllib.loads(text)
    expected = ["b==2 ; python_version < '3.12'", "c==3"]
    assert data["tool"]["uv"]["constraint-dependencies"] == expected
    assert data["tool"]["other"] == {"x": []}
    assert text.startswith("[tool.uv]\npackage = false\n")


def test_pyproject_without_a_list_is_an_error() -> None:
    with pytest.raises(ValueError, match="found 0"):
        with_pins("[tool.uv]\n", [])
