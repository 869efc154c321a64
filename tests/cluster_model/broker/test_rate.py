"""The rate that quotas are compared with (``Rate.java``, ``SimpleRate.java``)."""

import pytest

from harrow.cluster_model.broker.rate import SampledRate
from tests.cluster_model.fakes import SECOND


def rate(*, overlapping: bool = False, simple: bool = False) -> SampledRate:
    return SampledRate(11, SECOND, overlapping=overlapping, simple=simple)


def test_a_new_window_counts_as_ten_whole_seconds() -> None:
    new_rate = rate()
    new_rate.record(10_000, 5 * SECOND)
    assert new_rate.measure(5 * SECOND) == (10_000, 10 * SECOND)
    assert new_rate.measure(5 * SECOND + SECOND // 2) == (10_000, 10 * SECOND + SECOND // 2)


def test_a_client_waits_until_its_rate_is_within_its_quota() -> None:
    # ``ClientQuotaManagerTest.testQuotaViolation``: 2300 bytes and 10 x 400 at a bound of 500 per
    # second, half a second into the last sample.
    client = rate()
    for second in range(10):
        client.record(400, second * SECOND)
    assert client.time_to(500, 10 * SECOND) == 0
    now_us = 10 * SECOND + SECOND // 2
    client.record(2_300, now_us)
    assert client.time_to(500, now_us) == 2_100_000
    assert client.measure(now_us + 2_100_000 - 1)[0] <= 6_300


def test_a_rate_at_the_bound_needs_no_wait() -> None:
    client = rate()
    client.record(5_000, 0)
    assert not client.exceeds(500, 0)
    assert client.time_to(500, 0) == 0
    client.record(1, 0)
    assert client.exceeds(500, 0)
    assert client.time_to(500, 0) > 0


def test_an_undone_record_does_not_count() -> None:
    client = rate()
    client.record(700, 0)
    client.record(9_000, 0)
    client.record(-9_000, 0)
    assert client.measure(0) == (700, 10 * SECOND)


@pytest.mark.parametrize(("overlapping", "remaining"), [(False, 0), (True, 100)])
def test_a_sample_expires_by_its_start_or_since_3_8_by_its_last_record(
    overlapping: bool, remaining: int
) -> None:
    client = rate(overlapping=overlapping)
    client.record(60, 0)
    client.record(40, SECOND - 1)
    assert client.measure(11 * SECOND)[0] == remaining
    assert client.measure(12 * SECOND)[0] == 0


def test_a_rate_has_no_more_samples_than_its_window() -> None:
    client = rate()
    for second in range(30):
        client.record(1, second * SECOND)
    assert client.measure(29 * SECOND) == (11, 10 * SECOND)


def test_the_window_of_a_simple_rate_starts_with_its_first_sample() -> None:
    replication = rate(simple=True)
    replication.record(3_000, 0)
    assert replication.measure(0) == (3_000, SECOND)
    assert replication.exceeds(1_000, 2 * SECOND)
    assert not replication.exceeds(1_000, 3 * SECOND)
