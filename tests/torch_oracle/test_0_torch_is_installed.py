"""The one skip that stands for the folder where torch is missing."""

from __future__ import annotations

import pytest

from .conftest import HAS_TORCH, REASON


@pytest.mark.skipif(not HAS_TORCH, reason=REASON)
def test_torch_is_there_to_compare_with() -> None:
    assert HAS_TORCH
