"""What all tests share: the verifier on, a cache of their own, hypothesis without deadlines."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import hypothesis
import pytest

# Both before any package reads its settings.
os.environ.setdefault("SPEC", "1")  # check each graph against its spec at every border
if "XDG_CACHE_HOME" not in os.environ:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tg-test-cache-")
    atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# A deadline measures how busy the machine is.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )
