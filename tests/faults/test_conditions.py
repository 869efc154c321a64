"""The conditions of a campaign, and the messages about unmet ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from harrow.cluster_model.trace import TraceEvent
from harrow.faults.condition import Condition
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import ReplicaIs
from tests.conditions import condition


@dataclass(frozen=True)
class StillReplica:
    """A replica with constant state."""

    role: str
    leo: int
    hw: int
    leader_epoch: int
    flushed: int
    remote: Mapping[int, int]
    epochs: tuple[tuple[int, int], ...]
    log: tuple[str, ...]
    isr: tuple[int, ...] = ()

    @property
    def records(self) -> Iterable[tuple[int, str]]:
        return enumerate(self.log)


VIEW = StillReplica(
    role="leader",
    leo=2,
    hw=1,
    leader_epoch=4,
    flushed=0,
    remote={1: 1, 2: 0},
    epochs=((0, 0), (4, 1)),
    log=("m0", "m1"),
)

TRACE: list[TraceEvent] = [
    (10, "truncate", 1, "t-0", 2, 1, "high watermark"),
    (20, "isr", 0, "t-0", 4, (0, 2), "shrink"),
    (30, "append", 0, "t-0", 0, 4, -1, -1, ("m0", "m1")),
]


@dataclass
class ConstantObserver:
    """An observer of a cluster with constant state."""

    replicas: dict[tuple[str, int], StillReplica] = field(default_factory=lambda: {("t-0", 0): VIEW})
    states: dict[str, tuple[int, int, tuple[int, ...]]] = field(
        default_factory=lambda: {"t-0": (0, 4, (0, 2))}
    )
    events: list[TraceEvent] = field(default_factory=lambda: list(TRACE))
    assignments: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = field(
        default_factory=dict
    )

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        return self.assignments.get(partition)

    def replica(self, partition: str, broker: int) -> StillReplica | None:
        return self.replicas.get((partition, broker))

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        return self.states.get(partition)

    def controller(self) -> int | None:
        return 3

    def broker_state(self, broker: int) -> str:
        return ("up", "down", "paused")[broker]

    def is_registered(self, broker: int) -> bool:
        return broker == 0

    def is_acked(self, value: str) -> bool:
        return value == "acked"

    def is_failed(self, value: str) -> bool:
        return value == "failed"

    def is_consumed(self, value: str) -> bool:
        return value == "consumed"

    def first_match(self, pattern: EventPattern) -> int | None:
        return next((n for n, event in enumerate(self.events, 1) if pattern.matches(event)), None)


def row(**fields: Any) -> ReplicaIs:
    return ReplicaIs(partition="t-0", broker=0, **fields)


@pytest.mark.parametrize(
    ("fields", "mismatch"),
    [
        ({}, None),
        ({"role": "leader", "leo": 2, "hw": 1, "leader_epoch": 4, "flushed": 0}, None),
        ({"remote": ((2, 0), (1, 1))}, None),
        ({"remote": ((1, 1),)}, None),  # missing fields match anything
        ({"epochs": ((0, 0), (4, 1)), "log": ("m0", "m1")}, None),
        ({"hw": 0}, "t-0 on broker 0: HW is 1, expected 0"),
        ({"leo": 3}, "t-0 on broker 0: LEO is 2, expected 3"),
        ({"role": "follower"}, "t-0 on broker 0: role is leader, expected follower"),
        ({"leader_epoch": 0}, "t-0 on broker 0: leader epoch is 4, expected 0"),
        ({"flushed": 2}, "t-0 on broker 0: flushed is 0, expected 2"),
        ({"remote": ((1, 2),)}, "t-0 on broker 0: remote LEO of 1 is 1, expected 2"),
        ({"remote": ((9, 0),)}, "t-0 on broker 0: remote LEO of 9 is unknown, expected 0"),
        ({"epochs": ((0, 0),)}, "t-0 on broker 0: epochs is [[0, 0], [4, 1]], expected [[0, 0]]"),
        ({"log": ()}, "t-0 on broker 0: log is [m0, m1], expected []"),
    ],
)
def test_a_replica_condition_compares_every_field(fields: dict[str, Any], mismatch: str | None) -> None:
    required = condition(replicas=(row(**fields),))
    assert required.mismatches(ConstantObserver()) == ([] if mismatch is None else [mismatch])
    assert required.holds(ConstantObserver()) == (mismatch is None)


def test_a_missing_replica_is_a_mismatch() -> None:
    required = condition(replicas=(replace(row(leo=0), broker=1),))
    assert required.mismatches(ConstantObserver()) == ["t-0 on broker 1: there is no such replica now"]


@pytest.mark.parametrize(
    ("condition", "mismatches"),
    [
        (condition(leader=(("t-0", 0),), leader_epoch=(("t-0", 4),), isr=(("t-0", (0, 2)),)), []),
        (condition(isr=(("t-0", (2, 0)),)), []),  # an ISR is a set
        (condition(leader=(("t-0", 1),)), ["leader of t-0 is 0, expected 1"]),
        (condition(leader=(("t-9", 1),)), ["leader of t-9 is unknown, expected 1"]),
        (condition(leader_epoch=(("t-0", 5),)), ["leader epoch of t-0 is 4, expected 5"]),
        (condition(leader_epoch=(("t-9", 0),)), ["leader epoch of t-9 is unknown, expected 0"]),
        (condition(isr=(("t-0", (0,)),)), ["ISR of t-0 is [0, 2], expected [0]"]),
        (condition(isr=(("t-9", (0,)),)), ["ISR of t-9 is unknown, expected [0]"]),
        (condition(controller=(3,)), []),
        (condition(controller=(0,)), ["controller is 3, expected 0"]),
        (condition(brokers=((0, "up"), (1, "down"), (2, "paused"))), []),
        (condition(brokers=((0, "down"),)), ["broker 0 is up, expected down"]),
        (condition(registered=((0, True), (1, False))), []),
        (condition(registered=((1, True),)), ["broker 1 is not registered"]),
        (condition(registered=((0, False),)), ["broker 0 is registered"]),
        (condition(acked=("acked",), not_acked=("other",), failed=("failed",)), []),
        (condition(acked=("other",)), ["other is not acked"]),
        (condition(not_acked=("acked",)), ["acked is acked"]),
        (condition(failed=("acked",)), ["acked has not failed"]),
        (condition(consumed=("consumed",), not_consumed=("acked",)), []),
        (condition(consumed=("acked",)), ["acked is not consumed"]),
        (condition(not_consumed=("consumed",)), ["consumed is consumed"]),
        (Condition(), []),
        # Every unmet part is reported.
        (condition(controller=(0,), acked=("x", "acked")), ["controller is 3, expected 0", "x is not acked"]),
    ],
)
def test_each_fact_reports_its_mismatch(condition: Condition, mismatches: list[str]) -> None:
    assert condition.mismatches(ConstantObserver()) == mismatches


def event(name: str, **fields: Any) -> EventPattern:
    return EventPattern(event=name, fields=tuple(fields.items()))


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        (event("truncate"), 1),
        (event("truncate", broker=1, to_offset=1, reason="high watermark"), 1),
        (event("truncate", broker=0), None),
        (event("isr", isr=(0, 2)), 2),
        (event("isr", isr=2), 2),  # one of a list
        (event("isr", isr=1), None),
        (event("isr", isr=(2, 0)), 2),  # a set
        (event("isr", isr=(2,)), None),
        (event("append", values="m1"), 3),
        (event("append", values="m9"), None),
        (event("hw"), None),
    ],
)
def test_an_event_pattern_compares_only_the_given_fields(pattern: EventPattern, position: int | None) -> None:
    happened, absent = condition(event=(pattern,)), condition(no_event=(pattern,))
    assert happened.holds(ConstantObserver()) == (position is not None)
    assert absent.holds(ConstantObserver()) == (position is None)
    assert happened.matched_position(ConstantObserver()) == position
    assert absent.matched_position(ConstantObserver()) is None


def test_an_event_condition_says_whether_the_event_has_happened() -> None:
    required = condition(
        event=(event("hw", broker=0, hw=3),), no_event=(event("isr", isr=(0, 2)), event("truncate"))
    )
    assert required.mismatches(ConstantObserver()) == [
        "event hw (broker: 0, hw: 3) has not happened",
        "event isr (isr: [0, 2]) has happened",
        "event truncate has happened",
    ]


def test_a_condition_on_several_events_has_the_position_after_the_last() -> None:
    assert condition(event=(event("append"), event("truncate"))).matched_position(ConstantObserver()) == 3
    assert Condition().matched_position(ConstantObserver()) is None


def test_patterns_with_fields_in_another_order_are_equal() -> None:
    fields = (("broker", 1), ("partition", "t-0"), ("to_offset", 1))
    assert EventPattern(event="truncate", fields=fields[::-1]) == EventPattern(
        event="truncate", fields=fields
    )
