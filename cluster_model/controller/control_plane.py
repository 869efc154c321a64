"""Defines the interfaces of a control plane: controllers, registrations, leaders, ISRs.

Brokers, faults and observers use these; ZooKeeper (`harrow.cluster_model.zookeeper`) and KRaft
(`harrow.cluster_model.kraft`) implement them. A partition's state is a `LeaderAndIsr` with its
partition epoch in both.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    InitProducerIdResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    ReplicaAssignment,
)
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.process import Process

ADMIN: Final = "admin"
REASSIGNMENT: Final = "reassignment"
"""The reason of elections during a reassignment."""
REASSIGNMENT_API: Final = "AlterPartitionReassignments"
CREATE_PARTITIONS_API: Final = "CreatePartitions"

INELIGIBLE: Final = -1
"""The ISR has an ineligible member (INELIGIBLE_REPLICA); the partition is unchanged."""
OUTDATED: Final = -2
"""The partition has changed (FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION).

The metadata log brings the change.
"""


@dataclass(slots=True, frozen=True)
class MetadataDelta:
    """A change of the cluster from the metadata log (``MetadataDelta.java``).

    ``broker_epoch`` is the receiver's own. ``live_brokers`` are unfenced, ``active_brokers`` may
    join ISRs; both have broker epochs. ``partition_states`` has the changed partitions.
    """

    broker_epoch: int
    live_brokers: Mapping[int, int]
    active_brokers: Mapping[int, int]
    partition_states: Mapping[str, LeaderAndIsrPartitionState]


class AlterPartitionManager(Protocol):
    """Changes the ISRs of a leader (``AlterPartitionManager.scala``)."""

    def start(self) -> None:
        """Start periodic tasks."""

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        """Request a new ISR, which is written unless the partition has a later partition epoch.

        *broker_epochs* are those that followers have named in their fetches.

        *on_altered* gets the new partition epoch. It gets None after a refusal, `INELIGIBLE` if the
        ISR can never be written, and `OUTDATED` if only the partition's next change brings the
        outcome.
        """


class LifecycleListener(Protocol):
    """The broker, from the point of view of its part in the control plane."""

    @property
    def known_controller(self) -> int:
        """The controller of its last control request, -1 for none.

        Only ZooKeeper controllers send requests.
        """

    def has_failed_log_dirs(self) -> bool:
        """Return whether a log directory has failed, so that it proves no clean shutdown."""

    def on_registration(self, broker_epoch: int) -> None:
        """Start to handle requests: the broker is registered and has the necessary metadata."""

    def on_unfencing(self) -> None:
        """Lead from now on. Called again after each registration."""

    def on_metadata_update(self, delta: MetadataDelta) -> None:
        """Apply a change from the metadata log."""


class BrokerLifecycle(Protocol):
    """A broker's membership of the control plane (``BrokerLifecycleManager.scala``)."""

    @property
    def alter_partition_manager(self) -> AlterPartitionManager:
        """Its way to change ISRs."""

    @property
    def is_active_controller(self) -> bool:
        """Whether the broker considers itself controller."""

    @property
    def exit_us(self) -> int | None:
        """When the broker will exit by itself, None if it will not."""

    def start(self) -> None:
        """Register the broker, and notify it of each registration."""

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        """Answer with an unused producer id (``ProducerIdManager.scala``)."""

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        """Have the broker's leaderships moved as far as possible before it stops."""

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Move a broker's leaderships, as controller."""

    def handle_alter_partition(
        self, request: AlterPartitionRequest, on_handled: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Write ISR changes for a leader, as controller."""

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Report to the controller the replicas of a failed log directory (KIP-112)."""

    def close(self, on_closed: Callable[[], None]) -> None:
        """Resign, and end the broker's registration at once."""


class ControlPlane(Protocol):
    """The control plane, for clusters, faults, administrators and observers."""

    @property
    def process_names(self) -> tuple[str, ...]:
        """The names of its processes: its own, or those of brokers."""

    @property
    def servers(self) -> Mapping[int, Process]:
        """Its own processes by node id: ZooKeeper servers, or controllers that are not brokers."""

    def start_server(self, node: int) -> None:
        """Start a server, whose process has just started."""

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        """Shut a server down, and call back when its process may end."""

    def start(self) -> None:
        """Start its own processes."""

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> BrokerLifecycle:
        """Return the membership of a starting broker."""

    # For administrators and faults

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Create a topic with its replicas; the controller elects leaders."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Request other replicas for a partition (KIP-455, from 2.4 on).

        None cancels its reassignment.
        """

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        """Raise a topic's partitions to a total (KIP-195; before 1.0 ``kafka-topics --alter``)."""

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session, as after its session timeout."""

    def lose_disk(self, broker: int) -> None:
        """Delete the metadata of a node that is down."""

    def has_metadata_log(self, node: int) -> bool:
        """Return whether a node keeps the cluster's metadata on a disk that can be lost."""

    def keeps_metadata_without(self, node: int) -> bool:
        """Return whether committed metadata survives if a node loses its disk."""

    def remove_controller(self) -> None:
        """Depose the controller without stopping a process, so that another is elected."""

    # For observers

    def controller(self) -> int | None:
        """Return the broker that is controller."""

    def quorum(self) -> tuple[int, ...]:
        """Return the voting nodes: ZooKeeper servers, or KRaft controllers."""

    def quorum_leader(self) -> int | None:
        """Return the voting node that leads a majority, None if none does."""

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return a partition's leader and ISR, None before its first leader."""

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        """Return the replicas of a partition, None before it is created."""

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return the replicas, alive or not, that can lead without losing committed records."""

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers, each with one that must be alive to lead a partition."""

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return the longest time to notice a broker's death, or to register it again."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker counts as alive."""
