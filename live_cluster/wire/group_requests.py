"""Requests to coordinators of groups that kafka-python lacks, or has in older versions: their fields are in ``schemas/``."""

from typing import Final

import kafka.protocol.producer  # noqa: F401 - registers its own answer to TxnOffsetCommit, which the one below replaces

from harrow.live_cluster.wire.schemas import message

CONSUMER_GROUP_HEARTBEAT: Final = message("ConsumerGroupHeartbeatRequest")
"""A member of a group whose coordinator assigns joins, is alive, or leaves (KIP-848)."""
TXN_OFFSET_COMMIT: Final = message("TxnOffsetCommitRequest")
"""A transaction commits offsets of a group; from version 6 on with topic ids in place of names (KIP-1319)."""

RESPONSES: Final = (message("ConsumerGroupHeartbeatResponse"), message("TxnOffsetCommitResponse"))
"""The answers: kafka-python finds them by their requests, as long as they are held."""
