"""What is imported when a command runs, since importing it reads the settings."""

from __future__ import annotations

from collections.abc import Sequence


def run_command_line(arguments: Sequence[str] | None) -> int:
    """As `tg_frontend.cli.commands.main`.

    Raises:
        SettingError: the environment holds a setting that is not accepted.
    """
    from tg_frontend.cli.commands import main

    return main(arguments)
