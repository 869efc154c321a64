"""A probe asks a group coordinator whether it knows a topic before a sequence begins."""

from typing import Any

import pytest
from kafka.errors import UnsupportedVersionError

from harrow.live_cluster.requests.coordinators.real_coordinator import TopicProbe
from harrow.live_cluster.wire.schemas import CONSUMER_GROUP_HEARTBEAT, RESPONSES

ANSWER = RESPONSES[CONSUMER_GROUP_HEARTBEAT.API_KEY]


class Connection:
    """A broker whose coordinator learns of the partitions of a topic request by request."""

    def __init__(self, *partitions: tuple[int, ...], speaks: bool = True, error_code: int = 0) -> None:
        self.epochs: list[int] = []
        self._partitions = list(partitions)
        self._speaks = speaks
        self._error_code = error_code

    def speaks(self, request: Any, version: int) -> bool:
        return self._speaks and request is CONSUMER_GROUP_HEARTBEAT and version <= 1

    def version_of(self, request: Any, *versions: int) -> int:
        return max(versions)

    def ask(self, request: Any) -> Any:
        self.epochs.append(request.member_epoch)
        answer = ANSWER[1](error_code=self._error_code, member_epoch=request.member_epoch)
        if request.member_epoch == 0 and not self._error_code:
            assert request.subscribed_topic_names == ["t7"]
            assignment = ANSWER.Assignment
            numbers = list(self._partitions.pop(0))
            topics = [assignment.TopicPartitions(partitions=numbers)] if numbers else []
            answer.assignment = assignment(topic_partitions=topics)
        return answer


def test_a_topic_is_known_after_a_member_has_all_its_partitions() -> None:
    connection = Connection((), (0,), (0, 1))
    probe = TopicProbe(connection, "t7", 2)  # type: ignore[arg-type]
    assert [probe.is_known() for _ in range(3)] == [False, False, True]
    assert connection.epochs == [0, -1] * 3


@pytest.mark.parametrize(
    "connection", [Connection(speaks=False), Connection(error_code=UnsupportedVersionError.errno)]
)
def test_classic_groups_do_not_wait_for_topics(connection: Connection) -> None:
    assert TopicProbe(connection, "t7", 2).is_known()  # type: ignore[arg-type]
    assert connection.epochs in ([], [0])
