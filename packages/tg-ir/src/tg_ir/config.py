"""Settings: `ContextVar` declares one, `Context` changes some for a while, and the table of ours.

Every setting is declared once, with its meaning, accepted values, an example and the caches it
affects; cache keys are derived from that (docs/decisions/0004-settings-and-caches.md). The
environment is read once, when a setting is declared.
"""

import contextlib
import contextvars
import os
import sys
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from tg_ir.errors import DuplicateSettingError, SettingError, did_you_mean
from tg_ir.target import parse_targets

__all__ = [
    "ASSERT_COMPILE",
    "BEAM",
    "CACHES",
    "CAPTURE_PROCESS_REPLAY",
    "CCACHE",
    "CHECKED",
    "DEBUG",
    "DEV",
    "EXACT_MATRIX",
    "FASTMATH",
    "JIT",
    "LRU",
    "NOOPT",
    "PROFILE",
    "SPEC",
    "THREADS",
    "VIZ",
    "Context",
    "ContextVar",
    "SettingRow",
    "cache_key",
    "settings_table",
]

CACHES = frozenset({"schedule", "kernel", "jit"})

_ANY_COUNT = range(sys.maxsize)
_SWITCH = range(2)

Value = TypeVar("Value", bound=int | str)


def _declared_at(depth: int) -> str:
    """File and line of the caller `depth` frames up, for error texts."""
    frame = sys._getframe(depth + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class ContextVar(Generic[Value]):
    """One setting. Declaring it reads the environment variable of the same name.

    `with Context(KEY=value):` changes it for the code inside, in this thread (or asyncio task)
    only; assigning to `.value` changes it for the whole process. A setting compares and
    converts like its value: `if DEBUG >= 2:`.

    Attributes:
        registry: every setting declared so far, by name.
        key: the name, in capitals.
        default: the value where the environment says nothing.
        help: one line that says what it does.
        accepted: the values it takes, or None where `check` decides alone.
        example: how a user would write it, such as "DEBUG=2".
        caches: names of `CACHES` whose entries depend on it.
        declared_at: file and line of the declaration.
        is_planned: the name is reserved; what it switches on is not built yet.
    """

    registry: ClassVar[dict[str, "ContextVar[Any]"]] = {}

    def __init__(
        self,
        key: str,
        default: Value,
        *,
        help: str = "",
        accepted: Collection[Value] | None = None,
        example: str = "",
        caches: Collection[str] = CACHES,
        check: Callable[[Value], object] | None = None,
        is_planned: bool = False,
    ) -> None:
        """Declare the setting and read the environment.

        Args:
            key: the name, also of the environment variable.
            default: the value where the environment says nothing; an int or a str, and so
                is every other value.
            help: one line that says what it does.
            accepted: the values it takes; None accepts every value of the type.
            example: how a user would write it.
            caches: the caches whose entries depend on it; all of them unless stated.
            check: raises an error for a value that is not accepted.
            is_planned: what it switches on is not built yet, so only the default is accepted.

        Raises:
            DuplicateSettingError: the name is taken; names both declarations.
            SettingError: the environment holds a value that is not accepted, or a cache is
                unknown.
        """
        self.key = key
        self.default = default
        self.help = help
        self.accepted = accepted
        self.example = example or f"{key}={default}"
        self.caches = frozenset(caches)
        self.declared_at = _declared_at(1)
        self._type: type[Value] = type(default)
        self._check = check
        self.is_planned = is_planned
        if is_planned:
            self.help = f"(not built yet) {help}"
        if not self.caches <= CACHES:
            unknown = sorted(self.caches - CACHES)[0]
            raise SettingError(
                f"setting {key}: no cache is called {unknown!r}; {did_you_mean(unknown, CACHES)}"
            )
        if key in self.registry:
            first = self.registry[key].declared_at
            raise DuplicateSettingError(
                f"setting {key} is declared at {first} "
                f"and again at {self.declared_at}; rename one of them"
            )
        self._process_value: Value = self._from_environment()
        self._override: contextvars.ContextVar[Value] = contextvars.ContextVar(key)
        self.registry[key] = self

    @property
    def value(self) -> Value:
        """The value in this thread, as the innermost `Context` says, else of the process."""
        return self._override.get(self._process_value)

    @value.setter
    def value(self, value: Value) -> None:
        self._process_value = self.checked(value)

    def checked(self, value: object) -> Value:
        """Return `value` in the type of the setting if it is accepted.

        Raises:
            SettingError: the wrong type, or not an accepted value.
        """
        # True and False are 1 and 0 here, so that cache keys hold one form of a value.
        plain: object = int(value) if isinstance(value, bool) else value
        if not isinstance(plain, self._type):
            raise SettingError(self._refusal(plain))
        if self.accepted is not None and plain not in self.accepted:
            raise SettingError(self._refusal(plain))
        if self.is_planned and plain != self.default:
            raise SettingError(
                f"{self.key} cannot be {plain!r} yet: the name is reserved, what it switches on "
                f"is not built; leave it at {self.default!r}"
            )
        if self._check is not None:
            self._check(plain)
        return plain

    def accepted_text(self) -> str:
        """Say which values are accepted, such as "0..7" or "0 or more"."""
        if self.accepted is None:
            return "a whole number" if self._type is int else "a text"
        if not isinstance(self.accepted, range):
            return ", ".join(map(str, self.accepted))
        if self.accepted == _SWITCH:
            return "0 or 1"
        if self.accepted.stop == sys.maxsize:
            return f"{self.accepted.start} or more"
        return f"{self.accepted.start}..{self.accepted.stop - 1}"

    def _from_environment(self) -> Value:
        text = os.environ.get(self.key)
        if text is None:
            return self.default
        if self._type is str:
            return self.checked(text)
        try:
            number = int(text)
        except ValueError:
            raise SettingError(self._refusal(text)) from None
        return self.checked(number)

    def _refusal(self, value: object) -> str:
        return (
            f"{self.key} cannot be {value!r}; accepted: {self.accepted_text()}, "
            f"for example {self.example}"
        )

    def __repr__(self) -> str:
        """Return the name and the value in this thread."""
        return f"ContextVar({self.key}={self.value!r})"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __str__(self) -> str:
        return str(self.value)

    # Equal to its value, yet hashed by identity: a setting may be a dict key, and is then
    # looked up as itself only.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self.value == _plain(other))

    def __lt__(self, other: object) -> bool:
        return bool(_plain(self) < _plain(other))

    def __le__(self, other: object) -> bool:
        return bool(_plain(self) <= _plain(other))

    def __gt__(self, other: object) -> bool:
        return bool(_plain(self) > _plain(other))

    def __ge__(self, other: object) -> bool:
        return bool(_plain(self) >= _plain(other))


def _plain(operand: object) -> Any:
    """The value of a setting, and every other object as it is."""
    return operand.value if isinstance(operand, ContextVar) else operand


_Undo = tuple[tuple[ContextVar[Any], "contextvars.Token[Any]"], ...]

# What to restore on leaving each open `Context` of this thread, innermost last. Kept here, not
# on the object, so that one object may be entered again and from several threads.
_open_contexts: contextvars.ContextVar[tuple[_Undo, ...]] = contextvars.ContextVar(
    "open_contexts", default=()
)


class Context(contextlib.ContextDecorator):
    """Change settings for a while: `with Context(DEBUG=2, BEAM=0):`, or as a decorator.

    The change is seen by this thread (or asyncio task) only, and undone on leaving, whatever
    happens inside.
    """

    def __init__(self, **settings: int | str) -> None:
        """Check names and values now, so that a mistake shows where it is written.

        Raises:
            SettingError: a setting is unknown, or does not accept the value.
        """
        self._values: list[tuple[ContextVar[Any], int | str]] = []
        for key, value in settings.items():
            variable = ContextVar.registry.get(key)
            if variable is None:
                raise SettingError(
                    f"no setting is called {key!r}; {did_you_mean(key, ContextVar.registry)}"
                )
            self._values.append((variable, variable.checked(value)))

    def __enter__(self) -> "Context":
        """Make the values current in this thread."""
        undo = tuple((variable, variable._override.set(value)) for variable, value in self._values)
        _open_contexts.set((*_open_contexts.get(), undo))
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restore what was current before."""
        *outer, undo = _open_contexts.get()
        _open_contexts.set(tuple(outer))
        for variable, token in reversed(undo):
            variable._override.reset(token)


class SettingRow(NamedTuple):
    """One line of `tg env`."""

    name: str
    value: str
    default: str
    meaning: str


def settings_table() -> list[SettingRow]:
    """Every declared setting with its current value, sorted by name.

    `meaning` holds the help line, the accepted values and the example.
    """
    rows = []
    for key in sorted(ContextVar.registry):
        variable = ContextVar.registry[key]
        about = f"{variable.help} ({variable.accepted_text()}; e.g. {variable.example})"
        rows.append(SettingRow(key, str(variable.value), str(variable.default), about))
    return rows


def cache_key(cache: str) -> tuple[tuple[str, int | str], ...]:
    """Name and value of every setting that the entries of a cache depend on, sorted by name.

    Args:
        cache: one of `CACHES`.

    Raises:
        SettingError: no cache has this name.
    """
    if cache not in CACHES:
        raise SettingError(f"no cache is called {cache!r}; {did_you_mean(cache, CACHES)}")
    affecting = [var for var in ContextVar.registry.values() if cache in var.caches]
    return tuple(sorted((var.key, var.value) for var in affecting))


DEV = ContextVar(
    "DEV",
    "",
    help="where programs run: device[:renderer[:arch]], several by ';'; empty: the first found",
    example="DEV=CPU:LLVM",
    # Schedules name their devices and kernels carry their target, so only captures depend on it.
    caches={"jit"},
    check=parse_targets,
)
DEBUG = ContextVar(
    "DEBUG",
    0,
    help="what to print: 1 devices, 2 kernels, 3 optimisations, 4 source, 5 UOps, "
    "6 linear UOps, 7 assembly",
    accepted=range(8),
    example="DEBUG=2",
    caches=(),
)
BEAM = ContextVar(
    "BEAM",
    0,
    help="width of the search for the fastest kernel; 0: use the heuristic",
    accepted=_ANY_COUNT,
    example="BEAM=4",
    caches={"kernel", "jit"},
    is_planned=True,
)
JIT = ContextVar(
    "JIT",
    1,
    help="0: TinyJit runs eagerly; 1: capture and replay as one call; 2: replay kernel by kernel",
    accepted=range(3),
    example="JIT=0",
    caches=(),
)
VIZ = ContextVar(
    "VIZ",
    0,
    help="record every rewrite, to look at afterwards",
    accepted=_SWITCH,
    example="VIZ=1",
    caches=(),
    is_planned=True,
)
PROFILE = ContextVar(
    "PROFILE",
    0,
    help="write every event to a file",
    accepted=_SWITCH,
    example="PROFILE=1",
    caches=(),
    is_planned=True,
)
SPEC = ContextVar(
    "SPEC",
    0,
    help="verify graphs: 1 at every border between layers, 2 after every pass too",
    accepted=range(3),
    example="SPEC=1",
    caches=(),
)
NOOPT = ContextVar(
    "NOOPT",
    0,
    help="1: lower kernels without any optimisation",
    accepted=_SWITCH,
    example="NOOPT=1",
    caches={"kernel", "jit"},
)
LRU = ContextVar(
    "LRU",
    1,
    help="keep freed buffers for later allocations of the same size",
    accepted=_SWITCH,
    example="LRU=0",
    caches=(),
)
CCACHE = ContextVar(
    "CCACHE",
    1,
    help="keep compiled kernels and schedules on disk",
    accepted=_SWITCH,
    example="CCACHE=0",
    caches=(),
)
ASSERT_COMPILE = ContextVar(
    "ASSERT_COMPILE",
    0,
    help="1: any lowering or compile that no cache answers is an error",
    accepted=_SWITCH,
    example="ASSERT_COMPILE=1",
    caches=(),
)
CAPTURE_PROCESS_REPLAY = ContextVar(
    "CAPTURE_PROCESS_REPLAY",
    0,
    help="record every graph scheduled and kernel compiled, for process replay",
    accepted=_SWITCH,
    example="CAPTURE_PROCESS_REPLAY=1",
    caches=(),
    is_planned=True,
)
FASTMATH = ContextVar(
    "FASTMATH",
    0,
    help="1: allow rewrites that assume no NaN or overflow, or reassociate floats",
    accepted=_SWITCH,
    example="FASTMATH=1",
    caches=CACHES,
)
CHECKED = ContextVar(
    "CHECKED",
    0,
    help="1: report index out of range and integer division by zero with the line that made the op",
    accepted=_SWITCH,
    example="CHECKED=1",
    caches=CACHES,
    is_planned=True,
)
EXACT_MATRIX = ContextVar(
    "EXACT_MATRIX",
    0,
    help="1: do not use matrix units, which round and flush subnormals in their own way",
    accepted=_SWITCH,
    example="EXACT_MATRIX=1",
    caches={"kernel", "jit"},
    is_planned=True,
)
THREADS = ContextVar(
    "THREADS",
    0,
    help="CPU worker threads; 0: one for each core this process may use",
    accepted=_ANY_COUNT,
    example="THREADS=1",
    caches={"kernel", "jit"},
)
