"""The console script `tg`: its commands and what they return."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tg_ir.errors import TgError

from tg_frontend.cli.devices import devices_text
from tg_frontend.cli.settings import settings_text
from tg_frontend.cli.versions import versions_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program name; None takes those of the process.

    Returns:
        The exit status: 0, or 1 where the default device fails or a setting is not understood.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.version:
        print(versions_text())
        return 0
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return _run(options.command)
    except TgError as error:
        print(f"tg: {error}", file=sys.stderr)
        return 1


def _run(command: str) -> int:
    if command == "env":
        print(settings_text())
        return 0
    text, default_passed = devices_text()
    print(text)
    return 0 if default_passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tg", description="Look at what this machine offers to the tg compiler stack."
    )
    parser.add_argument("--version", action="store_true", help="print the version of each package")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("devices", help="try each device and say PASS, or FAIL and why")
    commands.add_parser("env", help="list every setting: value, default, meaning")
    return parser
