"""A consumer with client.rack reads from a follower until it returns to the leader (KIP-392)."""

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
    PartitionData,
)
from harrow.cluster_model.settings import Value, consumer_config
from tests.cluster_model.fakes import MS, FakeHost, Sent, batch

PARTITION = "t-0"
PREFERS_2 = FetchedPartition(errors.NONE, 1, preferred_read_replica=2)
NO_RECORDS = FetchedPartition(errors.NONE, 0)
MAX_AGE_US = 5_000 * MS


class ReadingConsumer:
    """A consumer in rack c. Broker 0 leads in epoch 3, and if *is_sent* prefers broker 2 for it."""

    def __init__(self, *, prefers_follower: bool = True, rack: str = "c", **options: Any) -> None:
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
            (PARTITION,),
            consumer_config("2.4", {k: v for k, v in settings.items() if v}),
            History(),
            1_000,
            **options,
        )
        self.consumer.start()
        self.answer_metadata(0, 3)
        if prefers_follower:
            self.answer(PREFERS_2)

    def latest_request(self, kind: type) -> Sent:
        return [sent for sent in self.host.sent if isinstance(sent.body, kind)][-1]

    def answer_metadata(self, leader: int, epoch: int, brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.latest_request(MetadataRequest).answer(MetadataResponse(brokers, {PARTITION: (leader, epoch)}))

    def refresh_metadata(self, leader: int, epoch: int, brokers: tuple[int, ...] = (0, 1, 2)) -> None:
        self.consumer._metadata.request_update()
        self.host.advance(200 * MS)
        self.answer_metadata(leader, epoch, brokers)

    def answer(self, fetched: FetchedPartition) -> None:
        self.latest_request(FetchRequest).answer(FetchResponse({PARTITION: fetched}))

    def wait_for_backoff(self) -> None:
        """Wait until the backoff after an error is over."""
        self.host.advance(200 * MS)

    def fetches_from(self) -> str:
        return self.latest_request(FetchRequest).server

    def departures(self) -> list[tuple[Any, ...]]:
        return self.host.events_named("read_replica_cleared")


def test_a_consumer_reads_from_the_preferred_replica_at_its_current_position() -> None:
    consumer = ReadingConsumer()
    assert consumer.fetches_from() == "broker-2"
    assert consumer.latest_request(FetchRequest).body.partitions == {PARTITION: PartitionData(0, 3)}
    assert consumer.latest_request(FetchRequest).body.rack == "c"
    consumer.answer(FetchedPartition(errors.NONE, 1, (batch("m0", at=0),)))
    assert consumer.fetches_from() == "broker-2"
    assert consumer.consumer.position[PARTITION] == 1
    assert consumer.departures() == []


def test_a_consumer_does_not_take_a_redirect_for_a_hole_in_the_log() -> None:
    assert ReadingConsumer().consumer.read_end(PARTITION) == 0


def test_a_fetch_names_no_rack_if_the_consumer_has_none() -> None:
    consumer = ReadingConsumer(prefers_follower=False, rack="")
    assert consumer.latest_request(FetchRequest).body.rack is None


def test_a_consumer_returns_to_the_leader_after_metadata_max_age() -> None:
    consumer = ReadingConsumer()
    consumer.host.advance(MAX_AGE_US)
    assert consumer.departures() == []
    consumer.host.advance(1)
    assert consumer.departures() == [("host", PARTITION, 2, "expired")]
    assert consumer.fetches_from() == "broker-0"


def test_a_repeated_redirect_does_not_extend_the_lease() -> None:
    consumer = ReadingConsumer()
    consumer.host.advance(3_000 * MS)
    consumer.answer(PREFERS_2)
    consumer.host.advance(2_000 * MS + 1)
    assert consumer.departures() == [("host", PARTITION, 2, "expired")]


def test_a_position_out_of_range_at_a_follower_is_not_reset_before_the_leader_confirms() -> None:
    consumer = ReadingConsumer()
    consumer.answer(FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1))
    assert consumer.departures() == [("host", PARTITION, 2, errors.OFFSET_OUT_OF_RANGE)]
    assert consumer.fetches_from() == "broker-0"
    assert not [sent for sent in consumer.host.sent if isinstance(sent.body, ListOffsetsRequest)]
    consumer.answer(FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1))
    assert consumer.latest_request(ListOffsetsRequest).server == "broker-0"


@pytest.mark.parametrize(("epoch", "leader"), [(4, 1), (4, 0)])
def test_a_new_leader_epoch_returns_the_consumer_to_the_leader(epoch: int, leader: int) -> None:
    consumer = ReadingConsumer()
    consumer.refresh_metadata(leader, epoch)
    assert consumer.departures() == [("host", PARTITION, 2, "new leader")]
    assert consumer.fetches_from() == f"broker-{leader}"


def test_metadata_with_the_same_leader_epoch_keeps_the_read_replica() -> None:
    consumer = ReadingConsumer()
    consumer.refresh_metadata(0, 3)
    assert consumer.departures() == []


def test_a_consumer_leaves_a_replica_that_is_missing_in_its_metadata() -> None:
    consumer = ReadingConsumer()
    consumer.refresh_metadata(0, 3, brokers=(0, 1))
    assert consumer.departures() == [("host", PARTITION, 2, "offline")]
    assert consumer.fetches_from() == "broker-0"


@pytest.mark.parametrize(
    ("error", "since_14379", "before"),
    [
        (errors.NOT_LEADER_FOR_PARTITION, True, False),
        (errors.FENCED_LEADER_EPOCH, True, False),
        (errors.UNKNOWN_LEADER_EPOCH, False, False),
        (errors.KAFKA_STORAGE_ERROR, True, True),
    ],
)
def test_fetch_errors_return_a_consumer_to_the_leader_depending_on_the_release(
    error: str, since_14379: bool, before: bool
) -> None:
    for clears, leaves in ((True, since_14379), (False, before)):
        consumer = ReadingConsumer(fetch_error_clears_read_replica=clears)
        consumer.answer(FetchedPartition(error, -1))
        consumer.wait_for_backoff()
        assert consumer.departures() == ([("host", PARTITION, 2, error)] if leaves else [])
        assert consumer.fetches_from() == ("broker-0" if leaves else "broker-2")


@pytest.mark.parametrize("clears", [True, False])
def test_since_kafka_14379_a_lost_connection_returns_a_consumer_to_the_leader(clears: bool) -> None:
    consumer = ReadingConsumer(fetch_error_clears_read_replica=clears)
    connection = consumer.latest_request(FetchRequest).connection
    connection.client_endpoint.connection_lost(connection)
    consumer.wait_for_backoff()
    assert consumer.departures() == ([("host", PARTITION, 2, errors.NETWORK_EXCEPTION)] if clears else [])
    assert consumer.fetches_from() == ("broker-0" if clears else "broker-2")


def test_a_position_out_of_range_is_reset_by_the_leader_even_if_a_follower_refused_it() -> None:
    """The follower's answer may come after the consumer has left it (``Fetcher``)."""
    consumer = ReadingConsumer()
    fetch = consumer.latest_request(FetchRequest)
    consumer.refresh_metadata(1, 4)
    fetch.answer(FetchResponse({PARTITION: FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)}))
    assert consumer.latest_request(ListOffsetsRequest).server == "broker-1"
