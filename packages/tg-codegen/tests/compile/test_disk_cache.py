"""The disk cache forgets rather than lies, and is shared by threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from tg_codegen.compile import DiskCache, open_disk_cache
from tg_ir.config import Context


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "deep" / "cache.sqlite3", 1 << 20)


def test_what_was_put_comes_back_by_kind_and_key(cache: DiskCache) -> None:
    cache.put("kernel", b"key", b"value")
    assert cache.get("kernel", b"key") == b"value"
    assert cache.get("schedule", b"key") is None
    assert cache.get("kernel", b"other") is None


def test_a_later_value_replaces_the_earlier(cache: DiskCache) -> None:
    cache.put("kernel", b"key", b"old")
    cache.put("kernel", b"key", b"new")
    assert cache.get("kernel", b"key") == b"new"
    assert cache.count("kernel") == 1


def test_another_process_sees_the_entries(cache: DiskCache) -> None:
    cache.put("kernel", b"key", b"value")
    program = (
        "import sys\nfrom pathlib import Path\nfrom tg_codegen.compile import DiskCache\n"
        "cache = DiskCache(Path(sys.argv[1]), 1 << 20)\n"
        "print(cache.get('kernel', b'key'))\ncache.put('kernel', b'reply', b'seen')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(cache.path)], capture_output=True, text=True
    )
    assert done.stdout.strip() == "b'value'", done.stderr
    assert cache.get("kernel", b"reply") == b"seen"


def test_threads_write_at_the_same_time(cache: DiskCache) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            cache.put("kernel", f"{thread}/{number}".encode(), b"x")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.count("kernel") == 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the machine has no fork")
def test_a_forked_child_opens_the_file_again(cache: DiskCache) -> None:
    cache.put("kernel", b"key", b"value")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        child = os.fork()
    if child == 0:
        cache.put("kernel", b"child", b"wrote")
        os._exit(0 if cache.get("kernel", b"key") == b"value" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert cache.get("kernel", b"child") == b"wrote"


def test_a_damaged_file_is_replaced_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite3"
    path.write_bytes(b"this is no database" * 100)
    cache = DiskCache(path, 1 << 20)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert cache.get("kernel", b"key") is None
    cache.put("kernel", b"key", b"value")
    assert cache.get("kernel", b"key") == b"value"


def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "cache.sqlite3", 1 << 20)
    with pytest.warns(RuntimeWarning, match="CCACHE=0"):
        cache.put("kernel", b"key", b"value")
    assert cache.get("kernel", b"key") is None


def test_the_size_stays_below_the_limit(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite3", 100_000)
    for number in range(200):
        cache.put("kernel", str(number).encode(), bytes(2000))
    assert 10 < cache.count("kernel") <= 100_000 // 2000 + 64
    assert cache.get("kernel", b"199") == bytes(2000)


def test_settings_choose_the_folder_or_none(tmp_path: Path) -> None:
    with Context(CACHEDIR=str(tmp_path), CCACHE=1):
        opened = open_disk_cache()
        assert opened is not None
        assert opened.path.parent == tmp_path
    with Context(CCACHE=0):
        assert open_disk_cache() is None
