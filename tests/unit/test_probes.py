"""Rare states are counted from the trace: a small trace for each."""

import pytest

from campaigns.probes import PROBES, count_probes
from cluster_model.trace import FIELDS, TraceEvent


def event(at_us: int, name: str, *fields: object) -> TraceEvent:
    assert len(fields) == len(FIELDS[name]), f"{name}: {FIELDS[name]}"
    return (at_us, name, *fields)


def elected(
    epoch: int, reason: str = "broker failure", *, unclean: bool = False, partition: str = "t-0"
) -> TraceEvent:
    return event(10, "election", 0, partition, 1, epoch, (1,), unclean, reason)


def appended(epoch: int, partition: str = "t-0") -> TraceEvent:
    return event(20, "append", 0, partition, 0, epoch, -1, -1, ("m0",))


def refused(error: str) -> TraceEvent:
    return event(20, "rejected", 0, "Produce", "t-0", "producer-0", error)


def hw(offset: int, broker: int = 0, partition: str = "t-0") -> TraceEvent:
    return event(20, "hw", broker, partition, offset)


def truncated(to: int, partition: str = "t-0") -> TraceEvent:
    return event(30, "truncate", 1, partition, 9, to, "leader epoch")


@pytest.mark.parametrize(
    ("trace", "counts"),
    [
        ([], {}),
        (
            [event(1, "controller_elected", 0, 2), event(2, "controller_elected", 1, 3)],
            {"controller-changed": 2},
        ),
        # The first controller is elected before the campaign begins.
        ([event(-4_990_000, "controller_elected", 0, 1), event(0, "controller_elected", 0, 2)], {}),
        ([event(5, "session_expired", 1)], {"session-expired": 1}),
        (
            [elected(1), elected(2, "controller failover"), elected(3, "broker startup")],
            {"clean-election": 3},
        ),
        ([elected(0, "topic creation"), elected(4, "preferred leader")], {}),
        ([elected(1, unclean=True)], {"unclean-election": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0, 1), "shrink")], {"isr-shrank": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0,), "shrink")], {"isr-shrank": 1, "isr-shrank-to-one": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0, 1), "expand")], {"isr-expanded": 1}),
        ([event(5, "isr_reduced", 0, "t-0", 1, 1, (1,))], {"isr-shrank-to-one": 1}),
        ([event(5, "isr_reduced", 0, "t-0", 1, 1, (1, 2))], {}),
        ([truncated(3)], {"truncated": 1}),
        ([hw(3), truncated(3)], {"truncated": 1}),
        ([hw(3, broker=0), truncated(2)], {"truncated": 1, "truncated-below-hw": 1}),
        # The highest that the partition has reached anywhere, not the last that was told.
        ([hw(5, broker=0), hw(1, broker=1), truncated(4)], {"truncated": 1, "truncated-below-hw": 1}),
        ([hw(5, partition="t-1"), truncated(4)], {"truncated": 1}),
        ([event(5, "unflushed_lost", 0, "t-0", 1, 3)], {"unflushed-lost": 1}),
        ([event(5, "duplicate_batch", 0, "t-0", 1, 0, 0)] * 2, {"duplicate-batch-suppressed": 2}),
        ([elected(2), appended(1)], {"clean-election": 1, "zombie-leader-accepted-write": 1}),
        ([elected(2), appended(2)], {"clean-election": 1}),
        ([elected(2), elected(1), appended(1)], {"clean-election": 2, "zombie-leader-accepted-write": 1}),
        ([elected(2, partition="t-1"), appended(1)], {"clean-election": 1}),
        ([refused("STALE_CONTROLLER_EPOCH")], {"stale-controller-refused": 1}),
        ([refused("STALE_BROKER_EPOCH")], {"stale-broker-epoch-refused": 1}),
        (
            [refused("OUT_OF_ORDER_SEQUENCE_NUMBER"), refused("UNKNOWN_PRODUCER_ID")],
            {"sequence-refused": 2},
        ),
        ([refused("NOT_ENOUGH_REPLICAS")], {"not-enough-replicas": 1}),
        ([refused("NOT_ENOUGH_REPLICAS_AFTER_APPEND")], {"not-enough-replicas-after-append": 1}),
        ([refused("FENCED_LEADER_EPOCH")], {"fenced-by-leader-epoch": 1}),
        ([refused("REQUEST_TIMED_OUT")], {"produce-timed-out": 1}),
        ([refused("OFFSET_OUT_OF_RANGE")], {"fetch-out-of-range": 1}),
        ([refused("NOT_LEADER_FOR_PARTITION")], {}),
        ([event(1, "flush", 0, "t-0", 3), event(1, "broker_paused", 0)], {}),
    ],
)
def test_probes(trace: list[TraceEvent], counts: dict[str, int]) -> None:
    assert count_probes(trace) == counts


def test_probes_are_reported_in_the_order_of_the_catalogue() -> None:
    trace = [truncated(1), event(5, "session_expired", 1), event(1, "controller_elected", 0, 2)]
    assert list(count_probes(trace)) == ["controller-changed", "session-expired", "truncated"]


def test_every_probe_has_a_trace_that_hits_it() -> None:
    hit = set()
    for mark in test_probes.pytestmark:  # type: ignore[attr-defined]
        for _, counts in mark.args[1]:
            hit |= set(counts)
    assert hit == set(PROBES)
