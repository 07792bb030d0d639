"""Write docs/reference/tensor.md: the public names of Tensor, nn and optim, a line each.

`python -m tools.api_page` writes it from signatures and docstrings; a test compares its names with
what there is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import tg_frontend
from tg_frontend import Tensor, nn
from tg_frontend.nn import optim, state

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "tensor.md"

# Title of a section, and the classes of the chain whose names it lists.
TOPICS = (
    ("Making tensors", ("Creation",)),
    ("Random numbers", ("Random",)),
    ("Facts and storage", ("ValueHolder", "TensorCore")),
    ("Values out, devices, dtypes by name", ("Conversion",)),
    ("Arithmetic, comparison, choice", ("Elementwise",)),
    ("Functions and activations", ("Functions", "InverseFunctions")),
    ("Shapes and order of axes", ("Movement",)),
    ("Joining and padding", ("Joining",)),
    ("Reductions", ("Reduction",)),
    ("Positions and running results", ("Scanning",)),
    ("Sorting", ("Ordering",)),
    ("Products", ("Products",)),
    ("Windows: convolution and pooling", ("Windows",)),
    ("Reading and writing by index", ("Indexing", "SetItem")),
    ("Networks: norms, dropout, attention, losses", ("Networks",)),
    ("Resampling and the rest", ("Resampling",)),
    ("Gradients", ("Gradient",)),
)

INTRODUCTION = """# Tensor, nn, optim: the public names

Written by `python -m tools.api_page` from the signatures and the first lines of the docstrings;
`help(Tensor.sum)` shows the whole of one. What a name means where libraries disagree:
[semantics](semantics.md) and [differences](differences.md).

Beside the methods there are Python's operators (`+ - * / // % ** @ & | ^ ~ << >>` and comparisons,
in place too), indexing and writing by `x[...]`, and `len`, `float`, `int`, `abs`, `round`. `dim=`
may be written for `axis=`.
"""


def page_text() -> str:
    """The page."""
    parts = [INTRODUCTION, "## Tensor\n"]
    for title, classes in TOPICS:
        parts.append(_table(f"### {title}", _methods(classes)))
    parts.append("## Layers and optimisers\n")
    parts.append(_table("### tg_frontend.nn", _members(nn)))
    parts.append(_table("### tg_frontend.nn.optim", _members(optim)))
    parts.append(_table("### tg_frontend.nn.state", _members(state)))
    parts.append(_table("## The rest of tg_frontend", _members(tg_frontend)))
    return "\n".join(parts)


def names_on(text: str) -> set[str]:
    """The names that have a line on a page."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return {row.removeprefix("| `").partition("`")[0].partition("(")[0] for row in rows}


def public_names() -> Iterator[str]:
    """Every name that the page has to list, modules aside."""
    yield from (name for name in dir(Tensor) if not name.startswith("_"))
    for module in (nn, optim, state, tg_frontend):
        for name in module.__all__:
            if not inspect.ismodule(getattr(module, name)):
                yield name


def _methods(classes: Iterable[str]) -> Iterator[tuple[str, Any]]:
    parts = [part for part in Tensor.__mro__ if part.__name__ in classes]
    for name in dir(Tensor):
        if name.startswith("_"):
            continue
        owner = next(part for part in Tensor.__mro__ if name in vars(part))
        if owner in parts:
            yield name, inspect.getattr_static(Tensor, name)


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in module.__all__:
        member = getattr(module, name)
        if not inspect.ismodule(member):
            yield name, member


def _table(heading: str, members: Iterable[tuple[str, Any]]) -> str:
    rows = []
    for name, member in members:
        call = "" if name in _NEVER_CALLED else _call(member)
        rows.append(f"| `{name}{call}` | {_first_line(name, member)} |")
    return "\n".join((heading, "", "| name | |", "|---|---|", *rows, ""))


def _call(member: Any) -> str:
    """The parameters, without types; nothing where it is not called."""
    function = inspect.unwrap(getattr(member, "__func__", member))
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        return ""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return ""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_shown(parameter.default))
        for parameter in parameters
        if parameter.name not in ("self", "cls")
    ]
    return str(inspect.Signature(bare)).replace("|", "\\|")


class _Name:
    """A default that is shown by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


def _shown(default: Any) -> Any:
    if isinstance(default, frozenset):
        return _Name(f"{{{', '.join(map(repr, sorted(default)))}}}")  # in an order that stays
    is_class = inspect.isclass(default) and default is not inspect.Parameter.empty
    return _Name(default.__name__) if is_class else default


_NEVER_CALLED = ("GlobalCounters", "dtypes")

# What carries no docstring of its own.
_WITHOUT_DOCSTRING = {
    "training": "Whether layers such as dropout behave as in training; set by `train`.",
    "grad": "The gradient that `backward` left here, or None.",
    "uop": "The graph node that is the value.",
    "dtypes": "The dtypes by name: `dtypes.float32`, `dtypes.int8`, ...",
    "Device": "The devices by name, and `Device.DEFAULT`.",
    "GlobalCounters": "Kernels, operations, bytes and memory so far.",
}


def _first_line(name: str, member: Any) -> str:
    if name in _WITHOUT_DOCSTRING:
        return _WITHOUT_DOCSTRING[name]
    text = inspect.getdoc(getattr(member, "__func__", member)) or ""
    return text.partition("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page_text())
