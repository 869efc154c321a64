"""What a campaign says of a client, in the words of the library that stands in for the Java client.

A campaign names settings as the Java client does. What it leaves open gets the default of the Java client of its release, not
that of the library, so that the same campaign means the same.
"""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model.settings import CONSUMER, PRODUCER, SETTINGS, Value

CONFLUENT: Final = "confluent-kafka"

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "retry.backoff.ms": "fetch.error.backoff.ms",
}
"""Of a consumer's settings, what librdkafka calls them."""
_TAKEN_BY_WORKER: Final = frozenset({"max.poll.records"})
"""What is no setting of librdkafka but an argument of the call that reads."""
_OFFSET_RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
_RETRIES_MAX: Final = 2**31 - 1
_SOCKET_TIMEOUT_MAX_MS: Final = 300_000
"""The most that librdkafka takes; before 2.0 the Java consumer's default is 305 seconds."""


def producer_settings(release: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of a confluent-kafka producer that is as the Java producer of a release of the model."""
    settings = _with_defaults(PRODUCER, release, given)
    if settings.get("enable.idempotence"):
        # As in the Java client: it asks for what it needs, unless a campaign says something else.
        settings["acks"] = given.get("acks", "all")
        settings["retries"] = given.get("retries", _RETRIES_MAX)
    return settings


def consumer_settings(release: str, given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of a confluent-kafka consumer that is as the Java consumer of a release of the model."""
    settings = _with_defaults(CONSUMER, release, given)
    settings["request.timeout.ms"] = min(int(settings["request.timeout.ms"]), _SOCKET_TIMEOUT_MAX_MS)
    settings["auto.offset.reset"] = _OFFSET_RESETS[str(settings["auto.offset.reset"])]
    return {
        _OTHER_NAMES.get(name, name): value
        for name, value in settings.items()
        if name not in _TAKEN_BY_WORKER
    }


def _with_defaults(scope: str, release: str, given: Mapping[str, Value]) -> dict[str, Value]:
    known = {
        setting.name: setting
        for setting in SETTINGS.values()
        if setting.scope == scope and setting.exists_in(release)
    }
    return {name: given.get(name, setting.default(release)) for name, setting in known.items()}
