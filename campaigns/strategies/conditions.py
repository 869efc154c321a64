"""Conditions: what a step waits for, and what a fault strikes upon."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from cluster_model.trace import FIELDS
from faults.condition import Condition, EventCondition, ReplicaCondition

SAYS_MAX: Final = 2
"""How much a condition says at the most: one that says more hardly ever comes true."""
EVENTS: Final = (
    "append",
    "acknowledged",
    "replicate",
    "hw",
    "isr",
    "leader",
    "truncate",
    "duplicate_batch",
    "broker_stopped",
    "broker_started",
    "session_expired",
    "controller_elected",
)
"""Events worth waiting for: what happens to records, replicas and brokers."""
_OFFSETS: Final = st.integers(0, 5)
_STATES: Final = ("up", "down", "paused")
_ROLES: Final = ("leader", "follower")


class _Names:
    """What conditions can be about."""

    def __init__(
        self,
        brokers: Sequence[int],
        partitions: Sequence[str],
        values: Sequence[str],
        replicas: Mapping[str, Sequence[int]] | None,
    ) -> None:
        self.broker = st.sampled_from(list(brokers))
        self.value = st.sampled_from(list(values))
        self.partition = st.sampled_from(list(partitions))
        self._replicas = {name: list(brokers) for name in partitions} | {
            name: list(having) for name, having in (replicas or {}).items()
        }

    def replica_of(self, partition: str) -> st.SearchStrategy[int]:
        """Return brokers that have a replica of a partition."""
        return st.sampled_from(self._replicas[partition])

    def all_of(self, partition: str) -> list[int]:
        """Return the brokers that have a replica of a partition."""
        return self._replicas[partition]


def conditions(
    *,
    brokers: Sequence[int] = (0, 1, 2),
    partitions: Sequence[str] = ("t-0",),
    values: Sequence[str] = ("m0",),
    replicas: Mapping[str, Sequence[int]] | None = None,
    says: Sequence[str] | None = None,
    events: Sequence[str] = EVENTS,
) -> st.SearchStrategy[Condition]:
    """Return conditions that can come true, about a few things at once.

    *values* are those of records, *replicas* the brokers that have a partition (all of them, where
    it is not said). *says* are the fields of `Condition` that are drawn, all of them by default, and
    *events* names of the trace.
    """
    names = _Names(brokers, partitions, values, replicas)
    for name in says or ():
        if name not in _FIELDS:
            raise ValueError(f"a condition says nothing of `{name}`; it can say {', '.join(_FIELDS)}")
    for event in events:
        if event not in FIELDS:
            raise ValueError(f"there is no event `{event}` in traces")
    return _conditions(names, tuple(_FIELDS if says is None else says), tuple(events))


@st.composite
def _conditions(draw: st.DrawFn, names: _Names, says: tuple[str, ...], events: tuple[str, ...]) -> Condition:
    said = draw(st.lists(st.sampled_from(says), min_size=1, max_size=SAYS_MAX, unique=True))
    return Condition(**{name: _FIELDS[name](draw, names, events) for name in said})


_Field = Callable[[st.DrawFn, _Names, Sequence[str]], Any]


def _values(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[str, ...]:
    return (draw(names.value),)


def _leaders(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[tuple[str, int], ...]:
    partition = draw(names.partition)
    return ((partition, draw(names.replica_of(partition))),)


def _leader_epochs(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return ((draw(names.partition), draw(st.integers(0, 3))),)


def _isrs(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    partition = draw(names.partition)
    members = draw(st.lists(names.replica_of(partition), min_size=1, unique=True))
    return ((partition, tuple(sorted(members))),)


def _broker(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> int:
    return draw(names.broker)


def _broker_states(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[tuple[int, str], ...]:
    return ((draw(names.broker), draw(st.sampled_from(_STATES))),)


def _registered(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[tuple[int, bool], ...]:
    return ((draw(names.broker), draw(st.booleans())),)


def _replicas(draw: st.DrawFn, names: _Names, _: Sequence[str]) -> tuple[ReplicaCondition, ...]:
    partition = draw(names.partition)
    broker = draw(names.replica_of(partition))
    others = [other for other in names.all_of(partition) if other != broker]
    remote: st.SearchStrategy[Any] = st.nothing()
    if others:
        remote = st.tuples(st.sampled_from(others), _OFFSETS).map(lambda row: (row,))
    columns: dict[str, st.SearchStrategy[Any]] = {
        "leo": _OFFSETS,
        "hw": _OFFSETS,
        "role": st.sampled_from(_ROLES),
        "leader_epoch": st.integers(0, 3),
        "flushed": _OFFSETS,
        "remote": remote,
        "epochs": st.integers(0, 3).map(lambda epoch: ((epoch, 0),)),
        "log": st.lists(names.value, max_size=3, unique=True).map(tuple),
    }
    possible = [name for name, column in columns.items() if not column.is_empty]
    said = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=SAYS_MAX, unique=True))
    row = {name: draw(columns[name]) for name in said}
    return (ReplicaCondition(partition=partition, broker=broker, **row),)


def _events(draw: st.DrawFn, names: _Names, events: Sequence[str]) -> tuple[EventCondition, ...]:
    event = draw(st.sampled_from(list(events)))
    about: dict[str, st.SearchStrategy[Any]] = {"broker": names.broker, "partition": names.partition}
    known = [name for name in FIELDS[event] if name in about]
    said = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    return (EventCondition(event=event, fields=tuple((name, draw(about[name])) for name in said)),)


_FIELDS: Final[Mapping[str, _Field]] = {
    "acked": _values,
    "replicas": _replicas,
    "leaders": _leaders,
    "isrs": _isrs,
    "brokers": _broker_states,
    "events": _events,
    "consumed": _values,
    "failed": _values,
    "leader_epochs": _leader_epochs,
    "controller": _broker,
    "registered": _registered,
    "not_acked": _values,
    "not_consumed": _values,
    "no_events": _events,
}
"""How each field of `Condition` is drawn; what comes first is what Hypothesis shrinks to."""
