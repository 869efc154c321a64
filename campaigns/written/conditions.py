"""Conditions, as they stand under ``when``, ``expect`` and ``final``."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from campaigns.written.problem import UnwritablePlanError
from faults.condition import Condition, EventCondition, ReplicaCondition

_Key = TypeVar("_Key", bound=Hashable)

_COLUMNS: Final = ("role", "leo", "hw", "leader_epoch", "flushed")
_VALUES: Final = ("acked", "not_acked", "failed", "consumed", "not_consumed")


def condition_map(condition: Condition) -> dict[str, Any]:
    """Return a condition, keys in the order of the reference."""
    found: dict[str, Any] = {
        "replicas": _replicas(condition.replicas),
        "leader": _mapping(condition.leaders),
        "leader_epoch": _mapping(condition.leader_epochs),
        "isr": _mapping(condition.isrs),
        "controller": condition.controller,
        "brokers": _mapping(condition.brokers),
        "registered": _mapping(condition.registered),
        **{name: _one_or_many(getattr(condition, name)) for name in _VALUES},
        "event": _one_or_many([_event(event) for event in condition.events]),
        "no_event": _one_or_many([_event(event) for event in condition.no_events]),
    }
    return {key: value for key, value in found.items() if value not in (None, {}, [])}


def _one_or_many(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _mapping(items: Iterable[tuple[_Key, Any]]) -> dict[_Key, Any]:
    found: dict[_Key, Any] = {}
    for key, value in items:
        if key in found:
            raise UnwritablePlanError(f"a condition speaks twice of {key}")
        found[key] = value
    return found


def _replicas(rows: Sequence[ReplicaCondition]) -> Any:
    """Return the rows by partition and broker; a new table begins where one cannot go on in their order."""
    tables: list[dict[str, dict[int, Any]]] = [{}]
    last = ""
    for row in rows:
        table = tables[-1]
        if row.partition in table and (row.partition != last or row.broker in table[last]):
            table = {}
            tables.append(table)
        table.setdefault(row.partition, {})[row.broker] = _replica(row)
        last = row.partition
    return _one_or_many(tables)


def _replica(row: ReplicaCondition) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(row, name) for name in _COLUMNS}
    found["remote"] = None if row.remote is None else _mapping(row.remote)
    found |= {"epochs": row.epochs, "log": row.log}
    return {key: value for key, value in found.items() if value is not None}


def _event(condition: EventCondition) -> Any:
    """Return an event's name, with the fields that matter."""
    return {condition.event: _mapping(condition.fields)} if condition.fields else condition.event
