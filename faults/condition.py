"""What a campaign can wait for or assert: conditions on what can be observed.

The same condition starts a step (``when:``), is asserted in the middle of a run
(``expect:``) and at its end. Everything in it can be seen from outside: log offsets
and epochs, znodes, what clients got back, and what happened (trace events).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cluster_model.trace import FIELDS, TraceEvent


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """What can be seen of a replica: its log, and as leader what it knows of its followers."""

    role: str
    leo: int
    hw: int
    leader_epoch: int
    flushed: int
    remote: Mapping[int, int]
    epochs: tuple[tuple[int, int], ...]
    log: tuple[str, ...]


class Observer(Protocol):
    """What conditions are evaluated against."""

    def replica(self, partition: str, broker: int) -> ReplicaView | None:
        """Return a replica, None while its broker is down or has not heard of it yet."""

    def partition_state(self, partition: str) -> tuple[int, int, tuple[int, ...]] | None:
        """Return (leader, leader epoch, ISR) as the partition's znode has them."""

    def controller(self) -> int | None:
        """Return the broker in ``/controller``."""

    def broker_state(self, broker: int) -> str:
        """Return ``up``, ``down`` or ``paused``."""

    def is_registered(self, broker: int) -> bool:
        """Return whether ``/brokers/ids`` has the broker."""

    def is_acked(self, value: str) -> bool:
        """Return whether a send of this value was reported as a success."""

    def is_failed(self, value: str) -> bool:
        """Return whether a send of this value was reported as a failure, definite or not."""

    def is_consumed(self, value: str) -> bool:
        """Return whether a consumer got this value."""

    def first_match(self, condition: "EventCondition") -> int | None:
        """Return the position in the trace behind the first such event since the step before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCondition:
    """A row of a LEO/HW table; what is None does not matter."""

    partition: str
    broker: int
    role: str | None = None
    leo: int | None = None
    hw: int | None = None
    leader_epoch: int | None = None
    flushed: int | None = None
    remote: tuple[tuple[int, int], ...] | None = None
    epochs: tuple[tuple[int, int], ...] | None = None
    log: tuple[str, ...] | None = None

    def mismatches(self, observer: Observer) -> list[str]:
        """Return what is different, in words; empty when the row matches."""
        where = f"{self.partition} on broker {self.broker}"
        view = observer.replica(self.partition, self.broker)
        if view is None:
            return [f"{where}: there is no such replica now"]
        found = []
        for name in ("role", "leo", "hw", "leader_epoch", "flushed", "epochs", "log"):
            wanted = getattr(self, name)
            actual = getattr(view, name)
            if wanted is not None and wanted != actual:
                found.append(f"{where}: {_shown_name(name)} is {_shown(actual)}, expected {_shown(wanted)}")
        for follower, leo in self.remote or ():
            actual = view.remote.get(follower)
            if actual != leo:
                found.append(f"{where}: remote LEO of {follower} is {_shown(actual)}, expected {leo}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCondition:
    """A trace event since the step before; only the given fields have to match."""

    event: str
    fields: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Put the fields in the trace's order: theirs says nothing, and equal conditions should be equal."""
        names = FIELDS.get(self.event, ())
        ordered = sorted(self.fields, key=lambda item: names.index(item[0]) if item[0] in names else -1)
        object.__setattr__(self, "fields", tuple(ordered))

    def matches(self, event: TraceEvent) -> bool:
        """Return whether one event is of this kind."""
        if event[1] != self.event:
            return False
        names = FIELDS[self.event]
        return all(_field_matches(event[2 + names.index(name)], wanted) for name, wanted in self.fields)

    def describe(self) -> str:
        """Return the condition as a campaign says it."""
        fields = ", ".join(f"{name}: {_shown(value)}" for name, value in self.fields)
        return f"event {self.event}" + (f" ({fields})" if fields else "")


def _field_matches(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, tuple) and not isinstance(wanted, tuple):
        return wanted in actual
    return bool(actual == wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """All of what is given has to hold."""

    replicas: tuple[ReplicaCondition, ...] = ()
    leaders: tuple[tuple[str, int], ...] = ()
    leader_epochs: tuple[tuple[str, int], ...] = ()
    isrs: tuple[tuple[str, tuple[int, ...]], ...] = ()
    controller: int | None = None
    brokers: tuple[tuple[int, str], ...] = ()
    registered: tuple[tuple[int, bool], ...] = ()
    acked: tuple[str, ...] = ()
    not_acked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    consumed: tuple[str, ...] = ()
    not_consumed: tuple[str, ...] = ()
    events: tuple[EventCondition, ...] = ()
    no_events: tuple[EventCondition, ...] = ()

    def mismatches(self, observer: Observer) -> list[str]:
        """Return what does not hold, in words; empty when everything does."""
        found = [line for replica in self.replicas for line in replica.mismatches(observer)]
        found += self._znode_mismatches(observer)
        for broker, state in self.brokers:
            if observer.broker_state(broker) != state:
                found.append(f"broker {broker} is {observer.broker_state(broker)}, expected {state}")
        for broker, wanted in self.registered:
            if observer.is_registered(broker) != wanted:
                found.append(f"broker {broker} is {'not ' if wanted else ''}in /brokers/ids")
        found += self._client_mismatches(observer)
        found += self._event_mismatches(observer)
        return found

    def holds(self, observer: Observer) -> bool:
        """Return whether everything holds now."""
        return not self.mismatches(observer)

    def matched_position(self, observer: Observer) -> int | None:
        """Return the position in the trace behind the last wanted event; None when none is wanted."""
        positions = [observer.first_match(condition) for condition in self.events]
        return max((position for position in positions if position is not None), default=None)

    def _znode_mismatches(self, observer: Observer) -> list[str]:
        found = []
        for partition, leader in self.leaders:
            state = observer.partition_state(partition)
            if state is None or state[0] != leader:
                found.append(f"leader of {partition} is {_shown(state and state[0])}, expected {leader}")
        for partition, epoch in self.leader_epochs:
            state = observer.partition_state(partition)
            if state is None or state[1] != epoch:
                found.append(f"leader epoch of {partition} is {_shown(state and state[1])}, expected {epoch}")
        for partition, isr in self.isrs:
            state = observer.partition_state(partition)
            if state is None or sorted(state[2]) != sorted(isr):
                found.append(f"ISR of {partition} is {_shown(state and state[2])}, expected {_shown(isr)}")
        if self.controller is not None and observer.controller() != self.controller:
            found.append(f"controller is {_shown(observer.controller())}, expected {self.controller}")
        return found

    def _client_mismatches(self, observer: Observer) -> list[str]:
        found = [f"{value} is not acked" for value in self.acked if not observer.is_acked(value)]
        found += [f"{value} is acked" for value in self.not_acked if observer.is_acked(value)]
        found += [f"{value} has not failed" for value in self.failed if not observer.is_failed(value)]
        found += [f"{value} is not consumed" for value in self.consumed if not observer.is_consumed(value)]
        found += [f"{value} is consumed" for value in self.not_consumed if observer.is_consumed(value)]
        return found

    def _event_mismatches(self, observer: Observer) -> list[str]:
        found = [
            f"{condition.describe()} has not happened"
            for condition in self.events
            if observer.first_match(condition) is None
        ]
        found += [
            f"{condition.describe()} has happened"
            for condition in self.no_events
            if observer.first_match(condition) is not None
        ]
        return found


def _shown_name(name: str) -> str:
    return {"leo": "LEO", "hw": "HW", "leader_epoch": "leader epoch"}.get(name, name)


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(part) for part in value) + "]"
    return str(value)
