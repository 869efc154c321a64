"""Reads the resources of Strimzi: ``Kafka``, ``KafkaNodePool`` and ``KafkaTopic``.

A pool of nodes may be in another file than its cluster, so the cluster's settings apply to the
nodes of all pools, whatever the order of the files.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.kafka_settings import hidden_without
from harrow.campaigns.sources.description import (
    BrokerSettings,
    Description,
    Fate,
    Server,
    SourceLine,
    StatedRelease,
    TopicDescription,
)
from harrow.campaigns.sources.yaml_source import YamlSource, given, maps, section, shown, words
from harrow.cluster_model.topology import BROKERS_MAX, PARTITIONS_MAX, ZOOKEEPER_SERVERS_MAX

_API: Final = "kafka.strimzi.io/"
_SERVERS_MAX: Final = 2 * BROKERS_MAX
_POOLS: Final = "strimzi.io/node-pools"
_KRAFT: Final = "strimzi.io/kraft"
_NODE_IDS: Final = "strimzi.io/next-node-ids"
_ID_RANGE: Final = re.compile(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")
_IDS_MAX: Final = 10_000
_OWN: Final = (
    *("advertised.", "authorizer.", "broker.", "controller", "host.name", "inter.broker.listener.name"),
    *("listener", "log.dir", "metadata.log.dir", "node.id", "password.", "port", "process.roles", "sasl."),
    *("security.", "ssl.", "super.user", "zookeeper.connect", "zookeeper.set.acl", "zookeeper.ssl"),
)
"""How settings begin that Strimzi decides itself (``KafkaClusterSpec.FORBIDDEN_PREFIXES``)."""
_NOT_OWN: Final = (
    *("zookeeper.connection.timeout.ms", "sasl.server.max.receive.size", "ssl.cipher.suites", "ssl.protocol"),
    *("ssl.enabled.protocols", "ssl.secure.random.implementation", "broker.session.timeout.ms"),
    *(
        "broker.heartbeat.interval.ms",
        "controller.socket.timeout.ms",
        "controller.quorum.election.backoff.max.ms",
    ),
    *("controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms"),
)
"""The exceptions (``KafkaClusterSpec.FORBIDDEN_PREFIX_EXCEPTIONS``)."""


def read_strimzi(file: str, text: str) -> Description | None:
    """Return the cluster, the brokers and the topics that resources of Strimzi describe.

    Raises:
        CampaignError: The file is not YAML, or a value is wrong.

    """
    if _API not in text:
        return None
    source = YamlSource(file, text)
    resources = [each for root in source.documents for each in _resources(root)]
    if not any(_is_strimzi(resource) for resource in resources):
        return None
    return _Resources(source).description(resources)


def _resources(root: nodes.MapNode) -> Iterator[nodes.MapNode]:
    """Yield a resource, or the resources of a list as ``kubectl get`` prints it."""
    items = root.entries.get("items")
    if items is not None and isinstance(items.value, nodes.ListNode):
        yield from (item for item in items.value.items if isinstance(item, nodes.MapNode))
    else:
        yield root


def _is_strimzi(resource: nodes.MapNode) -> bool:
    version = resource.entries.get("apiVersion")
    return version is not None and shown(version.value).startswith(_API)


def _annotation(resource: nodes.MapNode, name: str) -> nodes.MapEntry | None:
    return section(resource, "metadata", "annotations").entries.get(name)


def _is_enabled(resource: nodes.MapNode, name: str) -> bool:
    found = _annotation(resource, name)
    return found is not None and shown(found.value) == "enabled"


class _Resources:
    def __init__(self, source: YamlSource) -> None:
        self._source = source
        self._servers: list[Server] = []
        self._settings: list[BrokerSettings] = []
        self._topics: list[TopicDescription] = []
        self._releases: list[StatedRelease] = []
        self._zookeeper_servers: int | None = None
        self._clusters: list[SourceLine] = []
        self._rack_labels: list[SourceLine] = []

    def description(self, resources: Sequence[nodes.MapNode]) -> Description:
        """Return what all resources of a file describe."""
        readers = {"Kafka": self._cluster, "KafkaNodePool": self._pool, "KafkaTopic": self._topic}
        for resource in resources:
            kind = resource.entries.get("kind")
            read = readers.get(shown(kind.value)) if kind is not None and _is_strimzi(resource) else None
            if read is not None:
                read(resource)
            elif kind is not None:
                self._source.decide("kind", kind, Fate.UNAFFECTED, "neither brokers nor topics")
        return Description(
            servers=tuple(self._servers),
            broker_settings=tuple(self._settings),
            topics=tuple(self._topics),
            releases=tuple(self._releases),
            zookeeper_servers=self._zookeeper_servers,
            clusters=tuple(self._clusters),
            rack_labels=tuple(self._rack_labels),
            lines=tuple(self._source.lines),
        )

    def _cluster(self, resource: nodes.MapNode) -> None:
        named = section(resource, "metadata").entries.get("name")
        self._clusters.append(self._source.entry("Kafka", named or resource.entries["kind"]))
        spec = section(resource, "spec")
        kafka = section(spec, "kafka")
        self._source.leave(spec, "spec.", ("kafka", "zookeeper"))
        zookeeper = spec.entries.get("zookeeper")
        if zookeeper is not None and _is_enabled(resource, _KRAFT):
            self._source.decide("spec.zookeeper", zookeeper, Fate.UNAFFECTED, "the brokers use KRaft")
        elif zookeeper is not None:
            self._zookeeper(section(spec, "zookeeper"))
        self._source.leave(kafka, "spec.kafka.", (*_KAFKA_KEYS, *_LACKING_KEYS))
        for key, hides in _LACKING_KEYS.items():
            if key in kafka.entries:
                self._source.decide(f"spec.kafka.{key}", kafka.entries[key], Fate.LACKING, hides)
        if "version" in kafka.entries:
            entry = self._source.entry("spec.kafka.version", kafka.entries["version"])
            self._releases.append(StatedRelease(entry=entry, version=entry.value))
        label = section(kafka, "rack").entries.get("topologyKey")
        if label is not None:
            self._rack_labels.append(self._source.entry("spec.kafka.rack.topologyKey", label))
        self._metadata_version(kafka)
        self._config(kafka)
        self._replicas(resource, kafka)

    def _zookeeper(self, zookeeper: nodes.MapNode) -> None:
        self._source.leave(zookeeper, "spec.zookeeper.", ("replicas", "storage"))
        self._storage("spec.zookeeper.storage", zookeeper.entries.get("storage"))
        if (replicas := given(zookeeper, "replicas")) is not None:
            self._zookeeper_servers = self._source.number(replicas, 1, ZOOKEEPER_SERVERS_MAX)
            self._source.decide("spec.zookeeper.replicas", replicas, Fate.TAKEN)

    def _metadata_version(self, kafka: nodes.MapNode) -> None:
        if (found := kafka.entries.get("metadataVersion")) is None:
            return
        release = shown(found.value).partition("-")[0]
        if any(f"{stated.version}.".startswith(f"{release}.") for stated in self._releases):
            self._source.decide("spec.kafka.metadataVersion", found, Fate.UNAFFECTED)
        else:
            self._source.decide(
                "spec.kafka.metadataVersion",
                found,
                Fate.LACKING,
                hidden_without("inter.broker.protocol.version"),
            )

    def _config(self, kafka: nodes.MapNode) -> None:
        entries = []
        for name, found in section(kafka, "config").entries.items():
            if name.startswith(_OWN) and name not in _NOT_OWN:
                self._source.decide(name, found, Fate.UNAFFECTED, "Strimzi ignores it")
            else:
                entries.append(self._source.entry(name, found))
        if entries:
            self._settings.append(BrokerSettings(entries=tuple(entries)))

    def _replicas(self, resource: nodes.MapNode, kafka: nodes.MapNode) -> None:
        """Add the brokers of a cluster without pools."""
        replicas, storage = given(kafka, "replicas"), given(kafka, "storage")
        if _is_enabled(resource, _POOLS) or replicas is None:
            for key, found in (("replicas", replicas), ("storage", storage)):
                if found is not None:
                    self._source.decide(
                        f"spec.kafka.{key}", found, Fate.UNAFFECTED, "the pools of nodes decide it"
                    )
            return
        facts = self._storage("spec.kafka.storage", storage)
        count = self._source.number(replicas, 1, _SERVERS_MAX)
        self._source.decide("spec.kafka.replicas", replicas, Fate.TAKEN)
        zones = self._zones("spec.kafka", kafka)
        self._servers += [Server(facts=facts, zones=zones) for _ in range(count)]

    def _pool(self, resource: nodes.MapNode) -> None:
        spec = section(resource, "spec")
        self._source.leave(spec, "spec.", ("replicas", "roles", "storage"))
        facts = self._storage("spec.storage", spec.entries.get("storage"))
        if (roles := spec.entries.get("roles")) is not None:
            facts["process.roles"] = ",".join(sorted(words(roles.value)))
            names = SourceLine(self._source.file, roles.key_mark.line, "spec.roles", facts["process.roles"])
            self._source.decide_entry(names, Fate.TAKEN)
        if (replicas := given(spec, "replicas")) is None:
            return
        count = self._source.number(replicas, 0, _SERVERS_MAX)
        self._source.decide("spec.replicas", replicas, Fate.TAKEN)
        ids = self._ids(resource, count)
        zones = self._zones("spec", spec)
        self._servers += [
            Server(facts={**facts, **({"node.id": str(ids[index])} if index < len(ids) else {})}, zones=zones)
            for index in range(count)
        ]

    def _ids(self, resource: nodes.MapNode, count: int) -> list[int]:
        """Return the ids of the nodes of a pool, as far as an annotation gives them."""
        found = _annotation(resource, _NODE_IDS)
        if found is None:
            return []
        ids: list[int] = []
        for part in shown(found.value).strip("[] ").split(","):
            match = _ID_RANGE.fullmatch(part)
            if match is not None and len(ids) < _IDS_MAX:
                first, last = int(match[1]), int(match[2] or match[1])
                ids += range(first, min(last, first + _IDS_MAX) + 1)
        self._source.decide(_NODE_IDS, found, Fate.TAKEN if len(ids) >= count else Fate.LACKING)
        return ids

    def _storage(self, name: str, storage: nodes.MapEntry | None) -> dict[str, str]:
        """Return the log directories of a broker, one for each volume."""
        if storage is None:
            return {}
        volumes = maps(section(storage.value).entries.get("volumes"))
        for place in (section(storage.value), *volumes):
            kind = place.entries.get("type")
            if kind is not None and shown(kind.value) == "ephemeral":
                self._source.decide(f"{name}.type", kind, Fate.LACKING, _EPHEMERAL)
        if not volumes:
            self._source.decide(name, storage, Fate.UNAFFECTED)
            return {}
        self._source.decide(name, storage, Fate.TAKEN, f"log directories: {len(volumes)}")
        return {"log.dirs": ",".join(map(str, range(len(volumes))))}

    def _zones(self, name: str, spec: nodes.MapNode) -> dict[str, SourceLine]:
        """Return where nodes must run: the labels of Kubernetes for which they accept one value."""
        zones: dict[str, SourceLine] = {}
        terms = maps(section(spec, *_NODE_AFFINITY).entries.get("nodeSelectorTerms"))
        # A node has to fulfil only one of several terms.
        for term in terms if len(terms) == 1 else ():
            for expression in maps(term.entries.get("matchExpressions")):
                values = expression.entries.get("values")
                accepted = [] if values is None else words(values.value)
                entries = {key: shown(found.value) for key, found in expression.entries.items()}
                if values is not None and entries.get("operator") == "In" and len(accepted) == 1:
                    place = f"{name}.template.pod.affinity {entries.get('key')}"
                    line = SourceLine(self._source.file, values.key_mark.line, place, accepted[0])
                    zones[entries.get("key", "")] = line
        return zones

    def _topic(self, resource: nodes.MapNode) -> None:
        spec, metadata = section(resource, "spec"), section(resource, "metadata")
        named = spec.entries.get("topicName") or metadata.entries.get("name")
        if named is None:
            return
        self._source.decide("topic", named, Fate.TAKEN)
        self._source.leave(spec, "spec.", ("topicName", "partitions", "replicas", "config"))
        numbers: dict[str, int | None] = {}
        for key, maximum in (("partitions", PARTITIONS_MAX), ("replicas", BROKERS_MAX)):
            found = given(spec, key)
            numbers[key] = None if found is None else self._source.number(found, 1, maximum)
            if found is not None:
                self._source.decide(f"spec.{key}", found, Fate.TAKEN)
        config = section(spec, "config").entries
        self._topics.append(
            TopicDescription(
                name=shown(named.value),
                partitions=numbers["partitions"],
                replication_factor=numbers["replicas"],
                entries=tuple(self._source.entry(name, found) for name, found in config.items()),
            )
        )


_KAFKA_KEYS: Final = ("version", "metadataVersion", "config", "replicas", "storage", "rack")
_NODE_AFFINITY: Final = (
    *("template", "pod", "affinity", "nodeAffinity"),
    "requiredDuringSchedulingIgnoredDuringExecution",
)
_EPHEMERAL: Final = "a pod that is deleted or moved loses its disk: add `disk_loss` to your faults"
_LACKING_KEYS: Final = {
    "tieredStorage": hidden_without("remote.log.storage.system.enable"),
    "quotas": "clients that brokers slow down: add `quotas` to the cluster file",
}
