"""A controller that sequences are driven against, of the model or a real one."""

from typing import Any, Protocol

from harrow.cluster_model.kraft.protocol import BrokerHeartbeatRequest, BrokerRegistrationRequest
from harrow.cluster_model.protocol import AlterPartitionRequest
from harrow.live_cluster.requests.answers import Answer

RequestToController = BrokerRegistrationRequest | BrokerHeartbeatRequest | AlterPartitionRequest
"""A request in the model's words, with all its values."""


PartitionsSeen = dict[str, list[Any]]
"""Leader, leader epoch, ISR and eligible leader replicas (KIP-966) of each partition, as the controller has decided."""


class ControllerDriver(Protocol):
    """One controller, and a topic of its own."""

    def ask(self, request: RequestToController) -> Answer:
        """Send a request, and return the answer."""

    def create_topic(self) -> None:
        """Create the topic."""

    def elect_preferred_leaders(self) -> None:
        """Have the preferred leader of each partition elected."""

    def partitions(self, expected: PartitionsSeen | None) -> PartitionsSeen:
        """Return what has been decided; where that takes time to be seen it is waited for what is *expected*."""
