"""Settings with values that are not accepted, by environment and by `Context`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tg_frontend import Context
from tg_ir.config import DEBUG, JIT

from .refusals import Case, case, each, message_of

WRONG = [
    case("text", lambda: Context(DEBUG="2"), ValueError, "DEBUG cannot be '2'; accepted: 0..7"),
    case("large", lambda: Context(DEBUG=99), ValueError, "cannot be 99", "for example DEBUG=2"),
    case("none", lambda: Context(DEBUG=None), ValueError, "DEBUG cannot be None"),
    case("negative", lambda: Context(THREADS=-1), ValueError, "accepted: 0 or more"),
    case("unknown", lambda: Context(DEVICE="CPU"), ValueError, "'DEVICE'; did you mean 'DEV'"),
    case("number", lambda: Context(DEV=3), ValueError, "DEV cannot be 3; accepted: a text"),
]


@each(WRONG)
def test_value_that_is_not_accepted(wrong: Case) -> None:
    message_of(wrong)


def imported(**environment: str) -> str:
    """What a process that imports tg_frontend prints last."""
    done = subprocess.run(
        [sys.executable, "-c", "import tg_frontend; print(tg_frontend.Tensor([1]).tolist())"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert "During handling" not in done.stderr
    assert "direct cause" not in done.stderr
    return done.stderr or done.stdout


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("DEBUG", "abc", "DEBUG cannot be 'abc'; accepted: 0..7, for example DEBUG=2"),
        ("DEBUG", "", "DEBUG cannot be ''"),
        ("JIT", "7", "JIT cannot be 7; accepted: 0..2"),
        ("BEAM", "-1", "BEAM cannot be -1; accepted: 0 or more"),
        ("THREADS", "two", "THREADS cannot be 'two'; accepted: 0 or more"),
        ("DEV", "CPU:", "[1]"),
        ("DEV", "C PU", "a target has no blanks inside"),
        ("DEV", "FOO", "no runtime offers device 'FOO'; installed: CPU"),
    ],
)
def test_environment_is_checked(name: str, value: str, text: str) -> None:
    assert text in imported(**{name: value})


def test_a_refused_context_changes_nothing() -> None:
    before = DEBUG.value, JIT.value
    with pytest.raises(ValueError, match="DEBUG"):
        Context(JIT=0, DEBUG=99)
    assert (DEBUG.value, JIT.value) == before


@pytest.mark.parametrize("command", ["env", "devices", "--version"])
def test_command_line_tells_a_wrong_setting_in_one_line(command: str) -> None:
    script = f"import sys; from tg_frontend.cli import main; sys.exit(main([{command!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "DEBUG": "abc"},
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "tg: DEBUG cannot be 'abc'; accepted: 0..7, for example DEBUG=2\n"
