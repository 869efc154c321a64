"""A broker that sequences are driven against, of the model or a real one."""

from typing import Final, Protocol

from harrow.cluster_model.protocol import (
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
)
from harrow.live_cluster.requests.answers import Answer

BROKER: Final = 0
FOLLOWER: Final = 1
"""A broker that is registered, and never there: nothing listens at its address, and fetches in its name are the driver's."""
TOPIC: Final = "t"
PARTITIONS: Final = (0, 1)
REPLICAS: Final = (FOLLOWER, BROKER)
"""The follower is preferred, so that it can be elected; it is created while the follower is not registered, and led by the broker."""

SingleRequest = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | OffsetsForLeaderEpochRequest
    | InitProducerIdRequest
    | MetadataRequest
)
"""A request in the model's words, with all its values."""

PartitionStates = dict[str, list[object]]
"""Leader, leader epoch and ISR of each partition, as the control plane has them."""


class BrokerDriver(Protocol):
    """One broker with a topic of its own, and its control plane."""

    def ask(self, request: SingleRequest) -> Answer:
        """Send a request, and return the answer."""

    def register_follower(self) -> None:
        """Register the follower, and return when the broker knows."""

    def unregister_follower(self) -> None:
        """Take the registration back, and return when the broker leads what the follower led."""

    def elect_follower(self) -> None:
        """Have the preferred leader of each partition elected, and return when the broker knows."""

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return what the control plane has; where that takes time it is waited for what is *expected*."""


def partition_name(number: int) -> str:
    return f"{TOPIC}-{number}"
