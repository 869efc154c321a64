"""Compaction removes real records whose keys have later ones, and readers get the others."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic
from kafka.record.default_records import DefaultRecordBatchBuilder

from harrow.checks.finding import HELD
from harrow.live_cluster.serve.contents.compacted_batches import keyed_records, with_records
from harrow.live_cluster.wire.stored_batches import whole_batches
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S, act_until

COMPACTED: Final = """
name: compacted
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
settings:
  min.insync.replicas: 2
  cleanup.policy: compact
  min.cleanable.dirty.ratio: 0.01
  segment.bytes: 1048576
  segment.ms: 1000
  log.cleaner.backoff.ms: 1000
workload: {producers: [{name: unused}], duration: 10s}
"""
NO_CODEC, GZIP, ZSTD = 0, 1, 4
Record = tuple[int, bytes | None, bytes | None]

SETTINGS: Final = {
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
    "delete.retention.ms": "86400000",
}
REMAINING: Final = [(3, b"b", b"1"), (4, b"c", None), (5, b"a", b"2")]
"""What is left of the records that `compact_topics` sends."""
NOT_COMPACTED: Final = """
name: not-compacted
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
settings: {min.insync.replicas: 2, log.cleaner.backoff.ms: 1000}
workload: {producers: [{name: unused}], duration: 10s}
"""


def producer(servers: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": servers, "linger.ms": 0, **settings})


def read(servers: str, topic: str = "t") -> list[Record]:
    """Return the offset, key and value of each record up to the end of the partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE_S)
        records: list[Record] = []
        while not records or records[-1][0] < end - 1:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            records.append((message.offset() or 0, message.key(), message.value()))
        return records
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_reader_gets_the_latest_record_of_each_key(codec: str) -> None:
    rounds: Final = 4

    def use(servers: str) -> None:
        client = producer(servers, **{"compression.type": codec})
        for number in range(rounds):
            for key in ("a", "b", "c"):
                client.produce("t", f"{key}{number}", key)
            assert client.flush(PATIENCE_S) == 0
        written = 3 * rounds
        records = read(servers)

        def roll() -> None:
            """Write a later record: the active segment rolls, so that it can be compacted."""
            nonlocal records, written
            client.produce("t", "-", "roll")
            assert client.flush(PATIENCE_S) == 0
            written += 1
            records = read(servers)

        act_until(lambda: len(records) < written, roll)
        latest = {key: value for _, key, value in records}
        assert {key: latest[key] for key in (b"a", b"b", b"c")} == {
            key.encode(): f"{key}{rounds - 1}".encode() for key in "abc"
        }
        assert [offset for offset, _, _ in records] == sorted({offset for offset, _, _ in records})

    result = run_with(COMPACTED, use, time_scale=10)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())


def set_policy(admin: AdminClient, topic: str, policy: str) -> None:
    change = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)


def compact_topics(servers: str) -> dict[str, list[Record]]:
    """Create a compacted topic, and make another one compacted that has records.

    Return what is left of both when they have been compacted.
    """
    admin, client = AdminClient({"bootstrap.servers": servers}), producer(servers)
    made = {"made": {**SETTINGS, "cleanup.policy": "compact"}, "altered": SETTINGS}
    for future in admin.create_topics(
        [NewTopic(name, 1, 1, config=own) for name, own in made.items()]
    ).values():
        future.result(PATIENCE_S)

    def send(topic: str, *records: tuple[str | None, str | None]) -> None:
        for key, value in records:
            client.produce(topic, value, key)
        assert client.flush(PATIENCE_S) == 0

    for topic in made:
        send(topic, ("a", "0"), ("b", "0"), ("c", "0"))
        send(topic, ("b", "1"), ("c", None), ("a", "2"))
    send("altered", (None, "without a key"))
    set_policy(admin, "altered", "compact")
    left: dict[str, list[Record]] = {topic: [] for topic in made}

    def roll(topic: str) -> None:
        """Write a later record: the active segment rolls, so that it can be compacted."""
        send(topic, ("-", "roll"))
        left[topic] = [record for record in read(servers, topic) if record[1] != b"-"]

    def has_remaining(topic: str) -> bool:
        return len(left[topic]) == len(REMAINING)

    for topic in made:
        act_until(partial(has_remaining, topic), partial(roll, topic))
    return left


def test_topics_that_clients_make_compacted_are_compacted_and_judged_held() -> None:
    left: list[dict[str, list[Record]]] = []
    result = run_with(NOT_COMPACTED, lambda servers: left.append(compact_topics(servers)), time_scale=10)
    assert left == [{"made": REMAINING, "altered": REMAINING}]
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())


def test_a_topic_that_is_no_longer_compacted_keeps_its_records_and_takes_any() -> None:
    def use(servers: str) -> None:
        compact_topics(servers)
        admin, client = AdminClient({"bootstrap.servers": servers}), producer(servers)
        set_policy(admin, "made", "delete")
        outcomes: list[str] = []

        def send() -> None:
            client.produce(
                "made", "v", on_delivery=lambda error, _: outcomes.append(error.name() if error else "")
            )
            assert client.flush(PATIENCE_S) == 0

        # The brokers follow the change a moment later.
        act_until(lambda: outcomes[-1:] == [""], send)
        records = [record for record in read(servers, "made") if record[1] != b"-"]
        assert [record[1:] for record in records] == [*(record[1:] for record in REMAINING), (None, b"v")]

    result = run_with(NOT_COMPACTED, use, time_scale=10)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())


def test_a_record_without_a_key_is_refused() -> None:
    def use(servers: str) -> None:
        client = producer(servers)
        refused: list[str] = []
        client.produce("t", "v", on_delivery=lambda error, _: refused.append(error.name() if error else ""))
        client.flush(PATIENCE_S)
        assert refused == ["INVALID_RECORD"]

    run_with(COMPACTED, use)


def batch(keys: Sequence[bytes | None], codec: int = NO_CODEC, offsets: Sequence[int] | None = None) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, False, 7, 0, 0, 1 << 20)
    for offset, key in zip(offsets or range(len(keys)), keys, strict=True):
        value = None if key == b"deleted" else b"v%d" % offset
        builder.append(offset, 1_000 + offset, key, value, [("h", b"x")])
    return bytes(builder.build())


def test_the_keys_and_tombstones_of_a_batch_are_read() -> None:
    keyed = keyed_records(batch([b"a", None, b"deleted", b"\xff", b"0xff"]), "vwxyz")
    assert keyed.keys == ("a", None, "deleted", "0xff", "0x30786666")
    assert keyed.tombstones == (False, False, True, False, False)
    assert (keyed.offset_deltas, keyed.offset_count) == ((0, 1, 2, 3, 4), 5)


@pytest.mark.parametrize("codec", [NO_CODEC, GZIP])
@pytest.mark.parametrize("kept", [(), (1,), (0, 3), (0, 1, 2, 3)])
def test_the_remaining_records_of_a_batch_keep_their_bytes_and_offsets(
    codec: int, kept: tuple[int, ...]
) -> None:
    data = with_records(batch([b"a", b"b", b"c", b"d"], codec), kept)
    [(stored, _)] = whole_batches(data)
    records = [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in stored]
    assert records == [
        (offset, 1_000 + offset, b"abcd"[offset : offset + 1], b"v%d" % offset, [("h", b"x")])
        for offset in kept
    ]
    assert (stored.next_offset, stored.producer_id) == (4, 7)


@pytest.mark.parametrize("offsets", [(0, 0, 2), (1, 2, 3), (0, 2, 1)])
def test_records_whose_offsets_do_not_ascend_by_1_are_refused(offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not ascend by 1"):
        keyed_records(batch([b"a", b"b", b"c"], offsets=offsets), "vwx")


def test_records_in_a_codec_that_cannot_be_read_are_the_only_ones_of_their_keys() -> None:
    data = bytearray(batch([b"a", b"a"]))
    data[22] |= ZSTD
    keyed = keyed_records(bytes(data), ("t-0:1", "t-0:2"))
    assert keyed.keys == ("t-0:1", "t-0:2")
