"""Events of many threads enter the trace in the order of their observation."""

import threading
import time

import pytest

from harrow.cluster_model.events import BrokerPaused, BrokerResumed
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.event_queue import EventQueue, WallClock
from tests.patience import PATIENCE_S

MS = 1_000_000


class Monotonic:
    """A monotonic clock that the test controls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 77 * MS
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    return Monotonic(monkeypatch)


@pytest.fixture
def clock(system: Monotonic) -> WallClock:
    clock = WallClock()
    clock.begin()
    return clock


@pytest.fixture
def trace(clock: WallClock) -> Trace:
    return Trace(clock)


@pytest.fixture
def event_queue(clock: WallClock, trace: Trace) -> EventQueue:
    return EventQueue(clock, trace, Activity())


def test_a_clock_stands_at_zero_until_the_run_begins(system: Monotonic) -> None:
    clock = WallClock()
    system.now_ns += 5 * MS
    assert (clock.tick(), clock.us_of(system.now_ns)) == (0, 0)
    assert clock.begin() == clock.zero_ns == system.now_ns
    system.now_ns += MS
    assert clock.tick() == clock.now_us == 1_000
    assert clock.us_of(system.now_ns - 3 * MS) == 0


def test_the_clock_never_goes_back(system: Monotonic, clock: WallClock) -> None:
    system.now_ns += 5 * MS
    clock.tick()
    system.now_ns -= 2 * MS
    assert clock.tick() == clock.now_us == 5_000


def test_events_have_the_time_of_observation(
    system: Monotonic, clock: WallClock, trace: Trace, event_queue: EventQueue
) -> None:
    system.now_ns += MS
    event_queue.report(BrokerPaused, 1)
    system.now_ns += MS
    event_queue.report(BrokerResumed, 1)
    system.now_ns += MS
    assert list(trace.events) == []
    event_queue.move_to_trace()
    event_queue.move_to_trace()
    assert list(trace.events) == [(1_000, BrokerPaused.name, 1), (2_000, BrokerResumed.name, 1)]
    assert clock.now_us == 3_000


def test_the_trace_never_goes_back(
    system: Monotonic, clock: WallClock, trace: Trace, event_queue: EventQueue
) -> None:
    system.now_ns += MS
    event_queue.report(BrokerPaused, 1)
    system.now_ns += MS
    clock.tick()
    trace.emit(BrokerPaused, 2)
    event_queue.move_to_trace()
    assert list(trace.events) == [(2_000, BrokerPaused.name, 2), (2_000, BrokerPaused.name, 1)]


def test_wait_returns_at_once_after_a_report(event_queue: EventQueue) -> None:
    event_queue.report(BrokerPaused, 1)
    event_queue.wait(PATIENCE_S, PATIENCE_S)


@pytest.mark.parametrize("is_event", [True, False])
def test_a_report_of_another_thread_ends_the_wait(event_queue: EventQueue, is_event: bool) -> None:
    waits, is_over = threading.Event(), threading.Event()

    def wait() -> None:
        waits.set()
        event_queue.wait(PATIENCE_S, PATIENCE_S)
        is_over.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert waits.wait(PATIENCE_S)
    if is_event:
        event_queue.report(BrokerPaused, 1)
    while not is_over.wait(0.01):  # it may have been woken before it waited
        event_queue.wake()
    thread.join()


def test_no_report_of_any_thread_is_lost(trace: Trace, event_queue: EventQueue) -> None:
    def report_often(broker: int) -> None:
        for _ in range(200):
            event_queue.report(BrokerPaused, broker)

    threads = [threading.Thread(target=report_often, args=(broker,)) for broker in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        event_queue.move_to_trace()
    event_queue.move_to_trace()
    assert sorted(event[2] for event in trace.events) == [broker for broker in range(4) for _ in range(200)]
