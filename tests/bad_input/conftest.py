"""After the wrong programs of a file no memory of theirs is left."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from tg_frontend import Context, GlobalCounters


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    """Messages name the device, so the tests name it too."""
    with Context(DEV="CPU"):
        yield


@pytest.fixture(autouse=True, scope="module")
def nothing_leaks() -> Iterator[None]:
    """The bytes in use are the same before and after the tests of a file."""
    gc.collect()
    before = GlobalCounters.mem_used
    yield
    gc.collect()
    assert GlobalCounters.mem_used == before
