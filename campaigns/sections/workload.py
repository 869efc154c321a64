"""The section ``workload``: producers, consumers, and how long they work."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from campaigns.bounds import CLIENTS_MAX
from campaigns.literal_texts import duration_text
from campaigns.schema import Body, ConsumerSection, ProducerSection, WorkloadSection
from campaigns.sections.cluster import Cluster
from campaigns.sections.draft import Draft
from campaigns.sections.effective_settings import MIN_ISR, EffectiveSettings, Given, GivenSettings, plain
from campaigns.sections.references import References
from campaigns.spelling import counted
from campaigns.yaml_positions import Path
from cluster_model.topology import ConsumerSpec, ProducerSpec, TopicSpec

_NEEDS_PRODUCER = ("send", "restart_producer")


@dataclass(frozen=True, slots=True)
class Workload:
    """The clients of a plan."""

    producers: tuple[ProducerSpec, ...]
    consumers: tuple[ConsumerSpec, ...]
    duration_us: int


class WorkloadReader:
    """Reads the section and checks it."""

    def __init__(
        self, draft: Draft, settings: EffectiveSettings, cluster: Cluster, references: References
    ) -> None:
        self._draft = draft
        self._settings = settings
        self._cluster = cluster
        self._references = references
        self._section = draft.body.workload or WorkloadSection()
        self._duration_us = self._section.duration or 0
        self._names: dict[str, Path] = {}

    def read(self) -> Workload:
        """Return the workload."""
        producers = self._producers()
        consumers = self._consumers()
        return Workload(producers, consumers, self._duration_us)

    def _producers(self) -> tuple[ProducerSpec, ...]:
        sections = self._section.producers
        if sections is None:
            # The workload that a campaign does not mention is one producer for its script.
            needed = self._draft.body.workload is None or _script_needs_producer(self._draft.body)
            sections = [ProducerSection()] if needed else []
        path: Path = ("workload", "producers")
        self._check_number(len(sections), path)
        names = self._named([section.name for section in sections], "producer", path)
        return tuple(
            self._producer(section, names[index], (*path, index))
            for index, section in enumerate(sections[:CLIENTS_MAX])
        )

    def _consumers(self) -> tuple[ConsumerSpec, ...]:
        sections = self._section.consumers or []
        path: Path = ("workload", "consumers")
        self._check_number(len(sections), path)
        names = self._named([section.name for section in sections], "consumer", path)
        return tuple(
            self._consumer(section, names[index], (*path, index))
            for index, section in enumerate(sections[:CLIENTS_MAX])
        )

    def _check_number(self, number: int, path: Path) -> None:
        if number > CLIENTS_MAX:
            self._draft.problem(path, f"{number} {path[-1]} are too many: at most {CLIENTS_MAX}")

    def _named(self, names: Sequence[str | None], kind: str, path: Path) -> list[str]:
        """Return a name for each client; all clients share one set of names."""
        result: list[str] = []
        for index, given in enumerate(names):
            name = f"{kind}-{index}" if given is None else given
            place: Path = (*path, index) if given is None else (*path, index, "name")
            if name in self._names:
                first = self._draft.place(self._names[name])
                self._draft.problem(place, f"duplicate client name {name}; the first is in {first}")
            self._names.setdefault(name, place)
            result.append(name)
        return result

    def _producer(self, section: ProducerSection, name: str, path: Path) -> ProducerSpec:
        settings = self._settings.producer(section, path)
        partitions = self._references.partitions_once((*path, "partitions"), section.partitions or ())
        self._check_has_some(section.partitions, path)
        self._check_min_isr(settings, partitions)
        start_us = section.start or 0
        stop_us = section.stop
        if section.rate is not None:
            stop_us = self._duration_us if stop_us is None else stop_us
            self._check_times(section, start_us, stop_us, path)
        elif stop_us is not None and stop_us <= start_us:
            self._draft.problem((*path, "stop"), _stop_message(start_us, stop_us))
        spec = ProducerSpec(
            name=name,
            settings=plain(settings),
            partitions=partitions,
            interval_us=section.rate,
            start_us=start_us,
            stop_us=stop_us,
        )
        return spec if section.record_bytes is None else replace(spec, record_bytes=section.record_bytes)

    def _check_times(self, section: ProducerSection, start_us: int, stop_us: int, path: Path) -> None:
        """Check that a producer with a rate has time to send something."""
        if section.stop is not None and stop_us <= start_us:
            self._draft.problem((*path, "stop"), _stop_message(start_us, stop_us))
        if not self._draft.is_intact("workload", "duration") or self._draft.has_lost(path):
            return
        end = f"the workload's end at {duration_text(self._duration_us)}"
        if self._duration_us == 0:
            message = "records are generated for the workload's `duration`, which is not given"
            self._draft.problem((*path, "rate"), message, at_key=True)
        elif stop_us > self._duration_us:
            message = f"the producer stops at {duration_text(stop_us)}, after {end}"
            self._draft.problem((*path, "stop"), message)
        elif section.stop is None and stop_us <= start_us:
            message = f"the producer starts at {duration_text(start_us)}, which is not before {end}"
            self._draft.problem((*path, "start"), message)

    def _check_has_some(self, partitions: Sequence[str] | None, path: Path) -> None:
        place = (*path, "partitions")
        if partitions is not None and not partitions and not self._draft.has_lost(place):
            self._draft.problem(place, "a list of partitions cannot be empty; leave it out for all of them")

    def _check_min_isr(self, producer: GivenSettings, partitions: Sequence[str]) -> None:
        """Check that acks=all can be answered at all."""
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

    def _consumer(self, section: ConsumerSection, name: str, path: Path) -> ConsumerSpec:
        self._check_has_some(section.partitions, path)
        spec = ConsumerSpec(
            name=name,
            settings=plain(self._settings.consumer(section, path)),
            partitions=self._references.partitions_once((*path, "partitions"), section.partitions or ()),
            start_us=section.start or 0,
        )
        return (
            spec if section.poll_interval is None else replace(spec, poll_interval_us=section.poll_interval)
        )


def _stop_message(start_us: int, stop_us: int) -> str:
    return f"the producer stops at {duration_text(stop_us)}, which is not after its start at {duration_text(start_us)}"


def _script_needs_producer(body: Body) -> bool:
    actions = (action for step in body.script or () for action in step.do or ())
    return any(name in _NEEDS_PRODUCER for action in actions for name in action.given())
