"""An anomaly of a history is permitted, undecided or a violation, and settings may prevent it."""

from functools import partial

import pytest

from harrow.campaigns.record.phrases import because, preventions, sentence
from harrow.checks.finding import Finding
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.sighting import Sighting
from tests.checks.history.history_builder import (
    Operation,
    assign,
    fail,
    info,
    judge,
    ok,
    poll,
    send,
    subscribe,
)

OVERWRITTEN = (
    ok(0, send("t", "m0", 0)),
    ok(0, send("t", "m1", 1)),
    ok(0, send("t", "m2", 2)),
    ok(0, send("t", "m3", 1)),
    ok(1, poll("t", (0, "m0"), (1, "m3"))),
    ok(1, poll("t")),
)
"""An election lost m1 and m2, and the offset of m1 was assigned again."""


def statuses(*operations: Operation, **settings: object) -> dict[str, str]:
    rules = judge(*operations, **settings).rules
    return {name: result.status for name, result in rules.items() if result.findings}


def test_the_permission_of_a_loss_permits_assigning_the_offset_again() -> None:
    assert statuses(*OVERWRITTEN)["nonmonotonic-send"] == "violated"
    permitted = statuses(*OVERWRITTEN, unclean_leader_election=True)
    assert set(permitted.values()) == {"permitted"}
    assert permitted.keys() >= {"nonmonotonic-send", "inconsistent-offsets", "lost-write"}
    assert set(statuses(*OVERWRITTEN, acks="1").values()) == {"permitted"}


def test_the_permission_of_a_loss_does_not_permit_swapping_present_records() -> None:
    swapped = (
        ok(0, send("t", "m0", 1)),
        ok(0, send("t", "m1", 0)),
        ok(1, poll("t", (0, "m1"), (1, "m0"))),
    )
    assert statuses(*swapped, acks="1") == {"nonmonotonic-send": "violated"}


def test_the_permission_of_a_loss_permits_skipping_the_lost_records() -> None:
    history = (
        ok(0, send("t", "a", 0)),
        ok(0, send("t", "b", 1)),
        ok(0, send("t", "d", 3)),
        ok(1, poll("t", (0, "a"))),
        ok(1, poll("t", (3, "d"))),
    )
    assert statuses(*history) == {"lost-write": "violated", "poll-skip": "violated"}
    assert statuses(*history, acks="1") == {"lost-write": "permitted", "poll-skip": "permitted"}


def test_a_loss_does_not_permit_skipping_records_that_others_read() -> None:
    history = (
        ok(0, send("t", "a", 0)),
        ok(0, send("t", "b", 1)),
        ok(0, send("t", "d", 3)),
        ok(1, poll("t", (0, "a"))),
        ok(1, poll("t", (3, "d"))),
        ok(2, poll("t", (1, "b"))),
    )
    assert statuses(*history, acks="1") == {"poll-skip": "violated"}


def test_a_record_that_the_application_sent_twice_may_be_duplicated() -> None:
    twice = (
        info(0, send("t", "a")),
        ok(0, send("t", "a", 1)),
        ok(1, poll("t", (0, "a"), (1, "a"))),
    )
    (finding,) = judge(*twice).rules["duplicate"].findings
    assert (finding.permitted_by, tuple(preventions(finding))) == (
        "no transactional.id",
        ("transactional.id",),
    )
    assert [link.event for link in finding.chain] == ["send-unsure", "polled", "acked", "polled"]
    assert statuses(*twice[1:]) == {"duplicate": "violated"}


def test_a_lagging_consumer_proves_no_record_unseen() -> None:
    """The recording may have ended before the consumer caught up."""
    sends = [ok(0, send("t", f"m{number}", number)) for number in range(4)]
    lagging = ok(1, poll("t", (0, "m0"), (1, "m1")))
    assert statuses(*sends, lagging) == {"unseen": "inconclusive"}
    assert statuses(*sends, lagging, ok(1, poll("u"))) == {"unseen": "violated"}
    assert statuses(*sends, lagging, ok(2, poll("u"))) == {"unseen": "inconclusive"}
    assert statuses(lagging, *sends[2:]) == {"unseen": "inconclusive"}


def test_an_empty_poll_proves_that_an_assigned_consumer_is_at_the_end() -> None:
    acked = ok(0, send("t", "a", 0))
    assert statuses(acked, assign(1, "t"), ok(1, poll("u"))) == {"unseen": "violated"}
    assert statuses(acked, assign(1, "u"), ok(1, poll("u"))) == {"unseen": "inconclusive"}


def test_a_send_without_completion_may_have_committed() -> None:
    pending = [{"process": 2, "type": "invoke", "f": "send", "value": [["send", "t", "a"]]}]
    failed = fail(0, send("t", "a"))
    read = ok(1, poll("t", (0, "a")))
    assert statuses(failed, pending, read) == {}
    assert statuses(failed, read) == {"G1a": "violated"}


def test_the_prevention_of_an_anomaly_follows_from_its_permission() -> None:
    lost = (
        ok(0, send("t", "a", 0)),
        ok(0, send("t", "b", 1)),
        ok(1, poll("t", (1, "b"))),
    )
    (finding,) = judge(*lost, acks="1").rules["lost-write"].findings
    assert tuple(preventions(finding)) == ("acks=all with min.insync.replicas=2",)
    (finding,) = judge(*lost, unclean_leader_election=True).rules["lost-write"].findings
    assert tuple(preventions(finding)) == ("unclean.leader.election.enable=false",)
    (finding,) = judge(*lost).rules["lost-write"].findings
    assert tuple(preventions(finding)) == ()


def test_a_subscribed_consumer_may_read_records_again() -> None:
    history = (
        ok(0, send("t", "a", 0)),
        ok(0, send("t", "b", 1)),
        subscribe(1, "t"),
        ok(1, poll("t", (0, "a"), (1, "b"))),
        ok(1, poll("t", (0, "a"))),
    )
    (finding,) = judge(*history).rules["nonmonotonic-poll"].findings
    assert (finding.permitted_by, tuple(preventions(finding))) == ("subscribe()", ("assign()",))


def test_unprintable_characters_in_a_reason_are_escaped() -> None:
    unprintable = "\x1b[31mred\n"
    (finding,) = (
        judge(ok(0, send("t", unprintable, 0)), ok(0, send("t", "b", 1)), ok(1, poll("t", (1, "b"))))
        .rules["lost-write"]
        .findings
    )
    assert finding.value == unprintable
    assert because(finding).isprintable()


def test_a_chain_shortens_a_long_list_of_claims() -> None:
    sends = [ok(0, send("t", f"m{number}", 0)) for number in range(500)]
    (finding,) = judge(*sends).rules["inconsistent-offsets"].findings
    assert len(dict(finding.details)["values"]) == 500
    assert len(finding.chain) == 11
    assert sentence(finding.chain[-1]) == "(490 more)"


def test_a_broken_promise_decides_even_after_the_limit_of_permitted_findings() -> None:
    falls = [ok(1, poll("t", (3 - place, f"v{3 - place}"))) for place in range(3)]
    sent = ok(0, *[send("t", f"v{offset}", offset) for offset in range(9)])
    behind = [ok(2, poll("t", (5, "v5"))), ok(2, poll("t", (4, "v4")))]
    verdict = judge(sent, subscribe(1, "t"), *falls, *behind, findings_max=1)
    judged = verdict.rules["nonmonotonic-poll"]
    assert [finding.permitted_by for finding in judged.findings] == ["subscribe()", None]
    assert (judged.status, judged.count, judged.broken) == ("violated", 3, 1)


def test_a_finding_that_is_only_counted_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def build(name: str) -> Finding:
        built.append(name)
        return Finding(partition="t", chain=(), value=name)

    sightings = [Sighting(partial(build, name), is_undecided=name == "c") for name in "abcd"]
    monkeypatch.setitem(ANOMALIES, "unseen", ANOMALIES["unseen"]._replace(find=lambda _: iter(sightings)))
    judged = judge(ok(0, send("t", "a", 0)), findings_max=1).rules["unseen"]
    assert (built, judged.count) == (["a", "c"], 4)


WITHOUT_POLLS = (ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1)))
WITHOUT_SENDS = (ok(1, poll("t", (0, "a"), (1, "b"))),)
POLLED_IN_TURN = {"poll-skip", "nonmonotonic-poll"}
POLLED_TOGETHER = {"int-poll-skip", "int-nonmonotonic-poll"}
POLLING = POLLED_IN_TURN | POLLED_TOGETHER
CONFLICTS = {"duplicate", "inconsistent-offsets"}
HELD = (*WITHOUT_POLLS, *WITHOUT_SENDS)
SENDING_AND_POLLING = {"lost-write", "misrouted", "G1a"}
READING = {"precommitted-read", "G1c"}
TOGETHER = {"int-nonmonotonic-send", "int-send-skip", "torn-transaction", "G0"} | READING


NOT_HELD = {"G1a", "misrouted"} | POLLED_IN_TURN | TOGETHER


@pytest.mark.parametrize(
    ("history", "not_tried"),
    [
        ((), set(ANOMALIES)),
        ((fail(0, send("t", "a")),), set(ANOMALIES)),
        ((ok(0, send("t", "a")),), set(ANOMALIES) - {"unseen"}),
        (WITHOUT_POLLS, {"duplicate"} | POLLING | SENDING_AND_POLLING | TOGETHER),
        (WITHOUT_SENDS, {"unseen", "nonmonotonic-send"} | POLLED_IN_TURN | SENDING_AND_POLLING | TOGETHER),
        (HELD, NOT_HELD),
        ((*HELD, fail(2, send("t", "c"))), NOT_HELD - {"G1a"}),
        ((*HELD, fail(2, send("u", "c"))), NOT_HELD - {"misrouted"}),
        ((*HELD, fail(2, send("u", "a"))), NOT_HELD),
        (
            (*HELD, ok(2, send("u", "c", 0), send("u", "d", 1))),
            NOT_HELD - {"misrouted", "G0", "int-nonmonotonic-send", "int-send-skip"},
        ),
        ((*HELD, ok(2, send("u", "c", 0), send("v", "d", 1))), NOT_HELD - {"misrouted", "G0"}),
        (
            (*HELD, info(2, send("u", "c"), send("v", "d"))),
            NOT_HELD - {"misrouted", "G0", "torn-transaction"},
        ),
        ((*HELD, fail(2, send("t", "c"), send("t", "d"))), NOT_HELD - {"G1a"}),
        ((*HELD, ok(2, send("u", "c", 0), poll("t", (0, "a")))), NOT_HELD - {"misrouted"} - READING),
        ((*HELD, ok(2, send("u", "c", 0), poll("t"))), NOT_HELD - {"misrouted"}),
    ],
)
def test_a_rule_is_skipped_in_a_history_that_cannot_break_it(
    history: tuple[Operation, ...], not_tried: set[str]
) -> None:
    skipped = {name for name, result in judge(*history).rules.items() if result.status == "skipped"}
    assert skipped == not_tried


A0, B1 = ok(0, send("t", "a", 0)), ok(0, send("t", "b", 1))
POLL_A, POLL_B = ok(1, poll("t", (0, "a"))), ok(1, poll("t", (1, "b")))
POLL_AB = poll("t", (0, "a"), (1, "b"))


@pytest.mark.parametrize(
    ("rules", "history", "is_tried"),
    [
        (POLLED_IN_TURN, (POLL_A, POLL_B), True),
        (POLLED_IN_TURN, (POLL_A, ok(2, poll("t", (1, "b")))), False),
        (POLLED_IN_TURN, (POLL_A, ok(1, poll("u", (1, "b")))), False),
        (POLLED_IN_TURN, (ok(1, poll("t", (0, "a")), poll("t", (1, "b"))),), False),
        (POLLED_IN_TURN, (POLL_A, fail(1, poll("t", (1, "b")))), True),
        (POLLED_IN_TURN, (fail(1, poll("t", (0, "a"))), POLL_B), False),
        (POLLED_IN_TURN, (POLL_A, assign(1, "u", "t"), POLL_B), True),
        (POLLED_IN_TURN, (POLL_A, assign(1, "u"), assign(1, "t"), POLL_B), False),
        (POLLED_TOGETHER, (POLL_A, POLL_B), False),
        (POLLED_TOGETHER, (ok(1, POLL_AB),), True),
        (POLLED_TOGETHER, (fail(1, POLL_AB),), True),
        (POLLED_TOGETHER, (ok(1, poll("t", (0, "a")), poll("t", (1, "b"))),), True),
        (POLLED_TOGETHER, (ok(1, poll("t", (0, "a")), poll("u", (1, "b"))),), False),
        (POLLED_TOGETHER, (ok(1, POLL_AB, rebalanced=("t",)),), False),
        (POLLED_TOGETHER, (ok(1, POLL_AB, rebalanced=("u",)),), True),
        ({"nonmonotonic-send"}, (A0, B1), True),
        ({"nonmonotonic-send"}, (A0, ok(2, send("t", "b", 1))), False),
        ({"nonmonotonic-send"}, (A0, ok(0, send("u", "b", 1))), False),
        ({"nonmonotonic-send"}, (A0, assign(0, "u"), B1), True),
        ({"nonmonotonic-send"}, (A0, fail(0, send("t", "b"))), False),
        ({"nonmonotonic-send"}, (A0, info(0, send("t", "b"))), False),
        ({"nonmonotonic-send"}, (A0, info(0, send("t", "b")), POLL_B), True),
        ({"nonmonotonic-send"}, (ok(0, send("t", "a", 0), send("t", "b", 1)),), False),
        ({"misrouted"}, (A0, ok(0, send("u", "b", 0)), POLL_A), True),
        ({"misrouted"}, (A0, ok(0, send("u", "b", 0)), ok(1, poll("v", (0, "c")))), False),
        ({"misrouted"}, (A0, B1, POLL_A), False),
        ({"misrouted"}, (A0, ok(0, send("u", "a", 0)), POLL_A), False),
        (CONFLICTS, (A0,), False),
        (CONFLICTS, (POLL_A,), False),
        (CONFLICTS, (A0, ok(0, send("u", "b", 0))), False),
        (CONFLICTS, (A0, POLL_A), True),
        (CONFLICTS, (ok(0, send("t", "a")), POLL_A), False),
        (CONFLICTS, (POLL_A, ok(2, poll("t", (0, "a")))), True),
        (CONFLICTS, (POLL_A, fail(2, poll("t", (0, "a")))), True),
        (CONFLICTS, (fail(1, poll("t", (0, "a"))), fail(2, poll("t", (0, "a")))), True),
        (CONFLICTS, (A0, ok(2, send("t", "a", 1))), True),
        ({"duplicate"}, (A0, B1), False),
        ({"inconsistent-offsets"}, (A0, B1), True),
        ({"lost-write"}, (A0, POLL_A), True),
        ({"lost-write"}, (A0, POLL_B), True),
        ({"lost-write"}, (B1, POLL_A), False),
        ({"lost-write"}, (A0, ok(1, poll("u", (0, "a")))), False),
        ({"lost-write"}, (A0, fail(1, poll("t", (0, "a")))), False),
        ({"lost-write"}, (info(0, send("t", "a", 0), send("u", "b")), POLL_B), False),
        (
            {"lost-write"},
            (info(0, send("t", "a", 0), send("u", "b")), POLL_B, ok(1, poll("u", (1, "c")))),
            True,
        ),
    ],
)
def test_a_rule_is_tried_by_operations_that_could_have_broken_it(
    rules: set[str], history: tuple[Operation, ...], *, is_tried: bool
) -> None:
    statuses = {rule: judge(*history).rules[rule].status for rule in rules}
    assert all((status != "skipped") == is_tried for status in statuses.values()), statuses


@pytest.mark.parametrize("demanded", ANOMALIES)
def test_a_history_that_does_not_try_a_demanded_rule_is_inconclusive(demanded: str) -> None:
    verdict = judge(*HELD, demanded=[demanded])
    is_tried = judge(*HELD).rules[demanded].status != "skipped"
    assert verdict.status == ("held" if is_tried else "inconclusive")
    assert verdict.reasons == (() if is_tried else (f"{demanded} is demanded, and nothing tried it",))


def test_every_anomaly_needs_something_of_a_history() -> None:
    assert all(anomaly.needs for anomaly in ANOMALIES.values())
