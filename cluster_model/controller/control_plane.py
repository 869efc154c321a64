"""Defines the interfaces of a control plane: controllers, registrations, leaders, ISRs.

Brokers, faults and observers use these interfaces. ZooKeeper (`harrow.cluster_model.zookeeper`) and
KRaft (`harrow.cluster_model.kraft`) implement them. In both, the state of a partition is a
`LeaderAndIsr`, which includes the partition epoch.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Protocol

from harrow.cluster_model.controller.administration import AdministrationRequest, NewTopic
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
from harrow.cluster_model.settings import BrokerConfig, TopicConfig, Value
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.process import Process

ADMIN: Final = "admin"
REASSIGNMENT_API: Final = "AlterPartitionReassignments"
CREATE_PARTITIONS_API: Final = "CreatePartitions"

# The reasons of elections.
BROKER_FAILURE: Final = "broker failure"
BROKER_STARTUP: Final = "broker startup"
CONTROLLED_SHUTDOWN: Final = "controlled shutdown"
CONTROLLER_FAILOVER: Final = "controller failover"
LOG_DIRECTORY_FAILURE: Final = "log directory failure"
PREFERRED_LEADER: Final = "preferred leader"
REASSIGNMENT: Final = "reassignment"
TOPIC_CREATION: Final = "topic creation"
UNCLEAN_BY_ADMINISTRATOR: Final = "unclean election by an administrator"

INELIGIBLE: Final = -1
"""The outcome of a change to an ISR with an ineligible member: the partition is unchanged."""
OUTDATED: Final = -2
"""The outcome of a change if the partition had changed before it.

The errors are FENCED_LEADER_EPOCH and INVALID_UPDATE_VERSION. The metadata log brings that other
change.
"""


@dataclass(slots=True, frozen=True)
class MetadataDelta:
    """A change of the cluster from the metadata log (``MetadataDelta.java``).

    ``broker_epoch`` is the epoch of the broker that receives the change. ``live_brokers`` are the
    unfenced brokers and ``active_brokers`` those that may join ISRs, both with their broker epochs.
    ``partition_states`` has the partitions that have changed.
    """

    broker_epoch: int
    live_brokers: Mapping[int, int]
    active_brokers: Mapping[int, int]
    partition_states: Mapping[str, LeaderAndIsrPartitionState]
    topic_settings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """All settings of the topics and brokers whose settings an administrator has changed."""
    deleted: tuple[str, ...] = ()
    """The partitions of topics that were deleted."""


class AlterPartitionManager(Protocol):
    """Has the ISRs of a leader changed (``AlterPartitionManager.scala``)."""

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
        """Request a new ISR.

        It is written unless the partition has a later partition epoch by then. *broker_epochs* are
        the epochs that followers have sent in their fetches.

        *on_altered* is called with the new partition epoch. After a refusal it is called with None,
        with `INELIGIBLE` if the ISR can never be written, or with `OUTDATED` if the leader must
        wait for a change of the partition that was written first.
        """


class LifecycleListener(Protocol):
    """A broker, as its `BrokerLifecycle` sees it."""

    @property
    def known_controller(self) -> int:
        """The controller that sent the last control request; -1 if there was none.

        Only controllers with ZooKeeper send control requests.
        """

    def has_failed_log_dirs(self) -> bool:
        """Return whether a log directory has failed, so that it cannot prove a clean shutdown."""

    def on_registration(self, broker_epoch: int) -> None:
        """Start to handle requests: the broker is registered and its metadata is up to date."""

    def on_unfencing(self) -> None:
        """Lead partitions from now on. This is called after each registration."""

    def on_metadata_update(self, delta: MetadataDelta) -> None:
        """Apply a change that comes from the metadata log."""


class BrokerLifecycle(Protocol):
    """A broker's membership of the control plane (``BrokerLifecycleManager.scala``)."""

    @property
    def alter_partition_manager(self) -> AlterPartitionManager:
        """The object with which the broker requests changes of ISRs."""

    @property
    def is_active_controller(self) -> bool:
        """Whether the broker considers itself the controller."""

    @property
    def exit_us(self) -> int | None:
        """When the broker will exit by itself; None if it will not."""

    def start(self) -> None:
        """Register the broker, and tell its `LifecycleListener` of each registration."""

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        """Call back with an unused producer id (``ProducerIdManager.scala``)."""

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        """Have the broker's leaderships moved as far as possible before it stops."""

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Move the leaderships of a broker that shuts down, if this broker is the controller."""

    def handle_alter_partition(
        self, request: AlterPartitionRequest, on_handled: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Write ISR changes for a leader, if this broker is the controller."""

    def create_topics(
        self,
        topics: tuple[NewTopic, ...],
        on_answer: Callable[[Mapping[str, str]], None],
        on_end: Callable[[], None],
    ) -> None:
        """Create topics that a client has named.

        *on_answer* gets the errors that the client sees meanwhile. *on_end* is called when the
        creation has succeeded or failed.
        """

    def administer(self, request: AdministrationRequest, on_handled: Callable[[Any], None]) -> None:
        """Have the controller handle an administrator's request (``ForwardingManager``).

        With ZooKeeper only the broker that is the controller does so.
        """

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Report the replicas of a failed log directory to the controller (KIP-112)."""

    def close(self, on_closed: Callable[[], None]) -> None:
        """Resign, and end the broker's registration at once."""


class ControlPlane(Protocol):
    """The control plane, as clusters, faults, administrators and observers use it."""

    @property
    def process_names(self) -> tuple[str, ...]:
        """The names of the processes that it runs in: its own, or those of brokers."""

    @property
    def servers(self) -> Mapping[int, Process]:
        """Its own processes, by node id: ZooKeeper servers, or separate controllers."""

    def start_server(self, node: int) -> None:
        """Start a server of the control plane. Its process has just started."""

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        """Shut down a server of the control plane, and call *on_ended* when its process may end."""

    def start(self) -> None:
        """Start the control plane's own processes."""

    def dismantle(self) -> None:
        """Drop the metadata of partitions (`Cluster.dismantle`)."""

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> BrokerLifecycle:
        """Return the `BrokerLifecycle` of a broker that starts."""

    # For administrators and faults

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Create a topic with these replicas. The controller then elects leaders."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Request other replicas for a partition (KIP-455, from 2.4 on).

        With None, cancel its reassignment.
        """

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        """Raise a topic's number of partitions (KIP-195; before 1.0 ``kafka-topics --alter``)."""

    def expire_session(self, broker: int) -> None:
        """Expire a broker's session, as if its session timeout had passed."""

    def lose_disk(self, broker: int) -> None:
        """Delete the metadata of a node that is down."""

    def has_metadata_log(self, node: int) -> bool:
        """Return whether a node has the cluster's metadata on a disk that a fault may empty."""

    def keeps_metadata_without(self, node: int) -> bool:
        """Return whether all committed metadata survives if *node* loses its disk."""

    def remove_controller(self) -> None:
        """Depose the controller without stopping a process, so that there is a new election."""

    # For observers

    def controller(self) -> int | None:
        """Return the node that is the controller; None if there is none."""

    def quorum(self) -> tuple[int, ...]:
        """Return the voting nodes: ZooKeeper servers, or KRaft controllers."""

    def quorum_leader(self) -> int | None:
        """Return the voting node that leads a majority; None if none does."""

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return a partition's leader and ISR; None before it has had a leader."""

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        """Return the replicas of a partition; None before it has been created."""

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return the replicas, alive or not, that can lead without losing committed records."""

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers.

        One of each set must live so that a partition can have a leader.
        """

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return the longest time until a broker's death is noticed, or it is registered again."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is registered and, in KRaft, not fenced."""
