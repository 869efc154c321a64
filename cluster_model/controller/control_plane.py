"""The control plane of a cluster: who is controller, who is registered, who leads what, and who writes that.

Brokers, faults and observers know these interfaces; ZooKeeper implements them (`harrow.cluster_model.zookeeper`).
A partition's state is a `LeaderAndIsr` with its partition epoch, whatever keeps it.
"""

from collections.abc import Callable
from typing import Protocol

from harrow.cluster_model.protocol import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    InitProducerIdResponse,
    LeaderAndIsr,
)
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host


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
    ) -> None:
        """Have a new ISR written, if nobody has written the partition since its partition epoch.

        *on_altered* gets the new partition epoch, None when it was refused.
        """


class BrokerLifecycle(Protocol):
    """A broker's part in the control plane, from its start to its end (``BrokerLifecycleManager.scala``)."""

    @property
    def alter_partition_manager(self) -> AlterPartitionManager:
        """How it changes ISRs."""

    @property
    def is_active_controller(self) -> bool:
        """Whether the broker takes itself for the controller."""

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

    def close(self, on_closed: Callable[[], None]) -> None:
        """Resign, and take the broker's registration back at once."""


class ControlPlane(Protocol):
    """The control plane, as clusters, faults, administrators and observers deal with it."""

    @property
    def process_names(self) -> tuple[str, ...]:
        """The processes that it has besides the brokers."""

    def start(self) -> None:
        """Start those processes."""

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        on_registered: Callable[[int], None],
    ) -> BrokerLifecycle:
        """Return the part of a broker that starts; *on_registered* gets its broker epoch."""

    # What administrators and faults do

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Make a topic known by the replicas of its partitions; the controller does the rest."""

    def elect_preferred_leaders(self) -> None:
        """Ask for preferred leader election, as ``kafka-preferred-replica-election`` does."""

    def expire_session(self, broker: int) -> None:
        """Take a broker for dead, as if nothing had been heard of it for its session timeout."""

    def remove_controller(self) -> None:
        """Take its office from the controller, so that one is elected; no process is stopped."""

    # What can be seen

    def controller(self) -> int | None:
        """Return the broker that is controller."""

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return a partition's leader and ISR, None while it has never had any."""

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return the longest that it takes to notice that a broker is gone, or to register one that is back."""

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is taken for alive."""
