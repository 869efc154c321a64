"""A failed thread ends its run and prints nothing."""

import threading

import pytest

from harrow.live_cluster.target.thread_failures import ThreadFailedError, ThreadFailures
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.polling_thread import PollingThread


def look_at_null() -> None:
    tuple(None)  # type: ignore[arg-type]


def ended(failures: ThreadFailures, *names: str) -> None:
    for name in names:
        watch = PollingThread(name, look_at_null, Activity())
        watch.start()
        watch.close()


def test_the_first_failed_thread_is_reported_with_its_error_and_position(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with ThreadFailures() as failures:
        failures.check()
        ended(failures, "metadata", "quorum")
        with pytest.raises(ThreadFailedError) as raised:
            failures.check()
    assert str(raised.value).startswith(
        "the thread `metadata` failed: TypeError: 'NoneType' object is not iterable (test_thread_failures.py:"
    )
    assert capfd.readouterr() == ("", "")


def test_a_thread_that_exits_has_not_failed() -> None:
    def leave() -> None:
        raise SystemExit(1)

    with ThreadFailures() as failures:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        failures.check()


def test_a_thread_that_fails_after_the_run_uses_the_previous_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with ThreadFailures() as failures:
        pass
    ended(failures, "metadata")
    failures.check()
    assert len(failed) == 1
