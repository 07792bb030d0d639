"""The command line: `tg devices`, `tg env`, `tg --version`."""

from tg_frontend.cli.main import main

__all__ = ["main"]
