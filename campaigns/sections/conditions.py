"""Conditions: what a step waits for, asserts, or expects at the end."""

from collections.abc import Iterable, Mapping
from typing import Any

from campaigns.condition_sections import ConditionSection, ReplicaSection
from campaigns.section import Section
from campaigns.sections.draft import Draft
from campaigns.sections.references import References
from campaigns.yaml_positions import Path
from faults.condition import Condition, EventCondition, ReplicaCondition

_NO_LEADER = -1
_BROKER_FIELDS = ("broker", "controller", "leader")


class ConditionReader:
    """Reads conditions and checks what they refer to."""

    def __init__(self, draft: Draft, references: References) -> None:
        self._draft = draft
        self._references = references

    def read(self, section: ConditionSection | None, path: Path) -> Condition | None:
        """Return the condition that stands at *path*, None where there is none."""
        if section is None:
            return None
        if not section.given() and not self._draft.has_lost(path):
            self._draft.problem(path, "a condition needs something that has to hold")
        return Condition(
            replicas=self._replicas(section, (*path, "replicas")),
            leaders=self._leaders(section.leader, (*path, "leader")),
            leader_epochs=self._leader_epochs(section.leader_epoch, (*path, "leader_epoch")),
            isrs=self._isrs(section.isr, (*path, "isr")),
            controller=self._controller(section.controller, (*path, "controller")),
            brokers=self._by_broker(section.brokers, (*path, "brokers")),
            registered=self._by_broker(section.registered, (*path, "registered")),
            acked=tuple(section.acked or ()),
            not_acked=tuple(section.not_acked or ()),
            failed=tuple(section.failed or ()),
            consumed=tuple(section.consumed or ()),
            not_consumed=tuple(section.not_consumed or ()),
            events=self._events(section.event or (), (*path, "event")),
            no_events=self._events(section.no_event or (), (*path, "no_event")),
        )

    def _replicas(self, section: ConditionSection, path: Path) -> tuple[ReplicaCondition, ...]:
        found: list[ReplicaCondition] = []
        if section.replicas == [] and not self._draft.has_lost(path):
            self._draft.problem(path, "there is nothing in it that has to hold")
        for index, table in enumerate(section.replicas or ()):
            for partition, rows in self._keyed(table, (*path, index)):
                place = (*path, index, partition)
                if not self._references.partition(place, partition, at_key=True):
                    continue
                for broker, row in rows.items():
                    replica = (*place, str(broker))
                    self._references.replica(replica, partition, broker, at_key=True)
                    found.append(self._replica(partition, broker, row, replica))
        return tuple(found)

    def _replica(self, partition: str, broker: int, row: ReplicaSection, path: Path) -> ReplicaCondition:
        for follower in row.remote or ():
            self._references.replica((*path, "remote", str(follower)), partition, follower, at_key=True)
        return ReplicaCondition(
            partition=partition,
            broker=broker,
            role=row.role,
            leo=row.leo,
            hw=row.hw,
            leader_epoch=row.leader_epoch,
            flushed=row.flushed,
            remote=None if row.remote is None else tuple(row.remote.items()),
            epochs=self._epochs(row, (*path, "epochs")),
            log=None if row.log is None else tuple(row.log),
        )

    def _epochs(self, row: ReplicaSection, path: Path) -> tuple[tuple[int, int], ...] | None:
        if row.epochs is None:
            return None
        found: list[tuple[int, int]] = []
        for index, pair in enumerate(row.epochs):
            if len(pair) == 2:
                found.append((pair[0], pair[1]))
            elif not self._draft.has_lost((*path, index)):
                self._draft.problem((*path, index), "write a pair [leader epoch, start offset]")
        return tuple(found)

    def _leaders(self, leaders: Mapping[str, int] | None, path: Path) -> tuple[tuple[str, int], ...]:
        for partition, broker in self._keyed(leaders, path):
            place = (*path, partition)
            if self._references.partition(place, partition, at_key=True) and broker != _NO_LEADER:
                self._references.replica(place, partition, broker)
        return tuple((leaders or {}).items())

    def _leader_epochs(self, epochs: Mapping[str, int] | None, path: Path) -> tuple[tuple[str, int], ...]:
        for partition, _ in self._keyed(epochs, path):
            self._references.partition((*path, partition), partition, at_key=True)
        return tuple((epochs or {}).items())

    def _isrs(
        self, isrs: Mapping[str, list[int]] | None, path: Path
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        found: list[tuple[str, tuple[int, ...]]] = []
        for partition, isr in self._keyed(isrs, path):
            place = (*path, partition)
            if self._references.partition(place, partition, at_key=True):
                for index, broker in enumerate(isr):
                    self._references.replica((*place, index), partition, broker)
            found.append((partition, tuple(isr)))
        return tuple(found)

    def _controller(self, controller: int | None, path: Path) -> int | None:
        if controller is not None:
            self._references.broker(path, controller)
        return controller

    def _by_broker(self, values: Mapping[int, Any] | None, path: Path) -> tuple[tuple[int, Any], ...]:
        for broker, _ in self._keyed(values, path):
            self._references.broker((*path, str(broker)), broker, at_key=True)
        return tuple((values or {}).items())

    def _keyed(self, values: Mapping[Any, Any] | None, path: Path) -> Iterable[tuple[Any, Any]]:
        """Return a mapping's items; one without any says nothing, which cannot be meant."""
        if values is not None and not values and not self._draft.has_lost(path):
            self._draft.problem(path, "there is nothing in it that has to hold")
        return (values or {}).items()

    def _events(self, sections: Iterable[Section], path: Path) -> tuple[EventCondition, ...]:
        found: list[EventCondition] = []
        for index, section in enumerate(sections):
            given = section.given()
            if not given and not self._draft.has_lost((*path, index)):
                self._draft.problem((*path, index), "name an event")
            found += [
                EventCondition(event=name, fields=self._event_fields(fields, (*path, index, name)))
                for name, fields in given.items()
            ]
        return tuple(found)

    def _event_fields(self, section: Section, path: Path) -> tuple[tuple[str, Any], ...]:
        fields = section.given()
        for name, value in fields.items():
            place = (*path, name)
            if name == "partition" and isinstance(value, str):
                self._references.partition(place, value)
            elif name in _BROKER_FIELDS and isinstance(value, int) and value != _NO_LEADER:
                self._references.broker(place, value)
        return tuple(fields.items())
