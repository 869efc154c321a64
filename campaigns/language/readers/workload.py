"""Reads the section ``workload``: the clients, and how long they work."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from harrow.campaigns.clients.clients import CLIENTS, CONSUMERS, PRODUCERS, ClientKind, application_kinds
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.applications import ApplicationReader
from harrow.campaigns.language.readers.cluster import CheckedCluster
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.effective_settings import (
    EffectiveSettings,
    SourcedSettings,
    SourcedValue,
    plain,
)
from harrow.campaigns.language.readers.section import SectionReader
from harrow.campaigns.language.readers.transactions import check_producer
from harrow.campaigns.language.spelling import counted
from harrow.cluster_model.coordinators.internal_topics import internal_topic
from harrow.cluster_model.fields import ProducerMarker, fields_of
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import AUTO_COMMIT, CONSUMER, GROUP_ID, MIN_ISR, PRODUCER, broker_config
from harrow.cluster_model.topology import (
    CLIENTS_MAX,
    ApplicationSpec,
    ConsumerSpec,
    Coordinated,
    ProducerSpec,
    TopicSpec,
)
from harrow.faults.catalogue import ACTIONS

T = TypeVar("T")


class WorkloadReader:
    """Reads and checks the section ``workload``."""

    def __init__(self, draft: Draft, settings: EffectiveSettings, cluster: CheckedCluster) -> None:
        self._draft = draft
        self._settings = settings
        self._cluster = cluster
        self._references = cluster.references
        self._reader = SectionReader(draft, cluster.references)
        self._applications = ApplicationReader(draft, settings, self._reader, cluster.topics)
        self._section = draft.body / "workload"
        self.duration_us: int = self._section.get("duration") or 0
        self._names: dict[str, Part] = {}

    def read(self) -> dict[str, tuple[Any, ...]]:
        producers = self._sections(PRODUCERS)
        if PRODUCERS not in self._section:
            # A campaign without a workload has one producer, which its script uses.
            needed = "workload" not in self._draft.body or _script_needs_producer(self._draft.body)
            producers = [self._section / PRODUCERS] if needed else []
        clients = {
            PRODUCERS: self._clients(PRODUCERS, producers, self._producer),
            CONSUMERS: self._clients(CONSUMERS, self._sections(CONSUMERS), self._consumer),
            "applications": tuple(
                client
                for key, kind in application_kinds()
                for client in self._clients(key, self._sections(key), partial(self._application, kind))
            ),
        }
        self._add_internal_topics(chain.from_iterable(clients.values()))
        return clients

    def _sections(self, key: str) -> Sequence[Part]:
        return list(self._section / key)

    def _clients(self, key: str, sections: Sequence[Part], read: Callable[[Part, str], T]) -> tuple[T, ...]:
        if len(sections) > CLIENTS_MAX:
            message = f"{len(sections)} {key} are too many: at most {CLIENTS_MAX}"
            self._draft.problem(self._section / key, message)
        names = self._client_names(sections, CLIENTS[key].name)
        return tuple(read(*client) for client in zip(sections[:CLIENTS_MAX], names, strict=False))

    def _add_internal_topics(self, clients: Iterable[Any]) -> None:
        """Add the internal topics that clients need, because conditions may refer to them."""
        if self._settings.release not in RELEASES:
            return
        config = broker_config(self._settings.release, plain(self._settings.broker()))
        for client in clients:
            for name in client.internal_topics() if isinstance(client, Coordinated) else ():
                self._references.add_internal_topic(name, internal_topic(name, config).partitions)

    def _client_names(self, sections: Sequence[Part], kind: str) -> list[str]:
        """Return a name for each client. Clients of different kinds cannot have the same name."""
        names = [section.get("name") or f"{kind}-{index}" for index, section in enumerate(sections)]
        for name, section in zip(names, sections, strict=True):
            self._draft.is_duplicate("client name", name, section / "name", self._names)
        return names

    def _producer(self, section: Part, name: str) -> ProducerSpec:
        settings = self._settings.own(PRODUCER, section)
        self._check_not_empty(section / "partitions")
        start_us, stop_us = section.get("start") or 0, section.get("stop")
        if "rate" in section:
            stop_us = self.duration_us if stop_us is None else stop_us
            self._check_times(section, start_us, stop_us)
        else:
            self._draft.check_stop("producer", section, start_us, stop_us)
        spec = self._reader.read(ProducerSpec, section, name=name, settings=plain(settings), stop_us=stop_us)
        self._check_min_isr(settings, spec.partitions)
        check_producer(self._draft, spec, section)
        return spec

    def _application(self, kind: ClientKind, section: Part, name: str) -> Any:
        if kind.spec is ApplicationSpec:
            return self._applications.read(section, name)
        return self._reader.read(kind.spec, section, name=name)

    def _check_times(self, producer: Part, start_us: int, stop_us: int) -> None:
        """Check that a producer with a rate has time to send a record."""
        if "stop" in producer:
            self._draft.check_stop("producer", producer, start_us, stop_us)
        if not self._draft.body.is_sound("workload", "duration") or producer.rejected:
            return
        end = f"the workload's end at {duration_text(self.duration_us)}"
        if self.duration_us == 0:
            message = "records are generated for the workload's `duration`, which is missing"
            self._draft.problem(producer / "rate", message, at_key=True)
        elif stop_us > self.duration_us:
            message = f"the producer stops at {duration_text(stop_us)}, after {end}"
            self._draft.problem(producer / "stop", message)
        elif "stop" not in producer and stop_us <= start_us:
            message = f"the producer starts at {duration_text(start_us)}, which is not before {end}"
            self._draft.problem(producer / "start", message)

    def _check_not_empty(self, partitions: Part) -> None:
        if partitions.value == [] and not partitions.rejected:
            message = "the list of partitions is empty; leave it out for all partitions"
            self._draft.problem(partitions, message)

    def _check_min_isr(self, producer: SourcedSettings, partitions: Sequence[str]) -> None:
        """Check that there are enough replicas for acks=all to succeed (KAFKA-15583)."""
        if self._settings.behaviours.replication.min_isr_limited_to_replica_count:
            return
        if not self._draft.body.is_sound("cluster") or not self._settings.acks_all(producer):
            return
        written = {name.rpartition("-")[0] for name in partitions or self._references.partitions}
        for topic in self._cluster.spec.topics:
            min_isr = self._settings.min_isr(self._cluster.topics[topic.name], self._cluster.brokers)
            if (
                min_isr is not None
                and topic.name in written
                and int(min_isr.value) > topic.replication_factor
            ):
                self._report_min_isr(min_isr, topic, producer.get("acks"))

    def _report_min_isr(self, min_isr: SourcedValue, topic: TopicSpec, acks: SourcedValue | None) -> None:
        place = acks.part.place_beside(min_isr.part) if acks is not None else ""
        replicas = f"{counted(topic.replication_factor, 'replica')} of topic {topic.name}"
        message = f"with {MIN_ISR}={min_isr.value} and {replicas}, acks=all{place} never succeeds"
        self._draft.problem(min_isr.part, message)

    def _consumer(self, section: Part, name: str) -> ConsumerSpec:
        self._check_not_empty(section / "partitions")
        settings = self._settings.own(CONSUMER, section)
        spec = self._reader.read(ConsumerSpec, section, name=name, settings=plain(settings))
        self._check_group(spec, settings, section)
        return spec

    def _check_group(self, spec: ConsumerSpec, settings: SourcedSettings, section: Part) -> None:
        """Check that only group members have keys for members, and that these keys agree."""
        if not spec.group:
            for key in _MEMBER_KEYS:
                if key in section:
                    message = f"`{key}` applies only to consumers with the setting {GROUP_ID}; add `settings: {{{GROUP_ID}: NAME}}`"
                    self._draft.problem(section / key, message, at_key=True)
            return
        if spec.topics and spec.partitions:
            message = "a consumer either subscribes to topics or assigns itself partitions"
            self._draft.problem(section / "topics", message, at_key=True)
        auto_commit = settings.get(AUTO_COMMIT)
        if spec.commit != "auto" and auto_commit is not None and auto_commit.value:
            place = auto_commit.part.place()
            setting = f"{AUTO_COMMIT}={str(auto_commit.value).lower()} ({place})"
            self._draft.problem(section / "commit", f"`commit: {spec.commit}` contradicts {setting}")
        self._draft.check_stop("consumer", section, spec.start_us, spec.stop_us)


_MEMBER_KEYS: Final = ("topics", "commit", "stop")
"""The keys that apply only to members of groups."""


def _script_needs_producer(body: Part) -> bool:
    actions = (action for step in body / "script" for action in step / "do")
    return any(_needs_producer(name) for action in actions for name in action.parts)


def _needs_producer(action: str) -> bool:
    kind = ACTIONS.get(action)
    return kind is not None and any(item.kind is ProducerMarker for item in fields_of(kind))
