"""Translates the Java client's settings to those of the library that stands in for it.

Campaigns use the Java client's names. Missing settings get the defaults of the Java client of the
release, not those of the library, so that a campaign means the same everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import (
    ANY_ASSIGNOR,
    ASSIGNMENT_STRATEGY,
    AUTO_OFFSET_RESET,
    CONSUMER,
    CONSUMER_PROTOCOL,
    DELIVERY_TIMEOUT,
    GROUP_ID,
    GROUP_PROTOCOL,
    IDEMPOTENCE,
    IN_FLIGHT,
    NO_TEXT,
    OF_CLASSIC_PROTOCOL,
    OF_GROUPS,
    PRODUCER,
    REMOTE_ASSIGNOR,
    SETTINGS,
    TRANSACTION_TIMEOUT,
    TRANSACTIONAL_ID,
    Value,
    producer_config,
)
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import CONFLUENT_KAFKA, KAFKA_PYTHON

_ALL: Final = "all"
_RECONNECT_BACKOFF_MAX: Final = "reconnect.backoff.max.ms"
_MAX_BLOCK: Final = "max.block.ms"
_ONLY_JAVA_PRODUCER: Final = frozenset({_MAX_BLOCK, "partitioner.rack.aware"})
"""Producer settings that librdkafka lacks."""
_API_TIMEOUT: Final = "default.api.timeout.ms"
"""librdkafka takes this timeout as an argument of each call."""
_RETRY_BACKOFF_MAX: Final = "retry.backoff.max.ms"
_REQUEST_TIMEOUT: Final = "request.timeout.ms"
_SOCKET_TIMEOUT: Final = "socket.timeout.ms"
_POLL_ARGUMENTS: Final = frozenset({"max.poll.records"})
"""Settings that the libraries take as arguments of a poll."""
_METADATA_MAX_AGE: Final = "metadata.max.age.ms"
_METADATA_REFRESH: Final = "topic.metadata.refresh.interval.ms"
"""How often librdkafka asks for metadata; its own `metadata.max.age.ms` limits the use of stale
metadata."""
_METADATA_REFRESH_MAX_MS: Final = 3_600_000
_LIBRDKAFKA_NAMES: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    _REQUEST_TIMEOUT: _SOCKET_TIMEOUT,
    "retry.backoff.ms": "fetch.error.backoff.ms",
}
"""librdkafka's names of consumer settings."""
_LIBRDKAFKA_RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
_SOCKET_TIMEOUT_MAX_MS: Final = 300_000
"""The maximum in librdkafka; before 2.0 the Java consumer's default is 305 seconds."""
_UNKNOWN_TOPIC_KEPT_MS: Final = 2_147_000
"""How long librdkafka keeps a topic that a broker does not know. librdkafka accepts up to an hour,
but converts it to microseconds in 32 bits, so this is the maximum that works.

With ZooKeeper a broker that has just started answers before its controller has sent it any metadata
(UpdateMetadata). The Java client asks again until its records time out. By default, librdkafka
drops the topic and its queued records half a minute after it first used it
(`rd_kafka_topic_set_notexists`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySettings:
    """Translates settings for one library.

    ``own_name`` takes a scope (producer or consumer) and a setting, and returns the library's name
    of the setting, None if the library lacks it. ``own_values`` translates values. ``connection``
    returns the settings for servers and a client id. ``own_security`` translates a security setting
    with librdkafka's name, and returns None if the library lacks it.
    """

    own_name: Callable[[str, str], str | None]
    own_values: Mapping[str, Callable[[Value], Value]] = field(default_factory=dict)
    connection: Callable[[list[str], str], dict[str, Any]]
    own_security: Callable[[str, str], dict[str, Any] | None]
    correct: Callable[[dict[str, Any]], None] = lambda _: None
    """Corrects producer settings whose combination the library would refuse."""

    def lacking(self, scope: str, names: Iterable[str]) -> Iterator[str]:
        """Yield the settings that the library lacks."""
        return (name for name in names if self.own_name(scope, name) is None)

    def translated(self, scope: str, settings: Mapping[str, Value]) -> dict[str, Any]:
        """Return the settings that the library has, with its names and values."""
        own = {}
        for name, value in settings.items():
            own_name = None if name in _POLL_ARGUMENTS else self.own_name(scope, name)
            if own_name is not None:
                own[own_name] = self.own_values[name](value) if name in self.own_values else value
        return own

    def lacking_security(self, settings: Mapping[str, str]) -> Iterator[str]:
        """Yield the security settings that the library lacks."""
        return (name for name, value in settings.items() if self.own_security(name, value) is None)

    def secured(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return security settings with the library's names; the library must not lack any."""
        own: dict[str, Any] = {}
        for name, value in settings.items():
            translated = self.own_security(name, value)
            assert translated is not None, f"the library would silently ignore {name}"
            own.update(translated)
        return own


def _librdkafka_name(scope: str, name: str) -> str | None:
    """Return librdkafka's name, which is nearly always Java's (``CONFIGURATION.md``)."""
    if name == _METADATA_MAX_AGE:
        return _METADATA_REFRESH
    if scope == CONSUMER:
        return None if name == _API_TIMEOUT else _LIBRDKAFKA_NAMES.get(name, name)
    return None if name in _ONLY_JAVA_PRODUCER else name


def _kafka_python_name(scope: str, name: str) -> str | None:
    own_name = name.replace(".", "_")
    existing = (KafkaProducer if scope == PRODUCER else KafkaConsumer).DEFAULT_CONFIG
    return own_name if own_name in existing else None


def _librdkafka_connection(servers: list[str], client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": ",".join(servers),
        "client.id": client_id,
        "log_level": 0,
        "topic.metadata.propagation.max.ms": _UNKNOWN_TOPIC_KEPT_MS,
    }


def _kafka_python_connection(servers: list[str], client_id: str) -> dict[str, Any]:
    return {"bootstrap_servers": servers, "client_id": client_id}


def _librdkafka_security(name: str, value: str) -> dict[str, Any]:
    return {name: value}


_KAFKA_PYTHON_SECURITY: Final[Mapping[str, str]] = {
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.crl.location": "ssl_crlfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


def _kafka_python_security(name: str, value: str) -> dict[str, Any] | None:
    """Return kafka-python's settings for a security setting, None if it lacks the setting.

    kafka-python supports only PEM files, and always verifies certificates.
    """
    if name == "security.protocol":
        return {"security_protocol": value.upper()}
    if name == "ssl.endpoint.identification.algorithm":
        return {"ssl_check_hostname": value not in ("", "none")}
    if name == "enable.ssl.certificate.verification":
        return {} if value.lower() == "true" else None
    own_name = _KAFKA_PYTHON_SECURITY.get(name)
    return None if own_name is None else {own_name: value}


def _correct_for_librdkafka(settings: dict[str, Any]) -> None:
    """Correct producer settings that librdkafka interprets differently, or refuses together.

    librdkafka's `request.timeout.ms` limits how long a leader waits for its followers. Its
    `socket.timeout.ms`, a minute by default, limits how long the producer waits for the leader; the
    Java client waits as long as the leader. In librdkafka the timeouts of records and requests must
    not exceed the timeout of the transaction; the Java client has no such limit.
    """
    if _REQUEST_TIMEOUT in settings:
        settings[_SOCKET_TIMEOUT] = min(int(settings[_REQUEST_TIMEOUT]), _SOCKET_TIMEOUT_MAX_MS)
    for name in (DELIVERY_TIMEOUT, _SOCKET_TIMEOUT):
        if name in settings and TRANSACTION_TIMEOUT in settings:
            settings[name] = min(int(settings[name]), int(settings[TRANSACTION_TIMEOUT]))


def _acks(value: Value) -> Value:
    return value if value == _ALL else int(value)


LIBRARIES: Final[Mapping[str, LibrarySettings]] = {
    CONFLUENT_KAFKA: LibrarySettings(
        own_name=_librdkafka_name,
        own_values={
            _METADATA_MAX_AGE: lambda age_ms: min(int(age_ms), _METADATA_REFRESH_MAX_MS),
            AUTO_OFFSET_RESET: lambda reset: _LIBRDKAFKA_RESETS[str(reset)],
            # Given an eager and a cooperative assignor, the Java client uses the eager one;
            # librdkafka refuses the pair.
            ASSIGNMENT_STRATEGY: lambda names: str(names).partition(",")[0],
        },
        connection=_librdkafka_connection,
        own_security=_librdkafka_security,
        correct=_correct_for_librdkafka,
    ),
    KAFKA_PYTHON: LibrarySettings(
        own_name=_kafka_python_name,
        own_values={"acks": _acks},
        connection=_kafka_python_connection,
        own_security=_kafka_python_security,
    ),
}


def producer_settings(library: str, release: str, own: Mapping[str, Value]) -> dict[str, Any]:
    """Return the settings that make a library's producer like the Java producer of a release."""
    settings = _with_defaults(PRODUCER, release, own)
    # The model knows how the default of one setting depends on another in each release.
    config = producer_config(release, own)
    dependent: dict[str, Value] = {
        "acks": _ALL if config.acks == -1 else str(config.acks),
        "retries": config.retries,
        IN_FLIGHT: config.max_in_flight,
        DELIVERY_TIMEOUT: config.delivery_timeout_us // US_PER_MS,
        _RECONNECT_BACKOFF_MAX: config.reconnect_backoff_max_us // US_PER_MS,
    }
    settings.update({name: value for name, value in dependent.items() if name in settings})
    # Always set idempotence: current libraries enable it by default, even if the Java client of the
    # release lacks it.
    settings[IDEMPOTENCE] = config.idempotence
    settings[_RETRY_BACKOFF_MAX] = config.retry_backoff_max_us // US_PER_MS
    LIBRARIES[library].correct(settings)
    return LIBRARIES[library].translated(PRODUCER, settings)


def consumer_settings(library: str, release: str, own: Mapping[str, Value]) -> dict[str, Any]:
    """Return the settings that make a library's consumer like the Java consumer of a release."""
    settings = _with_defaults(CONSUMER, release, own)
    settings[_REQUEST_TIMEOUT] = min(int(settings[_REQUEST_TIMEOUT]), _SOCKET_TIMEOUT_MAX_MS)
    return LIBRARIES[library].translated(CONSUMER, settings)


def _with_defaults(scope: str, release: str, own: Mapping[str, Value]) -> dict[str, Value]:
    settings = {
        setting.name: own.get(setting.name, setting.default(release))
        for setting in SETTINGS.values()
        if setting.scope == scope and setting.exists_in(release)
    }
    # Without a transactional id or a group, leave out the settings of transactions or groups.
    without: frozenset[str] = frozenset()
    if not settings.get(TRANSACTIONAL_ID):
        without |= {TRANSACTION_TIMEOUT}
    if not settings.get(GROUP_ID):
        without |= OF_GROUPS
    elif settings.get(GROUP_PROTOCOL) == CONSUMER_PROTOCOL:
        without |= OF_CLASSIC_PROTOCOL
    if settings.get(REMOTE_ASSIGNOR) == ANY_ASSIGNOR:
        without |= {REMOTE_ASSIGNOR}
    return {name: value for name, value in settings.items() if value != NO_TEXT and name not in without}
