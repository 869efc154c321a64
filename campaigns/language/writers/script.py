"""Writes the sections ``script`` and ``faults``, and actions and faults in other sections."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harrow.campaigns.language.plan import Plan, Step
from harrow.campaigns.language.writers.section import WRITERS, section_map
from harrow.campaigns.language.yaml_text import Items, Prose, Rows
from harrow.cluster_model.fields import FaultMarker, fields_of
from harrow.faults.action import Action
from harrow.faults.actions import Wait
from harrow.faults.injection import Injection


def script_items(plan: Plan) -> Items:
    only_producer = plan.producers[0].name if len(plan.producers) == 1 else None
    return Items(_step(step, only_producer) for step in plan.script)


def _step(step: Step, only_producer: str | None) -> Rows:
    rows = Rows(section_map(step, note=Prose(step.note) if step.note else None, actions=None))
    if not rows.keys() - {"note"} or step.actions != (Wait(),):
        rows["do"] = _one_or_listed(_entries(step.actions, only_producer))
    return rows


def _entries(actions: Sequence[Action], only_producer: str | None) -> list[Any]:
    entries: list[Any] = []
    index = 0
    while index < len(actions):
        action, more = actions[index].merged_with(actions[index + 1 :])
        entries.append(action_entry(action, only_producer))
        index += 1 + more
    return entries


def action_entry(action: Action, only_producer: str | None = None) -> Any:
    """Return an action or a fault as its name with the fields that differ from their defaults.

    If *only_producer* is the plan's only producer, the action need not name it.
    """
    implied: dict[str, Any] = {
        item.attribute: None
        for item in fields_of(type(action))
        if item.options.implied and item.value_in(action) == only_producer
    }
    rows = section_map(action, **implied)
    if list(rows) == [action.sole_field or action.shorthand_field]:
        return {action.name: next(iter(rows.values()))}
    return {action.name: rows} if rows else action.name


def injection_rows(injection: Injection, duration_us: int) -> Rows:
    """Return an entry of ``faults``."""
    timing = injection.timing
    ends_with_workload = getattr(timing, "stop_us", None) == duration_us
    rows = Rows(section_map(timing, without=("stop_us",) if ends_with_workload else ()))
    rows |= section_map(injection)
    key = "serial" if injection.serial else "do" if len(injection.faults) == 1 else "any_of"
    rows[key] = _one_or_listed([action_entry(fault) for fault in injection.faults])
    return rows


def listed(entries: Iterable[Any]) -> Items:
    """Return a list of actions or faults, written with each name on its own line."""
    return Items(Rows(entry) if isinstance(entry, Mapping) else entry for entry in entries)


def _one_or_listed(entries: Sequence[Any]) -> Any:
    return entries[0] if len(entries) == 1 else listed(entries)


WRITERS[FaultMarker] = action_entry
