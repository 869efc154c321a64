"""Rare states are counted from the trace, or from events that only subscribers see."""

from typing import Any, cast

import pytest

from harrow.campaigns.probes.probe_counter import NoticeCounter, ProbeCounter
from harrow.campaigns.probes.probes import PROBES
from harrow.cluster_model import events
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import Clock, Trace, TraceEvent


def event(at_us: int, name: str, *fields: object) -> TraceEvent:
    assert len(fields) == len(event_fields(name)), f"{name}: {event_fields(name)}"
    return (at_us, name, *fields)


def elected(
    epoch: int, reason: str = "broker failure", *, unclean: bool = False, partition: str = "t-0"
) -> TraceEvent:
    return event(10, "election", 0, partition, 1, epoch, (1,), unclean, reason)


def appended(epoch: int, partition: str = "t-0") -> TraceEvent:
    return event(20, "append", 0, partition, 0, epoch, -1, -1, ("m0",))


def request_refused(error: str, api: str = "Produce") -> TraceEvent:
    return event(20, "rejected", 0, api, "t-0", "producer-0", error)


def hw(offset: int, broker: int = 0, partition: str = "t-0") -> TraceEvent:
    return event(20, "hw", broker, partition, offset)


def truncated(to: int, partition: str = "t-0") -> TraceEvent:
    return event(30, "truncate", 1, partition, 9, to, "leader epoch")


def became_leader(broker: int, epoch: int, start: int = 0, isr: tuple[int, ...] = ()) -> TraceEvent:
    return event(15, "leader", broker, "t-0", epoch, start, isr or (broker,))


def became_follower(broker: int, epoch: int, leader: int) -> TraceEvent:
    return event(15, "follower", broker, "t-0", epoch, leader)


def stopped(broker: int) -> TraceEvent:
    return event(40, "broker_stopped", broker, "process")


def started(broker: int) -> TraceEvent:
    return event(50, "broker_started", broker)


def registered(broker: int) -> TraceEvent:
    return event(1, "broker_registered", broker, 7)


def leads_none(epoch: int, isr: tuple[int, ...] = ()) -> TraceEvent:
    return event(12, "election", 0, "t-0", -1, epoch, isr, False, "broker failure")


def group(state: str, broker: int = 0, *, at_us: int = 20) -> TraceEvent:
    return event(at_us, "group_state", broker, "g", state, 1, ("one",), "")


def assigned(*partitions: str) -> TraceEvent:
    return event(21, "group_assigned", 0, "g", 1, (("one", partitions),))


def targeted(*partitions: str) -> TraceEvent:
    return event(21, "target_assigned", 0, "g", 1, "uniform", (("one", partitions),))


def committed(member: str = "one") -> TraceEvent:
    return event(22, "offsets_committed", 0, "g", member, 1, 1, (("t-0", 3),))


def transaction(state: str, broker: int = 0, at_us: int = 20, partitions: tuple[str, ...] = ()) -> TraceEvent:
    return event(at_us, "transaction_state", broker, "app", 7, 0, state, partitions)


def transaction_begun(broker: int = 0, at_us: int = 21, producer: int = 7) -> TraceEvent:
    return event(at_us, "transaction_begun", broker, "t-0", producer, 0, 3)


def marker_written(broker: int = 0, at_us: int = 22, first_offset: int = 3) -> TraceEvent:
    return event(at_us, "transaction_marker", broker, "t-0", 7, 0, first_offset, 5, True, 1)


def coordinates(broker: int, at_us: int = 16) -> TraceEvent:
    return event(at_us, "leader", broker, "__transaction_state-0", broker, 4 + broker, (broker,))


COORDINATED = [became_leader(0, 0), coordinates(0)]
"""Broker 0 leads t-0, and coordinates transactions."""


def expired(broker: int) -> TraceEvent:
    return event(5, "session_expired", broker, (f"/brokers/ids/{broker}", "/controller"))


def expired_empty(broker: int) -> TraceEvent:
    return event(5, "session_expired", broker, ())


def controller(broker: int, at_us: int = -1) -> TraceEvent:
    return event(at_us, "controller_elected", broker, 1)


def acked(broker: int) -> TraceEvent:
    return event(25, "acknowledged", broker, "t-0", 0, -1, ("m0",))


def failed(error: str, leader: int = 0) -> TraceEvent:
    return event(30, "send_failed", "producer-0", "t-0", leader, 1, error, ("m0",))


def sent_again(leader: int = 0) -> TraceEvent:
    return event(31, "sent_again", "producer-0", "t-0", leader, 2, ("m0",))


def isr(change: str, *members: int, at_us: int = 5, epoch: int = 0) -> TraceEvent:
    return event(at_us, "isr", 0, "t-0", epoch, members, change)


def isr_reduced(leader: int, *members: int) -> TraceEvent:
    return event(5, "isr_reduced", 0, "t-0", leader, 1, members)


def topic_created(leader: int, *members: int) -> TraceEvent:
    return event(0, "election", 0, "t-0", leader, 0, members, False, "topic creation")


def epoch_asked(epoch: int, answered: int, end: int) -> TraceEvent:
    return event(5, "epoch_asked", 0, "t-0", 1, epoch, answered, end)


RUNNING = [event(-9, "broker_started", broker) for broker in range(3)]


def counts_in(trace: list[TraceEvent]) -> dict[str, int]:
    """Count the probes that a trace reaches after the start of the brokers, in two blocks."""
    counter = ProbeCounter({})
    counter.take(RUNNING)
    if trace:
        counter.take(trace)
    return counter.result(trace[-1][0] if trace else 0)


@pytest.mark.parametrize(
    ("trace", "counts"),
    [
        ([], {}),
        (
            [event(1, "controller_elected", 0, 2), event(2, "controller_elected", 1, 3)],
            {"controller-changed": 2, "controllers-overlapped": 1},
        ),
        (
            [controller(0), event(3, "controller_resigned", 0, 1), controller(1, 9)],
            {"controller-changed": 1},
        ),
        ([controller(0), stopped(0), controller(1, 9)], {"controller-died": 1, "controller-changed": 1}),
        (
            [controller(0), topic_created(1, 1, 2), stopped(1), stopped(0)],
            {
                "controller-died": 1,
                "controller-died-during-election": 1,
                "two-brokers-down": 1,
            },
        ),
        # The partitions that the controller led only wait for a leader once it is dead.
        ([controller(0), topic_created(0, 0, 1), stopped(0)], {"controller-died": 1}),
        (
            [controller(0), topic_created(1, 1, 2), stopped(0), stopped(1)],
            {"controller-died": 1, "leader-died-without-controller": 1, "two-brokers-down": 1},
        ),
        (
            [controller(0), event(3, "broker_paused", 0), controller(1, 4), event(9, "broker_resumed", 0)],
            {"controller-changed": 1, "controllers-overlapped": 1, "paused-controller-woke-deposed": 1},
        ),
        (
            [controller(0), expired(0)],
            {"session-expired": 1, "session-expired-alive": 1, "controller-lost-its-session": 1},
        ),
        ([stopped(1), expired(1)], {"session-expired": 1}),
        # The session of a previous incarnation, which holds no registration.
        ([controller(0), registered(1), expired_empty(0), expired_empty(1)], {"session-expired": 2}),
        (
            [registered(1), expired_empty(1), stopped(1), started(1)],
            {"session-expired": 1, "bounced-broker": 1},
        ),
        ([registered(1), stopped(1), started(1)], {"bounced-broker": 1}),
        ([registered(1), stopped(1), expired(1), started(1)], {"session-expired": 1}),
        ([stopped(1), started(1), stopped(2)], {}),
        (
            [became_leader(0, 0), became_follower(1, 0, 0), stopped(0), stopped(1)],
            {"two-brokers-down": 1, "all-replicas-down": 1},
        ),
        ([topic_created(0, 0), stopped(0)], {"last-isr-member-died": 1, "leader-died-without-controller": 1}),
        ([isr_reduced(-1, 1)], {"isr-shrank-to-one": 1, "partition-offline": 1}),
        # The controller removes a dead leader from the ISR before it elects one of its members.
        ([registered(1), isr_reduced(-1, 1, 2)], {}),
        (
            [event(9, "election", 0, "t-0", 1, 4, (1, 2), False, "preferred leader")],
            {"preferred-leader-elected": 1},
        ),
        ([became_leader(0, 0, 5), became_leader(1, 1, 5)], {"fast-leader-changes": 1}),
        ([became_leader(0, 0, 5), became_leader(0, 1, 5), became_leader(1, 2, 6)], {}),
        ([hw(3, broker=0), hw(2, broker=1), became_leader(1, 1, 5)], {"leader-hw-behind": 1}),
        ([hw(3, broker=0), hw(3, broker=1), became_leader(1, 1, 5)], {}),
        (
            [became_follower(1, 3, 0), became_leader(0, 3), stopped(0), started(0), became_leader(0, 3)],
            {"leader-restarted-in-its-epoch": 1},
        ),
        ([became_follower(1, 3, 0), became_leader(0, 3), stopped(0), started(0), became_leader(0, 4)], {}),
        ([topic_created(0, 0, 1), acked(0), elected(1), acked(1)], {"clean-election": 1}),
        ([elected(1), acked(0)], {"clean-election": 1, "zombie-leader-acknowledged": 1}),
        (
            [elected(1), event(5, "served", 0, "t-0", "consumer-0", 0, 1, 1)],
            {"clean-election": 1, "zombie-leader-served-read": 1},
        ),
        # A follower that serves a consumer is not a former leader (KIP-392).
        (
            [elected(1), became_follower(0, 1, 1), event(5, "served", 0, "t-0", "consumer-0", 0, 1, 1)],
            {"clean-election": 1},
        ),
        (
            [elected(2), isr("shrink", 0, 2, epoch=1)],
            {"clean-election": 1, "isr-shrank": 1, "zombie-leader-changed-isr": 1},
        ),
        (
            [became_leader(0, 0), elected(1), event(9, "broker_resumed", 0)],
            {"clean-election": 1, "paused-leader-woke-deposed": 1},
        ),
        (
            [became_leader(0, 0), elected(1), became_follower(0, 1, 1), event(9, "broker_resumed", 0)],
            {"clean-election": 1},
        ),
        (
            [became_leader(0, 0, 0, (0, 1, 2)), isr("shrink", 0, 2), isr("expand", 0, 1, 2, at_us=900_000)],
            {"isr-shrank": 1, "isr-expanded": 1, "isr-flapped": 1},
        ),
        (
            [became_leader(0, 0, 0, (0, 1, 2)), isr("shrink", 0, 2), isr("expand", 0, 1, 2, at_us=1_900_000)],
            {"isr-shrank": 1, "isr-expanded": 1},
        ),
        ([event(5, "isr_refused", 0, "t-0", 0, (0,), "shrink")], {"isr-write-refused": 1}),
        (
            [event(5, "served", 0, "t-0", "consumer-0", 0, 4, 4), truncated(3)],
            {"truncated": 1, "truncated-below-read": 1},
        ),
        ([became_leader(0, 1, 4), truncated(3)], {"truncated": 1, "follower-ahead-of-leader": 1}),
        ([truncated(5), truncated(3)], {"truncated": 2, "follower-truncated-twice": 1}),
        ([truncated(5), became_follower(1, 3, 0), truncated(3)], {"truncated": 2}),
        ([epoch_asked(3, 2, 7)], {"epoch-unknown-to-leader": 1}),
        ([epoch_asked(3, -1, -1)], {"epoch-undefined-answer": 1}),
        # Before KIP-279 the answer has no epoch.
        ([epoch_asked(3, 3, 7), epoch_asked(3, -1, 7)], {}),
        ([event(5, "fetcher_failed", 1, "t-0", 5, 4)], {"follower-gave-up": 1}),
        (
            [event(5, "batch_given_up", "p", "t-0", "NETWORK_EXCEPTION", ("a",))],
            {"appended-batch-given-up": 1},
        ),
        (
            [event(5, "fetch_outdated", 1, "t-0", 0, 5, 7, taken) for taken in (True, False)],
            {"fetch-of-older-epoch-answered": 2},
        ),
        ([hw(3), event(9, "recover", 0, "t-0", 5, 2)], {"hw-checkpoint-stale-at-restart": 1}),
        ([hw(3), event(9, "recover", 0, "t-0", 5, 3)], {}),
        (
            [hw(3), event(5, "unflushed_lost", 1, "t-0", 2, 3)],
            {"unflushed-lost": 1, "committed-unflushed-lost": 1},
        ),
        ([appended(0), appended(1)], {"batch-appended-again": 1}),
        ([appended(0), acked(0), failed("NETWORK_EXCEPTION")], {"ack-lost-after-append": 1}),
        ([failed("NETWORK_EXCEPTION"), sent_again()], {}),
        ([failed("NOT_ENOUGH_REPLICAS"), sent_again(1)], {"producer-retried-to-new-leader": 1}),
        ([appended(0), failed("NETWORK_EXCEPTION"), sent_again()], {"retried-after-append": 1}),
        ([event(5, "fetch_waits", 0, 1)], {"fetch-waited-in-purgatory": 1}),
        ([event(5, "fetch_expired", 0, 1)], {"fetch-expired-in-purgatory": 1}),
        ([request_refused("UNKNOWN_LEADER_EPOCH", "Fetch")], {"leader-epoch-unknown": 1}),
        ([request_refused("NOT_LEADER_FOR_PARTITION")], {"sent-to-former-leader": 1}),
        ([event(5, "rejected", 0, "Fetch", "t-0", "c", "NOT_LEADER_FOR_PARTITION")], {}),
        # The first controller is elected before the campaign begins.
        ([event(-4_990_000, "controller_elected", 0, 1), event(0, "controller_elected", 0, 2)], {}),
        (
            [elected(1), elected(2, "controller failover"), elected(3, "broker startup")],
            {"clean-election": 3},
        ),
        ([elected(0, "topic creation")], {}),
        ([elected(1, unclean=True)], {"unclean-election": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0, 1), "shrink")], {"isr-shrank": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0,), "shrink")], {"isr-shrank": 1, "isr-shrank-to-one": 1}),
        ([event(5, "isr", 0, "t-0", 0, (0, 1), "expand")], {"isr-expanded": 1}),
        ([event(5, "isr_reduced", 0, "t-0", 1, 1, (1,))], {"isr-shrank-to-one": 1}),
        ([event(5, "isr_reduced", 0, "t-0", 1, 1, (1, 2))], {}),
        ([truncated(3)], {"truncated": 1}),
        ([hw(3), truncated(3)], {"truncated": 1}),
        ([hw(3, broker=0), truncated(2)], {"truncated": 1, "truncated-below-hw": 1}),
        # The highest high watermark of any replica counts, not the latest.
        ([hw(5, broker=0), hw(1, broker=1), truncated(4)], {"truncated": 1, "truncated-below-hw": 1}),
        ([hw(5, partition="t-1"), truncated(4)], {"truncated": 1}),
        ([event(5, "unflushed_lost", 0, "t-0", 1, 3)], {"unflushed-lost": 1}),
        ([event(5, "log_lost", 0, "t-0", 0, 3)], {"log-lost-with-disk": 1}),
        (
            [event(5, "isr_written", 0, "t-0", 0, (0,)), event(6, "log_lost", 0, "t-0", 0, 3)],
            {"log-lost-with-disk": 1, "last-isr-member-lost-its-disk": 1},
        ),
        ([event(5, "corruption_cut", 0, "t-0", 1, 3, False)], {"recovery-met-corruption": 1}),
        ([event(5, "log_dir_failed", 0, 0, ("t-0",))], {"log-dir-failed": 1}),
        ([event(5, "request_queue_full", 0, 500)], {"request-queue-full": 1}),
        ([event(5, "log_start", 0, "t-0", 3, "retention.ms", 0)], {"log-start-raised": 1}),
        ([hw(3), event(5, "log_cleaned", 1, "t-0", 0, 3, (0,), 70)], {"log-compacted": 1}),
        (
            [hw(2), event(5, "log_cleaned", 1, "t-0", 0, 3, (0,), 70)],
            {"log-compacted": 1, "compacted-above-hw": 1},
        ),
        ([event(5, "log_started_anew", 0, "t-0", 1, 3)], {"log-started-anew": 1}),
        ([event(5, "offset_reset", "consumer-0", "t-0", 1, 3, "latest")], {"offset-reset": 1}),
        ([event(5, "read_replica", 0, "t-0", "consumer-0", 2)], {"read-replica-preferred": 1}),
        (
            [event(5, "read_replica_cleared", "consumer-0", "t-0", 2, "expired")],
            {"read-replica-cleared": 1},
        ),
        ([event(5, "corrupt_batch", "broker-1", 0, "t-0", 1)], {"corrupt-batch-fetched": 1}),
        ([event(5, "duplicate_batch", 0, "t-0", 1, 0, 0)] * 2, {"duplicate-batch-suppressed": 2}),
        ([elected(2), appended(1)], {"clean-election": 1, "zombie-leader-accepted-write": 1}),
        ([elected(2), appended(2)], {"clean-election": 1}),
        ([elected(2), elected(1), appended(1)], {"clean-election": 2, "zombie-leader-accepted-write": 1}),
        ([elected(2, partition="t-1"), appended(1)], {"clean-election": 1}),
        ([request_refused("STALE_CONTROLLER_EPOCH", "LeaderAndIsr")], {"stale-controller-refused": 1}),
        ([request_refused("STALE_BROKER_EPOCH", "StopReplica")], {"stale-broker-epoch-refused": 1}),
        (
            [request_refused("OUT_OF_ORDER_SEQUENCE_NUMBER"), request_refused("UNKNOWN_PRODUCER_ID")],
            {"sequence-refused": 2},
        ),
        ([request_refused("NOT_ENOUGH_REPLICAS")], {"not-enough-replicas": 1}),
        ([request_refused("NOT_ENOUGH_REPLICAS_AFTER_APPEND")], {"not-enough-replicas-after-append": 1}),
        ([request_refused("FENCED_LEADER_EPOCH", "OffsetsForLeaderEpoch")], {"fenced-by-leader-epoch": 1}),
        ([request_refused("REQUEST_TIMED_OUT")], {"produce-timed-out": 1}),
        ([request_refused("OFFSET_OUT_OF_RANGE", "Fetch")], {"fetch-out-of-range": 1}),
        (
            [
                event(5, "delete_records_answered", 0, "t-0", 3, error)
                for error in ("NONE", "REQUEST_TIMED_OUT")
            ],
            {"records-deleted-by-request": 1},
        ),
        # Broker 0 leads again, and never learned that broker 1 led.
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0, 1), False, "topic creation"),
                became_leader(0, 0, isr=(0, 1)),
                event(10, "election", 0, "t-0", 1, 1, (1, 0), False, "broker failure"),
                event(11, "election", 0, "t-0", 0, 2, (0,), False, "broker failure"),
                became_leader(0, 2),
            ],
            {"clean-election": 2, "leader-missed-its-deposition": 1},
        ),
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0, 1), False, "topic creation"),
                became_leader(0, 0),
                became_leader(0, 2),
            ],
            {},
        ),
        # The request to register broker 1 is still unanswered when broker 1 restarts.
        (
            [became_leader(0, 0), event(16, "isr_pending", 0, "t-0", 0, (0, 1)), started(1)],
            {"member-restarted-while-joining": 1},
        ),
        (
            [became_leader(0, 0), event(16, "isr_pending", 0, "t-0", 0, (0, 1)), started(2)],
            {},
        ),
        (
            [
                became_leader(0, 0),
                event(16, "isr_pending", 0, "t-0", 0, (0, 1)),
                event(17, "isr_refused", 0, "t-0", 0, (0, 1), "expand"),
                started(1),
            ],
            {"isr-write-refused": 1},
        ),
        # ZooKeeper has broker 1 in the ISR and elects it, but broker 0 never learned that.
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0,), False, "topic creation"),
                became_leader(0, 0),
                event(16, "isr_written", 0, "t-0", 0, (0, 1)),
                elected(1),
            ],
            {"clean-election": 1, "isr-write-unheard": 1},
        ),
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0,), False, "topic creation"),
                became_leader(0, 0),
                event(16, "isr_written", 0, "t-0", 0, (0, 1)),
                event(17, "isr", 0, "t-0", 0, (0, 1), "expand"),
                elected(1),
            ],
            {"isr-expanded": 1, "clean-election": 1},
        ),
        ([event(1, "flush", 0, "t-0", 3), event(1, "broker_paused", 0)], {}),
        # Controllers, and elections in KRaft
        (
            [event(at_us, "controller_elected", 1, at_us) for at_us in (-5, 5)],
            {"controller-changed": 1, "controller-reelected": 1},
        ),
        (
            [
                event(-5, "controller_elected", 1, 1),
                event(4, "controller_resigned", 1, 1),
                event(5, "controller_elected", 0, 2),
                event(6, "controller_resigned", 0, 2),
                event(7, "controller_elected", 1, 3),
            ],
            {"controller-changed": 2},
        ),
        ([elected(1), leads_none(2, (1,))], {"clean-election": 1, "partition-offline": 1}),
        (
            [elected(1), event(12, "election", 0, "t-0", 2, 2, (2,), False, "broker startup")],
            {"clean-election": 2, "elr-member-elected": 1},
        ),
        (
            [elected(1), event(12, "election", 0, "t-0", 2, 2, (2,), False, "metadata loss")],
            {"clean-election": 1},
        ),
        (
            [elected(1), leads_none(2), elected(3, unclean=True)],
            {"clean-election": 1, "partition-offline": 1, "unclean-election": 1},
        ),
        (
            [elected(1), leads_none(2), event(12, "election", 0, "t-0", 2, 3, (2,), True, "broker startup")],
            {"clean-election": 1, "partition-offline": 1, "unclean-election": 1},
        ),
        (
            [elected(1), event(12, "election", 0, "t-0", 2, 2, (2,), False, "reassignment")],
            {"clean-election": 2},
        ),
        (
            [elected(1), leads_none(2, (1,)), elected(3, unclean=True)],
            {"clean-election": 1, "partition-offline": 1, "unclean-election": 1},
        ),
        (
            [event(5, "metadata_snapshot_fetched", 1, 0, 3, 9, 1), event(5, "metadata_log_start", 1, 9, 12)],
            {"metadata-snapshot-fetched": 1, "metadata-log-start-raised": 1},
        ),
        ([event(5, "metadata_log_lost", 1, 9, True)], {"metadata-log-lost": 1}),
        ([event(5, "metadata_log_lost", 1, 9, False)], {"metadata-log-lost": 1, "metadata-majority-lost": 1}),
        # Groups
        ([assigned("t-0"), assigned("t-1"), assigned("t-1")], {"group-rebalanced": 1}),
        ([targeted("t-0"), targeted("t-0", "t-1")], {"group-rebalanced": 1}),
        (
            [group("CompletingRebalance"), group("PreparingRebalance"), group("CompletingRebalance")],
            {"rebalance-interrupted": 1},
        ),
        ([group("CompletingRebalance"), group("Stable"), group("PreparingRebalance")], {}),
        ([group("Stable", 0), group("Stable", 1), group("Stable", 1)], {"group-coordinator-moved": 1}),
        # The former coordinator reports that it unloaded the group, before or after its successor
        # loads it.
        ([group("Stable", 0), group("Stable", 1), group("Dead", 0)], {"group-coordinator-moved": 1}),
        ([group("CompletingRebalance", 0), group("PreparingRebalance", 1)], {"group-coordinator-moved": 1}),
        ([group("PreparingRebalance"), committed()], {"commit-during-rebalance": 1}),
        ([group("PreparingRebalance"), committed("")], {}),
        ([group("PreparingRebalance"), group("Stable"), committed()], {}),
        (
            [event(5, "member_reconciled", 0, "g", "one", 2, "UNREVOKED_PARTITIONS", ("t-0",), ("t-1",))],
            {"member-asked-to-revoke": 1},
        ),
        ([event(5, "member_reconciled", 0, "g", "one", 2, "STABLE", ("t-0",), ())], {}),
        (
            [event(5, "partitions_revoked", "c", "g", 2, ("t-0",), True)],
            {"partitions-lost": 1},
        ),
        ([event(5, "partitions_revoked", "c", "g", 2, ("t-0",), False)], {}),
        ([event(5, "offsets_expired", 0, "g", (("t-0", 3),))], {"group-offsets-expired": 1}),
        (
            [
                request_refused("UNKNOWN_MEMBER_ID", "Heartbeat"),
                request_refused("FENCED_MEMBER_EPOCH", "ConsumerGroupHeartbeat"),
            ],
            {"member-fenced": 2},
        ),
        ([request_refused("REBALANCE_IN_PROGRESS", "Heartbeat")], {}),
        ([request_refused("FENCED_INSTANCE_ID", "SyncGroup")], {"static-member-fenced": 1}),
        (
            [request_refused("UNRELEASED_INSTANCE_ID", "ConsumerGroupHeartbeat")],
            {"static-member-unreleased": 1},
        ),
        (
            [
                request_refused("ILLEGAL_GENERATION", "OffsetCommit"),
                request_refused("STALE_MEMBER_EPOCH", "OffsetCommit"),
            ],
            {"commit-refused-by-generation": 2},
        ),
        ([request_refused("ILLEGAL_GENERATION", "Heartbeat")], {}),
        (
            [
                request_refused("NOT_COORDINATOR", api)
                for api in ("OffsetCommit", "TxnOffsetCommit", "Heartbeat")
            ],
            {"commit-sent-to-former-coordinator": 2},
        ),
        # Transactions
        ([request_refused("INVALID_PRODUCER_EPOCH")], {"stale-producer-epoch-refused": 1}),
        ([event(5, "transaction_error", "app", "PRODUCER_FENCED", True)], {"producer-fenced": 1}),
        ([event(5, "transaction_error", "app", "UNKNOWN_SERVER_ERROR", True)], {}),
        ([event(5, "transaction_error", "app", "PRODUCER_FENCED", False)], {"transaction-only-abortable": 1}),
        ([transaction("Ongoing", 0), transaction("PrepareCommit", 1)], {"transaction-coordinator-moved": 1}),
        ([transaction("CompleteCommit", 0), transaction("Ongoing", 1)], {}),
        (
            [transaction("PrepareAbort", 0), transaction("CompleteAbort", 1)],
            {"transaction-coordinator-moved": 1, "markers-completed-by-successor": 1},
        ),
        (
            [transaction("PrepareCommit", at_us=1), transaction("CompleteCommit", at_us=1_000_001)],
            {"markers-delayed": 1},
        ),
        ([transaction("PrepareCommit", at_us=1), transaction("CompleteCommit", at_us=1_000_000)], {}),
        ([transaction("Ongoing", at_us=1), transaction("PrepareCommit", at_us=1_000_001)], {}),
        (
            [
                transaction("Ongoing", partitions=("__consumer_offsets-0",)),
                event(30, "leader", 0, "__consumer_offsets-0", 0, 0, (0, 1)),
                event(31, "leader", 1, "__consumer_offsets-0", 1, 4, (1,)),
            ],
            {"coordinator-moved-with-pending-offsets": 1},
        ),
        (
            [
                transaction("Ongoing", partitions=("__consumer_offsets-0",)),
                event(30, "leader", 0, "__consumer_offsets-0", 0, 0, (0, 1)),
                transaction("CompleteCommit"),
                event(31, "leader", 1, "__consumer_offsets-0", 1, 4, (1,)),
            ],
            {},
        ),
        ([*COORDINATED, transaction("Ongoing", partitions=("t-0",)), transaction_begun()], {}),
        (
            [*COORDINATED, transaction("Ongoing", partitions=("t-1",)), transaction_begun()],
            {"late-transactional-batch": 1},
        ),
        ([*COORDINATED, transaction("CompleteAbort"), transaction_begun()], {"late-transactional-batch": 1}),
        (
            [*COORDINATED, transaction("PrepareAbort", partitions=("t-0",)), transaction_begun()],
            {"late-transactional-batch": 1},
        ),
        ([*COORDINATED, transaction("CompleteAbort"), became_follower(1, 0, 0), transaction_begun(1)], {}),
        # The log that the new coordinator has read is unknown, and a former one may still report
        # its own.
        ([*COORDINATED, transaction("CompleteAbort"), coordinates(1), transaction_begun()], {}),
        ([*COORDINATED, transaction("CompleteAbort"), coordinates(0, at_us=21), transaction_begun()], {}),
        ([*COORDINATED, coordinates(1), transaction("CompleteAbort"), transaction_begun()], {}),
        ([became_leader(0, 0), marker_written(first_offset=-1)], {"marker-without-transaction": 1}),
        (
            [
                became_leader(0, 0),
                became_follower(1, 0, 0),
                marker_written(1, first_offset=-1),
                marker_written(),
            ],
            {},
        ),
        (
            [
                became_leader(0, 0),
                transaction("Ongoing", partitions=("t-0",)),
                transaction_begun(at_us=1),
                marker_written(at_us=5_000_001),
            ],
            {"lso-held-back": 1},
        ),
        (
            [
                became_leader(0, 0),
                transaction("Ongoing", partitions=("t-0",)),
                transaction_begun(at_us=1),
                marker_written(at_us=5_000_000),
            ],
            {},
        ),
        # The transaction has no marker at the end of the run.
        (
            [became_leader(0, 0), transaction_begun(at_us=1), transaction_begun(at_us=5_000_001, producer=8)],
            {"lso-held-back": 1},
        ),
        (
            [became_leader(0, 0), transaction_begun(at_us=1), transaction_begun(at_us=5_000_000, producer=8)],
            {},
        ),
        (
            [
                became_leader(0, 0),
                transaction_begun(at_us=1),
                marker_written(),
                transaction_begun(at_us=5_000_001, producer=8),
            ],
            {},
        ),
        # The next leader has the marker, or lacks it.
        (
            [
                became_leader(0, 0),
                transaction_begun(at_us=1),
                became_leader(1, 1, start=4),
                transaction_begun(1, at_us=5_000_001, producer=8),
            ],
            {"lso-held-back": 1},
        ),
        (
            [
                became_leader(0, 0),
                transaction_begun(at_us=1),
                became_leader(1, 1, start=3),
                transaction_begun(1, at_us=5_000_001, producer=8),
            ],
            {},
        ),
    ],
)
def test_a_trace_hits_its_probes(trace: list[TraceEvent], counts: dict[str, int]) -> None:
    assert counts_in(trace) == counts


def test_probes_are_reported_in_the_order_of_the_catalogue() -> None:
    trace = [truncated(1), stopped(2), expired(2), event(1, "controller_elected", 0, 2)]
    assert list(counts_in(trace)) == ["controller-changed", "session-expired", "truncated"]


class FixedClock(Clock):
    """A clock with a fixed time."""

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us


def probes_of_notice(kind: type[events.Event], *fields: object, at_us: int = 5) -> dict[str, int]:
    trace = Trace(FixedClock(at_us))
    counter = NoticeCounter(trace)
    trace.publish(cast("Any", kind), *fields)
    assert not trace.events, "events that only subscribers see change no digest"
    return ProbeCounter(counter.counts).result(at_us)


def to_controller(api: str, error: str, partition: str = "") -> tuple[object, ...]:
    return (events.ControllerRequestRefused, 0, api, 1, partition, error)


NOTICED: list[tuple[tuple[Any, ...], dict[str, int]]] = [
    ((events.LastKnownLeaderElected, 0, "t-0", 3), {"last-known-leader-elected": 1}),
    ((events.QuorumElectionUndecided, 1, 4), {"quorum-election-undecided": 1}),
    ((events.QuorumMajorityLost, 1, 4), {"quorum-majority-lost": 1}),
    ((events.MetadataLogTruncated, 1, 9, 4), {"uncommitted-metadata-truncated": 1}),
    (to_controller("BrokerRegistration", "DUPLICATE_BROKER_REGISTRATION"), {"registration-refused": 1}),
    (to_controller("BrokerHeartbeat", "STALE_BROKER_EPOCH"), {"stale-heartbeat-refused": 1}),
    (to_controller("AlterPartition", "STALE_BROKER_EPOCH"), {"alter-partition-stale-broker-epoch": 1}),
    (to_controller("AlterPartition", "FENCED_LEADER_EPOCH", "t-0"), {"alter-partition-fenced": 1}),
    (to_controller("AlterPartition", "INVALID_UPDATE_VERSION", "t-0"), {"alter-partition-outdated": 1}),
    (to_controller("AlterPartition", "INELIGIBLE_REPLICA", "t-0"), {"ineligible-replica-refused": 1}),
    (to_controller("AlterPartition", "NOT_CONTROLLER"), {}),
    ((events.MemberExpired, 0, "g", "one"), {"member-session-expired": 1}),
    ((events.StaticMemberReplaced, 0, "g", "i", "one"), {"static-member-took-over": 1}),
    ((events.OpenTransactionFenced, 0, "app", True), {"transaction-timed-out": 1}),
    ((events.OpenTransactionFenced, 0, "app", False), {"transaction-aborted-for-successor": 1}),
]


@pytest.mark.parametrize(("notice", "counts"), NOTICED)
def test_probes_on_events_that_only_subscribers_see_are_counted(
    notice: tuple[Any, ...], counts: dict[str, int]
) -> None:
    assert probes_of_notice(*notice) == counts


def test_events_during_the_start_of_the_cluster_are_not_counted() -> None:
    assert probes_of_notice(events.QuorumElectionUndecided, 1, 1, at_us=-1) == {}


def traces() -> list[tuple[list[TraceEvent], dict[str, int]]]:
    return [case for mark in test_a_trace_hits_its_probes.pytestmark for case in mark.args[1]]  # type: ignore[attr-defined]  # pytest puts it there


def test_every_probe_has_a_trace_that_hits_it() -> None:
    hit = {probe for _, counts in [*traces(), *NOTICED] for probe in counts}
    assert hit == set(PROBES)


def test_a_probe_is_reached_at_the_events_that_it_names() -> None:
    """These events decide which runs can reach the probe."""
    for trace, _ in traces():
        before: dict[str, int] = {}
        for length, happened in enumerate(trace, start=1):
            counts = counts_in(trace[:length])
            for probe in counts:
                if counts[probe] > before.get(probe, 0):
                    assert events.EVENTS[happened[1]] in PROBES[probe].at, probe
            before = counts
    for notice, counts in NOTICED:
        assert all(notice[0] in PROBES[probe].at for probe in counts)


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_is_described_and_explained(probe: str) -> None:
    summary, _, meaning = PROBES[probe].doc.partition("\n\n")
    assert summary.endswith(".")
    assert meaning.strip().endswith(".")
