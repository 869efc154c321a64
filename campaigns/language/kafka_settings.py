"""Knows which settings Kafka has in a release, whether or not the model has them.

``kafka_settings.txt`` has a line for each setting of brokers, topics, producers and consumers: the
scope, the name, and the releases whose ConfigDef has the setting. ``python -m docs.setting_names``
wrote the file.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import SCOPES

LISTENER_PREFIX: Final = "listener.name."
"""How settings of a single listener begin, which no ConfigDef has."""
_UNAFFECTED: Final = (
    *("ssl.*", "sasl.*", "security.*", "zookeeper.ssl.*", "password.encoder.*", "principal.builder.class"),
    *("listeners", "advertised.*", "listener.*", "inter.broker.listener.name", "controller.listener.names"),
    *("host.name", "port", "bootstrap.servers", "client.id", "client.dns.lookup"),
    *("log.dir", "log.dirs", "metadata.log.dir", "log4j.*"),
    *("metric*", "kafka.metrics.*", "auto.include.jmx.reporter", "enable.metrics.push", "client.telemetry.*"),
    *("socket.*.buffer.bytes", "send.buffer.bytes", "receive.buffer.bytes"),
    *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
)
"""Patterns of settings that do not affect the model, such as encryption, addresses and metrics."""
_LACKING: Final = (
    ("remote.*", "tiered storage: segments that are lost or slow to read in the remote store"),
    ("authorizer*", "requests that are refused for lack of permission"),
    ("super.users", "requests that are refused for lack of permission"),
    ("*share*", "share groups"),
    ("buffer.memory", "a producer that blocks, or fails sends, because its memory is full"),
    ("compression*", "the bytes that compression saves on disks and links"),
    ("*max.bytes", "records and fetches that are refused or cut short for their size"),
    ("max.request.size", "records that are refused for their size"),
    ("max.message.bytes", "records that are refused for their size"),
    ("auto.create.topics.enable", "topics that Kafka creates when a client names them"),
    ("default.replication.factor", "how many replicas a topic gets that names no number"),
    ("num.partitions", "how many partitions a topic gets that names no number"),
    ("inter.broker.protocol.version", "an older release's behaviour: name that release (--kafka)"),
    ("log.message.format.version", "an older release's format: name that release (--kafka)"),
    ("*threads*", "how long work waits for a thread"),
    ("num.replica.fetchers", "how fast a follower with many partitions catches up"),
    ("log.cleaner.*", "how fast compaction proceeds"),
    ("log.segment.delete.delay.ms", "when deleted segments leave the disk"),
    ("interceptor.classes", "what your interceptors do to records"),
    ("partitioner.*", "which partition a record goes to"),
)
"""Patterns of settings that the model lacks, each with what this can hide in a run."""

TABLE: Final = Path(__file__).with_name("kafka_settings.txt")


@derived
def setting_names() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the releases that have each setting, by scope and name."""
    rows = (line.split() for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {(scope, name): frozenset(releases) for scope, name, *releases in rows}


def kafka_has(scope: str, name: str, release: str) -> bool:
    """Return whether Kafka has a setting in a release.

    The table lacks some releases, such as 1.1. Such a release has the settings of the release
    before it and of the release after it.
    """
    present = setting_names().get((scope, name), frozenset())
    return any(near in present for near in _nearest(release))


def _nearest(release: str) -> Iterator[str]:
    covered = sorted(frozenset().union(*setting_names().values()), key=version_of)
    version = RELEASES[release].version
    yield from [name for name in covered if version_of(name) <= version][-1:]
    yield from [name for name in covered if version_of(name) >= version][:1]


def releases_with(name: str, scopes: tuple[str, ...] = SCOPES) -> tuple[str, ...]:
    """Return the releases in which Kafka has a setting of any of these scopes, oldest first."""
    present = frozenset().union(*(setting_names().get((scope, name), frozenset()) for scope in scopes))
    return tuple(release for release in RELEASES if release in present)


def is_without_effect(name: str) -> bool:
    """Return whether a setting that the model lacks changes nothing that the model is about."""
    return any(fnmatchcase(name, pattern) for pattern in _UNAFFECTED)


def hidden_without(name: str) -> str:
    """Return what the model can hide because it lacks a setting; empty if that is unknown."""
    return next((hides for pattern, hides in _LACKING if fnmatchcase(name, pattern)), "")


def unmodelled_hint(name: str) -> str | None:
    """Return the hint about a setting that the model lacks; None if Kafka has no such setting."""
    if not releases_with(name):
        return None
    if is_without_effect(name):
        return "; Kafka has it and the model is not affected: leave it out"
    hides = hidden_without(name)
    return f"; Kafka has it and the model lacks it{f', which can hide {hides}' if hides else ''}"
