"""Broker epochs in KRaft: fetches of a previous incarnation do not count for the next (KIP-903)."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.controller.control_plane import INELIGIBLE, MetadataDelta
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    FetchRequest,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    PartitionData,
    ProduceRequest,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import broker_config, topic_config
from harrow.cluster_model.sim.connection import Connection, Exchange
from tests.cluster_model.fakes import SECOND, FakeEndpoint, FakeHost, batch

PARTITION = "t-0"


class IsrRequests:
    """Records the ISRs that a leader requests. A test answers them."""

    def __init__(self) -> None:
        self.isrs: list[tuple[int, ...]] = []
        self.broker_epochs: list[Mapping[int, int]] = []
        self.answers: list[Callable[[int | None], None]] = []

    def start(self) -> None: ...

    def submit(
        self,
        _partition: str,
        state: LeaderAndIsr,
        _controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        self.isrs.append(state.isr)
        self.broker_epochs.append(broker_epochs)
        self.answers.append(on_altered)


class Leader:
    """Broker 0, leader of a partition whose replicas 1 and 2 have broker epochs 11 and 12."""

    def __init__(self, isr: tuple[int, ...] = (0,), release: str = "4.3", **switches: Any) -> None:
        self.host = FakeHost("broker-0")
        self.isr_requests = IsrRequests()
        self.metadata = MetadataCache()
        config = broker_config(release, {"replica.fetch.wait.max.ms": 0})
        self.manager = ReplicaManager(
            0,
            self.host,
            Disk(),
            config,
            lambda _: topic_config({}, config),
            RELEASES[release].behaviours.with_switches(**switches),
            self.isr_requests,
            lambda *_: None,
            self.metadata,
        )
        self.connections: dict[int, Connection] = {}
        self.correlation_id = 0
        self.apply_metadata_log(isr, 0)

    def apply_metadata_log(self, isr: tuple[int, ...], partition_epoch: int, **epochs: int) -> None:
        """Apply an ISR, and the broker epochs of 1 and 2, from the metadata log."""
        brokers = {0: 10, 1: epochs.get("broker_1", 11), 2: epochs.get("broker_2", 12)}
        state = LeaderAndIsrPartitionState(1, LeaderAndIsr(0, 0, isr, partition_epoch), (0, 1, 2))
        self.metadata.apply(MetadataDelta(10, brokers, brokers, {PARTITION: state}))
        self.manager.apply_metadata(10, {PARTITION: state})

    def append(self, records: int = 1) -> None:
        for _ in range(records):
            self.correlation_id += 1
            request = ProduceRequest(1, 30 * SECOND, {PARTITION: batch(f"v{self.correlation_id}")})
            self.manager.handle_produce(Exchange(self._connection(9), self.correlation_id, request))

    def fetch(self, broker: int, offset: int, broker_epoch: int) -> None:
        self.correlation_id += 1
        request = FetchRequest(
            broker, 0, 1_000_000, {PARTITION: PartitionData(offset, 0)}, replica_epoch=broker_epoch
        )
        self.manager.fetching.handle_fetch(Exchange(self._connection(broker), self.correlation_id, request))

    def _connection(self, broker: int) -> Connection:
        if broker not in self.connections:
            self.connections[broker] = self.host.connect(
                "broker-0", "listener", FakeEndpoint(self.host.clock)
            )
        return self.connections[broker]

    @property
    def hw(self) -> int:
        return self.manager.partitions[PARTITION].log.high_watermark

    def log_end_of(self, broker: int) -> int:
        return self.manager.partitions[PARTITION].remote_replicas[broker].log_end_offset


@pytest.mark.parametrize(("release", "log_end", "hw"), [("3.6", 2, 2), ("3.9", 0, 0), ("4.3", 0, 0)])
def test_since_3_7_a_fetch_of_a_previous_incarnation_is_ignored(release: str, log_end: int, hw: int) -> None:
    """Replica.updateFetchStateOrThrow (KAFKA-15221)."""
    leader = Leader((0, 1), release)
    leader.append(2)
    leader.apply_metadata_log((0, 1), 1, broker_1=21)
    leader.fetch(1, 0, 21)
    leader.fetch(1, 2, 11)
    assert (leader.log_end_of(1), leader.hw) == (log_end, hw)


@pytest.mark.parametrize("broker_epoch", [NO_EPOCH, 21, 22])
def test_a_fetch_without_a_broker_epoch_or_with_a_later_one_counts(broker_epoch: int) -> None:
    leader = Leader((0, 1))
    leader.append(2)
    leader.apply_metadata_log((0, 1), 1, broker_1=21)
    leader.fetch(1, 2, broker_epoch)
    assert (leader.log_end_of(1), leader.hw) == (2, 2)


@pytest.mark.parametrize(("release", "hw"), [("3.9", 1), ("4.3", 1)])
def test_the_hw_does_not_wait_for_a_replica_that_left_the_isr_and_has_no_known_broker_epoch(
    release: str, hw: int
) -> None:
    """Partition.isBrokerEpochIsrEligible: a follower of unknown broker epoch cannot rejoin."""
    leader = Leader((0, 1, 2), release)
    leader.apply_metadata_log((0, 1), 1)
    leader.append()
    leader.fetch(1, 1, 11)
    assert leader.hw == hw


def test_an_isr_request_has_no_broker_epoch_for_a_member_that_has_not_fetched() -> None:
    """Partition.addBrokerEpochToIsr."""
    leader = Leader((0, 2))
    leader.fetch(1, 0, 11)
    assert leader.isr_requests.isrs == [(0, 2, 1)]
    assert leader.isr_requests.broker_epochs == [{1: 11, 2: NO_EPOCH}]


def test_a_leader_drops_its_pending_isr_change_when_the_metadata_log_repeats_a_known_state() -> None:
    """Partition.makeLeader: a state that is not older replaces the pending ISR change."""
    leader = Leader()
    leader.fetch(1, 0, 11)
    leader.isr_requests.answers[0](1)
    leader.fetch(2, 0, 12)
    partition = leader.manager.partitions[PARTITION]
    assert (partition.isr, partition.maximal_isr) == ((0, 1), (0, 1, 2))
    leader.apply_metadata_log((0, 1), 1)
    assert (partition.isr, partition.maximal_isr) == ((0, 1), (0, 1))
    leader.isr_requests.answers[1](2)
    assert (partition.isr, partition.partition_epoch) == ((0, 1), 1), "its answer is out of date"
    leader.apply_metadata_log((0, 1, 2), 2)
    assert (partition.isr, partition.partition_epoch) == ((0, 1, 2), 2)


def test_a_leader_ahead_of_the_metadata_log_keeps_its_state() -> None:
    leader = Leader()
    leader.fetch(1, 0, 11)
    leader.isr_requests.answers[0](1)
    leader.apply_metadata_log((0,), 0)
    assert leader.manager.partitions[PARTITION].isr == (0, 1)


def test_after_an_ineligible_replica_error_the_hw_advances_only_with_the_next_append() -> None:
    """Partition.handleAlterPartitionError."""
    leader = Leader()
    leader.fetch(1, 0, 11)
    leader.append()
    assert leader.hw == 0
    leader.metadata.apply(MetadataDelta(10, {0: 10, 2: 12}, {0: 10, 2: 12}, {}))
    leader.isr_requests.answers[0](INELIGIBLE)
    assert leader.hw == 0
    leader.append()
    assert leader.hw == 2
