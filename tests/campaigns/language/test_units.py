"""Durations as people read them."""

import pytest

from harrow.campaigns.language.units import rough_duration_text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 ms"),
        (1_234, "1.23 ms"),
        (999_499, "999 ms"),
        (999_500, "1 s"),
        (12_345_678, "12.3 s"),
        (90_000_000, "1 min 30 s"),
        (11_040_000_000, "3 h 4 min"),
    ],
)
def test_a_rough_duration_has_three_digits_or_two_units(us: int, text: str) -> None:
    assert rough_duration_text(us) == text
