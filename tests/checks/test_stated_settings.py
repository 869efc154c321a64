"""The settings that a user can state for a history decide which anomalies are permitted."""

import pytest

from harrow.checks.rules.catalogue import RULES
from harrow.checks.stated_settings import STATABLE, StatedSettings, state

STRICT = StatedSettings()


def parse_settings(*assignments: str) -> StatedSettings:
    settings = STRICT
    for assignment in assignments:
        key, _, text = assignment.partition("=")
        settings = state(settings, key, text)
    return settings


@pytest.mark.parametrize("rule", RULES)
def test_unstated_settings_are_the_strictest(rule: str) -> None:
    always = {"int-send-skip", "G0"}
    assert (RULES[rule].promise.permission(STRICT) is not None) == (rule in always)


@pytest.mark.parametrize(
    ("assignments", "rule", "permitted_by"),
    [
        (("acks=0",), "lost-write", "acks=0"),
        (("acks=1",), "lost-write", "acks=1"),
        (("acks=1",), "unseen", "acks=1"),
        (("acks=1",), "inconsistent-offsets", "acks=1"),
        (("acks=1",), "duplicate", None),
        (("acks=all",), "lost-write", None),
        (("unclean.leader.election.enable=true",), "lost-write", "unclean.leader.election.enable=true"),
        (("unclean.leader.election.enable=true",), "poll-skip", "unclean.leader.election.enable=true"),
        (("log.flush.interval.messages=1000",), "lost-write", "log.flush.interval.messages"),
        (("log.flush.interval.messages=1",), "lost-write", None),
        (("enable.idempotence=false",), "duplicate", "enable.idempotence=false"),
        (("enable.idempotence=false",), "nonmonotonic-send", "max.in.flight.requests.per.connection above 1"),
        (
            ("enable.idempotence=false", "max.in.flight.requests.per.connection=1"),
            "nonmonotonic-send",
            None,
        ),
        (
            ("enable.idempotence=false", "max.in.flight.requests.per.connection=1", "acks=0"),
            "nonmonotonic-send",
            "acks=0",
        ),
        (("isolation.level=read_uncommitted",), "G1a", "isolation.level=read_uncommitted"),
        (("isolation.level=read_uncommitted",), "G1c", "isolation.level=read_uncommitted"),
        (("transactional.id=",), "precommitted-read", "no transactional.id"),
        (("transactional.id=payments",), "precommitted-read", None),
    ],
)
def test_stated_settings_decide_which_anomalies_are_permitted(
    assignments: tuple[str, ...], rule: str, permitted_by: str | None
) -> None:
    assert RULES[rule].promise.permission(parse_settings(*assignments)) == permitted_by


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("acks", "2"),
        ("enable.idempotence", "yes"),
        ("isolation.level", "serializable"),
        ("log.flush.interval.messages", "0"),
        ("max.in.flight.requests.per.connection", "many"),
        ("unclean.leader.election.enable", "1"),
    ],
)
def test_an_invalid_value_of_a_setting_is_refused(key: str, text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        state(STRICT, key, text)


def test_a_setting_that_permits_nothing_cannot_be_stated() -> None:
    with pytest.raises(KeyError):
        state(STRICT, "batch.size", "1")
    assert "acks" in STATABLE
