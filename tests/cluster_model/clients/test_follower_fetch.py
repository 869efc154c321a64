"""A consumer with client.rack: it reads where its leader sends it, and what has it go back (KIP-392)."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.consumer import Consumer
from harrow.cluster_model.history import History
from harrow.cluster_model.protocol import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
)
from harrow.cluster_model.settings import Value, consumer_config
from tests.cluster_model.fakes import MS, FakeHost, Sent, batch

P = "t-0"
SENT_TO_2 = FetchedPartition(errors.NONE, 1, preferred_read_replica=2)
NOTHING = FetchedPartition(errors.NONE, 0)
MAX_AGE_US = 5_000 * MS


class Reading:
    """A consumer in rack c; broker 0 leads in epoch 3, and has sent it to broker 2 unless *sent* is False."""

    def __init__(self, *, sent: bool = True, rack: str = "c", **options: Any) -> None:
        settings: dict[str, Value] = {
            "client.rack": rack,
            "metadata.max.age.ms": 5_000,
            "auto.offset.reset": "latest",
        }
        self.host = FakeHost()
        self.consumer = Consumer(
            self.host,
            0,
            (0, 1, 2),
            (P,),
            consumer_config("2.4", {k: v for k, v in settings.items() if v}),
            History(),
            1_000,
            **options,
        )
        self.consumer.start()
        self.tell(0, 3)
        if sent:
            self.answer(SENT_TO_2)

    def newest(self, kind: type) -> Sent:
        return [sent for sent in self.host.sent if isinstance(sent.body, kind)][-1]

    def tell(self, leader: int, epoch: int, brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.newest(MetadataRequest).answer(MetadataResponse(brokers, {P: (leader, epoch)}))

    def tell_again(self, leader: int, epoch: int, brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.consumer._metadata.request_update()
        self.host.advance(200 * MS)
        self.tell(leader, epoch, brokers)

    def answer(self, fetched: FetchedPartition) -> None:
        self.newest(FetchRequest).answer(FetchResponse({P: fetched}))

    def goes_on(self) -> None:
        """Let it be over with waiting after an error."""
        self.host.advance(200 * MS)

    def asks(self) -> str:
        return self.newest(FetchRequest).server

    def left(self) -> list[tuple[Any, ...]]:
        return self.host.named("read_replica_cleared")


def test_it_reads_where_its_leader_sends_it_from_where_it_stands() -> None:
    reading = Reading()
    assert reading.asks() == "broker-2"
    assert reading.newest(FetchRequest).body.partitions == {P: (0, 3)}
    assert reading.newest(FetchRequest).body.rack == "c"
    reading.answer(FetchedPartition(errors.NONE, 1, (batch("m0", at=0),)))
    assert reading.asks() == "broker-2"
    assert reading.consumer.position[P] == 1
    assert reading.left() == []


def test_an_answer_that_sends_it_elsewhere_is_no_hole_up_to_the_high_watermark() -> None:
    assert Reading().consumer.reached(P) == 0


def test_without_a_rack_it_says_nothing_of_racks() -> None:
    reading = Reading(sent=False, rack="")
    assert reading.newest(FetchRequest).body.rack is None


def test_it_asks_its_leader_again_after_metadata_max_age() -> None:
    reading = Reading()
    reading.host.advance(MAX_AGE_US)
    assert reading.left() == []
    reading.host.advance(1)
    assert reading.left() == [("host", P, 2, "expired")]
    assert reading.asks() == "broker-0"


def test_being_sent_there_once_more_does_not_lengthen_that() -> None:
    reading = Reading()
    reading.host.advance(3_000 * MS)
    reading.answer(SENT_TO_2)
    reading.host.advance(2_000 * MS + 1)
    assert reading.left() == [("host", P, 2, "expired")]


def test_out_of_range_at_a_follower_is_asked_of_the_leader_and_resets_nothing() -> None:
    reading = Reading()
    reading.answer(FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1))
    assert reading.left() == [("host", P, 2, errors.OFFSET_OUT_OF_RANGE)]
    assert reading.asks() == "broker-0"
    assert not [sent for sent in reading.host.sent if isinstance(sent.body, ListOffsetsRequest)]
    reading.answer(FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1))
    assert reading.newest(ListOffsetsRequest).server == "broker-0"


@pytest.mark.parametrize(("epoch", "leader"), [(4, 1), (4, 0)])
def test_another_leader_epoch_has_it_ask_the_leader(epoch: int, leader: int) -> None:
    reading = Reading()
    reading.tell_again(leader, epoch)
    assert reading.left() == [("host", P, 2, "new leader")]
    assert reading.asks() == f"broker-{leader}"


def test_the_same_leader_epoch_changes_nothing() -> None:
    reading = Reading()
    reading.tell_again(0, 3)
    assert reading.left() == []


def test_it_leaves_a_broker_that_its_metadata_does_not_have() -> None:
    reading = Reading()
    reading.tell_again(0, 3, brokers=(0, 1))
    assert reading.left() == [("host", P, 2, "offline")]
    assert reading.asks() == "broker-0"


@pytest.mark.parametrize(
    ("error", "since_14379", "before"),
    [
        (errors.NOT_LEADER_FOR_PARTITION, True, False),
        (errors.FENCED_LEADER_EPOCH, True, False),
        (errors.UNKNOWN_LEADER_EPOCH, False, False),
        (errors.KAFKA_STORAGE_ERROR, True, True),
    ],
)
def test_which_errors_have_it_leave(error: str, since_14379: bool, before: bool) -> None:
    for clears, leaves in ((True, since_14379), (False, before)):
        reading = Reading(errors_clear_read_replica=clears)
        reading.answer(FetchedPartition(error, -1))
        reading.goes_on()
        assert reading.left() == ([("host", P, 2, error)] if leaves else [])
        assert reading.asks() == ("broker-0" if leaves else "broker-2")


@pytest.mark.parametrize("clears", [True, False])
def test_a_connection_that_is_lost_has_it_leave_since_kafka_14379(clears: bool) -> None:
    reading = Reading(errors_clear_read_replica=clears)
    connection = reading.newest(FetchRequest).connection
    connection.client_endpoint.connection_lost(connection)
    reading.goes_on()
    assert reading.left() == ([("host", P, 2, errors.NETWORK_EXCEPTION)] if clears else [])
    assert reading.asks() == ("broker-0" if clears else "broker-2")


def test_who_is_out_of_range_asks_the_leader_where_to_go_whoever_said_so() -> None:
    """The answer of a follower may come when it is read from no more (``Fetcher``)."""
    reading = Reading()
    asked = reading.newest(FetchRequest)
    reading.tell_again(1, 4)
    asked.answer(FetchResponse({P: FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)}))
    assert reading.newest(ListOffsetsRequest).server == "broker-1"
