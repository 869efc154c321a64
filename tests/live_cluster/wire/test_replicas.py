"""What a broker says of its replicas: also one that leads and cannot tell a consumer where its log ends."""

from types import SimpleNamespace
from typing import Any

import pytest

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.replicas import replica_offsets

NOT_LEADER, LEADER_NOT_AVAILABLE, OFFSET_NOT_AVAILABLE = 6, 5, 78


class OneReplica(BrokerConnection):
    """A connection to a broker that has t-0, of 3 records, 2 of them committed, and answers a consumer with an error."""

    def __init__(self, error: int) -> None:
        super().__init__(("127.0.0.1", 1))
        self._error = error

    def version_of(self, kind: Any, *wanted: int) -> int:
        return wanted[-1]

    def ask(self, request: Any) -> Any:
        if type(request).__name__.startswith("Fetch"):
            told = SimpleNamespace(partition_index=0, error_code=0, high_watermark=2)
            return SimpleNamespace(responses=[SimpleNamespace(topic="t", partitions=[told])])
        is_consumer = request.replica_id == -1
        told = SimpleNamespace(partition_index=0, error_code=self._error if is_consumer else 0, offset=3)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[told])])


@pytest.mark.parametrize(
    ("error", "leads"),
    [(0, True), (LEADER_NOT_AVAILABLE, True), (OFFSET_NOT_AVAILABLE, True), (NOT_LEADER, False)],
)
def test_a_leader_is_one_also_while_its_high_watermark_is_below_the_start_of_its_epoch(
    error: int, leads: bool
) -> None:
    found = replica_offsets(OneReplica(error), ["t-0"])["t-0"]
    assert (found.leo, found.hw, found.leads) == (3, 2, leads)
