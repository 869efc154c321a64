"""Settings of the Java client are translated for each client library."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import CONSUMER, PRODUCER, SETTINGS, Value, producer_config
from harrow.cluster_model.topology import CONFLUENT_KAFKA, KAFKA_PYTHON
from harrow.live_cluster.clients.client_settings import (
    LIBRARIES,
    LibrarySettings,
    consumer_settings,
    producer_settings,
)


@pytest.mark.parametrize("release", RELEASES)
def test_librdkafka_accepts_all_settings(release: str) -> None:
    Producer(producer_settings(CONFLUENT_KAFKA, release, {}))
    Consumer({**consumer_settings(CONFLUENT_KAFKA, release, {}), "group.id": "g"})
    if release != "0.10.2":
        Producer(producer_settings(CONFLUENT_KAFKA, release, {"enable.idempotence": True}))


def test_librdkafka_waits_for_new_topics() -> None:
    connection = LIBRARIES[CONFLUENT_KAFKA].connection(["127.0.0.1:1"], "c")
    # A larger value overflows: librdkafka stores microseconds in 32 bits.
    assert 30 * 60_000 < connection["topic.metadata.propagation.max.ms"] < 2**31 / 1_000
    Producer(connection)


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_python_accepts_all_settings(release: str) -> None:
    assert producer_settings(KAFKA_PYTHON, release, {}).keys() <= KafkaProducer.DEFAULT_CONFIG.keys()
    assert consumer_settings(KAFKA_PYTHON, release, {}).keys() <= KafkaConsumer.DEFAULT_CONFIG.keys()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("scope", [PRODUCER, CONSUMER])
def test_every_campaign_setting_is_translated(library: str, scope: str) -> None:
    names = [name for of, name in SETTINGS if of == scope]
    lacking = ["default.api.timeout.ms"] * (scope == CONSUMER)
    if scope == PRODUCER:
        lacking += ["partitioner.rack.aware", *(["client.rack"] if library == KAFKA_PYTHON else [])]
    if library == KAFKA_PYTHON:
        lacking = ["group.protocol", "group.remote.assignor"] * (scope == CONSUMER) + lacking
        lacking.append("retry.backoff.max.ms")
    elif scope == PRODUCER:
        lacking.append("max.block.ms")
    assert sorted(LIBRARIES[library].lacking(scope, names)) == sorted(lacking)


def test_librdkafka_gets_settings_of_its_group_protocol_only() -> None:
    campaign_settings: dict[str, Value] = {
        "group.id": "g",
        "group.protocol": "consumer",
        "group.remote.assignor": "range",
    }
    settings = consumer_settings(CONFLUENT_KAFKA, "4.3", campaign_settings)
    assert (settings["group.protocol"], settings["group.remote.assignor"]) == ("consumer", "range")
    Consumer(settings).close()
    settings = consumer_settings(
        CONFLUENT_KAFKA, "4.3", {"group.id": "g", "partition.assignment.strategy": "range"}
    )
    assert "session.timeout.ms" in settings
    Consumer(settings).close()


@pytest.mark.parametrize("library", LIBRARIES)
def test_transaction_settings_need_transactions(library: str) -> None:
    settings = producer_settings(library, "3.9", {})
    assert not [name for name in settings if "transaction" in name]
    assert (
        producer_settings(CONFLUENT_KAFKA, "3.9", {"transactional.id": "a"})["transaction.timeout.ms"]
        == 60_000
    )


def test_unsupported_settings_are_reported_and_omitted() -> None:
    without = LibrarySettings(
        own_name=lambda scope, name: None if name == "linger.ms" else f"{scope}:{name}",
        connection=lambda servers, client_id: {"servers": servers, "id": client_id},
        own_security=lambda name, value: None if name == "ssl.providers" else {f"own.{name}": value},
    )
    campaign_settings: Mapping[str, Value] = {"linger.ms": 7, "acks": "all"}
    assert list(without.lacking(PRODUCER, campaign_settings)) == ["linger.ms"]
    assert without.translated(PRODUCER, campaign_settings) == {"producer:acks": "all"}
    assert list(without.lacking_security({"ssl.providers": "x", "sasl.username": "y"})) == ["ssl.providers"]
    assert without.secured({"sasl.username": "y"}) == {"own.sasl.username": "y"}


@pytest.mark.parametrize(
    ("library", "retries", "acks", "linger", "idempotence", "timeout"),
    [
        (
            CONFLUENT_KAFKA,
            "retries",
            {"1": "1", "all": "all"},
            "linger.ms",
            "enable.idempotence",
            "delivery.timeout.ms",
        ),
        (
            KAFKA_PYTHON,
            "retries",
            {"1": 1, "all": "all"},
            "linger_ms",
            "enable_idempotence",
            "delivery_timeout_ms",
        ),
    ],
)
def test_defaults_match_the_java_client_of_the_release(
    library: str, retries: str, acks: Mapping[str, Value], linger: str, idempotence: str, timeout: str
) -> None:
    def settings(release: str, **values: Any) -> dict[str, Any]:
        named = {name.replace("_", "."): value for name, value in values.items()}
        return producer_settings(library, release, named)

    oldest, old, new = settings("0.10.2"), settings("2.0"), settings("2.4", linger_ms=7)
    assert (oldest[retries], old[retries], new[retries]) == (0, 0, 2**31 - 1)
    assert (oldest["acks"], old["acks"], new["acks"]) == (acks["1"],) * 3
    assert (old[linger], new[linger]) == (0, 7)
    # Current libraries enable idempotence by default.
    assert (oldest[idempotence], new[idempotence]) == (False, False)
    assert timeout in new
    assert timeout not in old
    idempotent = settings("2.0", enable_idempotence=True)
    assert (idempotent["acks"], idempotent[retries]) == (acks["all"], 2**31 - 1)
    assert settings("2.0", enable_idempotence=True, retries=3)[retries] == 3


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "campaign_settings",
    [
        {},
        {"acks": "all"},
        {"retries": 7, "max.in.flight.requests.per.connection": 2},
        {"enable.idempotence": True},
        {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1, "retries": 3},
        {"request.timeout.ms": 200_000, "reconnect.backoff.ms": 9},
    ],
)
def test_producer_settings_match_the_model_of_the_release(
    library: str, release: str, campaign_settings: Mapping[str, Value]
) -> None:
    """Old releases mean the same on both targets: up to 2.0 a producer does not retry."""
    settings, config = (
        producer_settings(library, release, campaign_settings),
        producer_config(release, campaign_settings),
    )
    translation = LIBRARIES[library]

    def of(name: str) -> Any:
        own_name = translation.own_name(PRODUCER, name)
        assert own_name is not None
        return settings.get(own_name)

    assert str(of("acks")).replace("all", "-1") == str(config.acks)
    assert of("retries") == config.retries
    assert of("enable.idempotence") == config.idempotence
    assert of("max.in.flight.requests.per.connection") == config.max_in_flight
    assert of("request.timeout.ms") * 1_000 == config.request_timeout_us
    if release == "2.4":
        assert of("delivery.timeout.ms") * 1_000 == config.delivery_timeout_us
    if release != "0.10.2":
        assert of("reconnect.backoff.max.ms") * 1_000 == config.reconnect_backoff_max_us


def test_librdkafka_has_other_names_for_consumer_settings() -> None:
    campaign_settings: Mapping[str, Value] = {
        "fetch.max.wait.ms": 9,
        "auto.offset.reset": "none",
        "max.poll.records": 3,
        "request.timeout.ms": 305_000,
    }
    settings = consumer_settings(CONFLUENT_KAFKA, "2.4", campaign_settings)
    assert settings["fetch.wait.max.ms"] == 9
    assert settings["socket.timeout.ms"] == 300_000
    assert settings["auto.offset.reset"] == "error"
    assert "max.poll.records" not in settings


def test_kafka_python_settings_use_underscores() -> None:
    settings = consumer_settings(KAFKA_PYTHON, "2.4", {"fetch.max.wait.ms": 9, "auto.offset.reset": "none"})
    assert (settings["fetch_max_wait_ms"], settings["auto_offset_reset"]) == (9, "none")
    assert "max_poll_records" not in settings


def test_bootstrap_servers_suit_each_library() -> None:
    servers = ["a:1", "b:2"]
    assert LIBRARIES[CONFLUENT_KAFKA].connection(servers, "c")["bootstrap.servers"] == "a:1,b:2"
    assert LIBRARIES[KAFKA_PYTHON].connection(servers, "c") == {
        "bootstrap_servers": servers,
        "client_id": "c",
    }


SECURITY: Mapping[str, str] = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "harrow",
    "sasl.password": "secret",
    "ssl.ca.location": "ca.pem",
    "ssl.certificate.location": "own.pem",
    "ssl.key.location": "key.pem",
    "ssl.key.password": "hidden",
    "ssl.endpoint.identification.algorithm": "none",
    "enable.ssl.certificate.verification": "true",
}


def test_librdkafka_gets_security_settings_of_the_cluster_file() -> None:
    assert list(LIBRARIES[CONFLUENT_KAFKA].lacking_security(SECURITY)) == []
    assert LIBRARIES[CONFLUENT_KAFKA].secured(SECURITY) == SECURITY


def test_kafka_python_gets_translated_security_settings() -> None:
    assert list(LIBRARIES[KAFKA_PYTHON].lacking_security(SECURITY)) == []
    secured = LIBRARIES[KAFKA_PYTHON].secured(SECURITY)
    assert secured == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "harrow",
        "sasl_plain_password": "secret",
        "ssl_cafile": "ca.pem",
        "ssl_certfile": "own.pem",
        "ssl_keyfile": "key.pem",
        "ssl_password": "hidden",
        "ssl_check_hostname": False,
    }
    assert secured.keys() <= KafkaProducer.DEFAULT_CONFIG.keys()
    assert secured.keys() <= KafkaConsumer.DEFAULT_CONFIG.keys()


@pytest.mark.parametrize(
    "setting",
    [
        ("enable.ssl.certificate.verification", "false"),
        ("ssl.ca.pem", "..."),
        ("sasl.kerberos.principal", "x"),
    ],
)
def test_security_settings_that_kafka_python_lacks_are_an_error(setting: tuple[str, str]) -> None:
    assert list(LIBRARIES[KAFKA_PYTHON].lacking_security(dict([setting]))) == [setting[0]]
    with pytest.raises(AssertionError, match="would silently ignore"):
        LIBRARIES[KAFKA_PYTHON].secured(dict([setting]))


@pytest.mark.parametrize(
    ("campaign_settings", "timeout_ms"),
    [
        ({}, 30_000),
        ({"request.timeout.ms": 5_000}, 5_000),
        ({"request.timeout.ms": 5_000, "transactional.id": "x", "transaction.timeout.ms": 3_000}, 3_000),
    ],
)
def test_librdkafka_request_timeout_matches_the_java_client(
    campaign_settings: Mapping[str, Value], timeout_ms: int
) -> None:
    settings = producer_settings(CONFLUENT_KAFKA, "2.4", campaign_settings)
    assert settings["socket.timeout.ms"] == timeout_ms
    Producer(settings)


@pytest.mark.parametrize(("age_ms", "refresh_ms"), [(2_000, 2_000), (7_200_000, 3_600_000)])
def test_librdkafka_metadata_age_matches_the_java_client(age_ms: int, refresh_ms: int) -> None:
    campaign_settings: Mapping[str, Value] = {"metadata.max.age.ms": age_ms}
    for settings in (
        producer_settings(CONFLUENT_KAFKA, "2.4", campaign_settings),
        consumer_settings(CONFLUENT_KAFKA, "2.4", campaign_settings),
    ):
        assert settings["topic.metadata.refresh.interval.ms"] == refresh_ms
        assert "metadata.max.age.ms" not in settings
