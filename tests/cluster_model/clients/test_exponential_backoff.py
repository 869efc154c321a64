"""How long clients wait before they try again: longer each time from 3.7 on (KIP-580)."""

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


def retries_of(release: str, **settings: Any) -> list[int]:
    """Return after how many milliseconds a producer sends a batch again, attempt after attempt."""
    app = App(release, acks="1", enable_idempotence=False, linger_ms=0, **settings)
    app.send("a")
    waits = []
    for _ in GROWING:
        app.answer(errors.NOT_ENOUGH_REPLICAS)
        waited = 0
        while not app.under_way():
            app.pause(MS)
            waited += 1
        waits.append(waited)
    return waits


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_a_producer_waits_twice_as_long_each_time_give_or_take_a_fifth(release: str) -> None:
    for waited, grown in zip(retries_of(release), GROWING, strict=True):
        assert grown * 0.8 <= waited <= min(grown * 1.2 + 1, 1_000)


@pytest.mark.parametrize("release", ["2.4", "3.6"])
def test_before_it_waits_as_long_as_ever(release: str) -> None:
    assert retries_of(release) == [100] * len(GROWING)


def test_a_maximum_that_is_no_more_than_the_first_wait_holds_every_time() -> None:
    assert retries_of("3.9", retry_backoff_ms=300, retry_backoff_max_ms=200) == [200] * len(GROWING)
    assert retries_of("3.9", retry_backoff_ms=70, retry_backoff_max_ms=70) == [70] * len(GROWING)


def test_what_does_not_grow_is_not_drawn() -> None:
    stream = RecordedStream([])
    assert ExponentialBackoff(100, 100, stream).backoff_us(7) == 100


def test_it_is_never_longer_than_the_maximum() -> None:
    backoff = ExponentialBackoff(100 * MS, SECOND, Choices.from_seed(1).network)
    drawn = [backoff.backoff_us(attempts) for attempts in (0, 1, 3, 10, 1_000) for _ in range(50)]
    assert min(drawn) >= 80 * MS
    assert max(drawn) == SECOND


def test_a_metadata_request_that_tells_nothing_new_is_asked_less_and_less_often() -> None:
    asked = {"3.6": 0, "3.9": 0}
    for release in asked:
        app = App(release, ready=False, enable_idempotence=False)
        app.leaders = {}
        for _ in range(1_000):
            asked[release] += bool(app.host.requests("Metadata"))
            app.metadata()
            app.pause(MS)
    assert asked["3.6"] == 10
    assert asked["3.9"] < 6


def test_only_releases_that_have_it_read_the_setting() -> None:
    for config in (producer_config, consumer_config):
        assert config("3.6", {"retry.backoff.ms": 70}).retry_backoff_max_us == 70 * MS
        assert config("3.9", {"retry.backoff.ms": 70}).retry_backoff_max_us == SECOND
