"""The section ``script``."""

from collections.abc import Sequence
from typing import Any, Final

from campaigns.literal_texts import duration_text
from campaigns.plan import Action, ElectPreferredLeaders, Expect, Plan, RestartProducer, Send, Step, Wait
from campaigns.sections.script import SENDS_MAX
from campaigns.written.conditions import condition_map
from campaigns.written.faults import fault_entry, listed
from campaigns.yaml_text import Items, Prose, Rows, Word

# From so many on, numbered values are said with `count`.
_SERIES_MIN: Final = 3


def script_items(plan: Plan) -> Items:
    """Return the section."""
    only_producer = plan.producers[0].name if len(plan.producers) == 1 else None
    return Items(_step(step, only_producer) for step in plan.script)


def _step(step: Step, only_producer: str | None) -> Rows:
    rows = Rows()
    if step.note:
        rows["note"] = Prose(step.note)
    if step.at_us is not None:
        rows["at"] = Word(duration_text(step.at_us))
    if step.after_us is not None:
        rows["after"] = Word(duration_text(step.after_us))
    if step.when is not None:
        rows["when"] = condition_map(step.when)
    waits = rows.keys() - {"note"}
    if not waits or step.actions != (Wait(),):
        entries = _actions(step.actions, only_producer)
        rows["do"] = entries[0] if len(entries) == 1 else listed(entries)
    return rows


def _actions(actions: Sequence[Action], only_producer: str | None) -> list[Any]:
    entries: list[Any] = []
    index = 0
    while index < len(actions):
        length = _series_length(actions[index : index + SENDS_MAX])
        entries.append(_action(actions[index], length, only_producer))
        index += length
    return entries


def _series_length(actions: Sequence[Action]) -> int:
    """Return how many actions are sends of ``value-0``, ``value-1`` and so on; 1 where it is too few."""
    first = actions[0]
    if not isinstance(first, Send) or not first.value.endswith("-0"):
        return 1
    stem = first.value.removesuffix("0")
    length = 1
    while length < len(actions):
        wanted = Send(producer=first.producer, partition=first.partition, value=f"{stem}{length}")
        if actions[length] != wanted:
            break
        length += 1
    return length if length >= _SERIES_MIN else 1


def _action(action: Action, length: int, only_producer: str | None) -> Any:
    if isinstance(action, Send):
        return {"send": _send(action, length, only_producer)}
    if isinstance(action, RestartProducer):
        return {"restart_producer": action.producer}
    if isinstance(action, ElectPreferredLeaders):
        return "elect_preferred_leaders"
    if isinstance(action, Expect):
        return {"expect": condition_map(action.condition)}
    return "wait" if isinstance(action, Wait) else fault_entry(action)


def _send(send: Send, length: int, only_producer: str | None) -> Any:
    entry: dict[str, Any] = {"value": send.value}
    if length > 1:
        entry = {"value": send.value.removesuffix("-0"), "count": length}
    if send.partition is not None:
        entry["partition"] = send.partition
    if send.producer != only_producer:
        entry["producer"] = send.producer
    return entry if len(entry) > 1 else send.value
