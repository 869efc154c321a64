"""A consumer's requests: which leader epoch they say, and where it goes when its position is out of range."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.consumer import Consumer
from harrow.cluster_model.history import History
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
)
from harrow.cluster_model.settings import consumer_config
from tests.cluster_model.fakes import FakeHost, Sent, batch, control, transactional


def consumer(host: FakeHost, reset: str = "latest", **options: Any) -> Consumer:
    config = consumer_config("2.4", {"auto.offset.reset": reset})
    made = Consumer(host, 0, (0, 1), ("t-0",), config, History(), 1_000, **options)
    made.start()
    return made


def newest(host: FakeHost, kind: type) -> Sent:
    return [sent for sent in host.sent if isinstance(sent.body, kind)][-1]


def told(host: FakeHost, leader: int, epoch: int) -> None:
    """Answer the consumer's newest question for metadata."""
    newest(host, MetadataRequest).answer(MetadataResponse((0, 1), {"t-0": (leader, epoch)}))


@pytest.mark.parametrize(("sends", "epoch"), [(True, 3), (False, NO_EPOCH)])
def test_a_fetch_says_the_leader_epoch_that_the_consumer_knows(sends: bool, epoch: int) -> None:
    host = FakeHost()
    consumer(host, sends_leader_epoch=sends)
    told(host, 1, 3)
    fetch = newest(host, FetchRequest)
    assert fetch.server.endswith("1")
    assert fetch.body.partitions == {"t-0": (0, epoch)}


@pytest.mark.parametrize("error", [errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH])
def test_a_leader_of_another_epoch_makes_it_ask_anew_and_keeps_its_position(error: str) -> None:
    host = FakeHost()
    made = consumer(host)
    told(host, 1, 3)
    made.position["t-0"] = 0
    asked = len([sent for sent in host.sent if isinstance(sent.body, MetadataRequest)])
    newest(host, FetchRequest).answer(FetchResponse({"t-0": FetchedPartition(error, -1)}))
    host.advance(1_000_000)
    assert len([sent for sent in host.sent if isinstance(sent.body, MetadataRequest)]) > asked
    assert made.position == {"t-0": 0}


def test_a_position_that_is_out_of_range_is_reset_as_the_setting_says() -> None:
    host = FakeHost()
    made = consumer(host)
    made.position["t-0"] = 5
    told(host, 1, 3)
    newest(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)})
    )
    assert made.position == {"t-0": 5}  # auto.offset.reset=latest asks for the end first


def out_of_range(host: FakeHost) -> None:
    newest(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.OFFSET_OUT_OF_RANGE, -1)})
    )


@pytest.mark.parametrize(
    ("policy", "asked", "position"),
    [("earliest", EARLIEST_TIMESTAMP, 4), ("latest", LATEST_TIMESTAMP, 9), ("none", None, 1)],
)
def test_a_consumer_whose_next_record_is_deleted_goes_where_auto_offset_reset_says(
    policy: str, asked: int | None, position: int
) -> None:
    host = FakeHost()
    made = consumer(host, policy)
    told(host, 1, 3)
    first = FetchedPartition(errors.NONE, 1, (batch("a", at=0),))
    newest(host, FetchRequest).answer(FetchResponse({"t-0": first}))
    out_of_range(host)
    if asked is not None:
        request = newest(host, ListOffsetsRequest)
        assert request.body.timestamp == asked
        request.answer(ListOffsetsResponse({"t-0": (errors.NONE, position)}))
        assert host.named("offset_reset") == [("host", "t-0", 1, position, policy)]
    assert made.position == {"t-0": position}


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_a_new_consumer_begins_where_the_log_does_whatever_auto_offset_reset_says(policy: str) -> None:
    host = FakeHost()
    made = consumer(host, policy)
    told(host, 1, 3)
    out_of_range(host)
    request = newest(host, ListOffsetsRequest)
    assert request.body.timestamp == EARLIEST_TIMESTAMP
    request.answer(ListOffsetsResponse({"t-0": (errors.NONE, 4)}))
    assert made.position == {"t-0": 4}
    assert host.named("offset_reset") == []


def test_a_consumer_stays_before_a_batch_with_a_bad_crc_until_a_leader_has_a_good_one() -> None:
    host = FakeHost()
    made = consumer(host)
    told(host, 1, 3)
    good = (batch("a", at=0),)
    fetch = newest(host, FetchRequest)
    fetch.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, good, corrupt_offset=1)}))
    assert made.position == {"t-0": 1}
    host.advance(100_000)
    again = newest(host, FetchRequest)
    assert again.body.partitions == {"t-0": (1, 3)}
    again.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, (), corrupt_offset=1)}))
    assert (made.position, made.has_read_to_end()) == ({"t-0": 1}, False)
    assert host.named("corrupt_batch") == [("host", 1, "t-0", 1)]
    host.advance(100_000)
    newest(host, FetchRequest).answer(
        FetchResponse({"t-0": FetchedPartition(errors.NONE, 2, (batch("b", at=1),))})
    )
    assert made.position == {"t-0": 2}


def test_a_consumer_that_skips_seeks_past_one_record_of_a_damaged_batch_after_the_other() -> None:
    """The broker finds the batch by any offset in it, and whoever gets it cannot tell how long it is."""
    host = FakeHost()
    made = consumer(host, skips_corrupt=True)
    told(host, 1, 3)
    for position in (0, 1, 2):
        fetch = newest(host, FetchRequest)
        assert fetch.body.partitions == {"t-0": (position, 3)}
        fetch.answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 4, (), corrupt_offset=0)}))
    assert host.named("corrupt_batch") == [("host", 1, "t-0", 0)]
    last = FetchedPartition(errors.NONE, 4, (batch("d", at=3),))
    newest(host, FetchRequest).answer(FetchResponse({"t-0": last}))
    assert made.position == {"t-0": 4}


def test_control_batches_are_passed_over_and_no_record_of_the_application() -> None:
    host, history = FakeHost(), History()
    made = Consumer(host, 0, (0, 1), ("t-0",), consumer_config("2.4", {}), history, 1_000)
    made.start()
    told(host, 1, 3)
    stored = [
        transactional("a", "b").stored_at(0, 3),
        control(COMMIT).stored_at(2, 3),
        batch("c", at=3, leader_epoch=3),
        control(ABORT).stored_at(4, 3),
    ]
    newest(host, FetchRequest).answer(FetchResponse({"t-0": FetchedPartition(errors.NONE, 5, tuple(stored))}))
    host.advance(10_000)
    assert history.operations[-1].value == (("poll", {"t-0": [(0, "a"), (1, "b"), (3, "c")]}),)
    assert made.position == {"t-0": 5}
    assert made.has_read_to_end()


def read_by(isolation_level: str, fetched: FetchedPartition) -> tuple[list[Any], Consumer, FakeHost]:
    """Return what a consumer polls of a fetch."""
    host, history = FakeHost(), History()
    config = consumer_config("2.4", {"isolation.level": isolation_level})
    made = Consumer(host, 0, (0, 1), ("t-0",), config, history, 1_000)
    made.start()
    told(host, 1, 3)
    newest(host, FetchRequest).answer(FetchResponse({"t-0": fetched}))
    host.advance(10_000)
    polled = [read for operation in history.operations for _, _, read in operation.polls()]
    return polled, made, host


def test_read_committed_leaves_out_what_was_aborted_and_no_more() -> None:
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
    polled, made, host = read_by("read_committed", fetched)
    assert polled == ["b", "c", "d"]
    assert made.position == {"t-0": 8}
    assert newest(host, FetchRequest).body.isolation_level == READ_COMMITTED


def test_read_committed_has_not_read_to_the_end_while_a_transaction_is_open() -> None:
    open_ = FetchedPartition(errors.NONE, 3, last_stable_offset=0)
    assert not read_by("read_committed", open_)[1].has_read_to_end()
    hole = FetchedPartition(errors.NONE, 3, last_stable_offset=3)
    assert read_by("read_committed", hole)[1].has_read_to_end()


class Subscribed:
    """A consumer of what topic t has, which has learned that t-1 was added, with t-1 led by broker 1."""

    def __init__(self, reset: str) -> None:
        self.host = FakeHost()
        self.consumer = consumer(self.host, reset, topics=("t",))
        told(self.host, 0, 3)
        self.host.advance(300_000_000)
        newest(self.host, MetadataRequest).answer(
            MetadataResponse((0, 1), {"t-0": (0, 3), "t-1": (1, 0), "u-0": (1, 0)})
        )


def test_a_partition_that_a_topic_gets_is_read_from_its_beginning_as_the_setting_says() -> None:
    subscribed = Subscribed("earliest")
    assert newest(subscribed.host, FetchRequest).body.partitions == {"t-1": (0, 0)}


def test_with_latest_it_misses_what_is_there_when_it_learns_of_the_partition() -> None:
    subscribed = Subscribed("latest")
    host = subscribed.host
    asked = newest(host, ListOffsetsRequest)
    assert (asked.body.timestamp, asked.body.partitions) == (LATEST_TIMESTAMP, {"t-1": 0})
    asked.answer(ListOffsetsResponse({"t-1": (errors.NONE, 7)}))
    assert newest(host, FetchRequest).body.partitions == {"t-1": (7, 0)}
    assert host.named("offset_reset") == [("host", "t-1", -1, 7, "latest")]


@pytest.mark.parametrize("failure", [errors.NOT_LEADER_FOR_PARTITION, None])
def test_it_asks_again_where_a_partition_ends_that_it_has_no_position_of(failure: str | None) -> None:
    subscribed = Subscribed("latest")
    first = newest(subscribed.host, ListOffsetsRequest)
    if failure is None:
        first.answer(None)
    else:
        first.answer(ListOffsetsResponse({"t-1": (failure, -1)}))
    assert newest(subscribed.host, ListOffsetsRequest) is first
    subscribed.host.advance(1_000_000)
    assert newest(subscribed.host, ListOffsetsRequest) is not first


def test_with_none_the_application_does_not_read_it() -> None:
    assert list(Subscribed("none").consumer.position) == ["t-0"]


def test_a_consumer_of_partitions_reads_no_others() -> None:
    host = FakeHost()
    made = consumer(host)
    newest(host, MetadataRequest).answer(MetadataResponse((0, 1), {"t-0": (0, 3), "t-1": (1, 0)}))
    assert list(made.position) == ["t-0"]
