"""The heads of a narrow diff are short and correct."""

import pytest

from harrow.cli.render.diff import short_head


@pytest.mark.parametrize(
    ("role", "head"),
    [
        ("leader e0", ("0 leader", "e0")),
        ("leader e12", ("0 leader", "e12")),
        ("follower e1", ("0", "e1")),
        ("paused leader e0", ("0 paused", "leader e0")),
        ("paused follower e0", ("0 paused", "follower e0")),
        ("paused no role", ("0 paused", "no role")),
        ("paused starting", ("0 paused", "starting")),
        ("no role", ("0 no role", "")),
        ("starting", ("0 starting", "")),
        ("down", ("0 down", "")),
    ],
)
def test_a_short_head_has_the_role_and_its_epoch(role: str, head: tuple[str, str]) -> None:
    assert short_head(0, role) == head
