"""Requests to controllers of KRaft that kafka-python has not: their fields are in ``schemas/``."""

from typing import Final

from harrow.live_cluster.wire.schemas import message

VOTE: Final = message("VoteRequest")
"""A candidate asks for a vote (KIP-595)."""
REGISTRATION: Final = message("BrokerRegistrationRequest")
"""A broker that starts registers (KIP-631)."""
HEARTBEAT: Final = message("BrokerHeartbeatRequest")
"""A broker is alive (KIP-631)."""
ALTER_PARTITION: Final = message("AlterPartitionRequest")
"""A leader wants other ISRs (KIP-497)."""

RESPONSES: Final = tuple(
    message(f"{name}Response") for name in ("Vote", "BrokerRegistration", "BrokerHeartbeat", "AlterPartition")
)
"""The answers. kafka-python finds them by their requests, and refers to them weakly: unless they are held here they are gone."""
