"""A broker applies the metadata log in order, even if it has to wait for its disk."""

from typing import Any, cast

from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.controller.control_plane import ControlPlane, LifecycleListener, MetadataDelta
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.protocol import LeaderAndIsr, LeaderAndIsrPartitionState
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.topic_settings import TopicConfigs
from tests.cluster_model.fakes import SECOND, FakeHost, slow_disk


class MetadataLogReader:
    """The part of KRaft in a broker that delivers metadata changes."""

    def __init__(self) -> None:
        self.alter_partition_manager = self

    def join(self, *parts: Any) -> "MetadataLogReader":
        self.listener: LifecycleListener = parts[-1]
        return self

    def start(self) -> None:
        """Start nothing."""

    def generate_producer_id(self, on_generated: Any) -> None:
        """Do nothing, because no test needs a producer id."""

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Do nothing, because no disk fails here."""


class BrokerHarness:
    """Broker 1, whose disk takes a second for each append."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-1")
        self.reader = MetadataLogReader()
        config = broker_config("4.3", {})
        self.broker = Broker(
            1,
            self.host,
            slow_disk(),
            config,
            TopicConfigs({}, config),
            RELEASES["4.3"].behaviours,
            cast("ControlPlane", self.reader),
        )

    def change_metadata(self, *live_brokers: int, leader_epoch: int | None = None) -> None:
        """Change the live brokers and, with a *leader_epoch*, a partition."""
        states = {}
        if leader_epoch is not None:
            state = LeaderAndIsr(2, leader_epoch, (2,), leader_epoch)
            states["t-0"] = LeaderAndIsrPartitionState(1, state, (1, 2))
        self.reader.listener.on_metadata_update(
            MetadataDelta(1, dict.fromkeys(live_brokers, 1), dict.fromkeys(live_brokers, 1), states)
        )

    def append(self) -> None:
        """Begin an append of a fetcher, for which a change of partitions waits."""
        self.broker.replicas.append_locks.begin_fetched_appends(
            [(UnifiedLog("t-0", Disk(), RELEASES["4.3"].behaviours), ())]
        )

    @property
    def live_brokers(self) -> list[int]:
        return list(self.broker.metadata.live_brokers)


def test_a_metadata_change_waits_for_appends_in_progress() -> None:
    harness = BrokerHarness()
    harness.append()
    harness.change_metadata(1, 2, leader_epoch=0)
    harness.host.advance(SECOND - 1)
    assert harness.live_brokers == []
    harness.host.advance(1)
    assert harness.live_brokers == [1, 2]


def test_a_metadata_change_at_the_end_of_an_append_is_applied_after_waiting_ones() -> None:
    harness = BrokerHarness()
    harness.host.set_timer(SECOND, lambda _: harness.change_metadata(1))
    harness.append()
    harness.change_metadata(1, 2, leader_epoch=0)
    harness.host.advance(SECOND)
    assert harness.live_brokers == [1]


def test_metadata_changes_are_applied_in_order() -> None:
    harness = BrokerHarness()
    harness.append()
    harness.change_metadata(1, 2, leader_epoch=0)
    harness.append()
    harness.change_metadata(1, leader_epoch=1)
    harness.host.advance(SECOND)
    assert harness.live_brokers == [1, 2]
    harness.host.advance(SECOND)
    assert harness.live_brokers == [1]
