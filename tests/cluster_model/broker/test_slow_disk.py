"""Waits for a slow disk: appends, requests without appends, and changes of partitions."""

from collections.abc import Mapping
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.broker.append_locks import AppendLocks, Steps
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.protocol import (
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import LONG_MAX, broker_config, topic_config
from harrow.cluster_model.sim.connection import Connection
from tests.cluster_model.broker.test_broker_life import BrokerHarness
from tests.cluster_model.fakes import SECOND, FakeHost, batch, slow_disk

P, Q = "t-0", "t-1"


def state(leader: int, epoch: int) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(1, LeaderAndIsr(leader, epoch, (1, 2), epoch), (1, 2, 3))


class SlowBroker(BrokerHarness):
    """Broker 1, leader of t-0 and t-1, on a disk that takes a second per append."""

    def __init__(self) -> None:
        super().__init__()
        self.order({Q: state(1, 0)})
        self.disk.slow_down(SECOND)
        self.broker.queue_requests()
        self.host.responses.clear()
        self.names: dict[int, str] = {}

    def order(self, states: Mapping[str, LeaderAndIsrPartitionState]) -> Connection:
        return self.send(LeaderAndIsrRequest(0, 1, 5, dict(states)))

    def append(self, name: str, *partitions: str, acks: int = 1, sequence: int = -1) -> None:
        """Send a producer's request with a name; a sequence number makes it idempotent."""
        producer_id = 7 if sequence >= 0 else -1
        batches = {
            partition: batch(name, producer_id=producer_id, sequence=sequence)
            for partition in partitions or (P,)
        }
        self.name(name, self.send(ProduceRequest(acks, 30 * SECOND, batches)))

    def name(self, name: str, connection: Connection) -> None:
        self.names[connection.id] = name

    def answers(self, until_s: float) -> list[tuple[float, str, Any]]:
        """Let time pass; return the answers, each with its second and error."""
        answers = []
        while self.host.clock.now_us < until_s * SECOND:
            now_s = self.host.clock.now_us / SECOND
            answers += [(now_s, self.names[m.connection.id], error_of(m.body)) for m in self.host.responses]
            self.host.responses.clear()
            self.host.advance(SECOND // 4)
        return answers


def error_of(body: Any) -> str:
    return str(next(iter(body.partitions.values()))[0] if isinstance(body, ProduceResponse) else body.error)


@pytest.mark.parametrize(
    ("partition", "acks", "error"),
    [
        ("unknown-9", 1, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ("t-2", 1, errors.NOT_LEADER_FOR_PARTITION),
        ("t-3", -1, errors.NOT_ENOUGH_REPLICAS),
    ],
)
def test_a_rejected_batch_does_not_occupy_the_disk(partition: str, acks: int, error: str) -> None:
    harness = SlowBroker()
    alone = LeaderAndIsrPartitionState(1, LeaderAndIsr(1, 0, (), 0), (1, 2, 3))
    harness.name("order", harness.order({"t-2": state(2, 0), "t-3": alone}))
    harness.append("refused", partition, acks=acks)
    harness.append("a")
    answers = harness.answers(3)
    assert [answer for answer in answers if answer[1] == "refused"] == [(0, "refused", error)]
    assert [answer for answer in answers if answer[1] == "a"] == [(1, "a", errors.NONE)]


def test_a_produce_to_an_unknown_partition_assigns_no_log_directory() -> None:
    harness = SlowBroker()
    harness.append("a", "unknown-9")
    harness.answers(2)
    assert sorted(harness.disk.dir_by_partition) == [P, Q]


def test_a_duplicate_waits_only_for_the_append_of_its_original() -> None:
    harness = SlowBroker()
    harness.append("first", sequence=0)
    harness.append("again", sequence=0)
    harness.append("next", Q)
    assert [answer[:2] for answer in harness.answers(5)] == [(1, "first"), (1, "again"), (2, "next")]
    assert harness.log() == ["first"]


def test_a_change_of_a_partition_waits_for_its_appends_in_progress() -> None:
    harness = SlowBroker()
    harness.append("a")
    harness.append("b")
    harness.name("order", harness.order({P: state(2, 1)}))
    harness.append("late")
    assert harness.answers(5) == [
        (1, "a", errors.NONE),
        (2, "b", errors.NONE),
        (2, "order", errors.NONE),
        (2, "late", errors.NOT_LEADER_FOR_PARTITION),
    ]
    assert harness.log() == ["a", "b"]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_change_does_not_wait_for_appends_to_other_partitions(epoch: int) -> None:
    harness = SlowBroker()
    harness.append("a")
    harness.name("order", harness.order({P: state(2, 0), Q: state(2, epoch)}))
    assert harness.answers(3) == [(0, "order", errors.NONE), (1, "a", errors.NONE)]


def test_a_replica_is_deleted_after_its_appends_in_progress() -> None:
    harness = SlowBroker()
    harness.append("a")
    harness.name("stop", harness.send(StopReplicaRequest(0, 1, 5, (P,), delete_partitions=True)))
    harness.name("other", harness.send(StopReplicaRequest(0, 1, 5, (Q,))))
    assert [answer[:2] for answer in harness.answers(3)] == [(1, "a"), (1, "stop"), (1, "other")]
    assert P not in harness.disk.log_files


def test_a_controllers_request_waits_for_a_change_in_progress() -> None:
    harness = SlowBroker()
    harness.append("a")
    harness.name("order", harness.order({P: state(2, 1)}))
    harness.name("metadata", harness.send(UpdateMetadataRequest(0, 1, 5, {}, (1, 2, 3))))
    assert [answer[:2] for answer in harness.answers(3)] == [(1, "a"), (1, "order"), (1, "metadata")]


def test_a_stopping_broker_completes_appends_that_wait_for_the_disk() -> None:
    harness = SlowBroker()
    for value in ("a", "b"):
        harness.append(value)
    harness.order({P: state(2, 1)})
    harness.broker.stop(lambda: None, harness.actions.append)
    restore_disk = harness.office.relieved
    assert restore_disk is not None
    restore_disk()
    assert harness.log() == ["a", "b"]


# The locks alone


def first_wait_of(steps: Steps) -> int:
    return next(steps, 0)


def locks_on(disk: Disk) -> tuple[AppendLocks, FakeHost]:
    host = FakeHost()
    for partition in (P, Q):
        disk.place(partition)
    return AppendLocks(host, disk), host


def costly_disk(*, flush_us: int = 0, bytes_per_second: int | None = None, page_cache_bytes: int = 0) -> Disk:
    disk = Disk()
    disk.set_costs(flush_us, bytes_per_second, page_cache_bytes)
    return disk


def log_of(partition: str, flush_messages: int = LONG_MAX) -> UnifiedLog:
    log = UnifiedLog(partition, Disk(), RELEASES["2.4"].behaviours)
    log.configure(topic_config({"flush.messages": flush_messages}, broker_config("2.4", {})))
    return log


RECORD = batch("a", size=100)
TO_P, TO_Q = (log_of(P), [RECORD]), (log_of(Q), [RECORD])


def test_a_change_waits_for_fetched_appends_of_any_partition() -> None:
    locks, host = locks_on(slow_disk())
    are_free = locks.are_free
    assert locks.begin_fetched_appends([TO_Q, TO_Q]) == 2 * SECOND
    assert (are_free, locks.are_free) == (True, False)
    host.advance(SECOND)
    assert first_wait_of(locks.wait_for_fetchers()) == SECOND
    assert first_wait_of(locks.wait_for_appends(P)) == 0


def test_changes_of_partitions_run_one_at_a_time() -> None:
    locks, _ = locks_on(slow_disk())
    locks.begin_fetched_appends([TO_P])
    assert first_wait_of(locks.begin_change()) == 0
    assert first_wait_of(locks.wait_for_fetchers()) == SECOND
    assert first_wait_of(locks.begin_change()) == SECOND
    locks.end_change()
    assert first_wait_of(locks.begin_change()) == 0


def test_nothing_waits_without_a_slow_disk() -> None:
    locks, _ = locks_on(Disk())
    assert locks.begin_fetched_appends([TO_P]) == 0
    for _ in range(2):
        assert [*locks.begin_append(P), *locks.write(log_of(P), RECORD)] == []
        locks.end_append(P)
    assert locks.are_free


# What flushes and writes cost


def test_only_an_append_that_reaches_flush_messages_waits_for_the_flush() -> None:
    locks, _ = locks_on(costly_disk(flush_us=5_000))
    log = log_of(P, flush_messages=2)
    waits = []
    for _ in range(4):
        waits.append([*locks.write(log, RECORD)])
        log.append_as_leader(RECORD, 0)
        if waits[-1]:
            log.flush()
    assert waits == [[], [5_000], [], [5_000]]


def test_flushes_by_several_threads_take_no_longer_than_one() -> None:
    locks, _ = locks_on(costly_disk(flush_us=5_000))
    assert first_wait_of(locks.write(log_of(P, flush_messages=1), RECORD)) == 5_000
    assert first_wait_of(locks.write(log_of(Q, flush_messages=1), RECORD)) == 5_000


def test_a_fetcher_flushes_one_log_after_the_other() -> None:
    locks, _ = locks_on(costly_disk(flush_us=5_000))
    appends = [(log_of(name, flush_messages=1), [RECORD, RECORD]) for name in (P, Q)]
    assert locks.begin_fetched_appends(appends) == 10_000


def test_a_flush_waits_until_everything_before_it_is_written() -> None:
    locks, _ = locks_on(costly_disk(flush_us=5_000, bytes_per_second=100_000, page_cache_bytes=1_000))
    assert [*locks.write(log_of(P), RECORD)] == []
    assert [*locks.write(log_of(Q, flush_messages=1), RECORD)] == [7_000]


def test_an_append_waits_for_the_disk_only_while_the_page_cache_is_full() -> None:
    locks, host = locks_on(costly_disk(bytes_per_second=100_000, page_cache_bytes=200))
    log = log_of(P)
    assert [[*locks.write(log, RECORD)] for _ in range(4)] == [[], [], [1_000], [2_000]]
    host.advance(4_000)
    assert [*locks.write(log, RECORD)] == []


def test_repair_ends_delays_of_faults_but_not_the_costs_of_the_disk() -> None:
    disk = costly_disk(flush_us=5_000)
    disk.slow_down(SECOND)
    disk.repair()
    locks, _ = locks_on(disk)
    assert [*locks.write(log_of(P, flush_messages=1), RECORD)] == [5_000]
