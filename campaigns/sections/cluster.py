"""The section ``cluster``: brokers, topics, network and disk."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from campaigns.bounds import BROKERS_MAX, PARTITIONS_MAX
from campaigns.cluster_sections import BrokerSection, ClusterSection, TopicSection
from campaigns.sections.draft import Draft
from campaigns.sections.effective_settings import EffectiveSettings, GivenSettings, plain
from campaigns.spelling import counted, listed
from campaigns.yaml_positions import Path
from cluster_model.topology import BrokerSpec, ClusterSpec, DiskSpec, NetworkSpec, TopicSpec

BROKERS_DEFAULT = 3
REPLICAS_DEFAULT = 3

_BROKERS: Path = ("cluster", "brokers")
_TOPICS: Path = ("cluster", "topics")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster of a plan, and the settings that it was made with.

    ``has_all`` is false when it was too large to be read to its end.
    """

    spec: ClusterSpec
    has_all: bool
    topics: dict[str, GivenSettings]
    brokers: dict[int, GivenSettings]


class ClusterReader:
    """Reads the section and checks it."""

    def __init__(self, draft: Draft, settings: EffectiveSettings) -> None:
        self._draft = draft
        self._settings = settings
        self._section = draft.body.cluster or ClusterSection()
        self._ids: tuple[int, ...] = ()
        self._has_all = True

    def read(self) -> Cluster:
        """Return the cluster."""
        brokers = self._brokers()
        self._ids = tuple(brokers)
        topics = self._topics()
        self._check_racks([broker for broker, _ in brokers.values()], [t for t, _ in topics.values()])
        controller = self._section.controller
        if controller is not None and controller not in brokers and self._knows_brokers():
            message = f"unknown broker {controller}; the brokers are {listed(sorted(brokers))}"
            self._draft.problem(("cluster", "controller"), message)
        spec = ClusterSpec(
            brokers=tuple(broker for broker, _ in brokers.values()),
            topics=tuple(topic for topic, _ in topics.values()),
            controller=controller,
            settings=plain(self._settings.broker()),
            network=self._network(),
            disk=self._disk(),
        )
        tick_us = self._section.zookeeper.tick if self._section.zookeeper is not None else None
        return Cluster(
            spec=spec if tick_us is None else replace(spec, zookeeper_tick_us=tick_us),
            has_all=self._has_all,
            topics={name: settings for name, (_, settings) in topics.items()},
            brokers={broker: settings for broker, (_, settings) in brokers.items()},
        )

    def _check_racks(self, brokers: list[BrokerSpec], topics: list[TopicSpec]) -> None:
        """Check that racks are known of all brokers or of none, if replicas are to be assigned by them."""
        without = [broker.id for broker in brokers if broker.rack is None]
        if not without or len(without) == len(brokers) or not self._knows_brokers():
            return
        if any(not topic.assignment for topic in topics):
            names = f"broker{'s' if len(without) > 1 else ''} {listed(without)}"
            message = (
                f"{names} without a `rack`: Kafka assigns replicas to racks only when every broker has one; "
                "give all a rack, or every topic an `assignment`"
            )
            self._draft.problem(_BROKERS, message)

    def _knows_brokers(self) -> bool:
        return self._has_all and self._draft.is_intact(*_BROKERS)

    def _network(self) -> NetworkSpec:
        section = self._section.network
        if section is None or section.latency is None:
            return NetworkSpec()
        low_us, high_us = section.latency
        return NetworkSpec(latency_min_us=low_us, latency_max_us=high_us)

    def _disk(self) -> DiskSpec:
        section = self._section.disk
        if section is None or "writeback" not in section.given():
            return DiskSpec()
        return DiskSpec(writeback_us=section.writeback)

    def _brokers(self) -> dict[int, tuple[BrokerSpec, GivenSettings]]:
        sections = self._section.brokers
        if sections is None:
            return {number: (BrokerSpec(id=number), {}) for number in range(BROKERS_DEFAULT)}
        if not sections and not self._draft.has_lost(_BROKERS):
            self._draft.problem(_BROKERS, "a cluster needs a broker")
        if len(sections) > BROKERS_MAX:
            self._draft.problem(_BROKERS, f"{len(sections)} brokers are too many: at most {BROKERS_MAX}")
            self._has_all = False
        found: dict[int, tuple[BrokerSpec, GivenSettings]] = {}
        places: dict[int, Path] = {}
        for index, section in enumerate(sections[:BROKERS_MAX]):
            path = (*_BROKERS, index)
            if section.id in places:
                first = self._draft.place(places[section.id])
                self._draft.problem((*path, "id"), f"duplicate broker {section.id}; the first is in {first}")
                continue
            places[section.id] = (*path, "id")
            found[section.id] = self._broker(section, path)
        return found

    def _broker(self, section: BrokerSection, path: Path) -> tuple[BrokerSpec, GivenSettings]:
        settings = self._settings.own_of_broker(section, path)
        return BrokerSpec(id=section.id, rack=section.rack, settings=plain(settings)), settings

    def _topics(self) -> dict[str, tuple[TopicSpec, GivenSettings]]:
        sections = self._section.topics
        if sections is None:
            # Nothing in the file is responsible for a topic that it does not mention.
            sections = [TopicSection(name="t")]
        elif not sections and not self._draft.has_lost(_TOPICS):
            self._draft.problem(_TOPICS, "a cluster needs a topic")
        found: dict[str, tuple[TopicSpec, GivenSettings]] = {}
        places: dict[str, Path] = {}
        total = 0
        for index, section in enumerate(sections):
            path = (*_TOPICS, index)
            if section.name in places:
                first = self._draft.place(places[section.name])
                self._draft.problem(
                    (*path, "name"), f"duplicate topic {section.name}; the first is in {first}"
                )
                continue
            places[section.name] = (*path, "name")
            topic = self._topic(section, path)
            total += topic[0].partitions
            if total > PARTITIONS_MAX:
                message = f"more than {PARTITIONS_MAX} partitions in all are too many"
                self._draft.problem(path, message)
                self._has_all = False
                break
            found[section.name] = topic
        return found

    def _topic(self, section: TopicSection, path: Path) -> tuple[TopicSpec, GivenSettings]:
        settings = self._settings.topic(section, path)
        assignment = tuple(tuple(replicas) for replicas in section.assignment or ())
        if section.assignment is not None and self._draft.is_intact(*path, "assignment"):
            self._check_assignment(section, assignment, path)
        factor = section.replication_factor or (len(assignment[0]) if assignment else 0)
        factor = factor or min(REPLICAS_DEFAULT, max(1, len(self._ids)))
        if section.replication_factor is not None and not assignment:
            self._check_replication_factor(section.replication_factor, path)
        spec = TopicSpec(
            name=section.name,
            partitions=section.partitions or len(assignment) or 1,
            replication_factor=factor,
            assignment=assignment,
            settings=plain(settings),
        )
        return spec, settings

    def _check_replication_factor(self, factor: int, path: Path) -> None:
        if factor > len(self._ids) and self._knows_brokers():
            message = f"replication factor {factor} is larger than the number of brokers, {len(self._ids)}"
            self._draft.problem((*path, "replication_factor"), message)

    def _check_assignment(
        self, section: TopicSection, assignment: tuple[tuple[int, ...], ...], path: Path
    ) -> None:
        """Check what Kafka's AdminUtils.validateReplicaAssignment checks, and that the numbers agree."""
        place = (*path, "assignment")
        if not assignment:
            self._draft.problem(place, "an assignment has a list of brokers for each partition")
        if section.partitions is not None and section.partitions != len(assignment):
            message = f"the assignment has {counted(len(assignment), 'partition')}, but `partitions` is {section.partitions}"
            self._draft.problem(place, message)
        if len(assignment) > PARTITIONS_MAX:
            return
        factor = section.replication_factor or (len(assignment[0]) if assignment else 0)
        for number, replicas in enumerate(assignment):
            self._check_replicas(replicas, (*place, number))
            if len(replicas) != factor:
                expected = "`replication_factor` is" if section.replication_factor else "partition 0 has"
                message = (
                    f"partition {number} has {counted(len(replicas), 'replica')}, but {expected} {factor}"
                )
                self._draft.problem((*place, number), message)

    def _check_replicas(self, replicas: Iterable[int], path: Path) -> None:
        knows_brokers = self._knows_brokers()
        seen: set[int] = set()
        for index, broker in enumerate(replicas):
            if broker in seen:
                self._draft.problem((*path, index), f"broker {broker} has two replicas of the same partition")
            elif broker not in self._ids and knows_brokers:
                message = f"unknown broker {broker}; the brokers are {listed(sorted(self._ids))}"
                self._draft.problem((*path, index), message)
            seen.add(broker)
