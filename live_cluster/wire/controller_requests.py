"""Requests to controllers of KRaft that kafka-python has not: their fields are in ``schemas/``."""

from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from harrow.live_cluster.wire import schemas


def _message(name: str) -> Any:
    """Return the class of a message, for which kafka-python looks into the file of its name."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=schemas)


VOTE: Final = _message("VoteRequest")
"""A candidate asks for a vote (KIP-595)."""
REGISTRATION: Final = _message("BrokerRegistrationRequest")
"""A broker that starts registers (KIP-631)."""
HEARTBEAT: Final = _message("BrokerHeartbeatRequest")
"""A broker is alive (KIP-631)."""
ALTER_PARTITION: Final = _message("AlterPartitionRequest")
"""A leader wants other ISRs (KIP-497)."""

RESPONSES: Final = tuple(
    _message(f"{name}Response")
    for name in ("Vote", "BrokerRegistration", "BrokerHeartbeat", "AlterPartition")
)
"""The answers: kafka-python finds them by the requests, as long as somebody holds them."""
