"""The heads of a narrow diff: short, but true."""

import pytest

from harrow.cli.render.diff import short_head


@pytest.mark.parametrize(
    ("role", "head"),
    [
        ("leader e0", "0 leader\ne0"),
        ("leader e12", "0 leader\ne12"),
        ("follower e1", "0\ne1"),
        ("paused leader e0", "0 paused\nleader e0"),
        ("paused follower e0", "0 paused\nfollower e0"),
        ("paused no role", "0 paused\nno role"),
        ("paused starting", "0 paused\nstarting"),
        ("no role", "0 no role\n"),
        ("starting", "0 starting\n"),
        ("down", "0 down\n"),
    ],
)
def test_a_short_head_says_the_role_and_its_epoch(role: str, head: str) -> None:
    assert short_head(0, role) == head
