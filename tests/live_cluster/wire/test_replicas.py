"""What a broker says of its replicas: also one that leads and cannot tell a consumer where its log ends."""

from typing import Any

import pytest
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.replicas import replica_offsets

NOT_LEADER, LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE, UNKNOWN_LEADER_EPOCH = 6, 5, 78, 75
WITH_LOG_START = 5


class OneReplica(BrokerConnection):
    """A connection to a broker that has t-0, of 3 records, 2 of them committed, and answers a consumer with an error."""

    def __init__(self, error: int, leader_epoch: int = 3, *, newest_fetch: int = 11) -> None:
        super().__init__(("127.0.0.1", 1))
        self._newest_fetch = newest_fetch
        self._error = error
        self._leader_epoch = leader_epoch
        self.asked = 0

    def speaks(self, kind: Any, version: int) -> bool:
        return True

    def version_of(self, kind: Any, *wanted: int) -> int:
        return max(version for version in wanted if version <= self._newest_fetch)

    def ask(self, request: Any) -> Any:
        self.asked += 1
        if request.name == "FetchRequest":
            topic = FetchResponse.FetchableTopicResponse
            log_start = {"log_start_offset": 1} if self._newest_fetch >= WITH_LOG_START else {}
            told = topic.PartitionData(partition_index=0, error_code=0, high_watermark=2, **log_start)
            return FetchResponse[self._newest_fetch](responses=[topic(topic="t", partitions=[told])])
        wanted = request.topics[0].partitions[0].current_leader_epoch
        is_other = UNKNOWN_LEADER_EPOCH if wanted not in (-1, self._leader_epoch) else 0
        error = self._error if request.replica_id == -1 else is_other
        of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
        told = of_topic.ListOffsetsPartitionResponse(
            partition_index=0, error_code=error, offset=-1 if error else 3
        )
        return ListOffsetsResponse[4](topics=[of_topic(name="t", partitions=[told])])


@pytest.mark.parametrize(
    ("error", "leads"),
    [(0, True), (LEADER_NOT_AVAILABLE, True), (OFFSET_NOT_AVAILABLE, True), (NOT_LEADER, False)],
)
def test_a_leader_is_recognized_while_its_high_watermark_is_below_the_start_of_its_epoch(
    error: int, leads: bool
) -> None:
    found = replica_offsets(OneReplica(error), ["t-0"])["t-0"]
    assert (found.leo, found.hw, found.leads) == (3, 2, leads)


@pytest.mark.parametrize(("wanted", "agreed", "requests"), [(3, 3, 3), (4, None, 4)])
def test_a_replica_has_an_epoch_only_if_its_broker_is_in_it(
    wanted: int, agreed: int | None, requests: int
) -> None:
    connection = OneReplica(NOT_LEADER)
    found = replica_offsets(connection, ["t-0"], {"t-0": wanted})["t-0"]
    assert (found.leo, found.hw, found.leader_epoch, connection.asked) == (3, 2, agreed, requests)


@pytest.mark.parametrize(("newest_fetch", "log_start"), [(11, 1), (5, 1), (3, None)])
def test_brokers_report_log_starts_since_they_delete_records_on_request(
    newest_fetch: int, log_start: int | None
) -> None:
    found = replica_offsets(OneReplica(NOT_LEADER, newest_fetch=newest_fetch), ["t-0"])["t-0"]
    assert found.log_start == log_start
