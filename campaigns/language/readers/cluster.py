"""Reads the section ``cluster``: brokers, topics, network and disk."""

from collections.abc import Iterator, Sequence
from itertools import islice

from harrow.campaigns.clients.clients import APPLICATIONS
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.applications import own_topic, topics_of_application
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import EffectiveSettings, SourcedSettings, plain
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.spelling import counted, listed
from harrow.cluster_model.lazy_dataclass import dataclass, replace
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
    """The cluster of a plan, its settings with their positions, and the names that it defines."""

    spec: ClusterSpec
    topics: dict[str, SourcedSettings]
    brokers: dict[int, SourcedSettings]
    references: References


class ClusterReader:
    """Reads and checks the section ``cluster``."""

    def __init__(self, draft: Draft, settings: EffectiveSettings) -> None:
        self._draft = draft
        self._settings = settings
        self._section = draft.body / "cluster"
        self._reader = SectionReader(draft)
        self._ids: tuple[int, ...] = ()
        # The ids of brokers that exist from the start.
        self._initial: tuple[int, ...] = ()
        # False if the file has more brokers or partitions than are read.
        self._is_complete = True

    def read(self) -> CheckedCluster:
        brokers = self._brokers()
        self._ids = tuple(brokers)
        self._initial = tuple(broker.id for broker, _ in brokers.values() if broker.joins_us == 0)
        if self._ids and not self._initial and self._has_sound_brokers():
            message = "a cluster needs a broker at the start, but all of these join later (`joins`)"
            self._draft.problem(self._section / "brokers", message)
        self._settings.check_brokers(settings for _, settings in brokers.values())
        topics = self._topics()
        self._add_own_topics(topics)
        specs = tuple(topic for topic, _ in topics.values())
        broker_specs = [broker for broker, _ in brokers.values()]
        references = References(self._draft, broker_specs, specs, has_all=self._is_complete)
        spec = SectionReader(self._draft, references).read(
            ClusterSpec,
            self._section,
            brokers=tuple(broker_specs),
            topics=specs,
            quotas=self._quotas(),
            settings=plain(self._settings.broker()),
        )
        self._check_metadata(spec)
        self._check_voters(spec)
        self._note_racks(spec)
        self._note_ignored(spec, [self._settings.broker(), *(settings for _, settings in brokers.values())])
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
        """Return the quotas. `read_plan` checks the clients that they name."""
        quotas: dict[str | None, QuotaSpec] = {}
        for section in self._section / "quotas":
            quota = self._reader.read(QuotaSpec, section)
            if quota.client in quotas:
                owner = "the default quota" if quota.client is None else f"the quota of {quota.client}"
                self._draft.problem(section, f"{owner} is listed twice")
            elif section.is_whole and quota.producer_byte_rate is quota.consumer_byte_rate is None:
                message = "a quota needs a `producer_byte_rate` or a `consumer_byte_rate`"
                self._draft.problem(section, message)
            quotas[quota.client] = quota
        return tuple(quotas.values())

    def _fixed_metadata(self, spec: ClusterSpec) -> str | None:
        """Return the control plane that the campaign or its release decides; None if unknown."""
        release = RELEASES.get(self._settings.release)
        return spec.metadata or (release.metadata if release else None)

    def _metadata(self, spec: ClusterSpec) -> str | None:
        """Return the control plane; None if a seed draws it."""
        drawn = self._draft.body / "swarm"
        return None if "kafka" in drawn or "cluster.metadata" in drawn else self._fixed_metadata(spec)

    def _servers(self, spec: ClusterSpec) -> tuple[int, ...]:
        """Return the ids of the servers that are not brokers."""
        if self._fixed_metadata(spec) == ZOOKEEPER:
            return spec.zookeeper_ids()
        return () if spec.combined else spec.controller_ids()

    def _quorum(self, spec: ClusterSpec) -> tuple[int, ...]:
        """Return the ids of the voters in KRaft; none with ZooKeeper."""
        return spec.controller_ids() if self._fixed_metadata(spec) == KRAFT else ()

    def _check_metadata(self, spec: ClusterSpec) -> None:
        """Check that the release supports the control plane."""
        release = self._settings.release
        if release not in RELEASES or spec.metadata in (None, *RELEASES[release].modes):
            return
        modes = listed(RELEASES[release].modes)
        message = (
            f"Kafka {release} keeps its metadata in {modes}; leave `metadata` out, or name another release"
        )
        self._draft.problem(self._section / "metadata", message)

    def _check_voters(self, spec: ClusterSpec) -> None:
        """Check that combined mode has a broker for each voter, if `voters` is in the campaign."""
        voters = self._section.at("kraft", "voters")
        if voters.value is None or not spec.combined:
            return
        if not self._has_sound_brokers() or self._metadata(spec) == ZOOKEEPER:
            return
        fewest, explanation = min(self._broker_counts())
        if spec.voters > fewest:
            message = f"{spec.voters} voters need as many brokers with `combined: true`, but {explanation}"
            self._draft.problem(voters, message)

    def _broker_counts(self) -> Iterator[tuple[int, str]]:
        """Yield the possible numbers of brokers at the start, each with an explanation."""
        swarm = self._draft.body / "swarm"
        for drawn in (swarm, *swarm.at("aims", "any_of")):
            if "brokers" in drawn:
                fewest = drawn.get("brokers")[0]
                yield fewest, f"a seed may draw {fewest}"
        if "brokers" not in swarm:
            yield len(self._initial), f"there are {len(self._initial)}{self._at_start()}"

    def _at_start(self) -> str:
        return " at the start" if len(self._initial) < len(self._ids) else ""

    def _note_ignored(self, spec: ClusterSpec, settings: Sequence[SourcedSettings]) -> None:
        """Note keys for another control plane, which an option may have replaced."""
        release = RELEASES.get(self._settings.release)
        if release is None:
            return
        metadata = spec.metadata or release.metadata
        why = where_metadata_is(release.name, metadata)
        for name, sourced in (item for owner_settings in settings for item in owner_settings.items()):
            if SETTINGS[BROKER, name].metadata not in ("", metadata):
                # KafkaConfig.validateControlPlaneListenerEmptyForKRaft
                refused = " (brokers refuse to start with it)" if name == CONTROL_PLANE_LISTENER else ""
                self._draft.note(sourced.part, f"{name} is ignored: {why}{refused}")
        for section, plane in (("zookeeper", ZOOKEEPER), ("kraft", KRAFT)):
            if plane != metadata and section in self._section:
                self._draft.note(self._section / section, f"cluster.{section} is ignored: {why}")

    def _note_racks(self, spec: ClusterSpec) -> None:
        """Note where Kafka places replicas if only some brokers have a rack."""
        without = [broker.id for broker in spec.brokers if broker.rack is None]
        if not without or len(without) == len(spec.brokers) or not self._has_sound_brokers():
            return
        if any(not topic.assignment for topic in spec.topics):
            names = f"broker{'s' if len(without) > 1 else ''} {listed(without)}"
            message = f"no `rack` for {names}: replicas are placed as if this were one more rack"
            if self._fixed_metadata(spec) == ZOOKEEPER:
                # AdminUtils.assignReplicasToBrokers
                message += "; with ZooKeeper, Kafka creates no topics then unless told to ignore racks"
            self._draft.note(self._section / "brokers", message)

    def _has_sound_brokers(self) -> bool:
        return self._is_complete and self._draft.body.is_sound("cluster", "brokers")

    def _brokers(self) -> dict[int, tuple[BrokerSpec, SourcedSettings]]:
        sections = self._section / "brokers"
        if sections.value is None:
            return {number: (BrokerSpec(id=number), {}) for number in range(BROKERS_DEFAULT)}
        if not sections.value and not sections.rejected:
            self._draft.problem(sections, "a cluster needs a broker")
        if len(sections.value) > BROKERS_MAX:
            message = f"{len(sections.value)} brokers are too many: at most {BROKERS_MAX}"
            self._draft.problem(sections, message)
            self._is_complete = False
        brokers: dict[int, tuple[BrokerSpec, SourcedSettings]] = {}
        places: dict[int, Part] = {}
        for section in islice(sections, BROKERS_MAX):
            number = section.get("id")
            if not self._draft.is_duplicate("broker", number, section / "id", places):
                settings = self._settings.own_of_broker(section)
                broker = self._reader.read(BrokerSpec, section, settings=plain(settings))
                brokers[number] = (broker, settings)
        return brokers

    def _topics(self) -> dict[str, tuple[TopicSpec, SourcedSettings]]:
        sections = self._section / "topics"
        if sections.value is None:
            # A default topic has no section, so its problems have no position in the file.
            return {"t": self._topic("t", self._draft.body / "topics")}
        if not sections.value and not sections.rejected:
            self._draft.problem(sections, "a cluster needs a topic")
        topics: dict[str, tuple[TopicSpec, SourcedSettings]] = {}
        places: dict[str, Part] = {}
        total = 0
        for section in sections:
            name = section.get("name")
            if self._draft.is_duplicate("topic", name, section / "name", places):
                continue
            topic = self._topic(name, section)
            total += topic[0].partitions
            if total > PARTITIONS_MAX:
                message = f"too many partitions in all: at most {PARTITIONS_MAX}"
                self._draft.problem(section, message)
                self._is_complete = False
                break
            topics[name] = topic
        return topics

    def _add_own_topics(self, topics: dict[str, tuple[TopicSpec, SourcedSettings]]) -> None:
        """Add the topics of applications that write to one of their own.

        It is like the topic that the application reads.
        """
        for application in self._draft.body / "workload" / APPLICATIONS:
            source, target = topics_of_application(application, topics)
            if source in topics and target == own_topic(source) and target not in topics:
                spec, settings = topics[source]
                topics[target] = replace(spec, name=target), settings

    def _topic(self, name: str, section: Part) -> tuple[TopicSpec, SourcedSettings]:
        settings = self._settings.own(TOPIC, section)
        assignment = tuple(tuple(replicas) for replicas in section.get("assignment") or ())
        if "assignment" in section and section.is_sound("assignment"):
            self._check_assignment(section, assignment)
        factor: int | None = section.get("replication_factor")
        if factor is not None and not assignment:
            self._check_replication_factor(factor, section / "replication_factor")
        assigned_factor = len(assignment[0]) if assignment else 0
        spec = self._reader.read(
            TopicSpec,
            section,
            name=name,
            partitions=section.get("partitions") or len(assignment) or 1,
            replication_factor=factor or assigned_factor or min(REPLICAS_DEFAULT, max(1, len(self._initial))),
            assignment=assignment,
            settings=plain(settings),
        )
        return spec, settings

    def _check_replication_factor(self, factor: int, place: Part) -> None:
        if factor > len(self._initial) and self._has_sound_brokers():
            brokers = f"brokers{self._at_start()}, {len(self._initial)}"
            message = f"replication factor {factor} is larger than the number of {brokers}"
            self._draft.problem(place, message)

    def _check_assignment(self, topic: Part, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Check an assignment.

        It must be valid for AdminUtils.validateReplicaAssignment, and agree with `partitions` and
        `replication_factor`.
        """
        place = topic / "assignment"
        if not assignment:
            self._draft.problem(place, "an assignment needs a list of brokers for each partition")
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
        is_sound = self._has_sound_brokers()
        previous: set[int] = set()
        for part in replicas:
            broker = part.value
            if broker in previous:
                self._draft.problem(part, f"broker {broker} has two replicas of the same partition")
            elif broker not in self._ids and is_sound:
                message = f"unknown broker {broker}; the brokers are {listed(sorted(self._ids))}"
                self._draft.problem(part, message)
            elif broker not in self._initial and is_sound:
                self._draft.problem(part, f"broker {broker} joins only after the topic is created")
            previous.add(broker)
