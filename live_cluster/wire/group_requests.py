"""Requests to coordinators of groups that kafka-python has not: their fields are in ``schemas/``."""

from typing import Final

from harrow.live_cluster.wire.schemas import message

CONSUMER_GROUP_HEARTBEAT: Final = message("ConsumerGroupHeartbeatRequest")
"""A member of a group whose coordinator assigns joins, is alive, or leaves (KIP-848)."""
RESPONSE: Final = message("ConsumerGroupHeartbeatResponse")
"""The answer: kafka-python finds it by the request, as long as somebody holds it."""
