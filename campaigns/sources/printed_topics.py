"""Reads what ``kafka-topics --describe`` prints."""

import re
from collections.abc import Iterator
from typing import Final

from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.sources.description import (
    Description,
    Fate,
    ImportedLine,
    SourceLine,
    TopicDescription,
)
from harrow.cluster_model.topology import BROKER_ID_MAX, PARTITIONS_MAX

_TOPIC: Final = re.compile(
    r"Topic:\s*(?P<name>\S+)\s+(?:TopicId:\s*\S+\s+)?PartitionCount:\s*(?P<partitions>[0-9]{1,9})\s+"
    r"ReplicationFactor:\s*(?P<factor>[0-9]{1,9})\s*(?:Configs:\s*(?P<configs>.*?))?(?:\s+MarkedForDeletion:.*)?\s*"
)
_PARTITION: Final = re.compile(
    r"\s+(?:Topic:\s*(?P<name>\S+)\s+)?Partition:\s*(?P<number>[0-9]{1,9})\s+Leader:\s*\S+\s+"
    r"Replicas:\s*(?P<replicas>[0-9]{1,9}(?:,[0-9]{1,9})*)\s+Isr:.*"
)
_NEXT_SETTING: Final = re.compile(r",(?=[a-z][a-z0-9.]*=)")
_INTERNAL: Final = "__"
"""How the names of Kafka's own topics begin."""


def read_printed_topics(file: str, text: str) -> Description | None:
    """Return the topics that a text describes, and the brokers that have replicas of them.

    Raises:
        CampaignError: The lines of a topic do not fit together.

    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not any(map(_TOPIC.fullmatch, lines)):
        return None
    return _PrintedTopics(file).description(lines)


class _PrintedTopics:
    def __init__(self, file: str) -> None:
        self._file = file
        self._topics: dict[str, TopicDescription] = {}
        self._replicas: dict[str, dict[int, tuple[int, ...]]] = {}
        self._lines: list[ImportedLine] = []
        self._name = ""

    def description(self, lines: list[str]) -> Description:
        """Return what all lines describe."""
        for number, line in enumerate(lines, 1):
            if (topic := _TOPIC.fullmatch(line)) is not None:
                self._read_topic(number, topic)
            elif (partition := _PARTITION.fullmatch(line)) is not None:
                self._read_partition(number, partition)
            elif line.strip():
                self._note(number, "text", line.strip(), Fate.UNAFFECTED, "it describes no topic")
        topics = tuple(self._complete(topic) for topic in self._topics.values())
        brokers = {broker for topic in topics for replicas in topic.assignment for broker in replicas}
        return Description(topics=topics, broker_ids=frozenset(brokers), lines=tuple(self._lines))

    def _read_topic(self, number: int, match: re.Match[str]) -> None:
        self._name = name = match["name"]
        if name.startswith(_INTERNAL):
            self._note(number, "topic", name, Fate.UNAFFECTED, "the model creates Kafka's own topics")
            return
        if name in self._topics:
            raise self._problem(number, f"topic {quoted(name)} a second time")
        if int(match["partitions"]) > PARTITIONS_MAX:
            raise self._problem(
                number, f"{match['partitions']} partitions: the model has at most {PARTITIONS_MAX}"
            )
        self._note(number, "topic", name, Fate.TAKEN)
        self._topics[name] = TopicDescription(
            name=name,
            partitions=int(match["partitions"]),
            replication_factor=int(match["factor"]),
            entries=tuple(self._settings(number, match["configs"] or "")),
        )

    def _settings(self, number: int, text: str) -> Iterator[SourceLine]:
        for pair in _NEXT_SETTING.split(text) if text else ():
            name, equals, value = pair.partition("=")
            if equals:
                yield SourceLine(self._file, number, name, value)

    def _read_partition(self, number: int, match: re.Match[str]) -> None:
        name = match["name"] or self._name
        replicas = tuple(map(int, match["replicas"].split(",")))
        shown = f"{name}-{match['number']} on {match['replicas']}"
        if name not in self._topics:
            self._note(number, "partition", shown, Fate.UNAFFECTED, "the model creates Kafka's own topics")
            return
        if (largest := max(replicas)) > BROKER_ID_MAX:
            raise self._problem(number, f"broker {largest}: ids of the model go up to {BROKER_ID_MAX}")
        self._replicas.setdefault(name, {})[int(match["number"])] = replicas
        self._note(number, "partition", shown, Fate.TAKEN)

    def _complete(self, topic: TopicDescription) -> TopicDescription:
        """Return a topic with the replicas of its partitions, if the text has all of them."""
        replicas = self._replicas.get(topic.name, {})
        if sorted(replicas) != list(range(topic.partitions or 0)):
            return topic
        assignment = tuple(own for _, own in sorted(replicas.items()))
        return TopicDescription(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignment=assignment,
            entries=topic.entries,
        )

    def _note(self, number: int, name: str, value: str, fate: Fate, note: str = "") -> None:
        self._lines.append(
            ImportedLine(entry=SourceLine(self._file, number, name, value), fate=fate, note=note)
        )

    def _problem(self, number: int, message: str) -> CampaignError:
        return CampaignError([Problem(self._file, number, 1, message)])
