"""Each public method of `Tensor` that torch has too is compared somewhere in this folder."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from tg_frontend import Tensor

HERE = Path(__file__).resolve().parent

WITHOUT_COMPARISON = {
    "bernoulli": "random",
    "data": "the memory, not the values",
    "device": "each library has its own",
    "dropout": "random",
    "element_size": "a fact, tested in tg-frontend",
    "grad": "what every gradient here is",
    "multinomial": "random",
    "nbytes": "a method here, a property there",
}


def test_each_method_of_both_libraries_is_compared() -> None:
    text = "\n".join(
        path.read_text() for path in HERE.glob("*.py") if path.name != Path(__file__).name
    )
    words = set(re.findall(r"\w+", text))
    shared = [
        name for name in dir(Tensor)
        if not name.startswith("_")
        and (hasattr(torch.Tensor, name) or hasattr(torch.nn.functional, name))
    ]
    missing = [name for name in shared if name not in words and name not in WITHOUT_COMPARISON]
    assert not missing, f"compare these with torch: {missing}"
    stale = [name for name in WITHOUT_COMPARISON if name not in shared]
    assert not stale, f"no longer there: {stale}"
