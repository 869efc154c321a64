"""The control plane of a cluster: who is controller, who is registered, who leads what, and who writes that.

Brokers, faults and observers know these interfaces; ZooKeeper (`harrow.cluster_model.zookeeper`) and KRaft
(`harrow.cluster_model.kraft`) implement them.
A partition's state is a `LeaderAndIsr` with its partition epoch, whatever keeps it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

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
"""Why leaders are elected when a partition gets other replicas."""
REASSIGNMENT_API: Final = "AlterPartitionReassignments"
CREATE_PARTITIONS_API: Final = "CreatePartitions"

INELIGIBLE: Final = -1
"""An ISR has a member that may not be in it (INELIGIBLE_REPLICA), or was not asked for: the partition is as it was."""
OUTDATED: Final = -2
"""The partition has changed (FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION), and how is about to be heard from the metadata log."""


@dataclass(slots=True, frozen=True)
class MetadataDelta:
    """What has become of the cluster, where brokers follow a log of metadata (``MetadataDelta.java``).

    ``broker_epoch`` is the receiver's own. ``live_brokers`` are not fenced, ``active_brokers`` may join ISRs, each with its broker epoch;
    ``partition_states`` are those that have changed.
    """

    broker_epoch: int
    live_brokers: Mapping[int, int]
    active_brokers: Mapping[int, int]
    partition_states: Mapping[str, LeaderAndIsrPartitionState]


class AlterPartitionManager(Protocol):
    """How a leader changes its ISR (``AlterPartitionManager.scala``)."""

    def start(self) -> None:
        """Begin what is done periodically."""

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        """Have a new ISR written, if the partition has not been written since its partition epoch.

        *broker_epochs* are those in which followers have fetched, as far as they say so.

        *on_altered* gets the new partition epoch, None when it was refused, `INELIGIBLE` when it will never be written,
        `OUTDATED` when the answer is not known before the next change of the partition.
        """


class LifecycleListener(Protocol):
    """What a broker is told by its part in a control plane, and asked."""

    @property
    def known_controller(self) -> int:
        """The controller of which it has heard last, -1 for none, where controllers send brokers what to do."""

    def has_failed_log_dirs(self) -> bool:
        """Return whether a log directory has failed, and has no proof of a clean shutdown."""

    def registered(self, broker_epoch: int) -> None:
        """The broker is registered, and knows what it has to know to handle requests."""

    def unfenced(self) -> None:
        """The broker may lead from now on; once more with each registration."""

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Something is to be obeyed, where no controller sends it."""


class BrokerLifecycle(Protocol):
    """A broker's part in the control plane, from its start to its end (``BrokerLifecycleManager.scala``)."""

    @property
    def alter_partition_manager(self) -> AlterPartitionManager:
        """How it changes ISRs."""

    @property
    def is_active_controller(self) -> bool:
        """Whether the broker takes itself for the controller."""

    @property
    def gives_up_us(self) -> int | None:
        """When the broker ends by itself, None while it will not."""

    def start(self) -> None:
        """Register the broker; it is told of each registration."""

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        """Answer with a producer id that no broker has given away (``ProducerIdManager.scala``)."""

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        """Have the broker's leaderships moved away, as far as that can be done, before it stops."""

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Move a broker's leaderships away, as its controller."""

    def handle_alter_partition(
        self, request: AlterPartitionRequest, on_handled: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Write the ISRs that a leader wants, as its controller."""

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Let the controller know that a log directory of the broker has failed (KIP-112), and with it these replicas."""

    def close(self, on_closed: Callable[[], None]) -> None:
        """Resign, and take the broker's registration back at once."""


class ControlPlane(Protocol):
    """The control plane, as clusters, faults, administrators and observers deal with it."""

    @property
    def process_names(self) -> tuple[str, ...]:
        """The processes in which it runs, besides the brokers or in theirs."""

    @property
    def servers(self) -> Mapping[int, Process]:
        """The processes that are its own, by node id: ZooKeeper servers, or controllers that are no brokers."""

    def start_server(self, node: int) -> None:
        """Begin a life of such a server, whose process has just been started."""

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        """Have such a server give up what it has, and call back when its process may end."""

    def start(self) -> None:
        """Start those processes."""

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> BrokerLifecycle:
        """Return the part of a broker that starts."""

    # What administrators and faults do

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Make a topic known by the replicas of its partitions; the controller does the rest."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Ask for other replicas of a partition, or with None that they stay as they were (KIP-455, from 2.4 on)."""

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        """Ask that a topic have so many partitions (KIP-195; ``kafka-topics --alter`` before 1.0)."""

    def expire_session(self, broker: int) -> None:
        """Take a broker for dead, as if nothing had been heard of it for its session timeout."""

    def lose_disk(self, broker: int) -> None:
        """Have a node that is down find nothing of what it knew of the cluster."""

    def has_metadata_log(self, node: int) -> bool:
        """Return whether a node keeps the cluster's metadata on a disk that can be lost."""

    def keeps_metadata_without(self, node: int) -> bool:
        """Return whether all that is committed stays so when a node loses its disk."""

    def remove_controller(self) -> None:
        """Take its office from the controller, so that one is elected; no process is stopped."""

    # What can be seen

    def controller(self) -> int | None:
        """Return the broker that is controller."""

    def quorum(self) -> tuple[int, ...]:
        """Return the nodes of which a majority decides: ZooKeeper servers, or controllers."""

    def quorum_leader(self) -> int | None:
        """Return which of them leads a majority; None while there is none."""

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return a partition's leader and ISR, None while it has never had any."""

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        """Return who has a replica of a partition, None before it is created."""

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return who can be elected leader of a partition without losing what is committed, alive or not."""

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return sets of brokers of which one each has to be alive, so that a partition gets a leader."""

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return the longest that it takes to notice that a broker is gone, or to register one that is back."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is taken for alive."""
