"""Finds the servers of a cluster: those that sources describe, stand for, or only mention."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final

from harrow.campaigns.language.kafka_settings import kafka_has
from harrow.campaigns.language.literals import LiteralError, broker_id
from harrow.campaigns.sources.description import Description, Server, SourceLine
from harrow.campaigns.sources.setting_lines import number_text
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.settings import BROKER, Value

BROKERS_DEFAULT: Final = 3
ROLES: Final = "process.roles"
RACK: Final = "broker.rack"
NODE_ID: Final = "node.id"
IDS: Final = (NODE_ID, "broker.id")
LOG_DIRS: Final = ("log.dirs", "log.dir")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNode:
    """A server, its lines together with later changes, and its settings for the cluster file.

    The ``id`` of a broker is None if Kafka generates it, or refuses the value.
    """

    server: Server = field(default_factory=Server)
    id: int | None = None
    entries: tuple[SourceLine, ...] = ()
    defaults: tuple[SourceLine, ...] = ()
    settings: Mapping[str, Value] = field(default_factory=dict)

    def value(self, *names: str) -> str | None:
        """Return the value of the first of some settings that the server has."""
        values = self.values()
        return next((values[name] for name in names if name in values), None)

    def values(self) -> dict[str, str]:
        """Return the values of all lines, and of what follows from the source."""
        return {**{entry.name: entry.value for entry in self.entries}, **self.server.facts}

    def is_broker(self) -> bool:
        """Return whether the server is a broker, not only a controller."""
        return self.value(ROLES) != "controller"

    def numbered(self, number: int) -> "ServerNode":
        """Return the same server with an id."""
        facts = {**self.server.facts, NODE_ID: str(number)}
        return replace(self, server=replace(self.server, facts=facts), id=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """All servers of a cluster, and whether one file stands for all its brokers.

    ``assumed`` is how many brokers that file stands for, if nothing says it.
    """

    nodes: Sequence[ServerNode]
    is_for_all: bool = False
    assumed: int | None = None


def described_servers(descriptions: Sequence[Description], release: str) -> list[ServerNode]:
    """Return the servers that sources describe."""
    nodes = [
        ServerNode(server=each, entries=each.entries) for about in descriptions for each in about.servers
    ]
    return [replace(node, id=_id_of(node, release)) for node in nodes]


def all_servers(descriptions: Sequence[Description], release: str, count: int | None) -> Servers:
    """Return all servers: also copies of a template, and brokers that are only mentioned.

    If a template is the only broker, it stands for *count* brokers.
    """
    servers = _complete(described_servers(descriptions, release), _mentioned(descriptions), count)
    nodes = [_with_changes(node, descriptions) for node in servers.nodes]
    for label in (label.value for about in descriptions for label in about.rack_labels):
        # Kafka assigns replicas to racks only if every broker has one.
        if all(label in node.server.zones for node in nodes if node.is_broker()):
            nodes = [_with_rack(node, label) for node in nodes]
    return replace(servers, nodes=nodes)


def _mentioned(descriptions: Sequence[Description]) -> list[int]:
    ids = {number for about in descriptions for number in about.broker_ids}
    ids |= {each.id for about in descriptions for each in about.broker_settings if each.id is not None}
    return sorted(ids)


def _complete(nodes: Sequence[ServerNode], mentioned: Sequence[int], count: int | None) -> Servers:
    brokers = [node for node in nodes if node.is_broker()]
    if len(brokers) == 1 and count != 1 and (brokers[0].server.is_template or count is not None):
        (template,) = brokers
        first = template.id or 0
        ids: Iterable[int] = range(first, first + (count or BROKERS_DEFAULT))
        ids = mentioned if mentioned and count is None else ids
        others = [node for node in nodes if node is not template]
        assumed = None if mentioned or count else BROKERS_DEFAULT
        return Servers(nodes=[*others, *map(template.numbered, ids)], is_for_all=True, assumed=assumed)
    if not brokers:
        ids = mentioned or range(count or BROKERS_DEFAULT)
    else:
        known = {node.id for node in brokers}
        ids = [number for number in mentioned if number not in known]
    return Servers(nodes=[*nodes, *map(ServerNode().numbered, ids)])


def _with_changes(node: ServerNode, descriptions: Sequence[Description]) -> ServerNode:
    """Return a node with the settings that were changed at run time, its own last."""
    changes = [each for about in descriptions for each in about.broker_settings]
    number = node.id if node.is_broker() else None
    own = [each for each in changes if each.id is None]
    own += [each for each in changes if each.id is not None and each.id == number]
    return replace(
        node,
        entries=(*node.entries, *(entry for each in own for entry in each.entries)),
        defaults=(*node.server.defaults, *(entry for each in own for entry in each.defaults)),
    )


def _with_rack(node: ServerNode, label: str) -> ServerNode:
    """Return a node with the rack that a label of Kubernetes gives it, if it does."""
    zone = node.server.zones.get(label)
    if zone is None:
        return node
    return replace(node, server=replace(node.server, facts={**node.server.facts, RACK: zone.value}))


def _id_of(node: ServerNode, release: str) -> int | None:
    if NODE_ID in node.server.facts:
        return int(node.server.facts[NODE_ID])
    values = node.values()
    for name in IDS:
        if name in values and kafka_has(BROKER, name, release):
            with suppress(LiteralError):
                return broker_id(number_text(values[name]))
    return None
