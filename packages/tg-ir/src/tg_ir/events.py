"""Events: what the stack did, for observers such as `DEBUG` output, profilers and tests.

Whoever does something calls `emit`; observers `subscribe`. Events also travel as JSON lines
with a format version, written by `EventWriter` and read by `read_events`.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from types import TracebackType
from typing import Final, NamedTuple, TextIO

from tg_ir.errors import EventFormatError

__all__ = [
    "FORMAT_VERSION",
    "BufferAllocated",
    "BufferCopied",
    "BufferFreed",
    "CacheHit",
    "CacheMissed",
    "DeviceOpened",
    "Event",
    "EventWriter",
    "KernelCompiled",
    "KernelLaunched",
    "RecordedEvent",
    "Scheduled",
    "Subscription",
    "emit",
    "listening",
    "read_events",
    "subscribe",
]

FORMAT_VERSION: Final = 1
_FORMAT_NAME: Final = "tg-events"


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. Fields are str, int, float or None, so that they can be written."""


@dataclass(frozen=True, slots=True)
class DeviceOpened(Event):
    """A device is in use from now on."""

    device: str


@dataclass(frozen=True, slots=True)
class Scheduled(Event):
    """A tensor graph became a list of kernels.

    Attributes:
        kernels: kernels in the schedule.
        nodes: nodes of the tensor graph.
        time_s: seconds spent.
    """

    kernels: int
    nodes: int
    time_s: float


@dataclass(frozen=True, slots=True)
class KernelCompiled(Event):
    """A kernel was lowered, rendered and compiled; no cache had it.

    Attributes:
        name: name of the kernel.
        target: what it was compiled for, as `str(Target)`.
        time_s: seconds of lowering, rendering and compiling together.
        code_bytes: size of the binary.
    """

    name: str
    target: str
    time_s: float
    code_bytes: int


@dataclass(frozen=True, slots=True)
class CacheHit(Event):
    """A cache ("schedule", "kernel", "jit", ...) had the entry."""

    cache: str
    key: str


@dataclass(frozen=True, slots=True)
class CacheMissed(Event):
    """A cache did not have the entry; it is made now."""

    cache: str
    key: str


@dataclass(frozen=True, slots=True)
class KernelLaunched(Event):
    """A kernel ran, or was sent to its device.

    Attributes:
        name: name of the kernel.
        device: where.
        time_s: seconds it took, or None where the launch was not waited for.
        nbytes: bytes read and written, estimated.
        flops: arithmetic operations, estimated.
    """

    name: str
    device: str
    time_s: float | None
    nbytes: int
    flops: int


@dataclass(frozen=True, slots=True)
class BufferCopied(Event):
    """Bytes went from one device to another.

    Attributes:
        source: device read.
        destination: device written.
        nbytes: size.
        time_s: seconds it took, or None where it was not waited for.
    """

    source: str
    destination: str
    nbytes: int
    time_s: float | None


@dataclass(frozen=True, slots=True)
class BufferAllocated(Event):
    """A device gave memory to a buffer, `nbytes` in size."""

    device: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class BufferFreed(Event):
    """A buffer of `nbytes` gave its memory back."""

    device: str
    nbytes: int


_EVENT_TYPES: dict[str, type[Event]] = {
    event_type.__name__: event_type
    for event_type in (
        *(DeviceOpened, Scheduled, KernelCompiled, CacheHit, CacheMissed),
        *(KernelLaunched, BufferCopied, BufferAllocated, BufferFreed),
    )
}

Callback = Callable[[Event], object]

# Replaced as a whole under the lock, never changed in place, so that `emit` needs no lock.
_subscriptions: tuple["Subscription", ...] = ()
_lock = threading.Lock()


class Subscription:
    """One observer. It listens from its creation until `close`, or to the end of a `with`."""

    def __init__(self, callback: Callback) -> None:
        """Start to listen. `callback` is called in the thread that emits."""
        global _subscriptions
        self.callback = callback
        with _lock:
            _subscriptions = (*_subscriptions, self)

    def close(self) -> None:
        """Stop listening. May be called more than once."""
        global _subscriptions
        with _lock:
            _subscriptions = tuple(sub for sub in _subscriptions if sub is not self)

    def __enter__(self) -> "Subscription":
        """Return itself, which listens already."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop listening."""
        self.close()


def subscribe(callback: Callback) -> Subscription:
    """Call `callback` with every event of this process, from any thread, until closed.

    Use it as `with subscribe(events.append):`. What the callback raises reaches the code that
    emitted the event.
    """
    return Subscription(callback)


def listening() -> bool:
    """Whether anybody listens. Ask before making an event where making it costs."""
    return bool(_subscriptions)


def emit(event: Event) -> None:
    """Hand an event to every observer, in the order in which they subscribed."""
    for subscription in _subscriptions:
        subscription.callback(event)


class EventWriter:
    """Writes events as JSON lines: a header with the format version, then one event a line.

    Use an instance as the callback of `subscribe`. It does not close the stream.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write the header."""
        self._stream = stream
        self._lock = threading.Lock()
        self._start = time.perf_counter()
        stream.write(json.dumps({"format": _FORMAT_NAME, "version": FORMAT_VERSION}) + "\n")

    def __call__(self, event: Event) -> None:
        """Write one event, with the seconds since the header."""
        at_s = time.perf_counter() - self._start
        line = json.dumps({"event": type(event).__name__, "at_s": at_s, **asdict(event)})
        with self._lock:
            self._stream.write(line + "\n")


class RecordedEvent(NamedTuple):
    """An event read from a file, and when it happened: seconds since the file was begun."""

    at_s: float
    event: Event


def read_events(stream: TextIO) -> Iterator[RecordedEvent]:
    """Read what an `EventWriter` wrote, in order.

    Raises:
        EventFormatError: no event file, another version, or a line that holds no known event.
    """
    header = _parse_line(1, stream.readline())
    if header.get("format") != _FORMAT_NAME:
        raise EventFormatError(f"this is no event file: its first line names no {_FORMAT_NAME!r}")
    if header.get("version") != FORMAT_VERSION:
        raise EventFormatError(
            f"the event file has format version {header.get('version')}, this reads "
            f"version {FORMAT_VERSION}; read it with the release that wrote it"
        )
    for number, line in enumerate(stream, start=2):
        yield _event_of(number, _parse_line(number, line))


def _parse_line(number: int, line: str) -> dict[str, object]:
    """The JSON object in a line."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise EventFormatError(f"line {number} of the event file is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise EventFormatError(f"line {number} of the event file is no JSON object")
    return value


def _event_of(number: int, record: dict[str, object]) -> RecordedEvent:
    """The event in a line that was parsed."""
    name = record.pop("event", None)
    at_s = record.pop("at_s", None)
    event_type = _EVENT_TYPES.get(str(name))
    if event_type is None or not isinstance(at_s, (int, float)):
        raise EventFormatError(f"line {number} of the event file holds no known event: {name!r}")
    expected = {field.name for field in fields(event_type)}
    if expected != record.keys():
        raise EventFormatError(
            f"line {number} of the event file: {name} has the fields {sorted(expected)}, "
            f"got {sorted(record)}"
        )
    return RecordedEvent(float(at_s), event_type(**record))
