"""The broker that a sequence tests: one of the model, or a real one."""

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
"""A broker that is registered but does not run: the driver sends fetches in its name."""
TOPIC: Final = "t"
PARTITIONS: Final = (0, 1)
REPLICAS: Final = (FOLLOWER, BROKER)
"""The follower is the preferred leader, so that it can be elected. The topic is created while the
follower is not registered, so the broker leads it at first."""

SingleRequest = (
    ProduceRequest
    | FetchRequest
    | ListOffsetsRequest
    | OffsetsForLeaderEpochRequest
    | InitProducerIdRequest
    | MetadataRequest
)
"""A request of the model with all its values."""

PartitionStates = dict[str, list[object]]
"""Leader, leader epoch and ISR of each partition, as the control plane has them."""


class BrokerDriver(Protocol):
    """One broker with its own topic, and its control plane."""

    def ask(self, request: SingleRequest) -> Answer:
        """Send a request, and return the answer."""

    def register_follower(self) -> None:
        """Register the follower; return once the broker knows the follower."""

    def unregister_follower(self) -> None:
        """Unregister the follower; return once the broker leads the follower's partitions."""

    def elect_follower(self) -> None:
        """Elect the preferred leader of each partition; return once the broker knows them."""

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return the control plane's states; a real one waits a while for the *expected* states."""


def partition_name(number: int) -> str:
    return f"{TOPIC}-{number}"
