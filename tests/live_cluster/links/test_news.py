"""A link reports messages that may change a cluster, but not those that an idle cluster sends."""

from typing import Any
from uuid import UUID

from kafka.protocol.consumer import FetchResponse
from kafka.record.memory_records import MemoryRecordsBuilder

from harrow.live_cluster.links.frame import RequestHeader
from harrow.live_cluster.links.news import News, is_in_bytes

PRODUCE, FETCH, HEARTBEAT, BROKER_HEARTBEAT, ALTER_PARTITION = 0, 1, 12, 63, 56
VERSION = 17
METADATA = UUID(int=1)
NO_OP, PARTITION_CHANGE = b"\x01\x14\x00", b"\x01\x05\x00more"


def header(api_key: int, client_id: str = "broker-2-fetcher-0") -> RequestHeader:
    return RequestHeader(api_key, VERSION, 1, client_id, 0)


def records(*values: bytes) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 16)
    for value in values:
        builder.append(timestamp=0, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def answer(correlation_id: int, hw: int, stored: bytes = b"", error: int = 0) -> bytes:
    topic: Any = FetchResponse.FetchableTopicResponse
    partition = topic.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=hw,
        last_stable_offset=hw,
        log_start_offset=0,
        aborted_transactions=[],
        records=stored,
    )
    response: Any = FetchResponse[VERSION](
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[topic(topic_id=METADATA, partitions=[partition])],
    )
    response.with_header(correlation_id)
    return bytes(response.encode(header=True, framed=False))


def test_repeated_requests_are_not_news() -> None:
    news = News()
    assert [api for api in (FETCH, HEARTBEAT, BROKER_HEARTBEAT) if news.is_in_request(header(api))] == []
    assert all(news.is_in_request(header(api)) for api in (PRODUCE, ALTER_PARTITION))


def test_repeated_answers_are_not_news() -> None:
    news, fetch = News(), header(FETCH)
    assert news.is_in_answer(fetch, answer(1, hw=3))
    assert not news.is_in_answer(fetch, answer(2, hw=3))
    # Another request in between does not hide the repetition.
    assert news.is_in_answer(header(HEARTBEAT), b"\0\0\0\x03fine")
    assert not news.is_in_answer(fetch, answer(4, hw=3))
    assert news.is_in_answer(fetch, answer(5, hw=4))
    assert news.is_in_answer(fetch, answer(6, hw=4, stored=records(b"m0")))
    assert news.is_in_answer(header(HEARTBEAT), b"\0\0\0\x07rebalance")


def test_records_of_an_idle_controller_are_not_news() -> None:
    news, fetch = News(), header(FETCH, "raft-client-2")
    assert not news.is_in_answer(fetch, answer(1, hw=3))
    assert not news.is_in_answer(fetch, answer(2, hw=4, stored=records(NO_OP)))
    assert news.is_in_answer(fetch, answer(3, hw=5, stored=records(NO_OP) + records(PARTITION_CHANGE)))
    assert news.is_in_answer(fetch, answer(4, hw=5, error=6))
    # In a follower's partition the same record is an ordinary one.
    assert news.is_in_answer(header(FETCH), answer(5, hw=4, stored=records(NO_OP)))


def test_a_zookeeper_ping_is_not_news() -> None:
    # RequestHeader: xid -2, ping; ReplyHeader: xid, zxid, error. A length precedes both.
    ping, pong = bytes(4 + 8), bytes(4 + 16)
    assert [data for data in (ping, pong) if is_in_bytes(data)] == []
    assert is_in_bytes(ping + ping)
