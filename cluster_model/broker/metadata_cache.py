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


class MetadataCache:
    """Filled by the controller's UpdateMetadata, asked by clients."""

    __slots__ = ("active_brokers", "controller", "live_brokers", "partitions", "racks")

    def __init__(self, racks: Mapping[int, str] = MappingProxyType({})) -> None:
        self.racks = racks
        """Where brokers stand, of those that say so (``broker.rack``)."""
        self.live_brokers: tuple[int, ...] = ()
        self.controller = NO_NODE
        """The controller that has sent an UpdateMetadata last."""
        # In KRaft those that may join ISRs, with their broker epochs.
        self.active_brokers: Mapping[int, int] | None = None
        self.partitions: dict[str, tuple[int, int]] = {}

    def may_join_isr(self, broker: int, broker_epoch: int) -> bool:
        """Return whether a broker may join ISRs: it is registered, not fenced, and does not shut down.

        In KRaft it is still the one that has fetched in a *broker_epoch*, if fetches say that.
        """
        if self.active_brokers is None:
            return broker in self.live_brokers
        return broker in self.active_brokers and broker_epoch in (NO_EPOCH, self.active_brokers[broker])

    def apply(self, delta: MetadataDelta) -> None:
        """Take over what the metadata log says."""
        self.active_brokers = delta.active_brokers
        self._take_over(delta.live_brokers, delta.partition_states)

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what the controller says."""
        self.controller = request.controller_id
        self._take_over(request.live_brokers, request.partition_states)

    def _take_over(
        self, live_brokers: tuple[int, ...], states: Mapping[str, LeaderAndIsrPartitionState]
    ) -> None:
        self.live_brokers = live_brokers
        for name, state in states.items():
            self.partitions[name] = (state.leader_and_isr.leader, state.leader_and_isr.leader_epoch)

    def response(self) -> MetadataResponse:
        """Answer a client; a leader that is not alive is no leader (LEADER_NOT_AVAILABLE)."""
        live = self.live_brokers
        return MetadataResponse(
            live,
            {
                name: (leader if leader in live else NO_LEADER, epoch)
                for name, (leader, epoch) in self.partitions.items()
            },
        )
