"""The controller that a sequence tests: one of the model, or a real one."""

from typing import Any, Protocol

from harrow.cluster_model.kraft.protocol import BrokerHeartbeatRequest, BrokerRegistrationRequest
from harrow.cluster_model.protocol import AlterPartitionRequest
from harrow.live_cluster.requests.answers import Answer

RequestToController = BrokerRegistrationRequest | BrokerHeartbeatRequest | AlterPartitionRequest
"""A request of the model with all its values."""

ControllerPartitions = dict[str, list[Any]]
"""Leader, leader epoch, ISR and eligible leader replicas (KIP-966) of each partition."""


class ControllerDriver(Protocol):
    """One controller with its own topic."""

    def ask(self, request: RequestToController) -> Answer:
        """Send a request, and return the answer."""

    def create_topic(self) -> None:
        """Create the topic."""

    def elect_preferred_leaders(self) -> None:
        """Elect the preferred leader of each partition."""

    def partitions(self, expected: ControllerPartitions | None) -> ControllerPartitions:
        """Return the controller's partitions; a real one waits a while for the *expected* ones."""
