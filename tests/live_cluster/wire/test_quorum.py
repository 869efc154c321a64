"""A controller names the leader of the quorum and resigns when another voter is a candidate."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.quorum import depose_leader, quorum_leader

NOT_LEADER = 6


class Controller:
    """Describes its quorum and accepts votes, with configurable error codes."""

    address = ("127.0.0.1", 1)

    def __init__(self, leader: int, epoch: int, error: int = 0, error_of_partition: int = 0) -> None:
        self.error = error
        partition = SimpleNamespace(error_code=error_of_partition, leader_id=leader, leader_epoch=epoch)
        self.topics = [SimpleNamespace(partitions=[partition])]
        self.votes: list[Any] = []

    def ask(self, request: Any) -> Any:
        (topic,) = request.topics
        assert topic.topic_name == "__cluster_metadata"
        (partition,) = topic.partitions
        assert partition.partition_index == 0
        if request.name == "VoteRequest":
            self.votes.append(partition)
        # A request that cannot be encoded cannot be sent.
        request.with_header(1, "harrow")
        assert request.encode(header=True, framed=True)
        return SimpleNamespace(error_code=self.error, topics=self.topics)

    def connection(self) -> BrokerConnection:
        return cast("BrokerConnection", self)


def test_the_leader_of_the_quorum_is_the_active_controller() -> None:
    assert quorum_leader(Controller(3000, 7).connection()) == (3000, 7)


def test_a_controller_that_does_not_lead_names_no_leader() -> None:
    assert quorum_leader(Controller(0, 0, error_of_partition=NOT_LEADER).connection()) is None


def test_a_response_without_a_quorum_is_an_error() -> None:
    with pytest.raises(ConnectionLostError, match="does not describe its quorum: error 35"):
        quorum_leader(Controller(3000, 7, error=35).connection())


def test_deposing_asks_for_a_vote_in_the_next_epoch_by_a_candidate_that_cannot_win() -> None:
    controller = Controller(3000, 7)
    depose_leader(controller.connection())
    (vote,) = controller.votes
    assert (vote.candidate_epoch, vote.last_offset_epoch, vote.last_offset) == (8, 0, 0)
    assert vote.candidate_id != 3000


def test_a_controller_that_does_not_lead_is_not_deposed() -> None:
    controller = Controller(0, 0, error_of_partition=NOT_LEADER)
    depose_leader(controller.connection())
    assert controller.votes == []
