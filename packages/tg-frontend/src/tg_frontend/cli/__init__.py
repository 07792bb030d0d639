"""The command line: `tg devices`, `tg env`, `tg --version`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tg_ir.errors import SettingError

from tg_frontend.cli.lazy import run_command_line

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a wrong setting in the environment is told in one line.

    Args:
        arguments: without the program name; None takes those of the process.

    Returns:
        The exit status.
    """
    try:
        return run_command_line(arguments)
    except SettingError as error:
        print(f"tg: {error}", file=sys.stderr)
        return 1
