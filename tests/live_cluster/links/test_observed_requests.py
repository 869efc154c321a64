"""Events of a cluster follow from the requests and answers that pass the proxies."""

import asyncio
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.memory_records import MemoryRecordsBuilder

from harrow.cluster_model.events import (
    BatchAcknowledged,
    BatchDeduplicated,
    EpochEndAnswered,
    FetchDelayed,
    FollowerFetched,
    MessageDelivered,
    RequestRejected,
)
from harrow.live_cluster.links.frame import RequestHeader, client_id_of, request_header
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import ProxiedLink
from tests.patience import PATIENCE_S

FETCHER = "broker-2-fetcher-0"
TOPIC_ID, INTERNAL_ID, NEW_ID = UUID(int=5), UUID(int=6), UUID(int=7)
NOT_LEADER = 6
NO_EVENTS: list[tuple[Any, ...]] = []


class ObservedLink:
    """Passing requests to broker-1 with their answers; *reported* are the events about them."""

    def __init__(self) -> None:
        self.reported: list[tuple[Any, ...]] = []
        self.news = asyncio.Event()
        self.seen = ObservedRequests(self._report)
        self._correlation_ids: Counter[tuple[str, str]] = Counter()

    def ask(self, request: Any, client_id: str, sender: str, server: str = "broker-1") -> RequestHeader:
        self._correlation_ids[sender, server] += 1
        request.with_header(self._correlation_ids[sender, server], client_id)
        frame = bytes(request.encode(header=True, framed=False))
        header = request_header(frame)
        self.seen.request_passed(self._link(sender, server), header, frame)
        return header

    def _link(self, client: str, server: str) -> ProxiedLink:
        """Return the only connection of a client to a server."""
        return ProxiedLink(zlib.crc32(f"{client} {server}".encode()), server, client)

    def answer(self, header: RequestHeader, response: Any, receiver: str, server: str = "broker-1") -> None:
        response.with_header(header.correlation_id)
        frame = bytes(response.encode(header=True, framed=False))
        self.seen.answer_passed(self._link(receiver, server), header, frame)

    def fetch(self, topics: dict[Any, dict[int, int]], version: int = 11, **link: str) -> RequestHeader:
        return self.ask(
            fetch(topics, version),
            **{"client_id": FETCHER, "sender": "broker-2", "server": "broker-1", **link},
        )

    def produce(
        self, client: str, records: dict[Any, bytes], version: int = 7, acks: int = -1
    ) -> RequestHeader:
        return self.ask(produce(records, version, acks), client_id_of(client), client)

    def _report(self, *event: Any) -> None:
        self.reported.append(event)
        self.news.set()

    def take(self) -> list[tuple[Any, ...]]:
        """Return the events reported since the last call."""
        reported, self.reported[:] = list(self.reported), []
        return reported


@pytest.fixture
def link() -> ObservedLink:
    return ObservedLink()


def topic_of(name: str | UUID, field: str = "topic") -> dict[str, str | UUID]:
    return {"topic_id": name} if isinstance(name, UUID) else {field: name}


def fetch(topics: dict[Any, dict[int, int]], version: int, replica: int = 2) -> Any:
    """Return a fetch of partitions from offsets, by topic."""
    topic = FetchRequest.FetchTopic
    return FetchRequest[version](
        replica_id=replica,
        topics=[
            topic(
                **topic_of(name),
                partitions=[
                    topic.FetchPartition(partition=partition, fetch_offset=offset)
                    for partition, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ],
    )


def produce(records: dict[Any, bytes], version: int, acks: int) -> Any:
    """Return a request with records for partition 0 of topics."""
    topic = ProduceRequest.TopicProduceData
    return ProduceRequest[version](
        acks=acks,
        timeout_ms=1,
        topic_data=[
            topic(
                **topic_of(name, "name"), partition_data=[topic.PartitionProduceData(index=0, records=data)]
            )
            for name, data in records.items()
        ],
    )


def produce_response(offsets: dict[Any, int], version: int = 7, error: int = 0) -> Any:
    topic = ProduceResponse.TopicProduceResponse
    return ProduceResponse[version](
        responses=[
            topic(
                **topic_of(name, "name"),
                partition_responses=[
                    topic.PartitionProduceResponse(index=0, error_code=error, base_offset=offset)
                ],
            )
            for name, offset in offsets.items()
        ]
    )


def epochs(version: int, leader_epochs: dict[str, int]) -> Any:
    """Return a request for the ends of leader epochs of partition 3 of topics."""
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest[version](
        replica_id=2,
        topics=[
            topic(topic=name, partitions=[topic.OffsetForLeaderPartition(partition=3, leader_epoch=epoch)])
            for name, epoch in leader_epochs.items()
        ],
    )


def epoch_end(version: int, topic_name: str, epoch: int, end_offset: int, error: int = 0) -> Any:
    topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    end = topic.EpochEndOffset(partition=3, error_code=error, leader_epoch=epoch, end_offset=end_offset)
    return OffsetForLeaderEpochResponse[version](topics=[topic(topic=topic_name, partitions=[end])])


def batch(*values: str, producer: tuple[int, int, int] | None = None, magic: int = 2) -> bytes:
    """Return a batch; *producer* is an id, an epoch and the first sequence number."""
    builder = MemoryRecordsBuilder(magic, 0, 1_000_000)
    if producer:
        builder.set_producer_state(*producer, False)
    for value in values:
        builder.append(timestamp=1, key=None, value=value.encode())
    builder.close()
    return bytes(builder.buffer())


def test_only_progress_of_a_follower_is_reported(link: ObservedLink) -> None:
    assert link.seen.remote_leo(1, "t-0", 2) == 0
    link.fetch({"t": {0: 0, 1: 4}})
    assert link.take() == [(FollowerFetched, 1, "t-0", 2, 0), (FollowerFetched, 1, "t-1", 2, 4)]
    link.fetch({"t": {0: 7, 1: 4}})
    assert link.take() == [(FollowerFetched, 1, "t-0", 2, 7)]
    link.fetch({"t": {0: 7}})
    assert link.take() == NO_EVENTS
    # Truncated.
    link.fetch({"t": {0: 5}})
    assert link.take() == [(FollowerFetched, 1, "t-0", 2, 5)]
    assert (link.seen.remote_leo(1, "t-0", 2), link.seen.remote_leo(1, "t-1", 2)) == (5, 4)


def test_partitions_omitted_by_a_fetch_session_are_unchanged(link: ObservedLink) -> None:
    link.fetch({"t": {0: 3}, "u": {0: 4}})
    link.take()
    link.fetch({})
    link.fetch({"u": {0: 6}})
    assert link.take() == [(FollowerFetched, 1, "u-0", 2, 6)]
    assert link.seen.remote_leo(1, "t-0", 2) == 3


def test_each_leader_tracks_its_followers_separately(link: ObservedLink) -> None:
    link.fetch({"t": {0: 3}})
    link.fetch({"t": {0: 3}}, client_id="broker-3-fetcher-0", sender="broker-3")
    link.fetch({"t": {0: 5}}, server="broker-4")
    assert link.take() == [
        (FollowerFetched, 1, "t-0", 2, 3),
        (FollowerFetched, 1, "t-0", 3, 3),
        (FollowerFetched, 4, "t-0", 2, 5),
    ]
    assert [link.seen.remote_leo(*key) for key in ((1, "t-0", 2), (1, "t-0", 3), (4, "t-0", 2))] == [3, 3, 5]


def test_a_restarted_leader_knows_no_follower(link: ObservedLink) -> None:
    link.fetch({"t": {0: 3}})
    link.fetch({"t": {0: 5}}, server="broker-4")
    link.take()
    link.seen.forget(1)
    assert (link.seen.remote_leo(1, "t-0", 2), link.seen.remote_leo(4, "t-0", 2)) == (0, 5)
    link.fetch({"t": {0: 3}})
    assert link.take() == [(FollowerFetched, 1, "t-0", 2, 3)]


@pytest.mark.parametrize("version", [0, 3, 4, 11, 12])
def test_fetches_of_every_release_are_decoded(link: ObservedLink, version: int) -> None:
    link.fetch({"t": {1: 9}}, version)
    assert link.take() == [(FollowerFetched, 1, "t-1", 2, 9)]


@pytest.mark.parametrize("version", [13, 15, 17])
def test_topic_ids_in_fetches_become_names(link: ObservedLink, version: int) -> None:
    link.seen.topics_by_id = {TOPIC_ID: "t", INTERNAL_ID: "__consumer_offsets"}
    link.fetch({TOPIC_ID: {1: 9}, INTERNAL_ID: {0: 1}, NEW_ID: {0: 1}}, version)
    assert link.take() == [(FollowerFetched, 1, "t-1", 2, 9)]


def test_internal_topics_are_omitted(link: ObservedLink) -> None:
    link.fetch({"__consumer_offsets": {0: 1}, "_mine": {0: 2}})
    assert link.take() == [(FollowerFetched, 1, "_mine-0", 2, 2)]
    assert link.seen.remote_leo(1, "__consumer_offsets-0", 2) == 0


def test_consumer_fetches_do_not_count_as_followers(link: ObservedLink) -> None:
    link.fetch({"t": {0: 3}}, client_id=client_id_of("c"), sender="c")
    assert link.take() == NO_EVENTS


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [3, 7, 9])
def test_a_successful_answer_acknowledges_the_batch(link: ObservedLink, version: int, acks: int) -> None:
    header = link.produce("p", {"t": batch("a", "b"), "u": batch("c")}, version, acks)
    assert link.take() == NO_EVENTS
    link.answer(header, produce_response({"t": 7, "u": 0}, version), "p")
    assert link.take() == [
        (BatchAcknowledged, 1, "t-0", 7, acks, ("a", "b")),
        (BatchAcknowledged, 1, "u-0", 0, acks, ("c",)),
    ]


def test_a_batch_of_the_old_message_format_is_acknowledged(link: ObservedLink) -> None:
    header = link.produce("p", {"t": batch("a", "b", magic=1)}, 2)
    link.answer(header, produce_response({"t": 7}, 2), "p")
    assert link.take() == [(BatchAcknowledged, 1, "t-0", 7, -1, ("a", "b"))]


def test_topic_ids_in_produce_requests_become_names(link: ObservedLink) -> None:
    link.seen.topics_by_id = {TOPIC_ID: "t"}
    header = link.produce("p", {TOPIC_ID: batch("a")}, 13)
    link.answer(header, produce_response({TOPIC_ID: 7}, 13), "p")
    assert link.take() == [(BatchAcknowledged, 1, "t-0", 7, -1, ("a",))]


def test_a_refusal_is_reported_with_its_error(link: ObservedLink) -> None:
    header = link.produce("p", {"t": batch("a", producer=(9, 0, 0))})
    link.answer(header, produce_response({"t": -1}, error=NOT_LEADER), "p")
    assert link.take() == [(RequestRejected, 1, "Produce", "t-0", "p", "NOT_LEADER_FOR_PARTITION")]


def test_answers_match_requests_by_client_and_server(link: ObservedLink) -> None:
    """Each client counts its requests separately for each broker."""
    first = link.produce("p", {"t": batch("a")})
    second = link.produce("q", {"t": batch("b")})
    link.answer(second, produce_response({"t": 4}), "q")
    link.answer(first, produce_response({"t": 5}), "p")
    assert [event[3:] for event in link.take()] == [(4, -1, ("b",)), (5, -1, ("a",))]


def test_a_request_without_answer_is_not_stored(link: ObservedLink) -> None:
    link.produce("p", {"t": batch("a")}, acks=0)
    assert link.take() == NO_EVENTS
    assert not link.seen._produced


def test_a_batch_replicated_before_the_leadership_is_a_duplicate(link: ObservedLink) -> None:
    link.seen.batch_copied(1, "t-0", 7, 0, 9, 4, ("a",))
    link.seen.batch_copied(2, "t-0", 8, 0, 9, 5, ("b",))
    for sequence, offset in ((4, 7), (5, 8)):
        header = link.produce("p", {"t": batch("a", producer=(9, 1, sequence))})
        link.answer(header, produce_response({"t": offset}), "p")
    # A batch replicated to another broker does not count.
    assert [event for event in link.take() if event[0] is BatchDeduplicated] == [
        (BatchDeduplicated, 1, "t-0", 9, 4, 7)
    ]


def test_a_batch_answered_twice_with_one_offset_is_a_duplicate(link: ObservedLink) -> None:
    for _ in range(2):
        header = link.produce("p", {"t": batch("a", "b", producer=(9, 1, 4))})
        link.answer(header, produce_response({"t": 7}), "p")
    acknowledged = (BatchAcknowledged, 1, "t-0", 7, -1, ("a", "b"))
    assert link.take() == [acknowledged, (BatchDeduplicated, 1, "t-0", 9, 4, 7), acknowledged]


@pytest.mark.parametrize(
    ("again", "topic", "offset"),
    [
        (batch("a", producer=(9, 1, 4)), "t", 8),  # Stored twice, so it was not deduplicated.
        (batch("b", producer=(9, 1, 5)), "t", 7),
        (batch("a", producer=(9, 2, 4)), "t", 7),
        (batch("a", producer=(8, 1, 4)), "t", 7),
        (batch("a", producer=(9, 1, 4)), "u", 7),
        (batch("a"), "t", 7),
    ],
)
def test_a_different_batch_or_offset_is_not_a_duplicate(
    link: ObservedLink, again: bytes, topic: str, offset: int
) -> None:
    link.answer(link.produce("p", {"t": batch("a", producer=(9, 1, 4))}), produce_response({"t": 7}), "p")
    link.answer(link.produce("p", {topic: again}), produce_response({topic: offset}), "p")
    assert [event[0] for event in link.take()] == [BatchAcknowledged, BatchAcknowledged]


def test_batches_without_producer_id_are_never_duplicates(link: ObservedLink) -> None:
    for _ in range(2):
        link.answer(link.produce("p", {"t": batch("a")}), produce_response({"t": 7}), "p")
    assert [event[0] for event in link.take()] == [BatchAcknowledged, BatchAcknowledged]


@pytest.mark.parametrize(("version", "epoch"), [(0, 5), (1, 4), (3, 4), (4, 4)])
def test_an_epoch_end_is_reported_with_the_epoch_of_the_answer(
    link: ObservedLink, version: int, epoch: int
) -> None:
    header = link.ask(epochs(version, {"t": 5}), FETCHER, "broker-2")
    assert link.take() == NO_EVENTS
    link.answer(header, epoch_end(version, "t", 4, 17), "broker-2")
    assert link.take() == [(EpochEndAnswered, 1, "t-3", 2, 5, epoch, 17)]


@pytest.mark.parametrize("answer", [epoch_end(3, "t", 4, 17, error=NOT_LEADER), epoch_end(3, "u", 4, 17)])
def test_errors_and_unrequested_partitions_report_no_epoch_end(link: ObservedLink, answer: Any) -> None:
    link.answer(link.ask(epochs(3, {"t": 5}), FETCHER, "broker-2"), answer, "broker-2")
    assert link.take() == NO_EVENTS


def delayed(link: ObservedLink, ask: Callable[[], object]) -> list[tuple[Any, ...]]:
    """Return the delayed fetches once a later fetch is reported as delayed."""
    last = (FetchDelayed, 9, 2)

    async def wait() -> None:
        ask()
        link.seen.watches_fetches = True
        link.fetch({}, server="broker-9")
        while last not in link.reported:
            link.news.clear()
            await link.news.wait()

    asyncio.run(asyncio.wait_for(wait(), PATIENCE_S))
    return [event for event in link.take() if event[0] is FetchDelayed and event != last]


def test_an_unanswered_fetch_is_delayed_if_a_campaign_observes_it(link: ObservedLink) -> None:
    def ask() -> None:
        link.seen.watches_fetches = True
        link.fetch({"t": {0: 3}})
        link.fetch({"t": {0: 0}}, client_id=client_id_of("c"), sender="c")

    assert delayed(link, ask) == [(FetchDelayed, 1, 2), (FetchDelayed, 1, -1)]


def test_an_answered_fetch_is_not_delayed(link: ObservedLink) -> None:
    def ask() -> None:
        link.seen.watches_fetches = True
        answered = link.fetch({"t": {0: 3}})
        link.fetch({"t": {0: 3}}, client_id="broker-3-fetcher-0", sender="broker-3")
        link.answer(answered, FetchResponse[11](responses=[]), "broker-2")

    assert delayed(link, ask) == [(FetchDelayed, 1, 3)]


def test_fetches_are_not_timed_if_unobserved(link: ObservedLink) -> None:
    assert delayed(link, lambda: link.fetch({"t": {0: 3}})) == NO_EVENTS


def test_messages_are_reported_if_observed(link: ObservedLink) -> None:
    link.answer(link.produce("p", {"t": batch("a")}), produce_response({"t": 7}), "p")
    link.take()
    link.seen.watches_messages = True
    header = link.ask(MetadataRequest[1](topics=[]), client_id_of("p"), "p")
    link.seen.answer_passed(ProxiedLink(0, "broker-1", "p"), header, struct.pack(">i", header.correlation_id))
    link.fetch({"t": {0: 3}})
    assert link.take() == [
        (MessageDelivered, "Metadata", "request", "p", "broker-1"),
        (MessageDelivered, "Metadata", "response", "broker-1", "p"),
        (MessageDelivered, "Fetch", "request", "broker-2", "broker-1"),
        (FollowerFetched, 1, "t-0", 2, 3),
    ]


def test_messages_are_not_reported_if_unobserved(link: ObservedLink) -> None:
    link.answer(link.produce("p", {"t": batch("a")}), produce_response({"t": 7}), "p")
    assert [event[0] for event in link.take()] == [BatchAcknowledged]


def test_connections_may_share_correlation_ids(link: ObservedLink) -> None:
    headers, links = [], [ProxiedLink(1, "broker-1", "p"), ProxiedLink(2, "broker-1", "p")]
    for number, value in zip(links, ("a", "b"), strict=True):
        request = produce({"t": batch(value)}, 7, -1)
        request.with_header(1, client_id_of("p"))
        frame = bytes(request.encode(header=True, framed=False))
        headers.append(request_header(frame))
        link.seen.request_passed(number, headers[-1], frame)
    answer = produce_response({"t": 3})
    answer.with_header(1)
    link.seen.answer_passed(links[1], headers[1], bytes(answer.encode(header=True, framed=False)))
    assert link.take() == [(BatchAcknowledged, 1, "t-0", 3, -1, ("b",))]
    link.seen.link_ended(links[0])
    # An answer on a closed connection acknowledges no batch.
    link.seen.answer_passed(links[0], headers[0], bytes(answer.encode(header=True, framed=False)))
    assert link.take() == NO_EVENTS
