"""An outage is a period in which no producer gets an ack; its report names the causes."""

from typing import Any

import pytest

from harrow.checks.history.index import HistoryIndex
from harrow.checks.index import Index
from harrow.checks.service import outages as reasons
from harrow.checks.service.levels import service_levels
from harrow.checks.service.outages import Outage, outages_of
from harrow.cluster_model.history import INVOKE, OK, SEND, Operation
from tests.checks.evidence_builder import RunBuilder

SECOND = 1_000_000


Send = tuple[float, float | None, str]
"""When a record was sent, and when and how the send ended."""


def send(invoked_s: float, completed_s: float | None, outcome: str = OK) -> Send:
    return invoked_s, completed_s, outcome


def outages_and_longest(*sends: Send) -> tuple[list[Outage], Outage | None]:
    moments = [(invoked_s, INVOKE, number) for number, (invoked_s, _, _) in enumerate(sends)]
    moments += [(end_s, type_, number) for number, (_, end_s, type_) in enumerate(sends) if end_s is not None]
    history = HistoryIndex(
        [
            Operation(index, number, type_, SEND, ((SEND, "t-0", f"m{number}"),), round(at_s * SECOND))
            for index, (at_s, type_, number) in enumerate(sorted(moments))
        ]
    )
    return outages_of("t-0", history, range(len(sends)), 20 * SECOND)


def outage_times(*sends: Send) -> list[tuple[float, float, str]]:
    outages, _ = outages_and_longest(*sends)
    return [(outage.start_us / SECOND, outage.end_us / SECOND, outage.ended) for outage in outages]


@pytest.mark.parametrize(
    ("sends", "expected"),
    [
        ([], []),
        # Neither latency nor a pause of the producers is an outage.
        ([send(0, 0.9), send(30, 30.5)], []),
        ([send(0, 1)], [(0, 1, "answered")]),
        # An outage begins with the previous ack if another send was in flight.
        ([send(0, 0.5), send(0.1, 4)], [(0.5, 4, "answered")]),
        # Sends during an outage do not restart it, and the first ack ends it.
        ([send(0, 5), send(1, 4), send(2, 6)], [(0, 4, "answered"), (4, 5, "answered"), (5, 6, "answered")]),
        # Errors and retries continue an outage.
        ([send(0, 2, "info"), send(2.5, 4, "fail"), send(4.5, 5)], [(0, 5, "answered")]),
        # An outage ends with the last error if the producers then pause.
        ([send(0, 2, "info"), send(4, 4.1)], [(0, 2, "given up")]),
        ([send(0, 2, "info"), send(4, 7)], [(0, 2, "given up"), (4, 7, "answered")]),
        ([send(0, 3, "fail")], [(0, 3, "given up")]),
        # An outage without an end lasts until the end of the history.
        ([send(0, None)], [(0, 20, "not over")]),
        ([send(0, 0.1, "info"), send(0, None)], [(0, 20, "not over")]),
    ],
)
def test_an_outage_lasts_from_a_send_without_ack_to_the_next_ack_or_the_last_error(
    sends: list[Send], expected: list[tuple[float, float, str]]
) -> None:
    assert outage_times(*sends) == expected


def test_the_longest_time_without_an_ack_is_reported_even_if_it_is_no_outage() -> None:
    _, longest = outages_and_longest(send(0, 0.25), send(1, 1.5))
    assert longest is not None
    assert longest.length_us == SECOND // 2


class SlowAckRun(RunBuilder):
    """A run in which m0 is sent at once and acked two seconds after the last event."""

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
        (outage,) = service_levels(Index(self.evidence())).outages
        return outage


@pytest.mark.parametrize(
    ("events", "began", "ended"),
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
        # A follower that replicates a batch and never fetches again does not report it.
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
        # A later event is not the beginning of an outage.
        (
            [("broker_paused", {"broker": 2}), ("time", 1.5), ("broker_paused", {"broker": 0})],
            (reasons.MEMBER_PAUSED, 2),
            (reasons.CAUGHT_UP, 2),
        ),
        # The broker that returned ended the outage, not another fault that ended at that time.
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
def test_an_outage_names_the_events_that_began_and_ended_it(
    events: list[tuple[Any, ...]], began: tuple[str, int], ended: tuple[str, int]
) -> None:
    run = SlowAckRun()
    for event, *arguments in events:
        if event == "elect":
            run.elect(arguments[0], 1, (1, 2))
        elif event == "lead":
            run.lead(arguments[0], 1, (0, 1, 2))
        elif event == "time":
            run.now_us += round(arguments[0] * SECOND)
        elif event == "append":
            run.append(0, "m0")
        elif event == "copied":
            run.replicate(arguments[0], "m0")
        elif event == "fetched":
            run.event("fetch", broker=0, partition="t-0", replica=arguments[0], offset=arguments[1])
        elif event == "isr":
            run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=arguments[0], change=arguments[1])
        elif event == "refused":
            run.event(
                "rejected", broker=0, api="Produce", partition="t-0", sender="producer-0", error=arguments[0]
            )
        else:
            run.event(event, **arguments[0])
    outage = run.outage()
    assert ((outage.began, outage.began_broker), (outage.ended, outage.ended_broker)) == (began, ended)


def test_an_outage_distinguishes_a_lost_answer_from_a_slow_follower() -> None:
    run = SlowAckRun()
    run.append(0, "m0")
    run.acknowledge(0, 0, "m0")
    assert run.outage().began == reasons.ANSWER_LOST
