"""The 95% interval of a rate, against published and independently computed values."""

from collections import Counter
from math import comb, floor, log

import pytest

from harrow.campaigns.sweep.confidence import wilson
from harrow.campaigns.sweep.queries import STEPS_PER_E
from harrow.campaigns.sweep.sweep_report import quantile_us


@pytest.mark.parametrize(
    ("hits", "tries", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_match_published_ones(hits: int, tries: int, low: float, high: float) -> None:
    assert wilson(hits, tries) == pytest.approx((low, high), abs=5e-5)


def test_without_tries_the_interval_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_quantiles_of_times_are_accurate_to_one_percent() -> None:
    times_us = [*sorted(int(1000 * 1.01**n) for n in range(500)), 5_000_000]
    steps = sorted(Counter(floor(STEPS_PER_E * log(time_us)) for time_us in times_us).items())
    assert quantile_us(steps, 0.5) == pytest.approx(times_us[250], rel=0.02)
    assert quantile_us(steps, 0.99) == pytest.approx(times_us[495], rel=0.02)
    assert quantile_us(steps, 1.0) == pytest.approx(5_000_000, rel=0.02)
    assert quantile_us([], 0.5) == 0.0


def test_the_interval_of_misses_mirrors_that_of_hits() -> None:
    low, high = wilson(3, 40)
    assert wilson(37, 40) == pytest.approx((1 - high, 1 - low))


def test_the_interval_covers_the_rate_about_95_times_in_100() -> None:
    tries, rate = 50, 0.1
    covered = sum(
        comb(tries, hits) * rate**hits * (1 - rate) ** (tries - hits)
        for hits in range(tries + 1)
        if wilson(hits, tries)[0] <= rate <= wilson(hits, tries)[1]
    )
    assert 0.92 < covered < 0.98
