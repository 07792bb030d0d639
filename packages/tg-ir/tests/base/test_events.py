"""Events: subscription, order, threads, and the JSON lines format."""

import io
import json
import threading

import pytest
from tg_ir import events
from tg_ir.errors import EventFormatError
from tg_ir.events import (
    BufferAllocated,
    BufferCopied,
    BufferFreed,
    CacheHit,
    CacheMissed,
    DeviceOpened,
    Event,
    EventWriter,
    KernelCompiled,
    KernelLaunched,
    Scheduled,
    emit,
    listening,
    read_events,
    subscribe,
)

ONE_OF_EACH: list[Event] = [
    DeviceOpened("CPU"),
    Scheduled(kernels=2, nodes=30, time_s=0.25),
    CacheMissed("kernel", "ab12"),
    KernelCompiled("r_4_4", "CPU:LLVM", time_s=0.5, code_bytes=1024),
    CacheHit("kernel", "ab12"),
    BufferAllocated("CPU", 4096),
    KernelLaunched("r_4_4", "CPU", time_s=0.125, nbytes=64, flops=16),
    KernelLaunched("r_4_4", "CPU", time_s=None, nbytes=64, flops=16),
    BufferCopied("CPU", "CL", nbytes=64, time_s=None),
    BufferFreed("CPU", 4096),
]
HEADER = '{"format": "tg-events", "version": 1}\n'


def test_a_subscriber_gets_events_in_order_until_the_end_of_the_with() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        assert listening()
        for event in ONE_OF_EACH:
            emit(event)
    assert not listening()
    emit(DeviceOpened("CL"))
    assert seen == ONE_OF_EACH


def test_a_subscription_lasts_until_it_is_closed() -> None:
    seen: list[Event] = []
    subscription = subscribe(seen.append)
    emit(DeviceOpened("CPU"))
    subscription.close()
    subscription.close()
    emit(DeviceOpened("CL"))
    assert seen == [DeviceOpened("CPU")]


def test_one_callback_may_subscribe_twice() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        with subscribe(seen.append):
            emit(DeviceOpened("A"))
        emit(DeviceOpened("B"))
    assert seen == [DeviceOpened("A"), DeviceOpened("A"), DeviceOpened("B")]


def test_events_of_other_threads_are_seen() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        thread = threading.Thread(target=emit, args=(DeviceOpened("CPU"),))
        thread.start()
        thread.join()
    assert seen == [DeviceOpened("CPU")]


def test_a_callback_may_unsubscribe_while_an_event_is_handed_out() -> None:
    seen: list[Event] = []
    first = subscribe(lambda event: first.close())
    with subscribe(seen.append):
        emit(DeviceOpened("A"))
    assert seen == [DeviceOpened("A")]


def test_an_error_in_a_callback_reaches_the_emitter() -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("observer")

    with subscribe(fail), pytest.raises(RuntimeError, match="observer"):
        emit(DeviceOpened("CPU"))


def test_written_events_are_read_back() -> None:
    stream = io.StringIO()
    with subscribe(EventWriter(stream)):
        for event in ONE_OF_EACH:
            emit(event)
    records = list(read_events(io.StringIO(stream.getvalue())))
    assert [record.event for record in records] == ONE_OF_EACH
    times = [record.at_s for record in records]
    assert times == sorted(times)
    assert times[0] >= 0


def test_the_file_is_json_lines_with_a_versioned_header() -> None:
    stream = io.StringIO()
    EventWriter(stream)(BufferAllocated("CPU", 64))
    header, line = stream.getvalue().splitlines()
    assert json.loads(header) == {"format": "tg-events", "version": 1}
    record = json.loads(line)
    del record["at_s"]
    assert record == {"event": "BufferAllocated", "device": "CPU", "nbytes": 64}


def test_every_event_class_can_be_read() -> None:
    classes = {type(event) for event in ONE_OF_EACH}
    public = {getattr(events, name) for name in events.__all__}
    declared = {item for item in public if isinstance(item, type) and issubclass(item, Event)}
    assert classes == declared - {Event}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 of the event file is no JSON"),
        ("[]\n", "line 1 of the event file is no JSON object"),
        ('{"format": "other"}\n', "this is no event file: its first line names no 'tg-events'"),
        (
            '{"format": "tg-events", "version": 2}\n',
            "the event file has format version 2, this reads version 1; read it with the release",
        ),
        (HEADER + "oops\n", "line 2 of the event file is no JSON"),
        (
            HEADER + '{"event": "Party", "at_s": 1}\n',
            "line 2 of the event file holds no known event: 'Party'",
        ),
        (
            HEADER + '{"event": "DeviceOpened", "at_s": 1, "name": "CPU"}\n',
            "line 2 of the event file: DeviceOpened has the fields ['device'], got ['name']",
        ),
    ],
)
def test_a_bad_event_file_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(EventFormatError) as caught:
        list(read_events(io.StringIO(text)))
    assert str(caught.value).startswith(message)
