"""Kafka's settings and their defaults in each release, and how one changes another."""

from typing import Any

import pytest

from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import (
    BROKER,
    CONSUMER,
    INT_MAX,
    LONG_MAX,
    NO_LIMIT_US,
    PRODUCER,
    SCOPES,
    SETTINGS,
    TOPIC,
    Setting,
    Value,
    broker_config,
    broker_conflicts,
    conflicts,
    consumer_config,
    consumer_conflicts,
    producer_config,
    reconciled,
    scopes_of,
    setting_names,
    shared_with,
    topic_config,
)

MS = 1_000
SECOND = 1_000_000
ALL = tuple(RELEASES)


def before(release: str) -> tuple[str, ...]:
    return ALL[: ALL.index(release)]


def since(release: str) -> tuple[str, ...]:
    return ALL[ALL.index(release) :]


def by_release(*groups: tuple[tuple[str, ...], Any]) -> dict[str, Any]:
    return {release: value for releases, value in groups for release in releases}


def changed_in(release: str, old: Value, new: Value) -> dict[str, Value]:
    """Return the defaults where the first of the model's releases with another one is *release*."""
    return by_release((before(release), old), (since(release), new))


WEEK_MS = 7 * 24 * 60 * 60 * 1000
DAY_MS = 86_400_000
TIMESTAMPS = ((BROKER, "log.message.timestamp."), (TOPIC, "message.timestamp."))
POLICIES = ((BROKER, "log.cleanup.policy"), (TOPIC, "cleanup.policy"))

# From KafkaConfig.scala, ProducerConfig.java and ConsumerConfig.java of the releases.
DEFAULTS: dict[tuple[str, str], dict[str, Value]] = {
    (BROKER, "unclean.leader.election.enable"): by_release((("0.10.2",), True), (ALL[1:], False)),  # KIP-106
    (TOPIC, "unclean.leader.election.enable"): by_release((("0.10.2",), True), (ALL[1:], False)),
    (BROKER, "min.insync.replicas"): by_release((ALL, 1)),
    (BROKER, "num.network.threads"): by_release((ALL, 3)),
    (BROKER, "auto.create.topics.enable"): by_release((ALL, True)),
    (BROKER, "num.partitions"): by_release((ALL, 1)),
    (BROKER, "default.replication.factor"): by_release((ALL, 1)),
    (BROKER, "num.io.threads"): by_release((ALL, 8)),
    (BROKER, "queued.max.requests"): by_release((ALL, 500)),
    (BROKER, "control.plane.listener.name"): by_release((ALL, "none")),
    (BROKER, "replica.selector.class"): by_release((ALL, "none")),  # KIP-392, 2.4
    (CONSUMER, "client.rack"): by_release((ALL, "")),
    (PRODUCER, "client.rack"): by_release((ALL, "")),  # KIP-1123, 4.4
    (PRODUCER, "partitioner.rack.aware"): by_release((ALL, False)),
    (TOPIC, "min.insync.replicas"): by_release((ALL, 1)),
    (BROKER, "replica.lag.time.max.ms"): changed_in("2.8", 10_000, 30_000),  # KIP-537, 2.5
    (BROKER, "zookeeper.session.timeout.ms"): changed_in("2.8", 6_000, 18_000),  # KIP-537, 2.5
    (BROKER, "replica.fetch.wait.max.ms"): by_release((ALL, 500)),
    (BROKER, "max.incremental.fetch.session.cache.slots"): by_release((ALL, 1000)),
    (BROKER, "replica.fetch.max.bytes"): by_release((ALL, 1024 * 1024)),
    (BROKER, "replica.lag.max.messages"): by_release((ALL, 4_000)),
    (BROKER, "quota.window.num"): by_release((ALL, 11)),
    (BROKER, "quota.window.size.seconds"): by_release((ALL, 1)),
    (BROKER, "replication.quota.window.num"): by_release((ALL, 11)),
    (BROKER, "replication.quota.window.size.seconds"): by_release((ALL, 1)),
    (BROKER, "leader.replication.throttled.rate"): by_release((ALL, LONG_MAX)),
    (BROKER, "follower.replication.throttled.rate"): by_release((ALL, LONG_MAX)),
    (TOPIC, "leader.replication.throttled.replicas"): by_release((ALL, "")),
    (TOPIC, "follower.replication.throttled.replicas"): by_release((ALL, "")),
    (BROKER, "replica.fetch.backoff.ms"): by_release((ALL, 1_000)),
    (BROKER, "replica.socket.timeout.ms"): by_release((ALL, 30_000)),
    (BROKER, "request.timeout.ms"): by_release((ALL, 30_000)),
    (BROKER, "controller.socket.timeout.ms"): by_release((ALL, 30_000)),
    (BROKER, "controlled.shutdown.enable"): by_release((ALL, True)),
    (BROKER, "controlled.shutdown.max.retries"): by_release((ALL, 3)),
    (BROKER, "controlled.shutdown.retry.backoff.ms"): by_release((ALL, 5_000)),
    (BROKER, "transaction.max.timeout.ms"): by_release((ALL, 15 * 60_000)),
    (BROKER, "transaction.abort.timed.out.transaction.cleanup.interval.ms"): changed_in(
        "2.8", 60_000, 10_000
    ),
    (BROKER, "transactional.id.expiration.ms"): by_release((ALL, 7 * 86_400_000)),
    (BROKER, "transaction.remove.expired.transaction.cleanup.interval.ms"): by_release((ALL, 3_600_000)),
    (BROKER, "replica.high.watermark.checkpoint.interval.ms"): by_release((ALL, 5_000)),
    (BROKER, "log.flush.offset.checkpoint.interval.ms"): by_release((ALL, 60_000)),
    (BROKER, "log.flush.interval.messages"): by_release((ALL, LONG_MAX)),
    (BROKER, "log.flush.interval.ms"): by_release((ALL, LONG_MAX)),
    (BROKER, "log.flush.scheduler.interval.ms"): by_release((ALL, LONG_MAX)),
    (BROKER, "log.segment.bytes"): by_release((ALL, 1 << 30)),
    (BROKER, "log.roll.ms"): by_release((ALL, WEEK_MS)),
    (BROKER, "log.retention.ms"): by_release((ALL, WEEK_MS)),
    (BROKER, "log.retention.bytes"): by_release((ALL, -1)),
    (BROKER, "log.retention.check.interval.ms"): by_release((ALL, 300_000)),
    **{(scope, name): by_release((ALL, "delete")) for scope, name in POLICIES},
    (BROKER, "log.cleaner.backoff.ms"): by_release((ALL, 15_000)),
    (BROKER, "log.cleaner.min.cleanable.ratio"): by_release((ALL, "0.5")),
    (BROKER, "log.cleaner.min.compaction.lag.ms"): by_release((ALL, 0)),
    (BROKER, "log.cleaner.max.compaction.lag.ms"): by_release((ALL, LONG_MAX)),  # KIP-354
    (BROKER, "log.cleaner.delete.retention.ms"): by_release((ALL, DAY_MS)),
    (TOPIC, "min.cleanable.dirty.ratio"): by_release((ALL, "0.5")),
    (TOPIC, "min.compaction.lag.ms"): by_release((ALL, 0)),
    (TOPIC, "max.compaction.lag.ms"): by_release((ALL, LONG_MAX)),  # KIP-354
    (TOPIC, "delete.retention.ms"): by_release((ALL, DAY_MS)),
    (BROKER, "log.flush.start.offset.checkpoint.interval.ms"): by_release((ALL, 60_000)),  # KIP-107
    (TOPIC, "segment.ms"): by_release((ALL, WEEK_MS)),
    (TOPIC, "retention.ms"): by_release((ALL, WEEK_MS)),
    (TOPIC, "retention.bytes"): by_release((ALL, -1)),
    (TOPIC, "flush.messages"): by_release((ALL, LONG_MAX)),
    (BROKER, "broker.session.timeout.ms"): by_release((ALL, 9_000)),
    (BROKER, "broker.heartbeat.interval.ms"): by_release((ALL, 2_000)),
    (BROKER, "initial.broker.registration.timeout.ms"): by_release((ALL, 60_000)),
    (BROKER, "controller.quorum.election.timeout.ms"): by_release((ALL, 1_000)),
    (BROKER, "controller.quorum.election.backoff.max.ms"): by_release((ALL, 1_000)),
    (BROKER, "controller.quorum.fetch.timeout.ms"): by_release((ALL, 2_000)),
    (BROKER, "controller.quorum.request.timeout.ms"): by_release((ALL, 2_000)),
    (BROKER, "metadata.log.max.record.bytes.between.snapshots"): by_release((ALL, 20 * 1024 * 1024)),
    (BROKER, "metadata.log.max.snapshot.interval.ms"): by_release((ALL, 3_600_000)),  # KIP-876, 3.4
    (BROKER, "metadata.max.retention.bytes"): changed_in("3.6", -1, 100 * 1024 * 1024),  # 3.4
    (BROKER, "metadata.max.retention.ms"): by_release((ALL, WEEK_MS)),
    # KIP-937; KIP-1030
    **{(scope, f"{start}before.max.ms"): by_release((ALL, LONG_MAX)) for scope, start in TIMESTAMPS},
    **{
        (scope, f"{start}after.max.ms"): changed_in("4.0", LONG_MAX, 3_600_000) for scope, start in TIMESTAMPS
    },
    **{(scope, f"{start}difference.max.ms"): by_release((ALL, LONG_MAX)) for scope, start in TIMESTAMPS},
    (TOPIC, "flush.ms"): by_release((ALL, LONG_MAX)),
    (TOPIC, "segment.bytes"): by_release((ALL, 1 << 30)),
    (BROKER, "auto.leader.rebalance.enable"): by_release((ALL, True)),
    (BROKER, "leader.imbalance.check.interval.seconds"): by_release((ALL, 300)),
    (BROKER, "leader.imbalance.per.broker.percentage"): by_release((ALL, 10)),
    (PRODUCER, "acks"): changed_in("3.6", "1", "all"),  # KIP-679, 3.0
    (PRODUCER, "enable.idempotence"): changed_in("3.6", False, True),  # KIP-679, 3.0
    (PRODUCER, "retries"): changed_in("2.4", 0, INT_MAX),  # KIP-91, 2.1
    (PRODUCER, "max.in.flight.requests.per.connection"): by_release((ALL, 5)),
    (PRODUCER, "retry.backoff.ms"): by_release((ALL, 100)),
    (PRODUCER, "request.timeout.ms"): by_release((ALL, 30_000)),
    (PRODUCER, "delivery.timeout.ms"): by_release((ALL, 120_000)),
    (PRODUCER, "linger.ms"): changed_in("4.0", 0, 5),  # KIP-1030
    (PRODUCER, "batch.size"): by_release((ALL, 16_384)),
    (PRODUCER, "transactional.id"): by_release((ALL, "")),
    (PRODUCER, "transaction.timeout.ms"): by_release((ALL, 60_000)),
    (PRODUCER, "max.block.ms"): by_release((ALL, 60_000)),
    (CONSUMER, "isolation.level"): by_release((ALL, "read_uncommitted")),
    (BROKER, "offsets.topic.num.partitions"): by_release((ALL, 50)),
    (BROKER, "offsets.topic.replication.factor"): by_release((ALL, 3)),
    (BROKER, "offsets.topic.segment.bytes"): by_release((ALL, 100 * 1024 * 1024)),
    (BROKER, "offsets.commit.timeout.ms"): by_release((ALL, 5_000)),
    (BROKER, "offsets.retention.minutes"): changed_in("2.0", 1_440, 10_080),  # KIP-186
    (BROKER, "offsets.retention.check.interval.ms"): by_release((ALL, 600_000)),
    (BROKER, "group.min.session.timeout.ms"): by_release((ALL, 6_000)),
    (BROKER, "group.max.session.timeout.ms"): changed_in("2.4", 300_000, 1_800_000),
    (BROKER, "group.initial.rebalance.delay.ms"): changed_in("0.11", 0, 3_000),  # KIP-134
    (BROKER, "group.consumer.session.timeout.ms"): by_release((ALL, 45_000)),
    (BROKER, "group.consumer.min.session.timeout.ms"): by_release((ALL, 45_000)),
    (BROKER, "group.consumer.max.session.timeout.ms"): by_release((ALL, 60_000)),
    (BROKER, "group.consumer.heartbeat.interval.ms"): by_release((ALL, 5_000)),
    (BROKER, "group.consumer.min.heartbeat.interval.ms"): by_release((ALL, 5_000)),
    (BROKER, "group.consumer.max.heartbeat.interval.ms"): by_release((ALL, 15_000)),
    (BROKER, "group.consumer.max.size"): by_release((ALL, 2**31 - 1)),
    (BROKER, "group.consumer.assignors"): by_release((ALL, "uniform,range")),
    (BROKER, "group.consumer.assignment.interval.ms"): by_release((ALL, 1_000)),
    (CONSUMER, "group.protocol"): by_release((ALL, "classic")),
    (CONSUMER, "group.remote.assignor"): by_release((ALL, "none")),
    (CONSUMER, "group.id"): by_release((ALL, "")),
    (CONSUMER, "group.instance.id"): by_release((ALL, "")),
    (CONSUMER, "session.timeout.ms"): changed_in("3.6", 10_000, 45_000),  # KIP-735, 3.0
    (CONSUMER, "heartbeat.interval.ms"): by_release((ALL, 3_000)),
    (CONSUMER, "max.poll.interval.ms"): by_release((ALL, 300_000)),
    (CONSUMER, "partition.assignment.strategy"): changed_in(
        "3.6", "range", "range,cooperative-sticky"
    ),  # KIP-726, 3.0
    (CONSUMER, "enable.auto.commit"): by_release((ALL, True)),
    (CONSUMER, "auto.commit.interval.ms"): by_release((ALL, 5_000)),
    (CONSUMER, "default.api.timeout.ms"): by_release((ALL, 60_000)),
    (BROKER, "transaction.state.log.num.partitions"): by_release((ALL, 50)),
    (BROKER, "transaction.state.log.replication.factor"): by_release((ALL, 3)),
    (BROKER, "transaction.state.log.min.isr"): by_release((ALL, 2)),
    (BROKER, "transaction.state.log.segment.bytes"): by_release((ALL, 100 * 1024 * 1024)),
    (CONSUMER, "request.timeout.ms"): changed_in("2.0", 305_000, 30_000),  # KIP-266
    (CONSUMER, "fetch.max.wait.ms"): by_release((ALL, 500)),
    (CONSUMER, "max.partition.fetch.bytes"): by_release((ALL, 1024 * 1024)),
    (CONSUMER, "max.poll.records"): by_release((ALL, 500)),
    (CONSUMER, "auto.offset.reset"): by_release((ALL, "latest")),
    (CONSUMER, "retry.backoff.ms"): by_release((ALL, 100)),
    **{(scope, "metadata.max.age.ms"): by_release((ALL, 300_000)) for scope in (PRODUCER, CONSUMER)},
    **{(scope, "reconnect.backoff.ms"): by_release((ALL, 50)) for scope in (PRODUCER, CONSUMER)},
    **{(scope, "retry.backoff.max.ms"): by_release((ALL, 1_000)) for scope in (PRODUCER, CONSUMER)},
    **{(scope, "reconnect.backoff.max.ms"): by_release((ALL, 1_000)) for scope in (PRODUCER, CONSUMER)},
}


@pytest.mark.parametrize("key", sorted(set(SETTINGS) | set(DEFAULTS)), ids="/".join)
def test_a_setting_has_kafkas_default_in_every_release(key: tuple[str, str]) -> None:
    assert {release: SETTINGS[key].default(release) for release in RELEASES} == DEFAULTS[key]


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("acks", ALL),
        ("enable.idempotence", ALL[1:]),  # KIP-98
        ("reconnect.backoff.max.ms", ALL[1:]),  # KIP-144
        ("delivery.timeout.ms", since("2.4")),  # KIP-91
        ("retry.backoff.max.ms", since("3.9")),  # KIP-580
    ],
)
def test_a_setting_exists_in_its_first_release_and_all_later_ones(
    name: str, releases: tuple[str, ...]
) -> None:
    assert tuple(r for r in RELEASES if SETTINGS[PRODUCER, name].exists_in(r)) == releases


def test_a_default_holds_from_its_release_on() -> None:
    setting = Setting("x", BROKER, "int", (("0.10.2", 1), ("2.0", 2), ("2.3", 3)), "")
    assert [setting.default(release) for release in RELEASES] == [1, 1, 1, 2, *[3] * len(since("2.4"))]


def test_every_default_is_a_valid_value() -> None:
    for setting in SETTINGS.values():
        for _, value in setting.defaults:
            if setting.kind == "choice":
                assert value in setting.choices, setting
            elif setting.kind == "text":
                assert isinstance(value, str), setting
            elif setting.kind == "ratio":
                assert isinstance(value, str), setting
                assert 0 <= float(value) <= 1, setting
            elif setting.kind == "replicas":
                assert value == "", setting
            elif setting.kind == "bool":
                assert isinstance(value, bool), setting
            elif setting.kind == "text":
                assert isinstance(value, str), setting
            else:
                assert isinstance(value, int), setting
                assert setting.minimum <= value <= setting.maximum, setting


def test_a_name_belongs_to_one_or_several_scopes() -> None:
    assert scopes_of("min.insync.replicas") == (BROKER, TOPIC)
    assert scopes_of("retry.backoff.ms") == (PRODUCER, CONSUMER)
    assert scopes_of("no.such.setting") == ()
    assert setting_names((TOPIC,)) == [
        "cleanup.policy",
        "delete.retention.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "max.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
        "unclean.leader.election.enable",
    ]
    assert setting_names() == sorted({name for _, name in SETTINGS})
    assert {scope for scope, _ in SETTINGS} == set(SCOPES)


# What processes get


def test_configurations_have_times_in_microseconds() -> None:
    config = broker_config(
        "2.4",
        {
            "replica.lag.time.max.ms": 7,
            "leader.imbalance.check.interval.seconds": 3,
            "log.flush.interval.ms": 2,
        },
    )
    assert config.replica_lag_time_max_us == 7 * MS
    assert config.leader_imbalance_check_interval_us == 3 * SECOND
    assert config.flush_interval_us == 2 * MS
    never_us = broker_config("2.4", {}).flush_interval_us
    assert 100 * 365 * 86_400 * SECOND < never_us < LONG_MAX


def test_the_flush_interval_is_that_of_the_scheduler_unless_it_is_set() -> None:
    broker = broker_config("2.4", {"log.flush.scheduler.interval.ms": 5})
    assert (broker.flush_interval_us, topic_config({}, broker).flush_us) == (5 * MS, 5 * MS)
    broker = broker_config("2.4", {"log.flush.scheduler.interval.ms": 5, "log.flush.interval.ms": 7})
    assert (broker.flush_interval_us, topic_config({"flush.ms": 9}, broker).flush_us) == (7 * MS, 9 * MS)
    assert topic_config({"segment.bytes": 100}, broker).segment_bytes == 100
    assert topic_config({"retention.ms": 100}, broker).retention_us == 100_000
    assert topic_config({"retention.ms": -1, "retention.bytes": 5}, broker).retention_us < 0


@pytest.mark.parametrize(
    ("of_brokers", "of_topic", "expected"),
    [
        ({}, {}, (False, 1, LONG_MAX)),
        ({"min.insync.replicas": 2, "unclean.leader.election.enable": True}, {}, (True, 2, LONG_MAX)),
        ({"log.flush.interval.messages": 9}, {}, (False, 1, 9)),
        ({"min.insync.replicas": 2}, {"min.insync.replicas": 3, "flush.messages": 1}, (False, 3, 1)),
        (
            {"unclean.leader.election.enable": True},
            {"unclean.leader.election.enable": False},
            (False, 1, LONG_MAX),
        ),
    ],
)
def test_a_topic_inherits_the_settings_of_its_brokers(
    of_brokers: dict[str, Value], of_topic: dict[str, Value], expected: tuple[bool, int, int]
) -> None:
    config = topic_config(of_topic, broker_config("2.4", of_brokers))
    assert (config.unclean_leader_election, config.min_insync_replicas, config.flush_messages) == expected


IDEMPOTENT: dict[str, Value] = {"enable.idempotence": True}


@pytest.mark.parametrize(
    ("release", "explicit", "acks", "idempotence", "retries", "in_flight"),
    [
        ("0.10.2", {}, 1, False, 0, 5),
        ("0.11", {}, 1, False, 0, 5),
        ("2.4", {}, 1, False, INT_MAX, 5),
        # Idempotence changes the defaults of the settings that it needs.
        ("0.11", IDEMPOTENT, -1, True, INT_MAX, 1),
        ("2.0", IDEMPOTENT, -1, True, INT_MAX, 5),
        ("2.4", IDEMPOTENT, -1, True, INT_MAX, 5),
        ("0.10.2", IDEMPOTENT, 1, False, 0, 5),  # the release has no idempotence
        # Explicit values do not change.
        ("2.4", {**IDEMPOTENT, "retries": 3}, -1, True, 3, 5),
        ("2.4", {**IDEMPOTENT, "max.in.flight.requests.per.connection": 1}, -1, True, INT_MAX, 1),
        ("2.4", {"enable.idempotence": False, "acks": "all", "retries": 0}, -1, False, 0, 5),
        ("2.4", {"acks": "0"}, 0, False, INT_MAX, 5),
    ],
)
def test_idempotence_changes_the_other_defaults_of_a_producer(
    release: str, explicit: dict[str, Value], acks: int, idempotence: bool, retries: int, in_flight: int
) -> None:
    config = producer_config(release, explicit)
    assert (config.acks, config.idempotence, config.retries, config.max_in_flight) == (
        acks,
        idempotence,
        retries,
        in_flight,
    )


@pytest.mark.parametrize(
    ("explicit", "delivery_timeout_ms"),
    [
        ({}, 120_000),
        ({"delivery.timeout.ms": 40_000}, 40_000),
        # The default grows with the others (KafkaProducer.configureDeliveryTimeout).
        ({"request.timeout.ms": 200_000}, 200_000),
        ({"request.timeout.ms": 119_000, "linger.ms": 2_000}, 121_000),
        ({"request.timeout.ms": 119_000}, 120_000),
        # A sum that no int holds is cut to the largest one.
        ({"linger.ms": INT_MAX}, INT_MAX),
    ],
)
def test_the_default_delivery_timeout_grows_with_linger_and_request_timeout(
    explicit: dict[str, Value], delivery_timeout_ms: int
) -> None:
    assert producer_config("2.4", explicit).delivery_timeout_us == delivery_timeout_ms * MS


@pytest.mark.parametrize("config_of", [producer_config, consumer_config])
@pytest.mark.parametrize(
    ("release", "explicit", "first_ms", "most_ms"),
    [
        ("2.4", {}, 50, 1_000),
        ("0.11", {}, 50, 1_000),
        ("0.10.2", {}, 50, 50),  # before KIP-144
        ("2.4", {"reconnect.backoff.ms": 200}, 200, 200),  # postProcessReconnectBackoffConfigs
        ("2.4", {"reconnect.backoff.max.ms": 400}, 50, 400),
        ("2.4", {"reconnect.backoff.ms": 200, "reconnect.backoff.max.ms": 300}, 200, 300),
        ("2.4", {"reconnect.backoff.ms": 200, "reconnect.backoff.max.ms": 100}, 200, 200),
    ],
)
def test_the_reconnect_backoff_grows_only_if_its_maximum_applies(
    config_of: Any, release: str, explicit: dict[str, Value], first_ms: int, most_ms: int
) -> None:
    config = config_of(release, explicit)
    assert config.reconnect_backoff_us == first_ms * MS
    assert config.reconnect_backoff_max_us == most_ms * MS


def test_a_consumer_has_its_own_settings_and_the_defaults_of_its_release() -> None:
    config = consumer_config("2.4", {"auto.offset.reset": "earliest", "max.poll.records": 3})
    assert (config.auto_offset_reset, config.max_poll_records) == ("earliest", 3)
    assert (config.fetch_max_wait_us, config.request_timeout_us) == (500 * MS, 30 * SECOND)
    assert consumer_config("0.11", {}).request_timeout_us == 305 * SECOND


LATEST = RELEASES["2.4"].behaviours


@pytest.mark.parametrize(
    ("chosen", "fixed", "settled"),
    [
        ({"enable.idempotence": True, "acks": "1"}, {}, {"enable.idempotence": True, "acks": "all"}),
        ({"enable.idempotence": True, "retries": 0}, {}, {"enable.idempotence": True}),
        ({"enable.idempotence": True}, {"acks": "1"}, {"enable.idempotence": False}),
        ({"acks": "0"}, {"enable.idempotence": True}, {"acks": "all"}),
        ({"delivery.timeout.ms": 1_000}, {}, {"delivery.timeout.ms": 30_000}),
        ({"linger.ms": 50}, {"delivery.timeout.ms": 30_000}, {}),
        ({"delivery.timeout.ms": 1_000}, {"linger.ms": INT_MAX}, {"delivery.timeout.ms": INT_MAX}),
        ({"min.insync.replicas": 3}, {}, {"min.insync.replicas": 2}),
        ({"acks": "0", "linger.ms": 5}, {}, {"acks": "0", "linger.ms": 5}),
    ],
)
def test_a_chosen_setting_changes_if_it_conflicts_with_a_fixed_one(
    chosen: dict[str, Value], fixed: dict[str, Value], settled: dict[str, Value]
) -> None:
    assert reconciled("2.4", chosen, LATEST, fixed=fixed, replicas=2) == settled
    assert list(conflicts("2.4", {**fixed, **settled}, LATEST)) == []


ORDERS: dict[str, Value] = {"transactional.id": "orders"}


@pytest.mark.parametrize(("protocol", "kept"), [("classic", True), ("consumer", False)])
def test_a_chosen_group_protocol_drops_settings_of_the_other_one(protocol: str, kept: bool) -> None:
    of_classic: dict[str, Value] = {
        "session.timeout.ms": 6_000,
        "partition.assignment.strategy": "cooperative-sticky",
    }
    chosen: dict[str, Value] = {"group.protocol": protocol, "max.poll.records": 5, **of_classic}
    settled = reconciled("4.3", chosen, LATEST)
    assert settled == {"group.protocol": protocol, "max.poll.records": 5, **(of_classic if kept else {})}


def test_a_transactional_id_makes_a_producer_idempotent_in_every_release() -> None:
    for release in since("0.11"):
        config = producer_config(release, ORDERS)
        assert (config.idempotence, config.acks, config.transactional_id) == (True, -1, "orders")


@pytest.mark.parametrize(
    "explicit",
    [
        {"enable.idempotence": False},
        {"acks": "1"},
        {"retries": 0},
        {"max.in.flight.requests.per.connection": 6},
    ],
)
def test_a_transactional_id_conflicts_with_the_same_settings_as_idempotence(
    explicit: dict[str, Value],
) -> None:
    refused = list(conflicts("2.4", {**ORDERS, **explicit}, LATEST))
    assert [conflict.setting for conflict in refused] == list(explicit)
    settled = reconciled("2.4", explicit, LATEST, fixed=ORDERS)
    assert list(conflicts("2.4", {**ORDERS, **settled}, LATEST)) == []


def test_reconciled_settings_have_no_conflict_in_any_release() -> None:
    chosen: dict[str, Value] = {
        "enable.idempotence": True,
        "acks": "1",
        "retries": 0,
        "max.in.flight.requests.per.connection": 9,
        "delivery.timeout.ms": 1,
    }
    for release, profile in RELEASES.items():
        known = shared_with(PRODUCER, release, chosen)
        refused = list(conflicts(release, known, profile.behaviours))
        assert bool(refused) == ("enable.idempotence" in known)
        settled = reconciled(release, known, profile.behaviours)
        assert list(conflicts(release, settled, profile.behaviours)) == []


@pytest.mark.parametrize(
    ("release", "explicit", "idempotence", "acks"),
    [
        ("2.8", {}, False, 1),
        ("3.6", {}, True, -1),
        ("3.6", {"acks": "1"}, False, 1),
        ("3.6", {"retries": 0}, False, -1),
        ("3.6", {"max.in.flight.requests.per.connection": 6}, False, -1),
        ("3.6", {"enable.idempotence": False}, False, -1),
    ],
)
def test_from_3_0_on_idempotence_is_a_default_that_conflicts_turn_off(
    release: str, explicit: dict[str, Value], idempotence: bool, acks: int
) -> None:
    """KIP-679, `postProcessAndValidateIdempotenceConfigs`."""
    config = producer_config(release, explicit)
    assert (config.idempotence, config.acks) == (idempotence, acks)


@pytest.mark.parametrize(
    ("release", "idempotence", "refused"), [("3.9", None, 0), ("4.0", None, 1), ("4.0", False, 0)]
)
def test_from_4_0_on_more_than_five_requests_in_flight_need_idempotence_off(
    release: str, idempotence: bool | None, refused: int
) -> None:
    explicit: dict[str, Value] = {"max.in.flight.requests.per.connection": 6}
    if idempotence is not None:
        explicit["enable.idempotence"] = idempotence
    refusals = list(conflicts(release, explicit, RELEASES[release].behaviours))
    assert [conflict.remedy for conflict in refusals] == [5] * refused


# Compaction


@pytest.mark.parametrize(
    ("policy", "compacts", "retention_us"),
    [("delete", False, 5_000), ("compact", True, -1), ("compact,delete", True, 5_000)],
)
def test_retention_needs_delete_in_the_cleanup_policy(policy: str, compacts: bool, retention_us: int) -> None:
    config = topic_config({"cleanup.policy": policy, "retention.ms": 5}, broker_config("2.4", {}))
    assert (config.compacts, config.retention_us) == (compacts, retention_us)


@pytest.mark.parametrize(("policy", "segment_ms"), [("compact", 4), ("delete", 9)])
def test_a_compacted_segment_rolls_within_the_maximum_compaction_lag(policy: str, segment_ms: int) -> None:
    """`LogConfig.maxSegmentMs`, KIP-354."""
    explicit: dict[str, Value] = {"cleanup.policy": policy, "segment.ms": 9, "max.compaction.lag.ms": 4}
    assert topic_config(explicit, broker_config("2.4", {})).segment_us == segment_ms * MS


@pytest.mark.parametrize(
    ("release", "explicit", "wanted_ms"),
    [
        ("2.4", {"message.timestamp.difference.max.ms": 7}, (7, 7)),
        ("3.6", {"message.timestamp.difference.max.ms": 7, "message.timestamp.before.max.ms": 9}, (9, 7)),
        ("4.3", {}, (None, 3_600_000)),
        ("4.3", {"message.timestamp.after.max.ms": 5}, (None, 5)),
    ],
)
def test_the_older_timestamp_limit_applies_while_the_newer_ones_have_their_defaults(
    release: str, explicit: dict[str, Value], wanted_ms: tuple[int | None, int]
) -> None:
    config = topic_config(explicit, broker_config(release, {}))
    limits = (config.timestamp_before_max_us, config.timestamp_after_max_us)
    assert limits == tuple(NO_LIMIT_US if limit is None else limit * MS for limit in wanted_ms)


@pytest.mark.parametrize(
    ("release", "explicit", "refused"),
    [
        ("3.9", {"group.id": "g", "heartbeat.interval.ms": 45_000}, ["heartbeat.interval.ms"]),
        ("2.4", {"group.id": "g", "session.timeout.ms": 3_000}, ["session.timeout.ms"]),
        (
            "2.0",
            {"group.id": "g", "partition.assignment.strategy": "cooperative-sticky"},
            ["partition.assignment.strategy"],
        ),
        ("2.4", {"group.id": "g", "partition.assignment.strategy": "cooperative-sticky"}, []),
        ("2.4", {"enable.auto.commit": True}, ["enable.auto.commit"]),
        ("2.0", {"enable.auto.commit": True}, []),
        ("3.9", {"session.timeout.ms": 1, "heartbeat.interval.ms": 3}, []),
        (
            "4.0",
            {"group.id": "g", "group.protocol": "consumer", "session.timeout.ms": 9},
            ["session.timeout.ms"],
        ),
        (
            "4.3",
            {"group.id": "g", "group.protocol": "consumer", "partition.assignment.strategy": "range"},
            ["partition.assignment.strategy"],
        ),
        ("4.3", {"group.id": "g", "group.protocol": "consumer", "group.remote.assignor": "range"}, []),
        ("4.3", {"group.id": "g", "group.remote.assignor": "range"}, ["group.remote.assignor"]),
    ],
)
def test_kafka_refuses_conflicting_settings_of_a_consumer(
    release: str, explicit: dict[str, Value], refused: list[str]
) -> None:
    assert [conflict.setting for conflict in consumer_conflicts(release, explicit)] == refused


@pytest.mark.parametrize(
    ("explicit", "refused"),
    [
        ({}, []),
        ({"session.timeout.ms": 10_000}, ["session.timeout.ms"]),
        ({"session.timeout.ms": 10_000, "min.session.timeout.ms": 10_000}, []),
        ({"max.heartbeat.interval.ms": 4_000, "min.heartbeat.interval.ms": 1}, ["max.heartbeat.interval.ms"]),
        (
            {"session.timeout.ms": 5_000, "min.session.timeout.ms": 1, "heartbeat.interval.ms": 5_000},
            ["heartbeat.interval.ms"],
        ),
    ],
)
def test_kafka_refuses_conflicting_group_settings_of_a_broker(
    explicit: dict[str, Value], refused: list[str]
) -> None:
    settings = {f"group.consumer.{name}": value for name, value in explicit.items()}
    refusals = [conflict.setting for conflict in broker_conflicts("4.0", settings)]
    assert refusals == [f"group.consumer.{name}" for name in refused]
    assert not list(broker_conflicts("3.9", settings))


def test_from_2_0_on_a_commit_of_a_consumer_times_out() -> None:
    assert consumer_config("0.11", {}).api_timeout_us is None
    assert consumer_config("2.0", {}).api_timeout_us == 60 * SECOND


REMOVED_IN_4_0 = {
    (BROKER, "zookeeper.session.timeout.ms"),
    (BROKER, "control.plane.listener.name"),
    (BROKER, "controlled.shutdown.max.retries"),
    (BROKER, "controlled.shutdown.retry.backoff.ms"),
    (BROKER, "leader.imbalance.per.broker.percentage"),
    (BROKER, "log.message.timestamp.difference.max.ms"),
    (TOPIC, "message.timestamp.difference.max.ms"),
}


def test_removed_settings_are_missing_in_later_releases() -> None:
    assert {key for key, setting in SETTINGS.items() if setting.is_gone("4.0")} == REMOVED_IN_4_0
    assert not [key for key, setting in SETTINGS.items() if setting.is_gone("3.9")]


def test_the_message_about_a_removed_setting_names_its_last_release_and_its_successor() -> None:
    assert SETTINGS[TOPIC, "message.timestamp.difference.max.ms"].missing_in("4.3") == (
        "Kafka 4.3 no longer has message.timestamp.difference.max.ms; 3.9 was the last release with it: "
        "use message.timestamp.before.max.ms and message.timestamp.after.max.ms"
    )
