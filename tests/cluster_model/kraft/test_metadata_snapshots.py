"""Nodes take, delete and fetch snapshots of the metadata (KIP-630)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import (
    MetadataLogStarted,
    MetadataSnapshotFetched,
    MetadataSnapshotTaken,
    MetadataSnapshotWritten,
)
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    size_in_bytes,
)
from harrow.cluster_model.kraft.snapshot_generator import CLEANING_INTERVAL_US, SnapshotGenerator
from harrow.cluster_model.settings import SETTINGS, broker_config
from tests.cluster_model.fakes import FakeHost
from tests.cluster_model.kraft.quorum import SECOND, Quorum
from tests.cluster_model.kraft.test_kraft_cluster import KraftCluster

HOUR = 3_600 * SECOND

members = st.tuples(st.integers(0, 2)) | st.tuples(st.integers(0, 2), st.just(3)) | st.just(())
records = st.one_of(
    st.builds(RegisterBrokerRecord, st.integers(0, 3), st.integers(0, 9)),
    st.builds(BrokerRegistrationChangeRecord, st.integers(0, 3), st.just(0), st.booleans(), st.booleans()),
    st.builds(ProducerIdsRecord, st.integers(1, 9).map(lambda block: 1_000 * block)),
    st.builds(
        PartitionRecord,
        st.sampled_from(["t-0", "t-1", "u-0"]),
        st.just((0, 1, 2, 3)),
        st.integers(-1, 3),
        st.integers(0, 5),
        members,
        st.integers(0, 5),
        elr=members,
        altered_by=st.integers(-1, 3),
    ),
)


def answers_of(image: ClusterImage) -> tuple[Any, ...]:
    """Return all that an image can answer."""
    brokers = range(4)
    return (
        image.next_offset,
        image.write(),
        image.unfenced_brokers(),
        dict(image.active()),
        sorted(image.leaderless),
        [image.with_in_isr(broker) for broker in brokers],
        [image.leads(broker) for broker in brokers],
        image.next_producer_id,
    )


def log_of(appended: list[MetadataRecord], epoch: int = 1) -> MetadataLog:
    log = MetadataLog()
    for record in appended:
        log.append(epoch, record)
    return log


def take_snapshot(log: MetadataLog, end_offset: int) -> MetadataSnapshot:
    image = log.replay(ClusterImage(), end_offset)
    epoch = log.epoch_at(end_offset - 1)
    assert epoch is not None
    snapshot = MetadataSnapshot(end_offset, epoch, 0, image.write(), 1)
    assert log.add_snapshot(snapshot)
    return snapshot


@given(appended=st.lists(records, min_size=1, max_size=30), cut=st.integers(0, 30), read=st.integers(0, 30))
def test_a_snapshot_and_the_log_after_it_give_the_same_image_as_the_whole_log(
    appended: list[MetadataRecord], cut: int, read: int
) -> None:
    registrations = [RegisterBrokerRecord(broker, 1) for broker in range(4)]
    log = log_of([*registrations, *appended])
    end = log.end_offset
    by_log = log.replay(ClusterImage(), end)
    snapshot = take_snapshot(log, min(len(registrations) + cut, end))
    # A new image, an image that is behind, and a log that starts from the snapshot.
    behind = log_of([*registrations, *appended]).replay(ClusterImage(), min(read, snapshot.end_offset))
    other = MetadataLog()
    other.start_from_snapshot(snapshot)
    for epoch, record in log.read(snapshot.end_offset):
        other.append(epoch, record)
    assert answers_of(log.replay(ClusterImage(), end)) == answers_of(by_log)
    assert answers_of(other.replay(behind, end)) == answers_of(by_log)


# Followers at the start of a log


def test_a_follower_whose_log_ends_before_the_log_start_gets_the_latest_snapshot() -> None:
    log = log_of([ProducerIdsRecord(number) for number in range(4)])
    for number in range(4, 8):
        log.append(3, ProducerIdsRecord(number))
    take_snapshot(log, 2)
    take_snapshot(log, 5)
    take_snapshot(log, 6)
    assert log.snapshot_for(1, 1) is None, "the log still starts at 0"
    assert log.clean(0, -1, 0)
    assert (log.start_offset, log.end_offset, log.latest_snapshot) == (6, 8, log.snapshots[0])
    latest = log.snapshots[-1]
    assert log.snapshot_for(5, 3) is latest
    assert log.snapshot_for(4, 1) is latest
    assert log.snapshot_for(6, 1) is latest, "its records below 6 have another epoch"
    assert log.snapshot_for(6, 3) is None
    assert log.snapshot_for(8, 3) is None
    assert log.divergence(6, 3) is None


def test_an_empty_follower_gets_a_snapshot_even_if_the_log_is_complete() -> None:
    log = log_of([ProducerIdsRecord(1), ProducerIdsRecord(2)])
    assert log.snapshot_for(0, 0) is None
    snapshot = take_snapshot(log, 1)
    assert log.snapshot_for(0, 0) is snapshot


def test_a_follower_in_an_epoch_before_the_first_snapshot_gets_the_snapshot() -> None:
    log = log_of([ProducerIdsRecord(1)], epoch=2)
    log.append(3, ProducerIdsRecord(2))
    snapshot = take_snapshot(log, 2)
    assert log.snapshot_for(5, 1) is snapshot
    assert log.snapshot_for(1, 2) is snapshot
    assert log.snapshot_for(2, 3) is None


def test_an_empty_log_has_the_epoch_of_its_snapshot() -> None:
    log = MetadataLog()
    log.start_from_snapshot(MetadataSnapshot(7, 4, 0, (), 1))
    assert (log.end_offset, log.last_epoch) == (7, 4)
    assert log.divergence(7, 4) is None
    assert log.divergence(9, 4) == (4, 7)
    log.append(5, ProducerIdsRecord(1))
    assert (log.end_offset, log.last_epoch) == (8, 5)
    assert log.divergence(7, 4) is None
    assert log.truncate_to_divergence(4, 7) == 7


def test_a_truncation_below_the_log_start_empties_the_log() -> None:
    """Kafka's node stops instead of truncating committed records. Only a mutant does this."""
    log = MetadataLog()
    log.start_from_snapshot(MetadataSnapshot(7, 4, 0, (), 1))
    log.append(5, ProducerIdsRecord(1))
    log.truncate_to_divergence(4, 3)
    assert (log.start_offset, log.end_offset, log.snapshots) == (0, 0, [])


# Taking and deleting snapshots


class Node:
    """A generator whose log grows record by record."""

    def __init__(self, **settings: int) -> None:
        self.host = FakeHost("broker-0")
        self.log = MetadataLog()
        self.image = ClusterImage()
        self.start({name.replace("_", "."): value for name, value in settings.items()})

    def start(self, settings: dict[str, Any]) -> None:
        config = broker_config("4.3", settings)
        self.generator = SnapshotGenerator(0, self.host, self.log, config, lambda: self.image)
        self.generator.start()

    def commit(self, count: int = 1) -> None:
        for _ in range(count):
            self.log.append(1, ProducerIdsRecord(1_000 * self.log.end_offset + 1_000))
        self.image = self.log.replay(self.image, self.log.end_offset)
        self.generator.on_commit(self.log.end_offset)

    @property
    def snapshot_offsets(self) -> list[int]:
        return [snapshot.end_offset for snapshot in self.log.snapshots]


BYTES = size_in_bytes(ProducerIdsRecord(0))


def test_a_snapshot_is_due_after_enough_bytes_since_the_start() -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=3 * BYTES)
    node.commit(10)
    assert node.snapshot_offsets == [], "records from before its start do not count"
    node.commit(2)
    assert node.snapshot_offsets == []
    node.commit()
    assert node.snapshot_offsets == [13]
    node.commit(2)
    assert node.snapshot_offsets == [13]
    node.commit(4)
    assert node.snapshot_offsets == [13, 19]


def test_a_snapshot_is_due_after_an_hour_with_a_record() -> None:
    """KIP-876. In Kafka NoOpRecords arrive all the time."""
    node = Node()
    node.commit()
    node.host.advance(HOUR - 1)
    assert node.snapshot_offsets == []
    node.host.advance(1)
    assert node.snapshot_offsets == [1]
    node.host.advance(3 * HOUR)
    assert node.snapshot_offsets == [1]
    node.commit()
    assert node.snapshot_offsets == [1, 2]
    node.host.advance(HOUR)
    assert node.snapshot_offsets == [1, 2]


def test_without_an_interval_no_snapshot_is_due_by_time() -> None:
    node = Node(metadata_log_max_snapshot_interval_ms=0)
    node.commit()
    node.commit()
    node.host.advance(10 * HOUR)
    node.commit()
    assert node.snapshot_offsets == []


@pytest.mark.parametrize(
    ("retention", "remaining"),
    [
        ({"metadata_max_retention_bytes": 1}, [4]),
        ({"metadata_max_retention_bytes": -1}, [2, 3, 4]),
        ({"metadata_max_retention_ms": 30_000}, [4]),
        ({}, [2, 3, 4]),
    ],
)
def test_once_a_minute_old_snapshots_and_the_log_before_the_oldest_remaining_one_are_deleted(
    retention: dict[str, int], remaining: list[int]
) -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=1, **retention)
    for _ in range(4):
        node.commit()
    assert node.snapshot_offsets == [2, 3, 4]
    node.host.advance(CLEANING_INTERVAL_US - 1)
    assert node.snapshot_offsets == [2, 3, 4]
    node.host.advance(1)
    assert node.snapshot_offsets == remaining
    assert node.log.start_offset == (4 if len(remaining) == 1 else 0)
    assert node.log.end_offset == 4


def test_the_only_snapshot_is_never_deleted() -> None:
    node = Node(
        metadata_log_max_record_bytes_between_snapshots=1,
        metadata_max_retention_bytes=1,
        metadata_max_retention_ms=1,
    )
    node.commit()
    node.commit()
    node.host.advance(10 * CLEANING_INTERVAL_US)
    assert (node.snapshot_offsets, node.log.start_offset) == ([2], 0)


def test_the_defaults_are_those_of_kafka() -> None:
    """KRaftConfigs; up to 3.3 (KafkaConfig) there was no interval, and no limit of bytes."""
    names = (
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
    )
    settings = [SETTINGS["broker", name] for name in names]
    assert [setting.default("4.3") for setting in settings] == [
        20 * 1024 * 1024,
        3_600_000,
        100 * 1024 * 1024,
        604_800_000,
    ]
    assert [setting.since for setting in settings] == ["3.0", "3.4", "3.0", "3.0"]


# In a quorum


def test_a_voter_whose_log_ends_before_the_log_start_fetches_a_snapshot_and_may_lead() -> None:
    quorum = Quorum()
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    absent = (leader.node + 1) % 3
    quorum.crash(absent)
    for number in range(1, 4):
        quorum.append(number)
        quorum.run(SECOND)
        for node in range(3):
            quorum.snapshot(node)
    for node in range(3):
        quorum.clean(node)
    start_offset = leader.log.start_offset
    assert quorum.nodes[absent].log.end_offset < start_offset
    quorum.start(absent)
    quorum.run(SECOND)
    assert [snapshot.end_offset for snapshot in quorum.nodes[absent].fetched] == [start_offset]
    quorum.append(4)
    quorum.run(SECOND)
    assert quorum.nodes[absent].log.start_offset == start_offset
    assert quorum.numbers(absent)[-1] == 4
    quorum.crash(leader.node)
    quorum.run(10 * SECOND)
    assert quorum.append(5)
    quorum.run(SECOND)
    assert quorum.numbers(absent)[-1] == 5


def test_a_fetch_of_a_deleted_snapshot_leads_to_the_next_one() -> None:
    quorum = Quorum(observers=1)
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    for number in (1, 2):
        quorum.append(number)
        quorum.run(SECOND)
        quorum.snapshot(leader.node)
    first, second = leader.log.snapshots
    request = protocol.FetchSnapshotRequest(leader.epoch, 3, first.id)
    assert leader._handle_fetch_snapshot(request).snapshot is first
    quorum.clean(leader.node)
    answer = leader._handle_fetch_snapshot(request)
    assert (answer.error, answer.snapshot) == ("SNAPSHOT_NOT_FOUND", None)
    observer = quorum.nodes[3]
    quorum.lose_disk(3)
    quorum.start(3)
    assert observer.raft is not None
    while observer.raft._fetching_snapshot is None:
        quorum.simulator.step(quorum.simulator.now_us + SECOND)
    observer.raft._fetching_snapshot = first.id
    quorum.run(SECOND)
    assert observer.fetched == [second]
    assert observer.log.end_offset == leader.log.end_offset


def test_only_the_leader_of_the_epoch_sends_snapshots() -> None:
    quorum = Quorum()
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    follower = quorum.nodes[(leader.node + 1) % 3].raft
    assert follower is not None
    request = protocol.FetchSnapshotRequest(follower.epoch, 2, (1, 1))
    assert follower._handle_fetch_snapshot(request).error == "NOT_LEADER_FOR_PARTITION"
    older = protocol.FetchSnapshotRequest(leader.epoch - 1, 2, (1, 1))
    assert leader._handle_fetch_snapshot(older).error == "FENCED_LEADER_EPOCH"


# In a cluster

SMALL = {"metadata.log.max.record.bytes.between.snapshots": 1, "metadata.max.retention.bytes": 1}


def restart(cluster: Cluster, broker: int) -> None:
    cluster.crash_broker(broker, power_loss=False)
    cluster.simulator.run_until(cluster.simulator.now_us + 70 * SECOND)
    cluster.start_broker(broker)
    cluster.simulator.run_until(cluster.simulator.now_us + 20 * SECOND)


def test_a_broker_whose_log_ends_before_the_log_start_recovers_with_a_snapshot() -> None:
    kraft = KraftCluster(settings=SMALL)
    kraft.run(20)
    assert kraft.events_named(MetadataSnapshotTaken)
    kraft.cluster.crash_broker(1, power_loss=False)
    kraft.run(15)
    restart(kraft.cluster, 2)
    kraft.cluster.start_broker(1)
    kraft.run(30)
    assert kraft.events_named(MetadataLogStarted)
    assert 1 in {event[2] for event in kraft.events_named(MetadataSnapshotFetched)}
    leader, epoch, isr = kraft.state()
    assert set(isr) == {0, 1, 2}
    kraft.cluster.crash_broker(leader, power_loss=False)
    kraft.run(15)
    assert kraft.state()[1] == epoch + 1


def test_a_deposed_controller_rebuilds_its_image_from_its_snapshot() -> None:
    kraft = KraftCluster(settings=SMALL)
    kraft.run(70)
    active = kraft.active
    assert active._log.start_offset > 0
    before = active.image.write()
    active.raft.resign()
    assert not active.is_active
    assert active.image.write() == before
    kraft.run(20)
    assert kraft.active.image.partitions["t-0"].isr == (0, 1, 2)


def test_a_snapshot_of_the_active_controller_has_no_uncommitted_records() -> None:
    written: list[tuple[MetadataRecord, ...]] = []
    kraft = KraftCluster()
    kraft.run(20)
    kraft.cluster.trace.subscribe(MetadataSnapshotWritten, lambda *event: written.append(event[-1]))
    active = kraft.active
    committed = active.image.write()
    for voter in active.raft._peers:
        kraft.cluster.crash_broker(voter, power_loss=False)
    active.expire_session(0)
    assert active.image.write() != committed
    active._snapshots._take()
    assert [frozenset(records) for records in written] == [frozenset(committed)]
