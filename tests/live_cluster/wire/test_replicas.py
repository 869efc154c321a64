"""A broker reports its replicas, even if its leader cannot give consumers the log end yet."""

from typing import Any

import pytest
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.replicas import replica_offsets

NOT_LEADER, LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE, UNKNOWN_LEADER_EPOCH = 6, 5, 78, 75
WITH_LOG_START = 5


class OneReplica(BrokerConnection):
    """A broker with 3 records of t-0, 2 of them committed, that answers consumers with an error."""

    def __init__(self, error: int, leader_epoch: int = 3, *, newest_fetch: int = 11) -> None:
        super().__init__(("127.0.0.1", 1))
        self._newest_fetch = newest_fetch
        self._error = error
        self._leader_epoch = leader_epoch
        self.asked = 0

    def speaks(self, kind: Any, version: int) -> bool:
        return True

    def version_of(self, kind: Any, *versions: int) -> int:
        return max(version for version in versions if version <= self._newest_fetch)

    def ask(self, request: Any) -> Any:
        self.asked += 1
        if request.name == "FetchRequest":
            topic = FetchResponse.FetchableTopicResponse
            log_start = {"log_start_offset": 1} if self._newest_fetch >= WITH_LOG_START else {}
            data = topic.PartitionData(partition_index=0, error_code=0, high_watermark=2, **log_start)
            return FetchResponse[self._newest_fetch](responses=[topic(topic="t", partitions=[data])])
        requested_epoch = request.topics[0].partitions[0].current_leader_epoch
        is_other = UNKNOWN_LEADER_EPOCH if requested_epoch not in (-1, self._leader_epoch) else 0
        error = self._error if request.replica_id == -1 else is_other
        of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
        data = of_topic.ListOffsetsPartitionResponse(
            partition_index=0, error_code=error, offset=-1 if error else 3
        )
        return ListOffsetsResponse[4](topics=[of_topic(name="t", partitions=[data])])


@pytest.mark.parametrize(
    ("error", "leads"),
    [(0, True), (LEADER_NOT_AVAILABLE, True), (OFFSET_NOT_AVAILABLE, True), (NOT_LEADER, False)],
)
def test_a_leader_is_recognized_while_its_high_watermark_is_below_the_start_of_its_epoch(
    error: int, leads: bool
) -> None:
    offsets = replica_offsets(OneReplica(error), ["t-0"])["t-0"]
    assert (offsets.leo, offsets.hw, offsets.leads) == (3, 2, leads)


@pytest.mark.parametrize(("requested_epoch", "agreed", "requests"), [(3, 3, 3), (4, None, 4)])
def test_a_replica_has_an_epoch_only_if_its_broker_is_in_it(
    requested_epoch: int, agreed: int | None, requests: int
) -> None:
    connection = OneReplica(NOT_LEADER)
    offsets = replica_offsets(connection, ["t-0"], {"t-0": requested_epoch})["t-0"]
    assert (offsets.leo, offsets.hw, offsets.leader_epoch, connection.asked) == (3, 2, agreed, requests)


@pytest.mark.parametrize(("newest_fetch", "log_start"), [(11, 1), (5, 1), (3, None)])
def test_brokers_report_log_starts_since_they_delete_records_on_request(
    newest_fetch: int, log_start: int | None
) -> None:
    offsets = replica_offsets(OneReplica(NOT_LEADER, newest_fetch=newest_fetch), ["t-0"])["t-0"]
    assert offsets.log_start == log_start
