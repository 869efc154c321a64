"""Messages whose schemas kafka-python lacks, with the fields of Kafka's ``common/message``."""

import sys
from typing import Any, Final

import kafka.protocol.producer  # noqa: F401 - registers its own TxnOffsetCommit, which the one below replaces
from kafka.protocol.api_message import ApiMessage


def message(name: str) -> Any:
    """Return the class of a message; kafka-python reads its schema from the JSON file here."""
    return type(ApiMessage)(name, (ApiMessage,), {}, load_json=sys.modules[__name__])


VOTE: Final = message("VoteRequest")
"""A candidate asks for a vote (KIP-595)."""
BROKER_REGISTRATION: Final = message("BrokerRegistrationRequest")
"""A starting broker registers (KIP-631)."""
BROKER_HEARTBEAT: Final = message("BrokerHeartbeatRequest")
"""A broker reports that it is alive (KIP-631)."""
ALTER_PARTITION: Final = message("AlterPartitionRequest")
"""A leader asks for a change of its ISR (KIP-497)."""
CONSUMER_GROUP_HEARTBEAT: Final = message("ConsumerGroupHeartbeatRequest")
"""A member of a consumer group joins, reports that it is alive, or leaves (KIP-848)."""
CONSUMER_GROUP_DESCRIBE: Final = message("ConsumerGroupDescribeRequest")
"""An administrator asks for the state of consumer groups (KIP-848)."""
TXN_OFFSET_COMMIT: Final = message("TxnOffsetCommitRequest")
"""A transaction commits offsets of a group; since version 6 with topic ids instead of names
(KIP-1319)."""

RESPONSES: Final = {
    kind.API_KEY: kind
    for kind in (
        message(f"{name}Response")
        for name in (
            *("Vote", "BrokerRegistration", "BrokerHeartbeat", "AlterPartition"),
            *("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "TxnOffsetCommit"),
        )
    )
}
"""The responses, by API. kafka-python finds them through the requests but holds only weak
references to them."""
