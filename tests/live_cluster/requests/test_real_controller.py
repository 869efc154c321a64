"""Requests to a real controller use a version that its release supports."""

from typing import Any

import pytest

from harrow.cluster_model.kraft.protocol import BrokerRegistrationRequest
from harrow.live_cluster.requests.controllers.real_controller import RealController
from harrow.live_cluster.wire.schemas import BROKER_REGISTRATION, RESPONSES

RESPONSE = RESPONSES[BROKER_REGISTRATION.API_KEY]


class Controller:
    """Accepts registrations in its *newest* version."""

    def __init__(self, newest: int) -> None:
        self._newest = newest

    def version_of(self, request: Any, *versions: int) -> int:
        return max(
            version for version in versions if request is BROKER_REGISTRATION and version <= self._newest
        )

    def ask(self, request: Any) -> Any:
        assert self._newest == request.API_VERSION
        assert request.encode()
        return RESPONSE[self._newest](error_code=0, broker_epoch=7)


@pytest.mark.parametrize("newest", [1, 2, 4])
def test_brokers_register_in_a_version_that_the_controller_supports(newest: int) -> None:
    """3.6.2 hangs up on a registration with log directories (KIP-858), which 3.9.2 requires."""
    connection: Any = Controller(newest)
    controller = RealController(connection, connection, connection, number=1, cluster_id="c")
    assert controller.ask(BrokerRegistrationRequest(1, 0, -1)) == {"error": "NONE", "broker_epoch": 7}
