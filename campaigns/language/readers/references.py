"""Checks references to the names that a campaign defines: brokers, partitions, clients."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from harrow.campaigns.language import literals
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.spelling import listed, quoted
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.topology import (
    FIRST_ZOOKEEPER_ID,
    BrokerSpec,
    ProducerSpec,
    TopicSpec,
    process_name,
    quorum_counterpart,
)
from harrow.faults.actions import AddPartitions
from harrow.faults.clients import ALL, ANY
from harrow.faults.link_ends import GROUPS, ZOOKEEPER

_RACKS_MIN: Final = 2


class References:
    """Checks references, and reports references to names that do not exist.

    If the definitions of brokers, for example, have a mistake, references to brokers are not
    checked.
    """

    def __init__(
        self, draft: Draft, brokers: Iterable[BrokerSpec], topics: Sequence[TopicSpec], *, has_all: bool
    ) -> None:
        self._draft = draft
        specs = tuple(brokers)
        self._brokers = frozenset(broker.id for broker in specs)
        self._racks = frozenset(broker.rack for broker in specs if broker.rack is not None)
        # The number of partitions by topic, including partitions that a script adds.
        self._topics = {
            topic.name: max(topic.partitions, _partitions_after_script(draft, topic.name)) for topic in topics
        }
        self._replicas = {
            f"{topic.name}-{number}": replicas
            for topic in topics
            for number, replicas in enumerate(topic.assignment)
        }
        self.partitions = frozenset(
            f"{topic}-{number}" for topic, partitions in self._topics.items() for number in range(partitions)
        )
        # None until the whole section `cluster` has been read.
        self._servers: tuple[int, ...] | None = None
        self.quorum: tuple[int, ...] = ()
        # The control plane; None while it is unknown, or if a seed draws it.
        self.metadata: str | None = None
        self._internal: dict[str, int] = {}
        self._producers: tuple[str, ...] = ()
        self._clients: frozenset[str] = frozenset()
        self._brokers_place = _place_elsewhere(draft.body.at("cluster", "brokers"))
        self._topics_place = _place_elsewhere(draft.body.at("cluster", "topics"))
        self._checks_brokers = has_all and draft.body.is_sound("cluster", "brokers")
        self._checks_partitions = self._checks_brokers and draft.body.is_sound("cluster", "topics")
        self._checks_clients = draft.body.is_sound("workload", "producers") and draft.body.is_sound(
            "workload", "consumers"
        )

    def add_replicas(self, partition: str, replicas: Iterable[int]) -> None:
        """Note that a script reassigns a partition. Later references may name its new replicas."""
        if partition in self._replicas:
            self._replicas[partition] = tuple(dict.fromkeys((*self._replicas[partition], *replicas)))

    def add_servers(
        self, servers: Iterable[int], quorum: Iterable[int] = (), metadata: str | None = None
    ) -> None:
        """Note the servers that are not brokers, the voters of KRaft, and the control plane."""
        self._servers = tuple(servers)
        self.quorum = tuple(quorum)
        self.metadata = metadata

    def add_clients(self, producers: Iterable[ProducerSpec], **others: Iterable[Any]) -> None:
        self._producers = tuple(producer.name for producer in producers)
        self._clients = frozenset(
            (*self._producers, *(client.name for clients in others.values() for client in clients))
        )

    def check(self, kind: type[Any], value: Any, part: Part) -> bool:
        """Check a value of a field of this *kind*. Return whether the value may be valid."""
        checks: dict[type[Any], Callable[[Part, Any], bool | None]] = {
            kinds.BrokerMarker: self.broker_reference,
            kinds.BrokerIdMarker: self.broker,
            kinds.EndpointMarker: self.endpoint,
            kinds.LinkEndMarker: self.link_end,
            kinds.ProducerMarker: self.producer,
            kinds.ClientTargetMarker: self.struck_client,
            kinds.ClientMarker: self.client,
            kinds.PartitionMarker: self.partition,
            kinds.TopicMarker: self.topic,
        }
        check = kinds.by_kind(checks, kind)
        return check is None or check(part, value) is not False

    def broker(self, part: Part, broker: int, *, at_key: bool = False) -> bool:
        """Check a broker's id; return whether it may be valid."""
        if broker in self._brokers or not self._checks_brokers:
            return True
        if broker >= FIRST_ZOOKEEPER_ID:
            return self._server(part, broker)
        message = (
            f"unknown broker {broker}; the brokers are {listed(sorted(self._brokers))}{self._brokers_place}"
        )
        self._draft.problem(part, message, at_key=at_key)
        return False

    def _server(self, part: Part, server: int) -> bool:
        if self._servers is None or server in self._servers:
            return True
        names = [process_name(node) for node in self._servers]
        counterpart = quorum_counterpart(server, self.quorum)
        if counterpart is not None:
            voter = f"{process_name(counterpart)} of the quorum"
            self._draft.note(part, f"there is no ZooKeeper: {process_name(server)} stands for {voter}")
            return True
        hint = f"the servers are {listed(names)}" if names else "every server is a broker"
        self._draft.problem(part, f"unknown server {process_name(server)}; {hint}")
        return False

    def partition(self, part: Part, name: str, *, at_key: bool = False) -> bool:
        """Check a partition's name; return whether it may be valid."""
        if name in self.partitions or not self._checks_partitions:
            return True
        topic, _, number = name.rpartition("-")
        if name in self._topics:
            message = f"{quoted(name)} is a topic; write a partition of it such as `{name}-0`"
        elif topic in self._topics and number.isdigit():
            partitions = _partition_range(topic, self._topics[topic])
            message = f"unknown partition {quoted(name)}; topic {topic} has {partitions}{self._topics_place}"
        else:
            self._draft.unknown(
                part, "partition", name, self.partitions, at_key=at_key, defined=self._topics_place
            )
            return False
        self._draft.problem(part, message, at_key=at_key)
        return False

    def add_internal_topic(self, name: str, partitions: int) -> None:
        """Note that a client needs an internal topic, which only conditions may refer to."""
        self._internal[name] = partitions

    def observed_partition(self, part: Part, name: str, *, at_key: bool = False) -> bool:
        """Check a partition's name in a condition; return whether it may be valid."""
        topic, _, number = name.rpartition("-")
        if number.isdecimal() and int(number) < self._internal.get(topic, 0):
            return True
        return self.partition(part, name, at_key=at_key)

    def topic(self, part: Part, name: str) -> bool:
        """Check a topic's name; return whether it may be valid."""
        if name in self._topics or not self._checks_partitions:
            return True
        self._draft.unknown(part, "topic", name, self._topics, defined=self._topics_place)
        return False

    def replica(self, part: Part, partition: str, broker: int, *, at_key: bool = False) -> None:
        """Check that a broker has a replica of a partition, if replicas are assigned."""
        if not self.broker(part, broker, at_key=at_key) or not self._checks_partitions:
            return
        replicas = self._replicas.get(partition)
        if replicas is not None and broker not in replicas:
            message = f"broker {broker} has no replica of {partition}; its assignment is {list(replicas)}"
            self._draft.problem(part, message, at_key=at_key)

    def broker_reference(self, part: Part, reference: int | str | tuple[int | str, ...]) -> None:
        """Check a broker's id, or the name in a reference such as ``leader of t-0``."""
        if isinstance(reference, tuple):
            for index, single in enumerate(reference):
                self.broker_reference(part / index, single)
            return
        if isinstance(reference, int):
            self.broker(part, reference)
            return
        noun, name = literals.name_in(reference)
        if noun == "rack" and name == ANY:
            if len(self._racks) < _RACKS_MIN and self._checks_brokers:
                there = f"the only rack is {listed(self._racks)}" if self._racks else "no broker has a rack"
                self._draft.problem(part, f"{there}, and `rack any` chooses among several")
        elif noun == "partition" and name != ANY:
            self.partition(part, name)
        elif noun == "topic" and name not in self._topics and self._checks_partitions:
            self._draft.unknown(part, noun, name, self._topics, defined=self._topics_place)
        elif noun == "rack" and name not in self._racks and self._checks_brokers:
            self._draft.unknown(part, noun, name, self._racks, defined=self._brokers_place)

    def endpoint(self, part: Part, endpoint: int | str) -> None:
        if isinstance(endpoint, int):
            self.broker(part, endpoint)
        elif endpoint != ZOOKEEPER and endpoint not in self._clients and self._checks_clients:
            servers = tuple(map(process_name, self._servers or ()))
            brokers = tuple(map(str, sorted(self._brokers)))
            names = (*brokers, *sorted(self._clients), *GROUPS, ZOOKEEPER, literals.QUORUM, *servers)
            self._draft.unknown(part, "end of a link", endpoint, names)

    def link_end(self, part: Part, end: int | str) -> None:
        """Check an end of a link, or a reference to several ends."""
        if isinstance(end, str) and literals.is_broker_reference(end):
            self.broker_reference(part, end)
        elif end not in GROUPS:
            self.endpoint(part, end)

    def client(self, part: Part, name: str) -> None:
        if name not in self._clients and self._checks_clients:
            self._draft.unknown(part, "client", name, self._clients)

    def struck_client(self, part: Part, name: str) -> None:
        if name not in (ANY, ALL):
            self.client(part, name)

    def producer(self, part: Part, name: str) -> None:
        if name not in self._producers and self._checks_clients:
            self._draft.unknown(part, "producer", name, self._producers)

    def only_producer(self, part: Part) -> str:
        """Return the producer of an action that names none; report it unless there is only one."""
        if len(self._producers) != 1 and self._checks_clients:
            message = "there is no producer to send it"
            if self._producers:
                message = f"name the `producer`: {listed(self._producers)}"
            self._draft.problem(part, message)
        return self._producers[0] if self._producers else ""


def _place_elsewhere(definitions: Part) -> str:
    """Return the position of definitions in a cluster file; empty if they are in the campaign."""
    return f" ({definitions.place()})" if definitions.key_mark.file is not None else ""


def _partitions_after_script(draft: Draft, topic: str) -> int:
    """Return the largest number of partitions to which a script raises a topic; 0 for none."""
    entries = (action.as_dict() for step in draft.body / "script" for action in step / "do")
    actions = (entry[AddPartitions.name].as_dict() for entry in entries if AddPartitions.name in entry)
    counts = (action.get("partitions", 0) for action in actions if action.get("topic") == topic)
    return max(counts, default=0)


def _partition_range(topic: str, partitions: int) -> str:
    return f"only {topic}-0" if partitions == 1 else f"{topic}-0 to {topic}-{partitions - 1}"
