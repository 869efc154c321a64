"""What a broker knows of the cluster: who is alive, who leads what (``MetadataCache.scala``)."""

from harrow.cluster_model.protocol import NO_LEADER, MetadataResponse, UpdateMetadataRequest


class MetadataCache:
    """Filled by the controller's UpdateMetadata, asked by clients."""

    __slots__ = ("live_brokers", "partitions")

    def __init__(self) -> None:
        self.live_brokers: tuple[int, ...] = ()
        self.partitions: dict[str, tuple[int, int]] = {}

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take over what the controller says."""
        self.live_brokers = request.live_brokers
        for name, state in request.partition_states.items():
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
