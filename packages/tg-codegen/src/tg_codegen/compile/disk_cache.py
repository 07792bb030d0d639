"""`DiskCache`: bytes by kind and key in one SQLite file, shared by processes and threads.

A cache may forget but never lie or fail: a damaged file is replaced with a warning, a folder that
cannot be written means no cache.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from tg_ir.config import CCACHE

from tg_codegen.config import CACHEDIR, CACHEMB, XDG_CACHE_HOME

# Part of the file name: a new layout starts a new file, and an old program keeps its own.
_LAYOUT = 1
_BUSY_SECONDS = 10.0
_PUTS_BETWEEN_SIZE_CHECKS = 64
_SECONDS_A_DAY = 86400
_SHRINK_TO = 0.75  # of the limit, so that not every later put has to remove something

Result = TypeVar("Result")

_CREATE = """
CREATE TABLE IF NOT EXISTS entries (
  kind TEXT NOT NULL,
  key BLOB NOT NULL,
  value BLOB NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
)
"""


class DiskCache:
    """A persistent map from `(kind, key)` to bytes.

    Args:
        path: the file; its folder is made if needed.
        limit_bytes: largest total size of the values, > 0.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        """Remember the place; the file is opened at the first use."""
        self.path = path
        self.limit_bytes = limit_bytes
        self._local = threading.local()
        self._of_parent: list[sqlite3.Connection] = []  # kept: a child must not even close them
        self._puts = 0
        self._disabled = False

    def get(self, kind: str, key: bytes) -> bytes | None:
        """The value of a key, None where there is none."""
        return self._attempt(lambda connection: _get(connection, kind, key), None)

    def put(self, kind: str, key: bytes, value: bytes) -> None:
        """Store a value, replacing the one that is there."""
        self._attempt(lambda connection: self._put(connection, kind, key, value), None)

    def clear(self) -> None:
        """Forget everything."""
        self._attempt(lambda connection: connection.execute("DELETE FROM entries"), None)

    def count(self, kind: str) -> int:
        """How many values of a kind there are."""
        return self._attempt(lambda connection: _count(connection, kind), 0)

    def _put(self, connection: sqlite3.Connection, kind: str, key: bytes, value: bytes) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", (kind, key, value, _today())
        )
        self._puts += 1
        if self._puts % _PUTS_BETWEEN_SIZE_CHECKS == 0:
            _shrink(connection, self.limit_bytes)

    def _attempt(self, action: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        """What `action` gives; `otherwise` where the file cannot be used."""
        if self._disabled:
            return otherwise
        try:
            return action(self._connection())
        except (sqlite3.OperationalError, OSError) as error:
            # Busy for long, no space, a folder that is read-only: work goes on without.
            self._give_up(error)
        except sqlite3.DatabaseError as error:
            self._replace_damaged_file(error)
        return otherwise

    def _connection(self) -> sqlite3.Connection:
        # A connection must not be used by another thread, nor by the child of a fork.
        known: tuple[int, sqlite3.Connection] | None = getattr(self._local, "opened", None)
        if known is not None and known[0] == os.getpid():
            return known[1]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        with contextlib.suppress(sqlite3.OperationalError):
            # Refused while another process does the same; then that one sets it.
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")  # losing the newest entries is no harm
        connection.execute(_CREATE)
        if known is not None:
            self._of_parent.append(known[1])
        self._local.opened = (os.getpid(), connection)
        return connection

    def _give_up(self, error: Exception) -> None:
        self._disabled = True
        warnings.warn(
            f"the disk cache {self.path} is not used: {error}; set CACHEDIR to a folder that can "
            "be written, or CCACHE=0",
            RuntimeWarning,
            stacklevel=5,
        )

    def _replace_damaged_file(self, error: Exception) -> None:
        warnings.warn(
            f"the disk cache {self.path} is damaged ({error}) and starts anew",
            RuntimeWarning,
            stacklevel=5,
        )
        known = getattr(self._local, "opened", None)
        if known is not None:
            known[1].close()
            del self._local.opened
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                Path(f"{self.path}{suffix}").unlink()


def _get(connection: sqlite3.Connection, kind: str, key: bytes) -> bytes | None:
    found = connection.execute(
        "SELECT value, used FROM entries WHERE kind = ? AND key = ?", (kind, key)
    ).fetchone()
    if found is None:
        return None
    if found[1] != _today():  # written once a day, so that a warm start only reads
        connection.execute(
            "UPDATE entries SET used = ? WHERE kind = ? AND key = ?", (_today(), kind, key)
        )
    return bytes(found[0])


def _count(connection: sqlite3.Connection, kind: str) -> int:
    query = "SELECT COUNT(*) FROM entries WHERE kind = ?"
    return int(connection.execute(query, (kind,)).fetchone()[0])


def _shrink(connection: sqlite3.Connection, limit_bytes: int) -> None:
    """Remove what was used longest ago until the rest is well below the limit."""
    total = connection.execute("SELECT SUM(LENGTH(value)) FROM entries").fetchone()[0] or 0
    if total <= limit_bytes:
        return
    rows = connection.execute("SELECT rowid, LENGTH(value) FROM entries ORDER BY used, rowid")
    victims = []
    for rowid, nbytes in rows:
        if total <= limit_bytes * _SHRINK_TO:
            break
        victims.append((rowid,))
        total -= nbytes
    connection.executemany("DELETE FROM entries WHERE rowid = ?", victims)


def open_disk_cache() -> DiskCache | None:
    """The cache that the settings name; None where `CCACHE` is 0."""
    if not CCACHE:
        return None
    return _opened(cache_folder() / f"cache-{_LAYOUT}.sqlite3", int(CACHEMB) << 20)


@cache
def _opened(path: Path, limit_bytes: int) -> DiskCache:
    return DiskCache(path, limit_bytes)


def cache_folder() -> Path:
    """The folder of the disk cache, as the settings say."""
    if CACHEDIR.value:
        return Path(CACHEDIR.value)
    if XDG_CACHE_HOME.value:
        return Path(XDG_CACHE_HOME.value) / "tg"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tg"
    return Path.home() / ".cache" / "tg"


def _today() -> int:
    return int(time.time()) // _SECONDS_A_DAY
