"""Messages that kafka-python has no schemas of, as it wants them: their fields are those of Kafka's ``common/message``."""

import sys
from typing import Any, Final

import kafka.protocol.producer  # noqa: F401 - registers its own TxnOffsetCommit, which the one below replaces
from kafka.protocol.api_message import ApiMessage


def message(name: str) -> Any:
    """Return the class of a message, for which kafka-python looks into the file of its name here."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=sys.modules[__name__])


VOTE: Final = message("VoteRequest")
"""A candidate asks for a vote (KIP-595)."""
BROKER_REGISTRATION: Final = message("BrokerRegistrationRequest")
"""A broker that starts registers (KIP-631)."""
BROKER_HEARTBEAT: Final = message("BrokerHeartbeatRequest")
"""A broker is alive (KIP-631)."""
ALTER_PARTITION: Final = message("AlterPartitionRequest")
"""A leader wants other ISRs (KIP-497)."""
CONSUMER_GROUP_HEARTBEAT: Final = message("ConsumerGroupHeartbeatRequest")
"""A member of a group whose coordinator assigns joins, is alive, or leaves (KIP-848)."""
TXN_OFFSET_COMMIT: Final = message("TxnOffsetCommitRequest")
"""A transaction commits offsets of a group; from version 6 on with topic ids in place of names (KIP-1319)."""

RESPONSES: Final = {
    kind.API_KEY: kind
    for kind in (
        message(f"{name}Response")
        for name in (
            *("Vote", "BrokerRegistration", "BrokerHeartbeat", "AlterPartition"),
            *("ConsumerGroupHeartbeat", "TxnOffsetCommit"),
        )
    )
}
"""The answers, by API. kafka-python finds them by their requests and refers to them weakly, so they are held here."""
