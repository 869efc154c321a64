"""The section ``cluster``: brokers, topics, network and disk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, GivenSettings, plain
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.spelling import counted, listed
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import BROKER, CONTROL_PLANE_LISTENER, SETTINGS, TOPIC
from harrow.cluster_model.topology import (
    BROKERS_MAX,
    KRAFT,
    PARTITIONS_MAX,
    ZOOKEEPER,
    BrokerSpec,
    ClusterSpec,
    QuotaSpec,
    TopicSpec,
)
from harrow.faults.control_plane import where_metadata_is

BROKERS_DEFAULT = 3
REPLICAS_DEFAULT = 3


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """The cluster of a plan, the settings that it was made with, and the names that it defines."""

    spec: ClusterSpec
    topics: dict[str, GivenSettings]
    brokers: dict[int, GivenSettings]
    references: References


class ClusterReader:
    """Reads the section and checks it."""

    def __init__(self, draft: Draft, settings: EffectiveSettings) -> None:
        self._draft = draft
        self._settings = settings
        self._section = draft.body / "cluster"
        self._reader = SectionReader(draft)
        self._ids: tuple[int, ...] = ()
        # Those of them that are there from the beginning.
        self._initial: tuple[int, ...] = ()
        self._has_all = True

    def read(self) -> CheckedCluster:
        brokers = self._brokers()
        self._ids = tuple(brokers)
        self._initial = tuple(broker.id for broker, _ in brokers.values() if broker.joins_us == 0)
        if self._ids and not self._initial and self._knows_brokers():
            message = "a cluster begins with a broker: every one of these `joins` it later"
            self._draft.problem(self._section / "brokers", message)
        self._settings.check_brokers(settings for _, settings in brokers.values())
        topics = self._topics()
        specs = tuple(topic for topic, _ in topics.values())
        known = [broker for broker, _ in brokers.values()]
        self._check_racks(known, specs)
        references = References(self._draft, known, specs, has_all=self._has_all)
        spec = SectionReader(self._draft, references).read(
            ClusterSpec,
            self._section,
            brokers=tuple(known),
            topics=specs,
            quotas=self._quotas(),
            settings=plain(self._settings.broker()),
        )
        self._check_metadata(spec)
        self._check_voters(spec)
        self._note_unread(spec, [self._settings.broker(), *(settings for _, settings in brokers.values())])
        if (
            spec.controller is not None
            and spec.controller in self._ids
            and spec.controller not in self._initial
        ):
            self._draft.problem(self._section / "controller", f"broker {spec.controller} joins later")
        references.add_servers(self._servers(spec), self._quorum(spec), self._metadata(spec))
        return CheckedCluster(
            spec=spec,
            topics={name: settings for name, (_, settings) in topics.items()},
            brokers={broker: settings for broker, (_, settings) in brokers.items()},
            references=references,
        )

    def _quotas(self) -> tuple[QuotaSpec, ...]:
        """Return the quotas; the clients that they name are not known yet."""
        found: dict[str | None, QuotaSpec] = {}
        for section in self._section / "quotas":
            quota: QuotaSpec = self._reader.read(QuotaSpec, section)
            if quota.client in found:
                whose = "every client" if quota.client is None else quota.client
                self._draft.problem(section, f"{whose} has a quota twice")
            elif section.is_whole and quota.producer_byte_rate is quota.consumer_byte_rate is None:
                message = "a quota has a `producer_byte_rate` or a `consumer_byte_rate`"
                self._draft.problem(section, message)
            found[quota.client] = quota
        return tuple(found.values())

    def _metadata(self, spec: ClusterSpec) -> str | None:
        """Return where brokers keep their metadata; None where a seed draws that."""
        drawn = self._draft.body / "swarm"
        if "kafka" in drawn or "cluster.metadata" in drawn:
            return None
        release = RELEASES.get(self._settings.release)
        return spec.metadata or (release.metadata if release else None)

    def _servers(self, spec: ClusterSpec) -> tuple[int, ...]:
        """Return the servers that are no brokers."""
        release = RELEASES.get(self._settings.release)
        if (spec.metadata or (release.metadata if release else None)) == ZOOKEEPER:
            return spec.zookeeper_ids()
        return () if spec.combined else spec.controller_ids()

    def _quorum(self, spec: ClusterSpec) -> tuple[int, ...]:
        """Return the voters of KRaft."""
        release = RELEASES.get(self._settings.release)
        is_kraft = (spec.metadata or (release.metadata if release else None)) == KRAFT
        return spec.controller_ids() if is_kraft else ()

    def _check_metadata(self, spec: ClusterSpec) -> None:
        """Check that the release keeps its metadata where the campaign says."""
        release = self._settings.release
        if release not in RELEASES or spec.metadata in (None, *RELEASES[release].modes):
            return
        known = listed(RELEASES[release].modes)
        message = (
            f"Kafka {release} keeps its metadata in {known}; leave `metadata` out, or name another release"
        )
        self._draft.problem(self._section / "metadata", message)

    def _check_voters(self, spec: ClusterSpec) -> None:
        """Check that each voter has a broker to run in, in combined mode; the default makes do with fewer."""
        voters = self._section.at("kraft", "voters")
        if voters.value is None or not spec.combined:
            return
        if not self._knows_brokers() or self._metadata(spec) == ZOOKEEPER:
            return
        fewest, found = min(self._broker_counts())
        if spec.voters > fewest:
            message = f"{spec.voters} voters need as many brokers with `combined: true`, and {found}"
            self._draft.problem(voters, message)

    def _broker_counts(self) -> Iterator[tuple[int, str]]:
        """Yield how many brokers there may be at the beginning, in figures and in words: of what is drawn the fewest."""
        swarm = self._draft.body / "swarm"
        for drawn in (swarm, *swarm.at("aims", "any_of")):
            if "brokers" in drawn:
                fewest = drawn.get("brokers")[0]
                yield fewest, f"a seed may draw {fewest}"
        if "brokers" not in swarm:
            at_first = " at the beginning" if len(self._initial) < len(self._ids) else ""
            yield len(self._initial), f"there are {len(self._initial)}{at_first}"

    def _note_unread(self, spec: ClusterSpec, settings: Sequence[GivenSettings]) -> None:
        """Note what a campaign says of the control plane that its brokers have not, as somebody does who tries another release."""
        release = RELEASES.get(self._settings.release)
        if release is None:
            return
        metadata = spec.metadata or release.metadata
        why = where_metadata_is(release.name, metadata)
        for name, given in (item for each in settings for item in each.items()):
            known = SETTINGS[BROKER, name]
            if known.metadata not in ("", metadata):
                # KafkaConfig.validateControlPlaneListenerEmptyForKRaft
                refused = " (brokers refuse to start with it)" if name == CONTROL_PLANE_LISTENER else ""
                self._draft.note(given.part, f"{name} says nothing: {why}{refused}")
        for section, of in (("zookeeper", ZOOKEEPER), ("kraft", KRAFT)):
            if of != metadata and section in self._section:
                self._draft.note(self._section / section, f"cluster.{section} says nothing: {why}")

    def _check_racks(self, brokers: Sequence[BrokerSpec], topics: Sequence[TopicSpec]) -> None:
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
            self._draft.problem(self._section / "brokers", message)

    def _knows_brokers(self) -> bool:
        return self._has_all and self._draft.body.knows("cluster", "brokers")

    def _brokers(self) -> dict[int, tuple[BrokerSpec, GivenSettings]]:
        sections = self._section / "brokers"
        if sections.value is None:
            return {number: (BrokerSpec(id=number), {}) for number in range(BROKERS_DEFAULT)}
        if not sections.value and not sections.lost:
            self._draft.problem(sections, "a cluster needs a broker")
        if len(sections.value) > BROKERS_MAX:
            message = f"{len(sections.value)} brokers are too many: at most {BROKERS_MAX}"
            self._draft.problem(sections, message)
            self._has_all = False
        found: dict[int, tuple[BrokerSpec, GivenSettings]] = {}
        places: dict[int, Part] = {}
        for section in islice(sections, BROKERS_MAX):
            number = section.get("id")
            if not self._draft.is_duplicate("broker", number, section / "id", places):
                settings = self._settings.own_of_broker(section)
                broker = self._reader.read(BrokerSpec, section, settings=plain(settings))
                found[number] = (broker, settings)
        return found

    def _topics(self) -> dict[str, tuple[TopicSpec, GivenSettings]]:
        sections = self._section / "topics"
        if sections.value is None:
            # Nothing in the file is responsible for a topic that it does not mention.
            return {"t": self._topic("t", self._draft.body / "topics")}
        if not sections.value and not sections.lost:
            self._draft.problem(sections, "a cluster needs a topic")
        found: dict[str, tuple[TopicSpec, GivenSettings]] = {}
        places: dict[str, Part] = {}
        total = 0
        for section in sections:
            name = section.get("name")
            if self._draft.is_duplicate("topic", name, section / "name", places):
                continue
            topic = self._topic(name, section)
            total += topic[0].partitions
            if total > PARTITIONS_MAX:
                message = f"more than {PARTITIONS_MAX} partitions in all are too many"
                self._draft.problem(section, message)
                self._has_all = False
                break
            found[name] = topic
        return found

    def _topic(self, name: str, section: Part) -> tuple[TopicSpec, GivenSettings]:
        settings = self._settings.own(TOPIC, section)
        assignment = tuple(tuple(replicas) for replicas in section.get("assignment") or ())
        if "assignment" in section and section.knows("assignment"):
            self._check_assignment(section, assignment)
        factor: int | None = section.get("replication_factor")
        if factor is not None and not assignment:
            self._check_replication_factor(factor, section / "replication_factor")
        usual = len(assignment[0]) if assignment else 0
        spec = self._reader.read(
            TopicSpec,
            section,
            name=name,
            partitions=section.get("partitions") or len(assignment) or 1,
            replication_factor=factor or usual or min(REPLICAS_DEFAULT, max(1, len(self._initial))),
            assignment=assignment,
            settings=plain(settings),
        )
        return spec, settings

    def _check_replication_factor(self, factor: int, place: Part) -> None:
        if factor > len(self._initial) and self._knows_brokers():
            at_first = " at the beginning" if len(self._initial) < len(self._ids) else ""
            message = f"replication factor {factor} is larger than the number of brokers{at_first}, {len(self._initial)}"
            self._draft.problem(place, message)

    def _check_assignment(self, topic: Part, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Check what Kafka's AdminUtils.validateReplicaAssignment checks, and that the numbers agree."""
        place = topic / "assignment"
        if not assignment:
            self._draft.problem(place, "an assignment has a list of brokers for each partition")
        partitions, factor = topic.get("partitions"), topic.get("replication_factor")
        if partitions not in (None, len(assignment)):
            message = f"the assignment has {counted(len(assignment), 'partition')}, but `partitions` is {partitions}"
            self._draft.problem(place, message)
        if len(assignment) > PARTITIONS_MAX:
            return
        expected = "`replication_factor` is" if factor else "partition 0 has"
        factor = factor or (len(assignment[0]) if assignment else 0)
        for number, replicas in enumerate(assignment):
            self._check_replicas(place / number)
            if len(replicas) != factor:
                message = (
                    f"partition {number} has {counted(len(replicas), 'replica')}, but {expected} {factor}"
                )
                self._draft.problem(place / number, message)

    def _check_replicas(self, replicas: Part) -> None:
        knows_brokers = self._knows_brokers()
        seen: set[int] = set()
        for part in replicas:
            broker = part.value
            if broker in seen:
                self._draft.problem(part, f"broker {broker} has two replicas of the same partition")
            elif broker not in self._ids and knows_brokers:
                message = f"unknown broker {broker}; the brokers are {listed(sorted(self._ids))}"
                self._draft.problem(part, message)
            elif broker not in self._initial and knows_brokers:
                self._draft.problem(part, f"broker {broker} joins later, when the topic is there")
            seen.add(broker)
