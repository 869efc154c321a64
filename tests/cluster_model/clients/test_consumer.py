"""A consumer's fetches: their leader epochs, and positions that are out of range."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.consumer import Consumer
from harrow.cluster_model.history import OK, History
from harrow.cluster_model.log.record_batch import ABORT, COMMIT
from harrow.cluster_model.protocol import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_EPOCH,
    READ_COMMITTED,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionData,
)
from harrow.cluster_model.settings import consumer_config
from tests.cluster_model.fakes import FakeHost, Sent, batch, control, transactional


def consumer(host: FakeHost, reset: str = "latest", **options: Any) -> Consumer:
    config = consumer_config("2.4", {"auto.offset.reset": reset})
    reader = Consumer(host, 0, (0, 1), ("t-0",), config, History(), 1_000, **options)
    reader.start()
    return reader


def latest_request(host: FakeHost, kind: type) -> Sent:
    return [sent for sent in host.sent if isinstance(sent.body, kind)][-1]


def answer_metadata(host: FakeHost, leader: int, epoch: int) -> None:
    """Answer the consumer's newest metadata request."""
    latest_request(host, MetadataRequest).answer(MetadataResponse((0, 1), {"t-0": (leader, epoch)}))


@pytest.mark.parametrize(("sends", "epoch"), [(True, 3), (False, NO_EPOCH)])
def test_a_fetch_has_the_leader_epoch_in_the_consumers_metadata(sends: bool, epoch: int) -> None:
    host = FakeHost()
    consumer(host, sends_leader_epoch=sends)
    answer_metadata(host, 1, 3)
    fetch = latest_request(host, FetchRequest)
    assert fetch.server.endswith("1")
    assert fetch.body.partitions == {"t-0": PartitionData(0, epoch)}


@pytest.mark.parametrize("error", [errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH])
def test_a_leader_epoch_error_triggers_a_metadata_request_and_keeps_the_position(error: str) -> None:
    host = FakeHost()
    reader = consumer(host)
    answer_metadata(host, 1, 3)
    reader.position["t-0"] = 0
    requests = len([sent for sent in host.sent if isinstance(sent.body, MetadataRequest)])
    latest_request(host, FetchRequest).answer(FetchResponse({"t-0": FetchedPartition(error, -1)}))
    host.advance(1_000_000)
    assert len([sent for sent in host.sent if isinstance(sent.body, MetadataRequest)]) > requests
    assert reader.position == {"t-0": 0}


def test_a_position_out_of_range_stays_until_the_end_of_the_log_is_known() -> None:
    host = FakeHost()
    reader = consumer(host)
    reader.position["t-0"] = 5
    answer_metadata(host, 1, 3)
    latest_request(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)})
    )
    assert reader.position == {"t-0": 5}  # auto.offset.reset=latest requests the end first


def out_of_range(host: FakeHost) -> None:
    latest_request(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)})
    )


@pytest.mark.parametrize(
    ("policy", "timestamp", "position"),
    [("earliest", EARLIEST_TIMESTAMP, 4), ("latest", LATEST_TIMESTAMP, 9), ("none", None, 1)],
)
def test_after_a_deletion_a_consumer_continues_according_to_auto_offset_reset(
    policy: str, timestamp: int | None, position: int
) -> None:
    host = FakeHost()
    reader = consumer(host, policy)
    answer_metadata(host, 1, 3)
    first = FetchedPartition(errors.NONE, 1, (batch("a", at=0),))
    latest_request(host, FetchRequest).answer(FetchResponse({"t-0": first}))
    out_of_range(host)
    if timestamp is not None:
        request = latest_request(host, ListOffsetsRequest)
        assert request.body.timestamp == timestamp
        request.answer(ListOffsetsResponse({"t-0": (errors.NONE, position)}))
        assert host.events_named("offset_reset") == [("host", "t-0", 1, position, policy)]
    assert reader.position == {"t-0": position}


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_a_new_consumer_begins_at_the_log_start_with_every_auto_offset_reset(policy: str) -> None:
    host = FakeHost()
    reader = consumer(host, policy)
    answer_metadata(host, 1, 3)
    out_of_range(host)
    request = latest_request(host, ListOffsetsRequest)
    assert request.body.timestamp == EARLIEST_TIMESTAMP
    request.answer(ListOffsetsResponse({"t-0": (errors.NONE, 4)}))
    assert reader.position == {"t-0": 4}
    assert host.events_named("offset_reset") == []


def test_a_consumer_stays_before_a_corrupt_batch_until_a_leader_serves_a_good_one() -> None:
    host = FakeHost()
    reader = consumer(host)
    answer_metadata(host, 1, 3)
    good = (batch("a", at=0),)
    fetch = latest_request(host, FetchRequest)
    fetch.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, good, corrupt_offset=1)}))
    assert reader.position == {"t-0": 1}
    host.advance(100_000)
    retry = latest_request(host, FetchRequest)
    assert retry.body.partitions == {"t-0": PartitionData(1, 3)}
    retry.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, (), corrupt_offset=1)}))
    assert (reader.position, reader.has_read_to_end()) == ({"t-0": 1}, False)
    assert host.events_named("corrupt_batch") == [("host", 1, "t-0", 1)]
    host.advance(100_000)
    latest_request(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, (batch("b", at=1),))})
    )
    assert reader.position == {"t-0": 2}


def test_a_consumer_that_skips_corrupt_batches_passes_their_records_one_by_one() -> None:
    """The broker finds the batch by any offset in it, and the consumer cannot tell its length."""
    host = FakeHost()
    reader = consumer(host, skips_corrupt=True)
    answer_metadata(host, 1, 3)
    for position in (0, 1, 2):
        fetch = latest_request(host, FetchRequest)
        assert fetch.body.partitions == {"t-0": PartitionData(position, 3)}
        fetch.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 4, (), corrupt_offset=0)}))
    assert host.events_named("corrupt_batch") == [("host", 1, "t-0", 0)]
    last = FetchedPartition(errors.NONE, 4, (batch("d", at=3),))
    latest_request(host, FetchRequest).answer(FetchResponse({"t-0": last}))
    assert reader.position == {"t-0": 4}


def test_control_batches_move_the_position_but_return_no_records() -> None:
    host, history = FakeHost(), History()
    reader = Consumer(host, 0, (0, 1), ("t-0",), consumer_config("2.4", {}), history, 1_000)
    reader.start()
    answer_metadata(host, 1, 3)
    stored = [
        transactional("a", "b").stored_at(0, 3),
        control(COMMIT).stored_at(2, 3),
        batch("c", at=3, leader_epoch=3),
        control(ABORT).stored_at(4, 3),
    ]
    latest_request(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.NONE, 5, tuple(stored))})
    )
    host.advance(10_000)
    assert history.operations[-1].value == (("poll", {"t-0": [(0, "a"), (1, "b"), (3, "c")]}),)
    assert reader.position == {"t-0": 5}
    assert reader.has_read_to_end()


def read_by(isolation_level: str, fetched: FetchedPartition) -> tuple[list[Any], Consumer, FakeHost]:
    """Return the records that a consumer polls after a fetch."""
    host, history = FakeHost(), History()
    config = consumer_config("2.4", {"isolation.level": isolation_level})
    reader = Consumer(host, 0, (0, 1), ("t-0",), config, history, 1_000)
    reader.start()
    answer_metadata(host, 1, 3)
    latest_request(host, FetchRequest).answer(FetchResponse({"t-0": fetched}))
    host.advance(10_000)
    polled = [read for operation in history.operations for _, _, read in operation.polls()]
    return polled, reader, host


def test_read_committed_skips_exactly_the_records_of_aborted_transactions() -> None:
    stored = (
        transactional("a", producer_id=8).stored_at(0, 3),
        transactional("b", producer_id=9).stored_at(1, 3),
        control(ABORT, producer_id=8).stored_at(2, 3),
        transactional("c", producer_id=8).stored_at(3, 3),
        batch("d", at=4, leader_epoch=3),
        control(COMMIT, producer_id=8).stored_at(5, 3),
        control(COMMIT, producer_id=9).stored_at(6, 3),
        transactional("e", producer_id=8).stored_at(7, 3),
    )
    fetched = FetchedPartition(errors.NONE, 9, stored, aborted=((8, 7), (8, 0)), last_stable_offset=9)
    polled, reader, host = read_by("read_committed", fetched)
    assert polled == ["b", "c", "d"]
    assert reader.position == {"t-0": 8}
    assert latest_request(host, FetchRequest).body.isolation_level == READ_COMMITTED


def test_with_read_committed_an_open_transaction_is_not_the_end_of_the_log() -> None:
    open_transaction = FetchedPartition(errors.NONE, 3, last_stable_offset=0)
    assert not read_by("read_committed", open_transaction)[1].has_read_to_end()
    hole = FetchedPartition(errors.NONE, 3, last_stable_offset=3)
    assert read_by("read_committed", hole)[1].has_read_to_end()


class Subscribed:
    """A consumer of topic t that has learned of the added partition t-1, which broker 1 leads."""

    def __init__(self, reset: str) -> None:
        self.host = FakeHost()
        self.consumer = consumer(self.host, reset, topics=("t",))
        answer_metadata(self.host, 0, 3)
        self.host.advance(300_000_000)
        latest_request(self.host, MetadataRequest).answer(
            MetadataResponse((0, 1), {"t-0": (0, 3), "t-1": (1, 0), "u-0": (1, 0)})
        )


def test_with_earliest_an_added_partition_is_read_from_its_beginning() -> None:
    subscribed = Subscribed("earliest")
    assert latest_request(subscribed.host, FetchRequest).body.partitions == {"t-1": PartitionData(0, 0)}


def test_with_latest_records_written_before_the_consumer_learns_of_a_partition_are_missed() -> None:
    subscribed = Subscribed("latest")
    host = subscribed.host
    request = latest_request(host, ListOffsetsRequest)
    assert (request.body.timestamp, request.body.partitions) == (LATEST_TIMESTAMP, {"t-1": 0})
    request.answer(ListOffsetsResponse({"t-1": (errors.NONE, 7)}))
    assert latest_request(host, FetchRequest).body.partitions == {"t-1": PartitionData(7, 0)}
    assert host.events_named("offset_reset") == [("host", "t-1", -1, 7, "latest")]


@pytest.mark.parametrize("failure", [errors.NOT_LEADER_FOR_PARTITION, None])
def test_a_failed_request_for_the_end_of_an_added_partition_is_retried(failure: str | None) -> None:
    subscribed = Subscribed("latest")
    first = latest_request(subscribed.host, ListOffsetsRequest)
    if failure is None:
        first.answer(None)
    else:
        first.answer(ListOffsetsResponse({"t-1": (failure, -1)}))
    assert latest_request(subscribed.host, ListOffsetsRequest) is first
    subscribed.host.advance(1_000_000)
    assert latest_request(subscribed.host, ListOffsetsRequest) is not first


def test_with_none_an_added_partition_is_not_read() -> None:
    assert list(Subscribed("none").consumer.position) == ["t-0"]


def test_a_consumer_with_assigned_partitions_ignores_added_ones() -> None:
    host = FakeHost()
    reader = consumer(host)
    latest_request(host, MetadataRequest).answer(MetadataResponse((0, 1), {"t-0": (0, 3), "t-1": (1, 0)}))
    assert list(reader.position) == ["t-0"]


def test_polls_return_at_most_max_poll_records_in_the_order_in_which_they_were_fetched() -> None:
    host, history = FakeHost(), History()
    config = consumer_config("2.4", {"max.poll.records": 3})
    reader = Consumer(host, 0, (0,), ("t-0", "t-1"), config, history, 1_000)
    reader.start()
    metadata = MetadataResponse((0,), {"t-0": (0, 3), "t-1": (0, 3)})
    latest_request(host, MetadataRequest).answer(metadata)
    fetched = {
        "t-0": FetchedPartition(errors.NONE, 5, (batch("a", at=0), batch("b", "c", "d", "e", at=1))),
        "t-1": FetchedPartition(errors.NONE, 3, (batch("f", "g", "h", at=0),)),
    }
    latest_request(host, FetchRequest).answer(FetchResponse(fetched))
    host.advance(10_000)
    polled = [dict(operation.value[0][1]) for operation in history.operations if operation.type == OK]
    assert polled == [
        {"t-0": [(0, "a"), (1, "b"), (2, "c")]},
        {"t-0": [(3, "d"), (4, "e")], "t-1": [(0, "f")]},
        {"t-1": [(1, "g"), (2, "h")]},
    ]
