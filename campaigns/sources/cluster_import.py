"""Makes a cluster file from what sources describe, and reports what became of each line.

A line counts as *taken over* only if the cluster file has its value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harrow.campaigns.language.loader import check_cluster_text
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import listed, quoted
from harrow.campaigns.language.writers.settings import settings_map
from harrow.campaigns.language.yaml_text import Items, Rows, yaml_text
from harrow.campaigns.sources.description import Description, Fate, ImportedLine, SourceLine, TopicDescription
from harrow.campaigns.sources.servers import LOG_DIRS, NODE_ID, RACK, ServerNode, all_servers
from harrow.campaigns.sources.setting_lines import SettingLines, exact_name
from harrow.campaigns.sources.shared_client_settings import shared_by_clients
from harrow.campaigns.sources.stated_release import control_plane_of, modelled_release, release_of
from harrow.campaigns.sources.topology_lines import TOPOLOGY_SETTINGS, TopologyLines, control_plane_rows
from harrow.campaigns.version import CLUSTER_SCHEMA_URL
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import CONSUMER, PRODUCER, TOPIC, Value, scopes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A cluster file, and the fate of each line of its sources.

    ``clients`` has the settings of each client with its scope, also those that the file cannot have
    because they would hold for other clients too. ``assumed_brokers`` is how many brokers the file
    of one stands for, if nothing says it.
    """

    text: str
    release: str
    lines: tuple[ImportedLine, ...]
    clients: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    assumed_brokers: int | None = None


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
        self._zookeeper_servers = next(
            (about.zookeeper_servers for about in descriptions if about.zookeeper_servers), None
        )
        control_plane = control_plane_of(descriptions)
        self._release = release or release_of(descriptions, control_plane)
        self._mode = control_plane if control_plane in RELEASES[self._release].modes else None
        self._lines = SettingLines(
            self._release, self._mode, [line for about in descriptions for line in about.lines]
        )
        self._servers = all_servers(descriptions, self._release, count)

    def run(self) -> Imported:
        self._note_release()
        topology = TopologyLines(self._lines, self._servers, self._release, self._mode)
        topology.note_racks([label for about in self._descriptions for label in about.rack_labels])
        nodes = [replace(node, settings=topology.settings_of(node)) for node in self._servers.nodes]
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
        shared = shared_by_clients(self._lines, self._release, clients)
        text = yaml_text(self._document(nodes, topics, shared), [self._comment()])
        text = f"# yaml-language-server: $schema={CLUSTER_SCHEMA_URL}\n{text}"
        self._check(text)
        return Imported(
            text=text,
            release=self._release,
            lines=tuple(self._lines.lines()),
            clients=tuple((client.scope, settings) for client, settings in clients),
            assumed_brokers=self._servers.assumed,
        )

    def _note_release(self) -> None:
        for stated in [stated for about in self._descriptions for stated in about.releases]:
            if modelled_release(stated.version, self._mode) == self._release:
                is_same = f"{stated.version}.".startswith(f"{self._release}.")
                note = "" if is_same else f"Kafka {stated.version}, as {self._release}"
                self._lines.note(stated.entry, Fate.TAKEN, note)
            else:
                self._lines.note(stated.entry, Fate.LACKING, f"the model runs {self._release}")

    def _compare_controllers(self, nodes: Sequence[ServerNode]) -> None:
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
                if entry.name not in TOPOLOGY_SETTINGS
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
        nodes: Sequence[ServerNode],
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
        rows |= control_plane_rows(nodes, self._mode, self._zookeeper_servers)
        rows["brokers"] = self._broker_rows(brokers, shared)
        log_dirs = len((brokers[0].value(*LOG_DIRS) or "").split(","))
        if log_dirs > 1:
            rows["disk"] = {"log_dirs": log_dirs}
        rows["topics"] = Items(_topic_row(topic, settings, brokers[0]) for topic, settings in topics)
        return Rows((key, value) for key, value in rows.items() if value not in ({}, "", []))

    def _broker_rows(self, brokers: Sequence[ServerNode], shared: Mapping[str, Value]) -> Items | int:
        if not any(node.entries or node.server.facts.keys() - {NODE_ID} for node in brokers) and [
            node.id for node in brokers
        ] == list(range(len(brokers))):
            return len(brokers)
        rows = []
        for index, node in enumerate(brokers):
            number = node.id
            row: dict[str, object] = {"id": index if number is None else number}
            rack = node.value(RACK)
            if rack and not self._servers.is_for_all:
                row["rack"] = rack
            own = {name: value for name, value in node.settings.items() if name not in shared}
            rows.append({**row, **({"settings": settings_map(own)} if own else {})})
        return Items(rows)

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


def _topic_row(
    topic: TopicDescription, settings: Mapping[str, Value], broker: ServerNode
) -> dict[str, object]:
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


def described(lines: Iterable[ImportedLine]) -> Iterator[str]:
    """Describe imported lines: their positions, the setting, and the note.

    A setting that has the same value on several lines of a file, one for each broker, is described
    once.
    """
    numbers: dict[tuple[str, str, str, str], list[int]] = {}
    for line in lines:
        file, number, name, value = line.entry
        numbers.setdefault((file, name, value, line.note), []).append(number)
    for (file, name, value, note), places in numbers.items():
        place = f"{file}:{','.join(map(str, places))}" if any(places) else file
        yield f"{place} {quoted(f'{name}={value}')}{f' ({note})' if note else ''}"
