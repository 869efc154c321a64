"""What a broker knows of the cluster: who is alive, who leads what (``MetadataCache.scala``)."""

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
    """Filled by the controller's UpdateMetadata, asked by clients."""

    __slots__ = (
        *("active_brokers", "broker_epochs", "controller", "internal_partitions"),
        *("live_brokers", "partitions", "racks"),
    )

    def __init__(self, racks: Mapping[int, str] = MappingProxyType({})) -> None:
        self.racks = racks
        """Where brokers stand, of those that say so (``broker.rack``)."""
        self.live_brokers: tuple[int, ...] = ()
        self.controller = NO_NODE
        """The controller that has sent an UpdateMetadata last."""
        # In KRaft those that are alive, and those that may join ISRs, with their broker epochs.
        self.broker_epochs: Mapping[int, int] = MappingProxyType({})
        self.active_brokers: Mapping[int, int] | None = None
        self.partitions: dict[str, tuple[int, int]] = {}
        self.internal_partitions: dict[str, tuple[int, int]] = {}
        """Those of internal topics, for which no client of the workload asks."""

    def leader_and_epoch(self, partition: str) -> tuple[int, int] | None:
        """Return who leads a partition in which epoch; None for a partition that is not known."""
        return self.partitions.get(partition) or self.internal_partitions.get(partition)

    def live_leader(self, partition: str) -> int:
        """Return the leader of a partition that is alive, `NO_LEADER` while there is none."""
        leader, _ = self.leader_and_epoch(partition) or (NO_LEADER, NO_EPOCH)
        return leader if leader in self.live_brokers else NO_LEADER

    def may_join_isr(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker may join ISRs: it is registered, not fenced, and does not shut down.

        In KRaft it is still the one that has fetched in a *broker_epoch*, if fetches say that (``isBrokerEpochIsrEligible``): one that
        has not fetched yet in this leader's term has none (`NOT_FETCHED`).
        """
        if self.active_brokers is None:
            return broker in self.live_brokers
        return broker in self.active_brokers and broker_epoch in (NO_EPOCH, self.active_brokers[broker])

    def is_of_former_life(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker has registered again since it had an epoch, as the metadata log says."""
        return broker_epoch != NO_EPOCH and self.broker_epochs.get(broker, broker_epoch) > broker_epoch

    def apply(self, delta: MetadataDelta) -> None:
        """Take over what the metadata log says."""
        self.broker_epochs, self.active_brokers = delta.live_brokers, delta.active_brokers
        self._take_over(tuple(delta.live_brokers), delta.partition_states)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what the controller says."""
        self.controller = request.controller_id
        self._take_over(request.live_brokers, request.partition_states)

    def _take_over(
        self, live_brokers: tuple[int, ...], states: Mapping[str, LeaderAndIsrPartitionState]
    ) -> None:
        self.live_brokers = live_brokers
        for name, state in states.items():
            known = self.internal_partitions if is_internal(name) else self.partitions
            known[name] = (state.leader_and_isr.leader, state.leader_and_isr.leader_epoch)

    def response(self) -> MetadataResponse:
        """Answer a client; a leader that is not alive is no leader (LEADER_NOT_AVAILABLE)."""
        live = self.live_brokers
        return MetadataResponse(
            live,
            {
                name: (leader if leader in live else NO_LEADER, epoch)
                for name, (leader, epoch) in self.partitions.items()
            },
            self.racks,
        )
