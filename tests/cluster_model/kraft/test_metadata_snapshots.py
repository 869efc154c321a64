"""Snapshots of the metadata (KIP-630): when they are taken, what goes with them, who begins with one."""

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
from tests.cluster_model.kraft.test_kraft_cluster import Kraft

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


def everything(image: ClusterImage) -> tuple[Any, ...]:
    """Return all that others can ask of an image."""
    brokers = range(4)
    return (
        image.next_offset,
        image.write(),
        image.unfenced(),
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


def take(log: MetadataLog, end_offset: int) -> MetadataSnapshot:
    image = log.replayed(ClusterImage(), end_offset)
    epoch = log.epoch_at(end_offset - 1)
    assert epoch is not None
    snapshot = MetadataSnapshot(end_offset, epoch, 0, image.write(), 1)
    assert log.add_snapshot(snapshot)
    return snapshot


@given(appended=st.lists(records, min_size=1, max_size=30), cut=st.integers(0, 30), read=st.integers(0, 30))
def test_who_begins_with_a_snapshot_knows_what_one_knows_who_has_read_the_log(
    appended: list[MetadataRecord], cut: int, read: int
) -> None:
    known = [RegisterBrokerRecord(broker, 1) for broker in range(4)]
    log = log_of([*known, *appended])
    end = log.end_offset
    by_log = log.replayed(ClusterImage(), end)
    snapshot = take(log, min(len(known) + cut, end))
    # One that starts, one that was there before and is behind, and one whose log is cut to the snapshot.
    behind = log_of([*known, *appended]).replayed(ClusterImage(), min(read, snapshot.end_offset))
    other = MetadataLog()
    other.start_from_snapshot(snapshot)
    for epoch, record in log.read(snapshot.end_offset):
        other.append(epoch, record)
    assert everything(log.replayed(ClusterImage(), end)) == everything(by_log)
    assert everything(other.replayed(behind, end)) == everything(by_log)


# Where a follower has to begin


def test_a_follower_that_ends_where_the_log_has_not_begun_gets_the_latest_snapshot() -> None:
    log = log_of([ProducerIdsRecord(number) for number in range(4)])
    for number in range(4, 8):
        log.append(3, ProducerIdsRecord(number))
    take(log, 2)
    take(log, 5)
    take(log, 6)
    assert log.snapshot_for(1, 1) is None, "the log begins at 0 still"
    assert log.clean(0, -1, 0)
    assert (log.start_offset, log.end_offset, log.latest_snapshot) == (6, 8, log.snapshots[0])
    latest = log.snapshots[-1]
    assert log.snapshot_for(5, 3) is latest
    assert log.snapshot_for(4, 1) is latest
    assert log.snapshot_for(6, 1) is latest, "what it has below 6 is of another epoch"
    assert log.snapshot_for(6, 3) is None
    assert log.snapshot_for(8, 3) is None
    assert log.divergence(6, 3) is None


def test_who_has_nothing_gets_a_snapshot_where_there_is_one_although_the_log_has_it_all() -> None:
    log = log_of([ProducerIdsRecord(1), ProducerIdsRecord(2)])
    assert log.snapshot_for(0, 0) is None
    snapshot = take(log, 1)
    assert log.snapshot_for(0, 0) is snapshot


def test_a_follower_of_an_epoch_before_the_first_snapshot_is_not_asked_where_it_parts() -> None:
    log = log_of([ProducerIdsRecord(1)], epoch=2)
    log.append(3, ProducerIdsRecord(2))
    snapshot = take(log, 2)
    assert log.snapshot_for(5, 1) is snapshot
    assert log.snapshot_for(1, 2) is snapshot
    assert log.snapshot_for(2, 3) is None


def test_a_log_that_is_empty_behind_its_snapshot_has_the_epoch_of_that() -> None:
    log = MetadataLog()
    log.start_from_snapshot(MetadataSnapshot(7, 4, 0, (), 1))
    assert (log.end_offset, log.last_epoch) == (7, 4)
    assert log.divergence(7, 4) is None
    assert log.divergence(9, 4) == (4, 7)
    log.append(5, ProducerIdsRecord(1))
    assert (log.end_offset, log.last_epoch) == (8, 5)
    assert log.divergence(7, 4) is None
    assert log.truncate_to_divergence(4, 7) == 7


def test_a_truncation_below_the_log_leaves_nothing_so_that_a_snapshot_is_fetched_anew() -> None:
    """Kafka's node ends there, for it would cut off what is committed; only a mutant gets there."""
    log = MetadataLog()
    log.start_from_snapshot(MetadataSnapshot(7, 4, 0, (), 1))
    log.append(5, ProducerIdsRecord(1))
    log.truncate_to_divergence(4, 3)
    assert (log.start_offset, log.end_offset, log.snapshots) == (0, 0, [])


# When they are taken, and deleted


class Node:
    """A generator whose log grows record by record."""

    def __init__(self, **settings: int) -> None:
        self.host = FakeHost("broker-0")
        self.log = MetadataLog()
        self.image = ClusterImage()
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.start(given)

    def start(self, given: dict[str, Any]) -> None:
        config = broker_config("4.3", given)
        self.generator = SnapshotGenerator(0, self.host, self.log, config, lambda: self.image)
        self.generator.start()

    def commit(self, count: int = 1) -> None:
        for _ in range(count):
            self.log.append(1, ProducerIdsRecord(1_000 * self.log.end_offset + 1_000))
        self.image = self.log.replayed(self.image, self.log.end_offset)
        self.generator.committed(self.log.end_offset)

    @property
    def taken(self) -> list[int]:
        return [snapshot.end_offset for snapshot in self.log.snapshots]


BYTES = size_in_bytes(ProducerIdsRecord(0))


def test_a_snapshot_is_due_after_so_many_bytes_of_what_came_since_the_start() -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=3 * BYTES)
    node.commit(10)
    assert node.taken == [], "it had that when it started"
    node.commit(2)
    assert node.taken == []
    node.commit()
    assert node.taken == [13]
    node.commit(2)
    assert node.taken == [13]
    node.commit(4)
    assert node.taken == [13, 19]


def test_a_snapshot_is_due_after_an_hour_in_which_anything_has_happened() -> None:
    """KIP-876. In Kafka NoOpRecords happen all the time."""
    node = Node()
    node.commit()
    node.host.advance(HOUR - 1)
    assert node.taken == []
    node.host.advance(1)
    assert node.taken == [1]
    node.host.advance(3 * HOUR)
    assert node.taken == [1]
    node.commit()
    assert node.taken == [1, 2]
    node.host.advance(HOUR)
    assert node.taken == [1, 2]


def test_no_snapshot_is_taken_for_its_age_where_there_is_no_limit() -> None:
    node = Node(metadata_log_max_snapshot_interval_ms=0)
    node.commit()
    node.commit()
    node.host.advance(10 * HOUR)
    node.commit()
    assert node.taken == []


@pytest.mark.parametrize(
    ("retention", "left"),
    [
        ({"metadata_max_retention_bytes": 1}, [4]),
        ({"metadata_max_retention_bytes": -1}, [2, 3, 4]),
        ({"metadata_max_retention_ms": 30_000}, [4]),
        ({}, [2, 3, 4]),
    ],
)
def test_once_a_minute_what_is_before_the_oldest_snapshot_that_stays_is_deleted(
    retention: dict[str, int], left: list[int]
) -> None:
    node = Node(metadata_log_max_record_bytes_between_snapshots=1, **retention)
    for _ in range(4):
        node.commit()
    assert node.taken == [2, 3, 4]
    node.host.advance(CLEANING_INTERVAL_US - 1)
    assert node.taken == [2, 3, 4]
    node.host.advance(1)
    assert node.taken == left
    assert node.log.start_offset == (4 if len(left) == 1 else 0)
    assert node.log.end_offset == 4


def test_the_only_snapshot_stays_however_old_or_large_it_is() -> None:
    node = Node(
        metadata_log_max_record_bytes_between_snapshots=1,
        metadata_max_retention_bytes=1,
        metadata_max_retention_ms=1,
    )
    node.commit()
    node.commit()
    node.host.advance(10 * CLEANING_INTERVAL_US)
    assert (node.taken, node.log.start_offset) == ([2], 0)


def test_the_defaults_are_those_of_kafka() -> None:
    """KRaftConfigs; up to 3.3 (KafkaConfig) there was no interval, and no limit of bytes."""
    names = (
        "metadata.log.max.record.bytes.between.snapshots",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
    )
    known = [SETTINGS["broker", name] for name in names]
    assert [setting.default("4.3") for setting in known] == [
        20 * 1024 * 1024,
        3_600_000,
        100 * 1024 * 1024,
        604_800_000,
    ]
    assert [setting.since for setting in known] == ["3.0", "3.4", "3.0", "3.0"]


# In a quorum


def test_a_voter_that_was_away_for_longer_than_the_log_goes_back_begins_with_a_snapshot_and_may_lead() -> (
    None
):
    quorum = Quorum()
    quorum.run(10 * SECOND)
    leader = quorum.leader()
    assert leader is not None
    away = (leader.node + 1) % 3
    quorum.crash(away)
    for number in range(1, 4):
        quorum.append(number)
        quorum.run(SECOND)
        for node in range(3):
            quorum.snapshot(node)
    for node in range(3):
        quorum.clean(node)
    start_offset = leader.log.start_offset
    assert quorum.nodes[away].log.end_offset < start_offset
    quorum.start(away)
    quorum.run(SECOND)
    assert [snapshot.end_offset for snapshot in quorum.nodes[away].fetched] == [start_offset]
    quorum.append(4)
    quorum.run(SECOND)
    assert quorum.nodes[away].log.start_offset == start_offset
    assert quorum.numbers(away)[-1] == 4
    quorum.crash(leader.node)
    quorum.run(10 * SECOND)
    assert quorum.append(5)
    quorum.run(SECOND)
    assert quorum.numbers(away)[-1] == 5


def test_a_snapshot_that_the_leader_has_deleted_meanwhile_is_given_up_for_the_next() -> None:
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


def test_who_does_not_lead_gives_nobody_a_snapshot() -> None:
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


def restarted(cluster: Cluster, broker: int) -> None:
    cluster.crash_broker(broker, power_loss=False)
    cluster.simulator.run_until(cluster.simulator.now_us + 70 * SECOND)
    cluster.start_broker(broker)
    cluster.simulator.run_until(cluster.simulator.now_us + 20 * SECOND)


def test_a_broker_that_was_away_for_longer_than_the_log_goes_back_leads_and_follows_as_before() -> None:
    kraft = Kraft(settings=SMALL)
    kraft.run(20)
    assert kraft.named(MetadataSnapshotTaken)
    kraft.cluster.crash_broker(1, power_loss=False)
    kraft.run(15)
    restarted(kraft.cluster, 2)
    kraft.cluster.start_broker(1)
    kraft.run(30)
    assert kraft.named(MetadataLogStarted)
    assert 1 in {event[2] for event in kraft.named(MetadataSnapshotFetched)}
    leader, epoch, isr = kraft.state()
    assert set(isr) == {0, 1, 2}
    kraft.cluster.crash_broker(leader, power_loss=False)
    kraft.run(15)
    assert kraft.state()[1] == epoch + 1


def test_an_active_controller_that_is_deposed_goes_back_to_what_is_committed_by_its_snapshot() -> None:
    kraft = Kraft(settings=SMALL)
    kraft.run(70)
    active = kraft.active
    assert active._log.start_offset > 0
    before = active.image.write()
    active.raft.resign()
    assert not active.is_active
    assert active.image.write() == before
    kraft.run(20)
    assert kraft.active.image.partitions["t-0"].isr == (0, 1, 2)


def test_the_snapshot_of_the_active_controller_leaves_out_what_is_not_committed() -> None:
    written: list[tuple[MetadataRecord, ...]] = []
    kraft = Kraft()
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
