"""Caches the live brokers and the leaders that a broker knows of (``MetadataCache.scala``)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from harrow.cluster_model.controller.control_plane import MetadataDelta
from harrow.cluster_model.controller.node_to_controller_channel import NO_NODE
from harrow.cluster_model.protocol import (
    LEADER_DURING_DELETE,
    NO_EPOCH,
    NO_LEADER,
    LeaderAndIsrPartitionState,
    MetadataResponse,
    UpdateMetadataRequest,
)
from harrow.cluster_model.topology import is_internal


class MetadataCache:
    """The metadata that a broker gets from its controller and returns to clients."""

    __slots__ = (
        *("active_brokers", "broker_epochs", "controller", "internal_partitions"),
        *("live_brokers", "partitions", "racks"),
    )

    def __init__(self, racks: Mapping[int, str] = MappingProxyType({})) -> None:
        self.racks = racks
        """The rack of each broker that has one (``broker.rack``)."""
        self.live_brokers: tuple[int, ...] = ()
        self.controller = NO_NODE
        """The controller that sent the last UpdateMetadata request."""
        # In KRaft: the broker epochs of all live brokers, and of the brokers that may join ISRs.
        self.broker_epochs: Mapping[int, int] = MappingProxyType({})
        self.active_brokers: Mapping[int, int] | None = None
        self.partitions: dict[str, tuple[int, int]] = {}
        self.internal_partitions: dict[str, tuple[int, int]] = {}
        """The partitions of internal topics, which clients of the workload do not need."""

    def leader_and_epoch(self, partition: str) -> tuple[int, int] | None:
        """Return the leader and the leader epoch of a partition; None if it is unknown."""
        return self.partitions.get(partition) or self.internal_partitions.get(partition)

    def has_topic(self, topic: str) -> bool:
        """Return whether the broker knows a topic."""
        return self.leader_and_epoch(f"{topic}-0") is not None

    def live_leader(self, partition: str) -> int:
        """Return the leader of a partition, or `NO_LEADER` if there is none or it is not alive."""
        leader, _ = self.leader_and_epoch(partition) or (NO_LEADER, NO_EPOCH)
        return leader if leader in self.live_brokers else NO_LEADER

    def may_join_isr(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker may join ISRs: it is registered, not fenced, not shutting down.

        In KRaft the current epoch of the broker must also be the *broker_epoch* that its fetches
        carry, if they carry one (``isBrokerEpochIsrEligible``). The epoch of a broker that has not
        fetched from this leader yet is `NOT_FETCHED`, so that broker may not join.
        """
        if self.active_brokers is None:
            return broker in self.live_brokers
        return broker in self.active_brokers and broker_epoch in (NO_EPOCH, self.active_brokers[broker])

    def is_of_previous_incarnation(self, broker: int, broker_epoch: int) -> bool:
        """Return whether the broker has registered again since it had *broker_epoch*."""
        return broker_epoch != NO_EPOCH and self.broker_epochs.get(broker, broker_epoch) > broker_epoch

    def apply(self, delta: MetadataDelta) -> None:
        """Apply changes of the metadata log."""
        self.broker_epochs, self.active_brokers = delta.live_brokers, delta.active_brokers
        self._replace(tuple(delta.live_brokers), delta.partition_states)
        self.forget(delta.deleted)

    def forget(self, deleted: Iterable[str]) -> None:
        """Forget the partitions of topics that were deleted."""
        for name in deleted:
            self.partitions.pop(name, None)

    def update(self, request: UpdateMetadataRequest) -> tuple[str, ...]:
        """Apply an UpdateMetadata request of the controller, and return the deleted partitions."""
        self.controller = request.controller_id
        states = request.partition_states
        self._replace(request.live_brokers, states)
        return tuple([n for n, s in states.items() if s.leader_and_isr.leader == LEADER_DURING_DELETE])

    def _replace(
        self, live_brokers: tuple[int, ...], states: Mapping[str, LeaderAndIsrPartitionState]
    ) -> None:
        self.live_brokers = live_brokers
        for name, state in states.items():
            if state.leader_and_isr.leader == LEADER_DURING_DELETE:
                self.forget((name,))
                continue
            partitions = self.internal_partitions if is_internal(name) else self.partitions
            partitions[name] = (state.leader_and_isr.leader, state.leader_and_isr.leader_epoch)

    def response(self) -> MetadataResponse:
        """Return the answer for clients.

        A partition whose leader is not alive has no leader (LEADER_NOT_AVAILABLE).
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
