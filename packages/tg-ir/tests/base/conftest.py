"""Tests declare settings of their own; nobody else may see them."""

from collections.abc import Iterator

import pytest
from tg_ir.config import ContextVar


@pytest.fixture
def own_settings() -> Iterator[None]:
    declared = dict(ContextVar.registry)
    yield
    ContextVar.registry.clear()
    ContextVar.registry.update(declared)
