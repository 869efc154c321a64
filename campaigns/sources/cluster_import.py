"""Makes a cluster file from what sources describe, and reports what became of each line.

A line counts as *taken over* only if the cluster file has its value.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from harrow.campaigns.language.kafka_settings import kafka_has
from harrow.campaigns.language.literals import LiteralError, broker_id
from harrow.campaigns.language.loader import check_cluster_text
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import listed, quoted
from harrow.campaigns.language.writers.settings import settings_map
from harrow.campaigns.language.yaml_text import Items, Rows, yaml_text
from harrow.campaigns.sources.description import (
    ClientSettings,
    Description,
    Fate,
    ImportedLine,
    Server,
    SourceLine,
    TopicDescription,
)
from harrow.campaigns.sources.setting_lines import (
    SettingLines,
    exact_name,
    note_on_releases,
    number_text,
    only_for_one_client,
)
from harrow.campaigns.version import CLUSTER_SCHEMA_URL
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES
from harrow.cluster_model.settings import BROKER, CONSUMER, PRODUCER, TOPIC, Value, conflicts, scopes_of
from harrow.cluster_model.topology import CONTROL_PLANES, KRAFT, LOG_DIRS_MAX, ZOOKEEPER

BROKERS_DEFAULT: Final = 3
_NEWEST_WITH_ZOOKEEPER: Final = next(name for name in reversed(RELEASES) if ZOOKEEPER in RELEASES[name].modes)
_ROLES: Final = "process.roles"
_RACK: Final = "broker.rack"
_NODE_ID: Final = "node.id"
_IDS: Final = (_NODE_ID, "broker.id")
_LOG_DIRS: Final = ("log.dirs", "log.dir")
_VOTERS: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_ENSEMBLE: Final = "zookeeper.connect"
_TOPOLOGY_SETTINGS: Final = (*_IDS, *_VOTERS, _RACK, _ROLES, _ENSEMBLE)
"""Settings that decide which brokers and servers the cluster has."""
_BY_MODE: Final = {_ROLES: KRAFT, **dict.fromkeys(_VOTERS, KRAFT), _ENSEMBLE: ZOOKEEPER}
"""Settings that belong to one way of keeping metadata."""
_GENERATED: Final = "-1"
"""Kafka's default for a broker's id: the broker gets one when it registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A cluster file, and the fate of each line of its sources.

    ``clients`` has the settings of each client with its scope, also those that the file cannot have
    because they would hold for other clients too.
    """

    text: str
    release: str
    lines: tuple[ImportedLine, ...]
    clients: tuple[tuple[str, Mapping[str, Value]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A server, its lines together with later changes, and its settings for the cluster file."""

    server: Server
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
        return self.value(_ROLES) != "controller"


def import_cluster(
    descriptions: Sequence[tuple[str, Description]],
    *,
    release: str | None = None,
    brokers: int | None = None,
) -> Imported:
    """Return the cluster that *descriptions*, each with the name of its file, make together.

    If a template is the only broker, it stands for *brokers* brokers.

    Raises:
        CampaignError: A value is wrong, the settings do not fit together, or the sources describe
            two clusters.

    """
    _check_one_cluster([named for _, about in descriptions for named in about.clusters])
    files = [file for file, _ in descriptions]
    return _Import([about for _, about in descriptions], files, release, brokers).run()


class _Import:
    def __init__(
        self,
        descriptions: Sequence[Description],
        files: Sequence[str],
        release: str | None,
        count: int | None,
    ) -> None:
        self._descriptions = descriptions
        self._files = files
        servers = [
            _Node(server=each, entries=each.entries) for about in descriptions for each in about.servers
        ]
        self._zookeeper_servers = next(
            (about.zookeeper_servers for about in descriptions if about.zookeeper_servers), None
        )
        has_zookeeper = self._zookeeper_servers is not None
        names = {name for server in servers for name in server.values()}
        names |= {
            entry.name for about in descriptions for each in about.broker_settings for entry in each.entries
        }
        control_plane = _control_plane_of(names, has_zookeeper=has_zookeeper)
        self._release = release or _release_of(descriptions, control_plane)
        self._mode = control_plane if control_plane in RELEASES[self._release].modes else None
        self._lines = SettingLines(
            self._release, self._mode, [line for about in descriptions for line in about.lines]
        )
        self._is_for_all = False
        self._nodes = [self._with_changes(node) for node in self._complete(servers, count)]

    def run(self) -> Imported:
        self._note_release()
        nodes = [replace(node, settings=self._settings_of(node)) for node in self._nodes]
        clients = [
            (client, self._lines.settings(client.scope, client.entries))
            for about in self._descriptions
            for client in about.clients
        ]
        topics = [
            (
                topic,
                {**self._lines.defaults(TOPIC, topic.defaults), **self._lines.settings(TOPIC, topic.entries)},
            )
            for topic in _merged_topics(self._descriptions)
        ]
        if self._lines.problems:
            raise CampaignError(dict.fromkeys(self._lines.problems))
        self._compare_controllers(nodes)
        shared = self._shared_by_clients(clients)
        text = yaml_text(self._document(nodes, topics, shared), [self._comment()])
        text = f"# yaml-language-server: $schema={CLUSTER_SCHEMA_URL}\n{text}"
        self._check(text)
        return Imported(
            text=text,
            release=self._release,
            lines=tuple(self._lines.lines()),
            clients=tuple((client.scope, settings) for client, settings in clients),
        )

    def _complete(self, nodes: Sequence[_Node], count: int | None) -> list[_Node]:
        """Return all servers: copies of a template, and brokers that are only mentioned."""
        brokers = [node for node in nodes if node.is_broker()]
        mentioned = sorted(
            {number for about in self._descriptions for number in about.broker_ids}
            | {
                each.id
                for about in self._descriptions
                for each in about.broker_settings
                if each.id is not None
            }
        )
        if len(brokers) == 1 and count != 1 and (brokers[0].server.is_template or count is not None):
            (template,) = brokers
            self._is_for_all = True
            first = self._id_of(template) or 0
            ids: Iterable[int] = range(first, first + (count or BROKERS_DEFAULT))
            ids = mentioned if mentioned and count is None else ids
            others = [node for node in nodes if node is not template]
            return others + [_numbered(template, number) for number in ids]
        if not brokers:
            brokers = [_Node(server=Server())]
            ids = mentioned or range(count or BROKERS_DEFAULT)
            return [*nodes, *(_numbered(brokers[0], number) for number in ids)]
        known = {self._id_of(node) for node in brokers}
        return [
            *nodes,
            *(_numbered(_Node(server=Server()), number) for number in mentioned if number not in known),
        ]

    def _with_changes(self, node: _Node) -> _Node:
        """Return a node with the settings that were changed at run time, its own last."""
        changes = [each for about in self._descriptions for each in about.broker_settings]
        number = self._id_of(node) if node.is_broker() else None
        own = [each for each in changes if each.id is None]
        own += [each for each in changes if each.id is not None and each.id == number]
        return replace(
            node,
            entries=(*node.entries, *(entry for each in own for entry in each.entries)),
            defaults=(*node.server.defaults, *(entry for each in own for entry in each.defaults)),
        )

    def _note_release(self) -> None:
        for stated in [stated for about in self._descriptions for stated in about.releases]:
            if _modelled_release(stated.version, self._mode) == self._release:
                is_same = f"{stated.version}.".startswith(f"{self._release}.")
                note = "" if is_same else f"Kafka {stated.version}, as {self._release}"
                self._lines.note(stated.entry, Fate.TAKEN, note)
            else:
                self._lines.note(stated.entry, Fate.LACKING, f"the model runs {self._release}")

    def _shared_by_clients(
        self, clients: Sequence[tuple[ClientSettings, Mapping[str, Value]]]
    ) -> dict[str, Value]:
        """Return what all clients of a kind agree on, because a cluster file has one value."""
        shared: dict[str, Value] = {}
        for scope in (PRODUCER, CONSUMER):
            own = [settings for client, settings in clients if client.scope == scope]
            entries = {entry for client, _ in clients if client.scope == scope for entry in client.entries}
            reasons = {name: only_for_one_client(name) for settings in own for name in settings}
            for name, reason in reasons.items():
                if not reason and any(settings.get(name) != own[0].get(name) for settings in own):
                    reasons[name] = f"the {scope}s differ: write it in the campaign's own"
            if scope == PRODUCER and own:
                left = {name: own[0][name] for name, reason in reasons.items() if not reason}
                for name in self._refused(left) - self._refused(own[0]):
                    reasons[name] = (
                        "it needs a setting that is not taken over: write both in the campaign's own"
                    )
            for reason in filter(None, dict.fromkeys(reasons.values())):
                self._lines.not_taken(
                    {entry for entry in entries if reasons.get(entry.name) == reason}.__contains__, reason
                )
            shared |= {name: own[0][name] for name, reason in reasons.items() if not reason}
        return shared

    def _refused(self, producer: Mapping[str, Value]) -> set[str]:
        """Return the settings that a producer refuses because of others, or of their defaults."""
        behaviours = RELEASES[self._release].behaviours
        return {conflict.setting for conflict in conflicts(self._release, producer, behaviours)}

    def _compare_controllers(self, nodes: Sequence[_Node]) -> None:
        """Correct the fate of settings in which a controller differs from the brokers.

        They are not taken over, because controllers of the model have the settings of the brokers.
        """
        brokers = [node.settings for node in nodes if node.is_broker()]
        for node in nodes:
            if node.is_broker():
                continue
            different = {
                entry
                for entry in node.entries
                if entry.name not in _TOPOLOGY_SETTINGS
                and any(
                    node.settings.get(exact_name(entry.name)) != other.get(exact_name(entry.name))
                    for other in brokers
                )
            }
            self._lines.not_taken(different.__contains__, "its controllers have the brokers' settings")

    def _comment(self) -> str:
        return f"A cluster of Kafka {self._release}, imported from {listed(self._files)}."

    def _document(
        self,
        nodes: Sequence[_Node],
        topics: Sequence[tuple[TopicDescription, Mapping[str, Value]]],
        clients: Mapping[str, Value],
    ) -> Rows:
        brokers = [node for node in nodes if node.is_broker()]
        shared = {
            name: value
            for name, value in brokers[0].settings.items()
            if _is_shared(name) and all(other.settings.get(name) == value for other in brokers)
        }
        rows = Rows(kafka=self._release, settings=Rows(settings_map({**shared, **clients})))
        rows |= self._metadata(nodes)
        rows["brokers"] = self._broker_rows(brokers, shared)
        log_dirs = len((brokers[0].value(*_LOG_DIRS) or "").split(","))
        if log_dirs > 1:
            rows["disk"] = {"log_dirs": log_dirs}
        rows["topics"] = Items(_topic_row(topic, settings, brokers[0]) for topic, settings in topics)
        return Rows((key, value) for key, value in rows.items() if value not in ({}, "", []))

    def _broker_rows(self, brokers: Sequence[_Node], shared: Mapping[str, Value]) -> Items | int:
        if not any(node.entries or node.server.facts.keys() - {_NODE_ID} for node in brokers) and [
            self._id_of(node) for node in brokers
        ] == list(range(len(brokers))):
            return len(brokers)
        rows = []
        for index, node in enumerate(brokers):
            number = self._id_of(node)
            row: dict[str, object] = {"id": index if number is None else number}
            rack = node.value(_RACK)
            if rack and not self._is_for_all:
                row["rack"] = rack
            own = {name: value for name, value in node.settings.items() if name not in shared}
            rows.append({**row, **({"settings": settings_map(own)} if own else {})})
        return Items(rows)

    def _id_of(self, node: _Node) -> int | None:
        """Return the id of a broker, or None if Kafka generates it, or refuses the value."""
        if _NODE_ID in node.server.facts:
            return int(node.server.facts[_NODE_ID])
        values = node.values()
        ids = [values[name] for name in _IDS if name in values and kafka_has(BROKER, name, self._release)]
        for text in ids:
            with suppress(LiteralError):
                return broker_id(number_text(text))
        return None

    def _metadata(self, nodes: Sequence[_Node]) -> dict[str, object]:
        if self._mode is None:
            return {}
        if self._mode == ZOOKEEPER:
            addresses = next((text for node in nodes if (text := node.value(_ENSEMBLE))), "")
            servers = self._zookeeper_servers or len(addresses.split("/")[0].split(","))
            return {"metadata": ZOOKEEPER, "zookeeper": Rows(servers=servers)}
        roles = [node.value(_ROLES) or "" for node in nodes]
        combined = any("broker" in role and "controller" in role for role in roles)
        controllers = sum("controller" in role for role in roles)
        voters = next((text for node in nodes if (text := node.value(*_VOTERS))), "")
        count = len(voters.split(",")) if voters else controllers or 1
        return {"metadata": KRAFT, "kraft": Rows(voters=count, combined=combined)}

    def _settings_of(self, node: _Node) -> Mapping[str, Value]:
        return {
            **self._lines.defaults(BROKER, node.defaults),
            **self._lines.settings(BROKER, node.entries, lambda entry: self._is_topology(node, entry)),
        }

    def _is_topology(self, node: _Node, entry: SourceLine) -> bool:
        """Note the fate of a line that decides which servers and disks the cluster has."""
        if entry.name in _TOPOLOGY_SETTINGS:
            self._note_topology(node, entry)
            return True
        if (
            entry.name not in _LOG_DIRS
            or "," not in entry.value
            or not kafka_has(BROKER, entry.name, self._release)
        ):
            return False
        number = len(entry.value.split(","))
        if number > LOG_DIRS_MAX:
            self._lines.refuse(
                entry, f"{number} log directories: a broker of the model has at most {LOG_DIRS_MAX}"
            )
        elif all(node.value(*_LOG_DIRS) == other.value(*_LOG_DIRS) for other in self._nodes):
            self._lines.note(entry, Fate.TAKEN, f"{number} log directories")
        else:
            self._lines.note(
                entry, Fate.LACKING, "all brokers of the model have as many log directories as the first"
            )
        return True

    def _note_topology(self, node: _Node, entry: SourceLine) -> None:
        name = entry.name
        if not kafka_has(BROKER, name, self._release):
            self._lines.note(entry, Fate.UNKNOWN, note_on_releases(name, BROKER))
        elif name in _BY_MODE and self._mode != _BY_MODE[name]:
            missing = CONTROL_PLANES[_BY_MODE[name]]
            note = (
                f"the brokers use {CONTROL_PLANES[self._mode]}, so the model has no {missing}"
                if self._mode
                else f"the model has no {missing} in Kafka {self._release}"
            )
            self._lines.note(entry, Fate.LACKING, note)
        elif name == _RACK and self._is_for_all:
            self._lines.note(entry, Fate.LACKING, "one file for all brokers: add the rack of each")
        elif name in _IDS:
            self._note_id(node, entry)
        else:
            self._lines.note(entry, Fate.TAKEN)

    def _note_id(self, node: _Node, entry: SourceLine) -> None:
        text = number_text(entry.value)
        if not node.is_broker():
            self._lines.note(entry, Fate.UNAFFECTED, "the model numbers its controllers")
        elif text == _GENERATED and node.value(_ROLES) is None:
            self._lines.note(entry, Fate.LACKING, "Kafka generates an id; harrow numbers brokers from 0")
        else:
            try:
                number = broker_id(text)
            except LiteralError as error:
                self._lines.refuse(entry, error)
                return
            if any(self._id_of(other) == number for other in self._nodes if other.is_broker()):
                self._lines.note(entry, Fate.TAKEN)
            else:
                self._lines.note(entry, Fate.LACKING, "other sources name other brokers")

    def _check(self, text: str) -> None:
        try:
            check_cluster_text(Path("imported.yaml"), text)
        except CampaignError as error:
            files = listed(self._files)
            raise CampaignError(Problem(files, 0, 0, each.message) for each in error.problems) from None


def _check_one_cluster(clusters: Sequence[SourceLine]) -> None:
    if len(clusters) > 1:
        first, second = clusters[:2]
        place = f"{first.file}:{first.line}"
        message = f"a second cluster, {quoted(second.value)}; the first is {quoted(first.value)} ({place}): import one at a time"
        raise CampaignError([Problem(second.file, second.line, 1, message)])


def _numbered(node: _Node, number: int) -> _Node:
    return replace(node, server=replace(node.server, facts={**node.server.facts, _NODE_ID: str(number)}))


def _release_of(descriptions: Sequence[Description], control_plane: str | None) -> str:
    """Return the release that a source states, or the newest with the sources' control plane."""
    stated = next((stated for about in descriptions for stated in about.releases), None)
    if stated is not None:
        return _modelled_release(stated.version, control_plane)
    return _NEWEST_WITH_ZOOKEEPER if control_plane == ZOOKEEPER else NEWEST_RELEASE


def _modelled_release(version: str, control_plane: str | None) -> str:
    """Return the newest release of the model that is not newer than a version of Kafka.

    If it lacks the control plane, return the nearest release that has it.
    """
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
    suitable = [name for name in RELEASES if control_plane is None or control_plane in RELEASES[name].modes]
    older = [name for name in suitable if RELEASES[name].version <= numbers]
    return older[-1] if older else suitable[0]


def _control_plane_of(names: Collection[str], *, has_zookeeper: bool) -> str | None:
    """Return where the brokers keep metadata, or None if the sources do not say."""
    if has_zookeeper:
        return ZOOKEEPER
    return KRAFT if _ROLES in names else ZOOKEEPER if _ENSEMBLE in names else None


def _is_shared(name: str) -> bool:
    """Return whether a broker's setting may be in the section ``settings`` of the campaign.

    A setting that clients also have may not: from that section it would apply to clients too.
    """
    return not {PRODUCER, CONSUMER} & set(scopes_of(name))


def _merged_topics(descriptions: Sequence[Description]) -> list[TopicDescription]:
    """Return each topic once: what a source leaves open, the next one may say."""
    topics: dict[str, TopicDescription] = {}
    for topic in (topic for about in descriptions for topic in about.topics):
        known = topics.get(topic.name, TopicDescription(name=topic.name))
        topics[topic.name] = TopicDescription(
            name=topic.name,
            partitions=known.partitions or topic.partitions,
            replication_factor=known.replication_factor or topic.replication_factor,
            assignment=known.assignment or topic.assignment,
            entries=known.entries + topic.entries,
            defaults=known.defaults + topic.defaults,
        )
    return list(topics.values())


def _topic_row(topic: TopicDescription, settings: Mapping[str, Value], broker: _Node) -> dict[str, object]:
    row: dict[str, object] = {"name": topic.name}
    if topic.assignment:
        row["assignment"] = [list(replicas) for replicas in topic.assignment]
    else:
        for key, given, default in (
            ("partitions", topic.partitions, "num.partitions"),
            ("replication_factor", topic.replication_factor, "default.replication.factor"),
        ):
            row[key] = (broker.value(default) or "1") if given is None else given
    return {**row, **({"settings": settings_map(settings)} if settings else {})}


def described(line: ImportedLine) -> str:
    """Describe an imported line: its position, the setting, and the note."""
    note = f" ({line.note})" if line.note else ""
    file, number, name, value = line.entry
    place = f"{file}:{number}" if number else file
    return f"{place} {quoted(f'{name}={value}')}{note}"
