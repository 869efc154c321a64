"""The retry backoff of clients, which grows since 3.7 (KIP-580)."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.settings import consumer_config, producer_config
from harrow.cluster_model.sim.choices import Choices
from tests.cluster_model.clients.test_producer import App
from tests.cluster_model.fakes import MS, SECOND
from tests.recorded_choices import RecordedStream

GROWING = (100, 200, 400, 800, 1_000, 1_000)


def retry_delays(release: str, **settings: Any) -> list[int]:
    """Return the milliseconds before each retry of a batch."""
    app = App(release, acks="1", enable_idempotence=False, linger_ms=0, **settings)
    app.send("a")
    waits = []
    for _ in GROWING:
        app.answer(errors.NOT_ENOUGH_REPLICAS)
        delay_ms = 0
        while not app.in_flight():
            app.pause(MS)
            delay_ms += 1
        waits.append(delay_ms)
    return waits


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_since_3_7_the_retry_backoff_doubles_with_a_jitter_of_a_fifth(release: str) -> None:
    for delay_ms, expected in zip(retry_delays(release), GROWING, strict=True):
        assert expected * 0.8 <= delay_ms <= min(expected * 1.2 + 1, 1_000)


@pytest.mark.parametrize("release", ["2.4", "3.6"])
def test_before_3_7_the_retry_backoff_is_constant(release: str) -> None:
    assert retry_delays(release) == [100] * len(GROWING)


def test_a_maximum_not_above_the_first_backoff_applies_to_every_retry() -> None:
    assert retry_delays("3.9", retry_backoff_ms=300, retry_backoff_max_ms=200) == [200] * len(GROWING)
    assert retry_delays("3.9", retry_backoff_ms=70, retry_backoff_max_ms=70) == [70] * len(GROWING)


def test_a_constant_backoff_needs_no_random_choice() -> None:
    stream = RecordedStream([])
    assert ExponentialBackoff(100, 100, stream).backoff_us(7) == 100


def test_the_backoff_never_exceeds_its_maximum() -> None:
    backoff = ExponentialBackoff(100 * MS, SECOND, Choices.from_seed(1).network)
    delays = [backoff.backoff_us(attempts) for attempts in (0, 1, 3, 10, 1_000) for _ in range(50)]
    assert min(delays) >= 80 * MS
    assert max(delays) == SECOND


def test_since_3_7_metadata_requests_without_a_change_become_rarer() -> None:
    counts = {"3.6": 0, "3.9": 0}
    for release in counts:
        app = App(release, ready=False, enable_idempotence=False)
        app.leaders = {}
        for _ in range(1_000):
            counts[release] += bool(app.host.requests("Metadata"))
            app.metadata()
            app.pause(MS)
    assert counts["3.6"] == 10
    assert counts["3.9"] < 6


def test_releases_before_3_7_ignore_retry_backoff_max_ms() -> None:
    for config in (producer_config, consumer_config):
        assert config("3.6", {"retry.backoff.ms": 70}).retry_backoff_max_us == 70 * MS
        assert config("3.9", {"retry.backoff.ms": 70}).retry_backoff_max_us == SECOND
