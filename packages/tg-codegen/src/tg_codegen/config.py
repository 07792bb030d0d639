"""The settings of tg_codegen; those that several packages need are in `tg_ir.config`."""

from __future__ import annotations

import sys

from tg_ir.config import ContextVar

CACHEDIR = ContextVar(
    "CACHEDIR",
    "",
    help="folder of the disk cache; empty: `tg` in the user's cache folder",
    example="CACHEDIR=/tmp/tg-cache",
    caches=(),
)
CACHEMB = ContextVar(
    "CACHEMB",
    1024,
    help="size of the disk cache in MiB; what was not used for longest goes first",
    accepted=range(1, sys.maxsize),
    example="CACHEMB=256",
    caches=(),
)
XDG_CACHE_HOME = ContextVar(
    "XDG_CACHE_HOME",
    "",
    help="the user's cache folder, as the XDG base directory specification has it",
    example="XDG_CACHE_HOME=/home/me/.cache",
    caches=(),
)
