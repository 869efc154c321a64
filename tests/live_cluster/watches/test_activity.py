"""A watch polls often while a cluster is active, rarely while it is quiet, and at once when
activity starts.
"""

import threading
import time

import pytest

from harrow.live_cluster.watches.activity import QUIET_POLL_INTERVAL_S, Activity
from harrow.live_cluster.watches.polling_thread import PollingThread
from tests.patience import PATIENCE_S


class Monotonic:
    """A monotonic clock that the test controls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)


def quiet_activity(clock: Monotonic) -> Activity:
    activity = Activity()
    activity.begin()
    clock.now_s += 1
    assert activity.is_quiet()
    return activity


def test_activity_lasts_at_least_until_observation_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, activity = Monotonic(monkeypatch), Activity()
    clock.now_s += 3_600
    activity.note()
    clock.now_s += 3_600
    assert not activity.is_quiet()
    activity.begin()
    assert not activity.is_quiet()


def test_activity_ends_shortly_after_the_last_note(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Monotonic(monkeypatch)
    activity = quiet_activity(clock)
    activity.note()
    clock.now_s += 0.2
    assert not activity.is_quiet()
    activity.note()
    clock.now_s += 0.2
    assert not activity.is_quiet()
    clock.now_s += 0.2
    assert activity.is_quiet()


def test_activity_wakes_a_waiting_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    activity = quiet_activity(Monotonic(monkeypatch))
    ended = threading.Event()

    def wait() -> None:
        activity.wait_while_quiet(10 * PATIENCE_S)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    activity.note()
    assert ended.wait(PATIENCE_S)
    thread.join()


def test_a_watch_polls_rarely_while_the_cluster_is_quiet() -> None:
    activity, polled = Activity(), threading.Semaphore(0)
    activity.begin()
    watch = PollingThread("watch", polled.release, activity)
    watch.start()
    assert polled.acquire(timeout=PATIENCE_S)
    while not activity.is_quiet():
        time.sleep(0.01)
    while polled.acquire(blocking=False):
        pass
    began_s = time.monotonic()
    for _ in range(3):
        assert polled.acquire(timeout=PATIENCE_S)
    assert time.monotonic() - began_s > QUIET_POLL_INTERVAL_S
    activity.note()
    assert polled.acquire(timeout=PATIENCE_S)
    watch.close()


def test_a_waiting_watch_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harrow.live_cluster.watches.polling_thread.QUIET_POLL_INTERVAL_S", 1_000 * PATIENCE_S
    )
    activity, polled = Activity(), threading.Event()
    activity.begin()
    watch = PollingThread("watch", polled.set, activity)
    watch.start()
    assert polled.wait(PATIENCE_S)
    while not activity.is_quiet():
        time.sleep(0.01)
    watch.close()
