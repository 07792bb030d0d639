"""Settings: declaration, environment, `Context`, threads, cache keys and the table."""

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tg_ir import config
from tg_ir.config import (
    CACHES,
    DEBUG,
    DEV,
    FASTMATH,
    JIT,
    THREADS,
    Context,
    ContextVar,
    cache_key,
    settings_table,
)
from tg_ir.errors import DuplicateSettingError, SettingError, TargetError

DESIGN_SETTINGS = (
    "DEV DEBUG BEAM JIT VIZ PROFILE SPEC NOOPT LRU CCACHE ASSERT_COMPILE CAPTURE_PROCESS_REPLAY "
    "FASTMATH CHECKED EXACT_MATRIX THREADS"
).split()


@pytest.mark.parametrize("name", DESIGN_SETTINGS)
def test_every_setting_of_the_design_is_declared_and_documented(name: str) -> None:
    variable = ContextVar.registry[name]
    assert getattr(config, name) is variable
    assert variable.help
    assert variable.example.startswith(f"{name}=")
    variable.checked(variable.default)


@pytest.mark.usefixtures("own_settings")
def test_the_environment_is_read_once_at_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_COUNT", "7")
    monkeypatch.setenv("OWN_TEXT", "abc")
    count = ContextVar("OWN_COUNT", 1)
    text = ContextVar("OWN_TEXT", "")
    monkeypatch.setenv("OWN_COUNT", "8")
    assert (count.value, text.value) == (7, "abc")


@pytest.mark.usefixtures("own_settings")
def test_without_environment_the_default_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OWN_COUNT", raising=False)
    assert ContextVar("OWN_COUNT", 3).value == 3


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("text", ["many", "1.5", "", "9"])
def test_a_bad_environment_value_names_what_is_accepted(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OWN_COUNT", text)
    shown = repr(9) if text == "9" else repr(text)
    with pytest.raises(SettingError) as caught:
        ContextVar("OWN_COUNT", 1, accepted=range(4), example="OWN_COUNT=2")
    message = f"OWN_COUNT cannot be {shown}; accepted: 0..3, for example OWN_COUNT=2"
    assert str(caught.value) == message
    assert "OWN_COUNT" not in ContextVar.registry


def test_importing_with_a_bad_environment_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import tg_ir.config"],
        env={"DEBUG": "loud", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.endswith("DEBUG cannot be 'loud'; accepted: 0..7, for example DEBUG=2")


@pytest.mark.usefixtures("own_settings")
def test_a_second_declaration_names_both_places() -> None:
    first = ContextVar("OWN_COUNT", 1)
    with pytest.raises(DuplicateSettingError) as caught:
        ContextVar("OWN_COUNT", 2)
    assert first.declared_at in str(caught.value)
    assert str(caught.value).count("test_config.py:") == 2
    assert "setting OWN_COUNT is declared at" in str(caught.value)


@pytest.mark.usefixtures("own_settings")
def test_an_unknown_cache_is_refused_at_declaration() -> None:
    with pytest.raises(SettingError, match="setting OWN: no cache is called 'kernels'; did you"):
        ContextVar("OWN", 1, caches={"kernels"})


def test_a_setting_behaves_like_its_value() -> None:
    with Context(DEBUG=2):
        assert DEBUG
        assert DEBUG == 2
        assert DEBUG != 3
        assert 1 < DEBUG <= 2
        assert DEBUG > 1
        assert DEBUG >= 2
        assert DEBUG < 3
        assert int(DEBUG) == 2
        assert list(range(5))[DEBUG] == 2
        assert str(DEBUG) == "2"
        assert repr(DEBUG) == "ContextVar(DEBUG=2)"
    with Context(DEBUG=0):
        assert not DEBUG


def test_two_settings_compare_by_value() -> None:
    with Context(DEBUG=2, THREADS=2):
        assert DEBUG == THREADS
        assert DEBUG <= THREADS


def test_a_context_is_undone_after_an_error() -> None:
    before = DEBUG.value
    with pytest.raises(RuntimeError), Context(DEBUG=5):
        raise RuntimeError
    assert DEBUG.value == before


def test_contexts_nest_and_the_innermost_counts() -> None:
    with Context(DEBUG=1, THREADS=2):
        with Context(DEBUG=3):
            assert (DEBUG.value, THREADS.value) == (3, 2)
        assert (DEBUG.value, THREADS.value) == (1, 2)


def test_one_context_may_be_entered_again() -> None:
    context = Context(DEBUG=4)
    with context:
        with Context(DEBUG=1), context:
            assert DEBUG == 4
        assert DEBUG == 4
    with context:
        assert DEBUG == 4


def test_a_context_decorates_a_function() -> None:
    @Context(DEBUG=6)
    def seen(depth: int) -> list[int]:
        return [DEBUG.value, *(seen(depth - 1) if depth else [])]

    before = DEBUG.value
    assert seen(2) == [6, 6, 6]
    assert DEBUG.value == before


def test_a_context_is_seen_by_its_own_thread_only() -> None:
    outside = DEBUG.value
    inside = threading.Barrier(2)

    def work(level: int) -> tuple[int, int]:
        with Context(DEBUG=level):
            inside.wait(10)
            return level, DEBUG.value

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, (3, 4)))
    assert results == [(3, 3), (4, 4)]
    with Context(DEBUG=5), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: DEBUG.value).result() == outside


def test_one_context_object_works_in_several_threads_at_once() -> None:
    shared = Context(DEBUG=3)
    inside = threading.Barrier(2)

    def work(before: int) -> tuple[int, int]:
        with Context(DEBUG=before):
            with shared:
                inside.wait(10)
                within = DEBUG.value
            inside.wait(10)
            return within, DEBUG.value

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (1, 2))) == [(3, 1), (3, 2)]


def test_asyncio_tasks_do_not_see_each_other() -> None:
    async def work(level: int) -> int:
        with Context(DEBUG=level):
            await asyncio.sleep(0)
            return DEBUG.value

    async def both() -> list[int]:
        return list(await asyncio.gather(work(1), work(2)))

    assert asyncio.run(both()) == [1, 2]


def test_assigning_a_value_changes_it_for_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(THREADS, "value", 11)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: THREADS.value).result() == 11


def test_assigning_a_bad_value_is_refused() -> None:
    with pytest.raises(SettingError, match="THREADS cannot be -1; accepted: 0 or more"):
        THREADS.value = -1


def test_an_unknown_setting_suggests_close_ones() -> None:
    with pytest.raises(SettingError, match="no setting is called 'DEBUGG'; did you mean 'DEBUG'"):
        Context(DEBUGG=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"DEBUG": 8}, "DEBUG cannot be 8; accepted: 0..7, for example DEBUG=2"),
        ({"DEBUG": "2"}, "DEBUG cannot be '2'; accepted: 0..7"),
        ({"LRU": 2}, "LRU cannot be 2; accepted: 0 or 1, for example LRU=0"),
        ({"THREADS": -2}, "THREADS cannot be -2; accepted: 0 or more, for example THREADS=1"),
        ({"DEV": 1}, "DEV cannot be 1; accepted: a text, for example DEV=CPU:LLVM"),
    ],
)
def test_a_bad_value_names_what_is_accepted(settings: dict[str, int], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Context(**settings)
    assert message in str(caught.value)


def test_a_malformed_dev_shows_where() -> None:
    with pytest.raises(TargetError, match=r"CPU::\n +\^"):
        Context(DEV="CPU::")


def test_true_and_false_are_1_and_0() -> None:
    with Context(JIT=False, FASTMATH=True):
        assert (JIT.value, FASTMATH.value) == (0, 1)
        assert type(JIT.value) is int


@pytest.mark.usefixtures("own_settings")
def test_accepted_values_are_said_in_words() -> None:
    assert ContextVar("OWN_A", "x", accepted=("x", "y")).accepted_text() == "x, y"
    assert ContextVar("OWN_B", 1).accepted_text() == "a whole number"
    assert ContextVar("OWN_C", "").accepted_text() == "a text"


@pytest.mark.parametrize("cache", sorted(CACHES))
def test_a_cache_key_changes_with_exactly_the_settings_that_affect_it(cache: str) -> None:
    changed: dict[str, int | str] = {"DEV": "NULL", "DEBUG": 6, "THREADS": 99}
    for name in DESIGN_SETTINGS:
        variable = ContextVar.registry[name]
        if variable.is_planned:
            continue
        other = changed[name] if name in changed else int(not variable)
        before = cache_key(cache)
        with Context(**{name: other}):
            after = cache_key(cache)
        assert (before != after) == (cache in variable.caches), name


@pytest.mark.usefixtures("own_settings")
def test_a_setting_affects_every_cache_unless_it_says_otherwise() -> None:
    ContextVar("OWN_ALL", 5)
    ContextVar("OWN_NONE", 6, caches=())
    for cache in CACHES:
        assert ("OWN_ALL", 5) in cache_key(cache)
        assert "OWN_NONE" not in dict(cache_key(cache))


def test_settings_that_change_results_affect_every_cache() -> None:
    for name in ("FASTMATH", "CHECKED"):
        assert ContextVar.registry[name].caches == CACHES


def test_a_cache_key_is_sorted_by_name() -> None:
    assert list(cache_key("kernel")) == sorted(cache_key("kernel"))


def test_an_unknown_cache_has_no_key() -> None:
    with pytest.raises(SettingError, match="no cache is called 'kernle'; did you mean 'kernel'"):
        cache_key("kernle")


def test_the_table_shows_value_default_and_meaning() -> None:
    with Context(DEBUG=2, DEV="CPU"):
        rows = {row.name: row for row in settings_table()}
    assert rows["DEBUG"][:3] == ("DEBUG", "2", "0")
    assert rows["DEBUG"].meaning.endswith("(0..7; e.g. DEBUG=2)")
    assert rows["DEV"].value == "CPU"
    assert list(rows) == sorted(rows)
    assert set(DESIGN_SETTINGS) <= rows.keys()


def test_dev_is_empty_by_default() -> None:
    assert DEV.default == ""


def test_a_planned_setting_takes_only_its_default() -> None:
    with pytest.raises(SettingError, match="BEAM cannot be 2 yet: the name is reserved"):
        Context(BEAM=2)
    with Context(BEAM=0):
        pass
    assert config.BEAM.help.startswith("(not built yet)")
