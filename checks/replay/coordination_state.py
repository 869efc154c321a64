"""Replays the state of transaction and group coordinators from the records that they wrote."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import TraceEvent, decode


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalIdState:
    """The last state of a transactional id that a coordinator wrote, with its partitions."""

    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]
    at_us: int


@dataclass(slots=True, kw_only=True)
class GroupState:
    """A group, according to its coordinator.

    ``assignments`` has the partitions of each member in the last stable generation, ``committed``
    the committed position of each partition. ``reading`` has the partitions that each client reads,
    by the client's name; a former member may still read its partitions.
    """

    coordinator: int = -1
    state: str = ""
    generation: int = -1
    members: tuple[str, ...] = ()
    assignments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    reading: dict[str, dict[str, None]] = field(default_factory=dict)


class CoordinationState:
    """Transactional ids and groups by name, in the order of their first events."""

    __slots__ = ("groups", "transactional_ids")

    def __init__(self) -> None:
        self.transactional_ids: dict[str, TransactionalIdState] = {}
        self.groups: dict[str, GroupState] = {}

    def advance(self, event: TraceEvent) -> None:
        handler = _HANDLERS.get(event[1])
        if handler is not None:
            handler(self, decode(event))

    def _group(self, name: str) -> GroupState:
        return self.groups.setdefault(name, GroupState())

    def change_transaction(self, event: events.TransactionStateChanged) -> None:
        self.transactional_ids[event.transactional_id] = TransactionalIdState(
            coordinator=event.broker,
            state=event.state,
            producer_id=event.producer_id,
            producer_epoch=event.producer_epoch,
            partitions=event.partitions,
            at_us=event.at_us,
        )

    def change_group(self, event: events.GroupStateChanged) -> None:
        group = self._group(event.group)
        group.coordinator, group.state = event.broker, event.state
        group.generation, group.members = event.generation, event.members

    def assign(self, event: events.GroupAssigned) -> None:
        self._group(event.group).assignments = {member: tuple(names) for member, names in event.assignments}

    def commit(self, event: events.OffsetsCommitted) -> None:
        self._group(event.group).committed.update(event.offsets)

    def expire(self, event: events.OffsetsExpired) -> None:
        for partition, _ in event.offsets:
            self._group(event.group).committed.pop(partition, None)

    def delete_offsets(self, event: events.OffsetsDeleted) -> None:
        for partition in event.partitions:
            self._group(event.group).committed.pop(partition, None)

    def start_reading(self, event: events.PartitionsAssigned) -> None:
        reading = self._group(event.group).reading.setdefault(event.client, {})
        reading.update(dict.fromkeys(event.partitions))

    def stop_reading(self, event: events.PartitionsRevoked) -> None:
        reading = self._group(event.group).reading.get(event.client, {})
        for partition in event.partitions:
            reading.pop(partition, None)

    def stop_client(self, event: events.ClientStopped) -> None:
        for group in self.groups.values():
            group.reading.pop(event.client, None)


HANDLERS: Final[Mapping[type[events.Event], Callable[..., None]]] = {
    events.TransactionStateChanged: CoordinationState.change_transaction,
    events.GroupStateChanged: CoordinationState.change_group,
    events.GroupAssigned: CoordinationState.assign,
    events.OffsetsCommitted: CoordinationState.commit,
    events.OffsetsExpired: CoordinationState.expire,
    events.OffsetsDeleted: CoordinationState.delete_offsets,
    events.PartitionsAssigned: CoordinationState.start_reading,
    events.PartitionsRevoked: CoordinationState.stop_reading,
    events.ClientStopped: CoordinationState.stop_client,
}
"""For each kind of event, the method that applies it, given the event."""

_HANDLERS: Final = {kind.name: handler for kind, handler in HANDLERS.items()}
