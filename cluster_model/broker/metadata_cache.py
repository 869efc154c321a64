"""Caches a broker's metadata of the cluster: live brokers, leaders (``MetadataCache.scala``)."""

from collections.abc import Mapping
from types import MappingProxyType

from harrow.cluster_model.controller.control_plane import MetadataDelta
from harrow.cluster_model.controller.node_to_controller_channel import NO_NODE
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    NO_LEADER,
    LeaderAndIsrPartitionState,
    MetadataResponse,
    UpdateMetadataRequest,
)
from harrow.cluster_model.topology import is_internal


class MetadataCache:
    """The metadata that a broker has from its controller and returns to clients."""

    __slots__ = (
        *("active_brokers", "broker_epochs", "controller", "internal_partitions"),
        *("live_brokers", "partitions", "racks"),
    )

    def __init__(self, racks: Mapping[int, str] = MappingProxyType({})) -> None:
        self.racks = racks
        """The racks of brokers that have one (``broker.rack``)."""
        self.live_brokers: tuple[int, ...] = ()
        self.controller = NO_NODE
        """The controller that sent the last UpdateMetadata."""
        # In KRaft, the broker epochs of live brokers, and of those that may join ISRs.
        self.broker_epochs: Mapping[int, int] = MappingProxyType({})
        self.active_brokers: Mapping[int, int] | None = None
        self.partitions: dict[str, tuple[int, int]] = {}
        self.internal_partitions: dict[str, tuple[int, int]] = {}
        """The partitions of internal topics. No client of the workload needs them."""

    def leader_and_epoch(self, partition: str) -> tuple[int, int] | None:
        """Return the leader and the leader epoch of a partition, None if it is unknown."""
        return self.partitions.get(partition) or self.internal_partitions.get(partition)

    def live_leader(self, partition: str) -> int:
        """Return the live leader of a partition, `NO_LEADER` without one."""
        leader, _ = self.leader_and_epoch(partition) or (NO_LEADER, NO_EPOCH)
        return leader if leader in self.live_brokers else NO_LEADER

    def may_join_isr(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker may join ISRs: registered, not fenced, not shutting down.

        In KRaft it must also still have the *broker_epoch* of its fetches, if they name one
        (``isBrokerEpochIsrEligible``). A broker that has not fetched from this leader yet has none
        (`NOT_FETCHED`).
        """
        if self.active_brokers is None:
            return broker in self.live_brokers
        return broker in self.active_brokers and broker_epoch in (NO_EPOCH, self.active_brokers[broker])

    def is_of_previous_incarnation(self, broker: int, broker_epoch: int) -> bool:
        """Return whether the metadata log has a later registration of a broker than this epoch."""
        return broker_epoch != NO_EPOCH and self.broker_epochs.get(broker, broker_epoch) > broker_epoch

    def apply(self, delta: MetadataDelta) -> None:
        """Apply changes of the metadata log."""
        self.broker_epochs, self.active_brokers = delta.live_brokers, delta.active_brokers
        self._replace(tuple(delta.live_brokers), delta.partition_states)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Apply an UpdateMetadata of the controller."""
        self.controller = request.controller_id
        self._replace(request.live_brokers, request.partition_states)

    def _replace(
        self, live_brokers: tuple[int, ...], states: Mapping[str, LeaderAndIsrPartitionState]
    ) -> None:
        self.live_brokers = live_brokers
        for name, state in states.items():
            partitions = self.internal_partitions if is_internal(name) else self.partitions
            partitions[name] = (state.leader_and_isr.leader, state.leader_and_isr.leader_epoch)

    def response(self) -> MetadataResponse:
        """Return the answer for clients.

        A leader that is not alive does not count (LEADER_NOT_AVAILABLE).
        """
        live = self.live_brokers
        return MetadataResponse(
            live,
            {
                name: (leader if leader in live else NO_LEADER, epoch)
                for name, (leader, epoch) in self.partitions.items()
            },
            self.racks,
        )
