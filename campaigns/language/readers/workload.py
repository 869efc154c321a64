"""The section ``workload``: producers, consumers, and how long they work."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from harrow.campaigns.clients.clients import CLIENTS, CONSUMERS, PRODUCERS, ClientKind, application_kinds
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.readers.applications import ApplicationReader
from harrow.campaigns.language.readers.cluster import CheckedCluster
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import (
    EffectiveSettings,
    Given,
    GivenSettings,
    plain,
)
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.readers.transactions import check_producer
from harrow.campaigns.language.spelling import counted
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.fields import ProducerMarker, fields_of
from harrow.cluster_model.release import RELEASES
from harrow.cluster_model.settings import AUTO_COMMIT, CONSUMER, GROUP_ID, MIN_ISR, PRODUCER, broker_config
from harrow.cluster_model.topology import (
    CLIENTS_MAX,
    ApplicationSpec,
    ConsumerSpec,
    Coordinated,
    ProducerSpec,
    TopicSpec,
)
from harrow.faults.actions import ACTIONS

T = TypeVar("T")


class WorkloadReader:
    """Reads the section and checks it."""

    def __init__(self, draft: Draft, settings: EffectiveSettings, cluster: CheckedCluster) -> None:
        self._draft = draft
        self._settings = settings
        self._cluster = cluster
        self._references = cluster.references
        self._reader = SectionReader(draft, cluster.references)
        self._applications = ApplicationReader(draft, settings, self._reader)
        self._given = {} if draft.body.get("workload") is None else draft.body.get("workload").given()
        self.duration_us: int = self._given.get("duration", 0)
        self._names: dict[str, Path] = {}

    def read(self) -> dict[str, tuple[Any, ...]]:
        sections = self._given.get("producers")
        if sections is None:
            # The workload that a campaign does not mention is one producer for its script.
            needed = self._draft.body.get("workload") is None or _script_needs_producer(self._draft.body)
            sections = [None] if needed else []
        clients = {
            PRODUCERS: self._clients(PRODUCERS, sections, self._producer),
            CONSUMERS: self._clients(CONSUMERS, self._given.get(CONSUMERS, []), self._consumer),
            "applications": tuple(
                client
                for key, kind in application_kinds()
                for client in self._clients(key, self._given.get(key, []), partial(self._application, kind))
            ),
        }
        self._add_internal_topics(chain.from_iterable(clients.values()))
        return clients

    def _clients(
        self,
        key: str,
        sections: Sequence[Section | None],
        read: Callable[[Section | None, str, Path], T],
    ) -> tuple[T, ...]:
        path: Path = ("workload", key)
        self._check_number(len(sections), path)
        given = [None if section is None else section.given().get("name") for section in sections]
        names = self._named(given, CLIENTS[key].name, path)
        return tuple(
            read(section, names[index], (*path, index))
            for index, section in enumerate(sections[:CLIENTS_MAX])
        )

    def _add_internal_topics(self, clients: Iterable[Any]) -> None:
        """Note which internal topics clients need: what becomes of their partitions can be seen."""
        if self._settings.release not in RELEASES:
            return
        config = broker_config(self._settings.release, plain(self._settings.broker()))
        for client in clients:
            for name in client.internal_topics() if isinstance(client, Coordinated) else ():
                self._references.add_internal_topic(name, internal_topic(name, config).partitions)

    def _check_number(self, number: int, path: Path) -> None:
        if number > CLIENTS_MAX:
            self._draft.problem(path, f"{number} {path[-1]} are too many: at most {CLIENTS_MAX}")

    def _named(self, names: Sequence[str | None], kind: str, path: Path) -> list[str]:
        """Return a name for each client; all clients share one set of names."""
        result: list[str] = []
        for index, given in enumerate(names):
            name = f"{kind}-{index}" if given is None else given
            place: Path = (*path, index) if given is None else (*path, index, "name")
            self._draft.is_duplicate("client name", name, place, self._names)
            result.append(name)
        return result

    def _producer(self, section: Section | None, name: str, path: Path) -> ProducerSpec:
        given = {} if section is None else section.given()
        settings = self._settings.own(PRODUCER, section, path)
        self._check_has_some(given, path)
        start_us, stop_us = given.get("start", 0), given.get("stop")
        if "rate" in given:
            stop_us = self.duration_us if stop_us is None else stop_us
            self._check_times(given, start_us, stop_us, path)
        elif stop_us is not None and stop_us <= start_us:
            self._draft.problem((*path, "stop"), _stop_message(start_us, stop_us))
        spec: ProducerSpec = self._reader.read(
            ProducerSpec, section, path, name=name, settings=plain(settings), stop_us=stop_us
        )
        self._check_min_isr(settings, spec.partitions)
        check_producer(self._draft, spec, given, path)
        return spec

    def _application(self, kind: ClientKind, section: Section | None, name: str, path: Path) -> Any:
        if kind.spec is ApplicationSpec:
            return self._applications.read(section, name, path)
        return self._reader.read(kind.spec, section, path, name=name)

    def _check_times(self, given: Mapping[str, Any], start_us: int, stop_us: int, path: Path) -> None:
        """Check that a producer with a rate has time to send something."""
        if "stop" in given and stop_us <= start_us:
            self._draft.problem((*path, "stop"), _stop_message(start_us, stop_us))
        if not self._draft.is_intact("workload", "duration") or self._draft.has_lost(path):
            return
        end = f"the workload's end at {duration_text(self.duration_us)}"
        if self.duration_us == 0:
            message = "records are generated for the workload's `duration`, which is not given"
            self._draft.problem((*path, "rate"), message, at_key=True)
        elif stop_us > self.duration_us:
            message = f"the producer stops at {duration_text(stop_us)}, after {end}"
            self._draft.problem((*path, "stop"), message)
        elif "stop" not in given and stop_us <= start_us:
            message = f"the producer starts at {duration_text(start_us)}, which is not before {end}"
            self._draft.problem((*path, "start"), message)

    def _check_has_some(self, given: Mapping[str, Any], path: Path) -> None:
        place = (*path, "partitions")
        if given.get("partitions") == [] and not self._draft.has_lost(place):
            self._draft.problem(place, "a list of partitions cannot be empty; leave it out for all of them")

    def _check_min_isr(self, producer: GivenSettings, partitions: Sequence[str]) -> None:
        """Check that acks=all can be answered at all, which it can where no more replicas than there are have to be in sync (KAFKA-15583)."""
        if self._settings.behaviours.min_isr_limited_to_replicas:
            return
        if not self._draft.is_intact("cluster") or not self._settings.acks_all(producer):
            return
        written = {name.rpartition("-")[0] for name in partitions or self._references.partitions}
        for topic in self._cluster.spec.topics:
            given = self._settings.min_isr(self._cluster.topics[topic.name], self._cluster.brokers)
            if given is not None and topic.name in written and int(given.value) > topic.replication_factor:
                self._report_min_isr(given, topic, producer.get("acks"))

    def _report_min_isr(self, min_isr: Given, topic: TopicSpec, acks: Given | None) -> None:
        where = f" ({self._draft.place(acks.path)})" if acks is not None else ""
        self._draft.problem(
            min_isr.path,
            f"impossible: with {MIN_ISR}={min_isr.value} and {counted(topic.replication_factor, 'replica')} of topic {topic.name}, "
            f"acks=all{where} is never acked",
        )

    def _consumer(self, section: Section | None, name: str, path: Path) -> ConsumerSpec:
        given = {} if section is None else section.given()
        self._check_has_some(given, path)
        settings = self._settings.own(CONSUMER, section, path)
        spec: ConsumerSpec = self._reader.read(
            ConsumerSpec, section, path, name=name, settings=plain(settings)
        )
        self._check_group(spec, settings, given, path)
        return spec

    def _check_group(
        self, spec: ConsumerSpec, settings: GivenSettings, given: Mapping[str, Any], path: Path
    ) -> None:
        """Check that what is said of a member of a group is said of one, and agrees."""
        if not spec.group:
            for key in _OF_GROUPS:
                if key in given:
                    message = f"`{key}` is for consumers with the setting {GROUP_ID}"
                    self._draft.problem((*path, key), message, at_key=True)
            return
        if spec.topics and spec.partitions:
            message = "a consumer subscribes to topics, or assigns itself partitions"
            self._draft.problem((*path, "topics"), message, at_key=True)
        auto_commit = settings.get(AUTO_COMMIT)
        if spec.commit != "auto" and auto_commit is not None and auto_commit.value:
            place = self._draft.place(auto_commit.path)
            message = f"`commit: {spec.commit}` and {AUTO_COMMIT}={str(auto_commit.value).lower()} ({place}): one of them commits"
            self._draft.problem((*path, "commit"), message)
        if spec.stop_us is not None and spec.stop_us <= spec.start_us:
            message = (
                f"the consumer stops at {duration_text(spec.stop_us)}, which is not after its start at "
                f"{duration_text(spec.start_us)}"
            )
            self._draft.problem((*path, "stop"), message)


_OF_GROUPS: Final = ("topics", "commit", "stop")
"""Settings that only members of groups have."""


def _stop_message(start_us: int, stop_us: int) -> str:
    return f"the producer stops at {duration_text(stop_us)}, which is not after its start at {duration_text(start_us)}"


def _script_needs_producer(body: Any) -> bool:
    actions = (action for step in body.get("script") or () for action in step.get("do") or ())
    return any(_needs_producer(name) for action in actions for name in action.given())


def _needs_producer(action: str) -> bool:
    kind = ACTIONS.get(action)
    return kind is not None and any(item.kind is ProducerMarker for item in fields_of(kind))
