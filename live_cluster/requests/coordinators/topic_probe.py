"""Whether a real group coordinator has heard of a topic that was just created.

A broker leads a topic's partitions, and tells clients so, before its group coordinator has the metadata in which the topic is: that is handed on
last, and taken by a thread of the coordinator's own (``BrokerMetadataPublisher``, ``CoordinatorRuntime.onMetadataUpdate``). A group that is
asked meanwhile is assigned nothing (KIP-848), which is nothing that the broker does differently.
"""

from typing import Any, Final

from kafka.errors import UnsupportedVersionError

from harrow.cluster_model.coordinators.protocol import JOIN_EPOCH, LEAVE_EPOCH
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.group_requests import CONSUMER_GROUP_HEARTBEAT

_MEMBER: Final = "probe"
_REBALANCE_TIMEOUT_MS: Final = 60_000


class TopicProbe:
    """A group of no sequence, which has no members but while it asks. All groups are in one partition, whose groups know the same topics."""

    def __init__(self, connection: BrokerConnection, topic: str, partitions: int) -> None:
        self._connection = connection
        self._topic = topic
        self._partitions = partitions

    def is_known(self) -> bool:
        """Return whether a member that joins is assigned the whole topic; where no coordinator assigns there is nothing to know."""
        if not self._connection.speaks(CONSUMER_GROUP_HEARTBEAT, 0):
            return True
        answer = self._heartbeat(JOIN_EPOCH, [self._topic])
        if answer.error_code == UnsupportedVersionError.errno:
            return True
        given = [] if answer.assignment is None else answer.assignment.topic_partitions
        self._heartbeat(LEAVE_EPOCH, None)
        return sum(len(topic.partitions) for topic in given) == self._partitions

    def _heartbeat(self, epoch: int, topics: list[str] | None) -> Any:
        return self._connection.ask(
            CONSUMER_GROUP_HEARTBEAT[self._connection.version_of(CONSUMER_GROUP_HEARTBEAT, 0, 1)](
                group_id=f"{_MEMBER}-{self._topic}",
                member_id=_MEMBER,
                member_epoch=epoch,
                rebalance_timeout_ms=-1 if topics is None else _REBALANCE_TIMEOUT_MS,
                subscribed_topic_names=topics,
                topic_partitions=None if topics is None else [],
            )
        )
