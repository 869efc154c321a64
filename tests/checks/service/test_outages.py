"""For how long nobody who sends gets an ack, and why."""

from typing import Any

import pytest

from harrow.checks.history.records import SendRecord
from harrow.checks.index import Index
from harrow.checks.service import outages as reasons
from harrow.checks.service.levels import service_levels
from harrow.checks.service.outages import Outage, outages_of
from tests.checks.evidence_builder import RunBuilder

SECOND = 1_000_000


def send(invoked_s: float, completed_s: float | None, outcome: str = "ok") -> SendRecord:
    """Return a send; its places in the history are its times in microseconds."""
    invoked, completed = round(invoked_s * SECOND), -1 if completed_s is None else round(completed_s * SECOND)
    record = SendRecord(0, "t-0", f"m{invoked}", invoked, invoked)
    if completed_s is not None:
        record.outcome, record.completed, record.completed_us = outcome, completed, completed
    return record


def spans(*sends: SendRecord) -> list[tuple[float, float, str]]:
    found, _ = outages_of("t-0", sends, 20 * SECOND)
    return [(outage.start_us / SECOND, outage.end_us / SECOND, outage.ended) for outage in found]


@pytest.mark.parametrize(
    ("sends", "expected"),
    [
        ([], []),
        # Latency is no outage, and neither is a pause of those who send.
        ([send(0, 0.9), send(30, 30.5)], []),
        ([send(0, 1)], [(0, 1, "answered")]),
        # It begins with the ack before, where more was on its way.
        ([send(0, 0.5), send(0.1, 4)], [(0.5, 4, "answered")]),
        # Others that are sent meanwhile do not begin it anew, and the first ack ends it.
        ([send(0, 5), send(1, 4), send(2, 6)], [(0, 4, "answered"), (4, 5, "answered"), (5, 6, "answered")]),
        # Senders that get errors and try again have no ack either.
        ([send(0, 2, "info"), send(2.5, 4, "fail"), send(4.5, 5)], [(0, 5, "answered")]),
        # When they rest, it was over for them.
        ([send(0, 2, "info"), send(4, 4.1)], [(0, 2, "given up")]),
        ([send(0, 2, "info"), send(4, 7)], [(0, 2, "given up"), (4, 7, "answered")]),
        ([send(0, 3, "fail")], [(0, 3, "given up")]),
        # What has not ended when the history does has lasted for so long at least.
        ([send(0, None)], [(0, 20, "not over")]),
        ([send(0, 0.1, "info"), send(0, None)], [(0, 20, "not over")]),
    ],
)
def test_a_time_without_an_ack(sends: list[SendRecord], expected: list[tuple[float, float, str]]) -> None:
    assert spans(*sends) == expected


def test_the_longest_time_without_an_ack_is_reported_even_if_it_is_no_outage() -> None:
    _, longest = outages_of("t-0", [send(0, 0.25), send(1, 1.5)], 20 * SECOND)
    assert longest is not None
    assert longest.length_us == SECOND // 2


class Slow(RunBuilder):
    """A run in which m0 is sent at once, and acked when something has happened."""

    def __init__(self) -> None:
        super().__init__((0, 1, 2))
        self.sender = self.producer("producer-0")
        for broker in (0, 1, 2):
            self.event("broker_started", broker=broker)
        self.elect(0, 0, (0, 1, 2))
        self.send(self.sender, "m0")

    def outage(self) -> Outage:
        self.now_us += 2 * SECOND
        self.ok(self.sender, "m0", 0)
        (found,) = service_levels(Index(self.evidence())).outages
        return found


@pytest.mark.parametrize(
    ("happened", "began", "ended"),
    [
        (
            [("broker_stopped", {"broker": 0, "cause": "process"}), ("elect", 1)],
            (reasons.LEADER_DOWN, 0),
            (reasons.ELECTED, 1),
        ),
        (
            [("broker_stopped", {"broker": 0, "cause": "process"}), ("broker_started", {"broker": 0})],
            (reasons.LEADER_DOWN, 0),
            (reasons.STARTED, 0),
        ),
        (
            [("broker_paused", {"broker": 0}), ("broker_resumed", {"broker": 0})],
            (reasons.LEADER_PAUSED, 0),
            (reasons.RESUMED, 0),
        ),
        (
            [("refused", "NOT_ENOUGH_REPLICAS"), ("isr", (0, 1), "expand")],
            (reasons.ISR_BELOW_MIN, 0),
            (reasons.ISR_GREW, 0),
        ),
        ([("refused", "NOT_LEADER_FOR_PARTITION")], (reasons.FENCED, 0), (reasons.ANSWERED, -1)),
        (
            [("append",), ("copied", 1), ("isr", (0, 1), "shrink")],
            (reasons.MEMBER_BEHIND, 2),
            (reasons.ISR_SHRANK, 0),
        ),
        ([("append",), ("copied", 1), ("copied", 2)], (reasons.MEMBER_BEHIND, 2), (reasons.CAUGHT_UP, 2)),
        # One that copies a batch and fetches no more never says that it has it.
        (
            [("append",), ("copied", 1), ("copied", 2), ("fetched", 2, 1)],
            (reasons.MEMBER_BEHIND, 1),
            (reasons.CAUGHT_UP, 1),
        ),
        (
            [("append",), ("copied", 1), ("copied", 2), ("fetched", 1, 1), ("time", 1), ("fetched", 2, 1)],
            (reasons.MEMBER_BEHIND, 2),
            (reasons.CAUGHT_UP, 2),
        ),
        (
            [("broker_paused", {"broker": 2}), ("append",), ("healed", {})],
            (reasons.MEMBER_PAUSED, 2),
            (reasons.CAUGHT_UP, 2),
        ),
        ([("lead", 0)], (reasons.UNAWARE, 0), (reasons.TOLD, 0)),
        ([("time", 5), ("append",), ("copied", 1)], (reasons.UNREACHABLE, 0), (reasons.ANSWERED, -1)),
        # What comes later is none of its beginning.
        (
            [("broker_paused", {"broker": 2}), ("time", 1.5), ("broker_paused", {"broker": 0})],
            (reasons.MEMBER_PAUSED, 2),
            (reasons.CAUGHT_UP, 2),
        ),
        # One that is back is what ended it, not whatever was over then.
        (
            [
                ("broker_paused", {"broker": 2}),
                ("append",),
                ("healed", {}),
                ("broker_resumed", {"broker": 2}),
            ],
            (reasons.MEMBER_PAUSED, 2),
            (reasons.RESUMED, 2),
        ),
    ],
)
def test_why_nothing_was_acked(
    happened: list[tuple[Any, ...]], began: tuple[str, int], ended: tuple[str, int]
) -> None:
    run = Slow()
    for what, *given in happened:
        if what == "elect":
            run.elect(given[0], 1, (1, 2))
        elif what == "lead":
            run.lead(given[0], 1, (0, 1, 2))
        elif what == "time":
            run.now_us += round(given[0] * SECOND)
        elif what == "append":
            run.append(0, "m0")
        elif what == "copied":
            run.replicate(given[0], "m0")
        elif what == "fetched":
            run.event("fetch", broker=0, partition="t-0", replica=given[0], offset=given[1])
        elif what == "isr":
            run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=given[0], change=given[1])
        elif what == "refused":
            run.event(
                "rejected", broker=0, api="Produce", partition="t-0", sender="producer-0", error=given[0]
            )
        else:
            run.event(what, **given[0])
    found = run.outage()
    assert ((found.began, found.began_broker), (found.ended, found.ended_broker)) == (began, ended)


def test_a_lost_answer_is_distinguished_from_a_slow_follower() -> None:
    run = Slow()
    run.append(0, "m0")
    run.acknowledge(0, 0, "m0")
    assert run.outage().began == reasons.ANSWER_LOST
