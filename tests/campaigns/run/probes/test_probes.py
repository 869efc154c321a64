"""Rare states are counted from the trace: a small trace for each."""

import pytest

from harrow.campaigns.run.probes.probe_counter import count_probes
from harrow.campaigns.run.probes.probes import PROBES
from harrow.cluster_model.events import event_fields
from harrow.cluster_model.trace import TraceEvent


def event(at_us: int, name: str, *fields: object) -> TraceEvent:
    assert len(fields) == len(event_fields(name)), f"{name}: {event_fields(name)}"
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


def led(broker: int, epoch: int, start: int = 0, isr: tuple[int, ...] = ()) -> TraceEvent:
    return event(15, "leader", broker, "t-0", epoch, start, isr or (broker,))


def follows(broker: int, epoch: int, leader: int) -> TraceEvent:
    return event(15, "follower", broker, "t-0", epoch, leader)


def stopped(broker: int) -> TraceEvent:
    return event(40, "broker_stopped", broker, "process")


def started(broker: int) -> TraceEvent:
    return event(50, "broker_started", broker)


def registered(broker: int) -> TraceEvent:
    return event(1, "broker_registered", broker, 7)


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


def again(leader: int = 0) -> TraceEvent:
    return event(31, "sent_again", "producer-0", "t-0", leader, 2, ("m0",))


def isr(change: str, *members: int, at_us: int = 5, epoch: int = 0) -> TraceEvent:
    return event(at_us, "isr", 0, "t-0", epoch, members, change)


def reduced(leader: int, *members: int) -> TraceEvent:
    return event(5, "isr_reduced", 0, "t-0", leader, 1, members)


def created(leader: int, *members: int) -> TraceEvent:
    return event(0, "election", 0, "t-0", leader, 0, members, False, "topic creation")


def asked(epoch: int, answered: int, end: int) -> TraceEvent:
    return event(5, "epoch_asked", 0, "t-0", 1, epoch, answered, end)


RUNNING = [event(-9, "broker_started", broker) for broker in range(3)]


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
            [controller(0), created(1, 1, 2), stopped(1), stopped(0)],
            {
                "controller-died": 1,
                "controller-died-during-election": 1,
                "two-brokers-down": 1,
            },
        ),
        # The controller's own partitions wait for a leader from now on, not before.
        ([controller(0), created(0, 0, 1), stopped(0)], {"controller-died": 1}),
        (
            [controller(0), created(1, 1, 2), stopped(0), stopped(1)],
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
        # A session of a life before, which holds nothing any more.
        ([controller(0), registered(1), expired_empty(0), expired_empty(1)], {"session-expired": 2}),
        (
            [registered(1), expired_empty(1), stopped(1), started(1)],
            {"session-expired": 1, "bounced-broker": 1},
        ),
        ([registered(1), stopped(1), started(1)], {"bounced-broker": 1}),
        ([registered(1), stopped(1), expired(1), started(1)], {"session-expired": 1}),
        ([stopped(1), started(1), stopped(2)], {}),
        (
            [led(0, 0), follows(1, 0, 0), stopped(0), stopped(1)],
            {"two-brokers-down": 1, "all-replicas-down": 1},
        ),
        ([created(0, 0), stopped(0)], {"last-isr-member-died": 1, "leader-died-without-controller": 1}),
        ([reduced(-1, 1)], {"isr-shrank-to-one": 1, "partition-offline": 1}),
        # The controller takes a dead leader out first and elects next: a member of the ISR is there.
        ([registered(1), reduced(-1, 1, 2)], {}),
        (
            [event(9, "election", 0, "t-0", 1, 4, (1, 2), False, "preferred leader")],
            {"preferred-leader-elected": 1},
        ),
        ([led(0, 0, 5), led(1, 1, 5)], {"fast-leader-changes": 1}),
        ([led(0, 0, 5), led(0, 1, 5), led(1, 2, 6)], {}),
        ([hw(3, broker=0), hw(2, broker=1), led(1, 1, 5)], {"leader-hw-behind": 1}),
        ([hw(3, broker=0), hw(3, broker=1), led(1, 1, 5)], {}),
        (
            [follows(1, 3, 0), led(0, 3), stopped(0), started(0), led(0, 3)],
            {"leader-restarted-in-its-epoch": 1},
        ),
        ([follows(1, 3, 0), led(0, 3), stopped(0), started(0), led(0, 4)], {}),
        ([created(0, 0, 1), acked(0), elected(1), acked(1)], {"clean-election": 1}),
        ([elected(1), acked(0)], {"clean-election": 1, "zombie-leader-acknowledged": 1}),
        (
            [elected(1), event(5, "served", 0, "t-0", "consumer-0", 0, 1, 1)],
            {"clean-election": 1, "zombie-leader-served-read": 1},
        ),
        # A follower that serves a consumer is no leader of the past (KIP-392).
        (
            [elected(1), follows(0, 1, 1), event(5, "served", 0, "t-0", "consumer-0", 0, 1, 1)],
            {"clean-election": 1},
        ),
        (
            [elected(2), isr("shrink", 0, 2, epoch=1)],
            {"clean-election": 1, "isr-shrank": 1, "zombie-leader-changed-isr": 1},
        ),
        (
            [led(0, 0), elected(1), event(9, "broker_resumed", 0)],
            {"clean-election": 1, "paused-leader-woke-deposed": 1},
        ),
        (
            [led(0, 0), elected(1), follows(0, 1, 1), event(9, "broker_resumed", 0)],
            {"clean-election": 1},
        ),
        (
            [led(0, 0, 0, (0, 1, 2)), isr("shrink", 0, 2), isr("expand", 0, 1, 2, at_us=900_000)],
            {"isr-shrank": 1, "isr-expanded": 1, "isr-flapped": 1},
        ),
        (
            [led(0, 0, 0, (0, 1, 2)), isr("shrink", 0, 2), isr("expand", 0, 1, 2, at_us=1_900_000)],
            {"isr-shrank": 1, "isr-expanded": 1},
        ),
        ([event(5, "isr_refused", 0, "t-0", 0, (0,), "shrink")], {"isr-write-refused": 1}),
        (
            [event(5, "served", 0, "t-0", "consumer-0", 0, 4, 4), truncated(3)],
            {"truncated": 1, "truncated-below-read": 1},
        ),
        ([led(0, 1, 4), truncated(3)], {"truncated": 1, "follower-ahead-of-leader": 1}),
        ([truncated(5), truncated(3)], {"truncated": 2, "follower-truncated-twice": 1}),
        ([truncated(5), follows(1, 3, 0), truncated(3)], {"truncated": 2}),
        ([asked(3, 2, 7)], {"epoch-unknown-to-leader": 1}),
        ([asked(3, -1, -1)], {"epoch-undefined-answer": 1}),
        # Before KIP-279 the answer has no epoch.
        ([asked(3, 3, 7), asked(3, -1, 7)], {}),
        ([event(5, "fetcher_failed", 1, "t-0", 5, 4)], {"follower-gave-up": 1}),
        ([hw(3), event(9, "recover", 0, "t-0", 5, 2)], {"hw-checkpoint-stale-at-restart": 1}),
        ([hw(3), event(9, "recover", 0, "t-0", 5, 3)], {}),
        (
            [hw(3), event(5, "unflushed_lost", 1, "t-0", 2, 3)],
            {"unflushed-lost": 1, "committed-unflushed-lost": 1},
        ),
        ([appended(0), appended(1)], {"batch-appended-again": 1}),
        ([appended(0), acked(0), failed("NETWORK_EXCEPTION")], {"ack-lost-after-append": 1}),
        ([failed("NETWORK_EXCEPTION"), again()], {}),
        ([failed("NOT_ENOUGH_REPLICAS"), again(1)], {"producer-retried-to-new-leader": 1}),
        ([appended(0), failed("NETWORK_EXCEPTION"), again()], {"retried-after-append": 1}),
        ([event(5, "fetch_waits", 0, 1)], {"fetch-waited-in-purgatory": 1}),
        ([event(5, "fetch_expired", 0, 1)], {"fetch-expired-in-purgatory": 1}),
        ([refused("UNKNOWN_LEADER_EPOCH")], {"leader-epoch-unknown": 1}),
        ([refused("NOT_LEADER_FOR_PARTITION")], {"sent-to-former-leader": 1}),
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
        # The highest that the partition has reached anywhere, not the last that was told.
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
        (
            [
                event(5, "delete_records_answered", 0, "t-0", 3, error)
                for error in ("NONE", "REQUEST_TIMED_OUT")
            ],
            {"records-deleted-by-request": 1},
        ),
        # Broker 0 leads again, and has not heard that broker 1 did.
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0, 1), False, "topic creation"),
                led(0, 0, isr=(0, 1)),
                elected(1),
                event(11, "election", 0, "t-0", 0, 2, (0,), False, "broker failure"),
                led(0, 2),
            ],
            {"clean-election": 2, "leader-missed-its-deposition": 1},
        ),
        (
            [event(5, "election", 0, "t-0", 0, 0, (0, 1), False, "topic creation"), led(0, 0), led(0, 2)],
            {},
        ),
        # Who asks for broker 1 has not been answered when broker 1 is started again.
        (
            [led(0, 0), event(16, "isr_pending", 0, "t-0", 0, (0, 1)), started(1)],
            {"member-restarted-while-joining": 1},
        ),
        (
            [led(0, 0), event(16, "isr_pending", 0, "t-0", 0, (0, 1)), started(2)],
            {},
        ),
        (
            [
                led(0, 0),
                event(16, "isr_pending", 0, "t-0", 0, (0, 1)),
                event(17, "isr_refused", 0, "t-0", 0, (0, 1), "expand"),
                started(1),
            ],
            {"isr-write-refused": 1},
        ),
        # ZooKeeper has broker 1 in the ISR and elects it; broker 0 has never heard of that.
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0,), False, "topic creation"),
                led(0, 0),
                event(16, "isr_written", 0, "t-0", 0, (0, 1)),
                elected(1),
            ],
            {"clean-election": 1, "isr-write-unheard": 1},
        ),
        (
            [
                event(5, "election", 0, "t-0", 0, 0, (0,), False, "topic creation"),
                led(0, 0),
                event(16, "isr_written", 0, "t-0", 0, (0, 1)),
                event(17, "isr", 0, "t-0", 0, (0, 1), "expand"),
                elected(1),
            ],
            {"isr-expanded": 1, "clean-election": 1},
        ),
        ([event(1, "flush", 0, "t-0", 3), event(1, "broker_paused", 0)], {}),
    ],
)
def test_probes(trace: list[TraceEvent], counts: dict[str, int]) -> None:
    assert count_probes([*RUNNING, *trace]) == counts


def test_probes_are_reported_in_the_order_of_the_catalogue() -> None:
    trace = [truncated(1), stopped(2), expired(2), event(1, "controller_elected", 0, 2)]
    assert list(count_probes([*RUNNING, *trace])) == ["controller-changed", "session-expired", "truncated"]


def test_every_probe_has_a_trace_that_hits_it() -> None:
    hit = set()
    for mark in test_probes.pytestmark:  # type: ignore[attr-defined]  # pytest puts it there
        for _, counts in mark.args[1]:
            hit |= set(counts)
    assert hit == set(PROBES)


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_says_what_it_is_and_what_it_means(probe: str) -> None:
    summary, _, meaning = PROBES[probe].partition("\n\n")
    assert summary.endswith(".")
    assert meaning.strip().endswith(".")
