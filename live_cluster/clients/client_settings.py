"""What a campaign says of a client, in the words of the library that stands in for the Java client.

A campaign names settings as the Java client does. What it leaves open gets the default of the Java client of its release, not
that of the library, so that the same campaign means the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer

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
_PRODUCERS_OF_JAVA: Final = frozenset({_MAX_BLOCK, "partitioner.rack.aware"})
"""The settings of a producer that librdkafka has not."""
_API_TIMEOUT: Final = "default.api.timeout.ms"
"""What librdkafka is told with each call."""
_RETRY_BACKOFF_MAX: Final = "retry.backoff.max.ms"
_REQUEST_TIMEOUT: Final = "request.timeout.ms"
_SOCKET_TIMEOUT: Final = "socket.timeout.ms"
_TAKEN_BY_WORKER: Final = frozenset({"max.poll.records"})
"""What is no setting of a library's but an argument of the call that reads."""
_METADATA_MAX_AGE: Final = "metadata.max.age.ms"
_METADATA_REFRESH: Final = "topic.metadata.refresh.interval.ms"
"""How often librdkafka asks for metadata; its own `metadata.max.age.ms` is how long it goes on with what it could not renew."""
_METADATA_REFRESH_MAX_MS: Final = 3_600_000
_LIBRDKAFKA_NAMES: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    _REQUEST_TIMEOUT: _SOCKET_TIMEOUT,
    "retry.backoff.ms": "fetch.error.backoff.ms",
}
"""Of a consumer's settings, what librdkafka calls them."""
_LIBRDKAFKA_RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
_SOCKET_TIMEOUT_MAX_MS: Final = 300_000
"""The most that librdkafka takes; before 2.0 the Java consumer's default is 305 seconds."""
_TOPIC_SOUGHT_MS: Final = 2_147_000
"""How long librdkafka goes on with a topic that some broker says is unknown, from when it learnt of it: the most that it counts right,
for it makes microseconds of it in 32 bits, though it takes up to an hour.

With ZooKeeper a broker that has started answers before its controller has sent it any metadata (UpdateMetadata). The Java client asks
again, for as long as its records have time; librdkafka, half a minute after it learnt of the topic, drops it with all that is queued
for it (`rd_kafka_topic_set_notexists`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySettings:
    """How a library says what Kafka's settings say.

    ``own_name`` returns what it calls a setting of a producer or a consumer, None where it has none; ``own_values`` what it calls
    a value. ``connection`` returns what a client needs to find servers, and to be known by a client id. ``own_security`` returns
    what it is told in place of a setting of security, by librdkafka's name, and its value; None where it cannot be told.
    """

    own_name: Callable[[str, str], str | None]
    own_values: Mapping[str, Callable[[Value], Value]] = field(default_factory=dict)
    connection: Callable[[list[str], str], dict[str, Any]]
    own_security: Callable[[str, str], dict[str, Any] | None]
    amends: Callable[[dict[str, Any]], None] = lambda _: None
    """Puts right what it would refuse of a producer's settings taken together."""

    def lacking(self, scope: str, names: Iterable[str]) -> Iterator[str]:
        """Yield those of some settings that it has not."""
        return (name for name in names if self.own_name(scope, name) is None)

    def said(self, scope: str, settings: Mapping[str, Value]) -> dict[str, Any]:
        """Return settings as it says them, without those that it has not."""
        own = {}
        for name, value in settings.items():
            own_name = None if name in _TAKEN_BY_WORKER else self.own_name(scope, name)
            if own_name is not None:
                own[own_name] = self.own_values[name](value) if name in self.own_values else value
        return own

    def lacking_security(self, settings: Mapping[str, str]) -> Iterator[str]:
        """Yield those of some settings of security that it cannot be told."""
        return (name for name, value in settings.items() if self.own_security(name, value) is None)

    def secured(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return settings of security as it says them, none of which it lacks."""
        own: dict[str, Any] = {}
        for name, value in settings.items():
            told = self.own_security(name, value)
            assert told is not None, f"a client without {name} would speak otherwise than it was asked to"
            own.update(told)
        return own


def _librdkafka_name(scope: str, name: str) -> str | None:
    """It takes Java's names for nearly all (``CONFIGURATION.md``)."""
    if name == _METADATA_MAX_AGE:
        return _METADATA_REFRESH
    if scope == CONSUMER:
        return None if name == _API_TIMEOUT else _LIBRDKAFKA_NAMES.get(name, name)
    return None if name in _PRODUCERS_OF_JAVA else name


def _kafka_python_name(scope: str, name: str) -> str | None:
    own_name = name.replace(".", "_")
    taken = (KafkaProducer if scope == PRODUCER else KafkaConsumer).DEFAULT_CONFIG
    return own_name if own_name in taken else None


def _librdkafka_connection(servers: list[str], client_id: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": ",".join(servers),
        "client.id": client_id,
        "log_level": 0,
        "topic.metadata.propagation.max.ms": _TOPIC_SOUGHT_MS,
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
    """It takes no other than files of PEM, and always verifies certificates."""
    if name == "security.protocol":
        return {"security_protocol": value.upper()}
    if name == "ssl.endpoint.identification.algorithm":
        return {"ssl_check_hostname": value not in ("", "none")}
    if name == "enable.ssl.certificate.verification":
        return {} if value.lower() == "true" else None
    own_name = _KAFKA_PYTHON_SECURITY.get(name)
    return None if own_name is None else {own_name: value}


def _as_librdkafka_takes_it(settings: dict[str, Any]) -> None:
    """Amend a producer's settings where librdkafka means something else by them, or demands that they fit.

    Its `request.timeout.ms` is how long a leader waits for its followers; how long the producer waits for the leader is
    `socket.timeout.ms`, a minute by default. The Java client waits no longer than the leader does. Neither a record nor a request may have
    longer than its transaction; the Java client lets them have more.
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
            # With an eager assignor and a cooperative one the Java client goes by the former; librdkafka refuses to have both.
            ASSIGNMENT_STRATEGY: lambda names: str(names).partition(",")[0],
        },
        connection=_librdkafka_connection,
        own_security=_librdkafka_security,
        amends=_as_librdkafka_takes_it,
    ),
    KAFKA_PYTHON: LibrarySettings(
        own_name=_kafka_python_name,
        own_values={"acks": _acks},
        connection=_kafka_python_connection,
        own_security=_kafka_python_security,
    ),
}


def producer_settings(library: str, release: str, given: Mapping[str, Value]) -> dict[str, Any]:
    """Return the settings of a library's producer that is as the Java producer of a release of the model."""
    settings = _with_defaults(PRODUCER, release, given)
    # One setting may change the default of another, and that in each release otherwise: the model knows how.
    config = producer_config(release, given)
    known: dict[str, Value] = {
        "acks": _ALL if config.acks == -1 else str(config.acks),
        "retries": config.retries,
        IN_FLIGHT: config.max_in_flight,
        DELIVERY_TIMEOUT: config.delivery_timeout_us // US_PER_MS,
        _RECONNECT_BACKOFF_MAX: config.reconnect_backoff_max_us // US_PER_MS,
    }
    settings.update({name: value for name, value in known.items() if name in settings})
    # Libraries of today have it on by default, also where the Java client could not be told of it.
    settings[IDEMPOTENCE] = config.idempotence
    settings[_RETRY_BACKOFF_MAX] = config.retry_backoff_max_us // US_PER_MS
    LIBRARIES[library].amends(settings)
    return LIBRARIES[library].said(PRODUCER, settings)


def consumer_settings(library: str, release: str, given: Mapping[str, Value]) -> dict[str, Any]:
    """Return the settings of a library's consumer that is as the Java consumer of a release of the model."""
    settings = _with_defaults(CONSUMER, release, given)
    settings[_REQUEST_TIMEOUT] = min(int(settings[_REQUEST_TIMEOUT]), _SOCKET_TIMEOUT_MAX_MS)
    return LIBRARIES[library].said(CONSUMER, settings)


def _with_defaults(scope: str, release: str, given: Mapping[str, Value]) -> dict[str, Value]:
    known = {
        setting.name: setting
        for setting in SETTINGS.values()
        if setting.scope == scope and setting.exists_in(release)
    }
    settings = {name: given.get(name, setting.default(release)) for name, setting in known.items()}
    # A name that there is none of is left out, and with it what is about transactions, or members of groups.
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
