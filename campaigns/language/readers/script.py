"""Reads the section ``script``: steps and their actions."""

from typing import Final

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.plan import Step
from harrow.campaigns.language.plan_cost import records_max
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.faults import FaultReader
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.readers.section import SectionReader, only_entry
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.faults.action import Action
from harrow.faults.actions import ReassignPartition, Send
from harrow.faults.catalogue import ACTIONS, FAULTS

_STEP_KEYS: Final = frozenset({"at", "after", "when", "do"})


class ScriptReader:
    """Reads steps and checks their references."""

    def __init__(
        self, draft: Draft, sections: SectionReader, faults: FaultReader, references: References
    ) -> None:
        self._draft = draft
        self._references = references
        self._sections = sections
        self._faults = faults
        self._last_at_us = 0
        self._last_at: Part = draft.body
        self._records = 0
        self._records_max = records_max(draft.body.at("limits", "memory").value)

    def step(self, section: Part) -> Step:
        if not section.parts.keys() & _STEP_KEYS and not section.rejected:
            message = "a step needs a condition (`at`, `after`, `when`) or an action (`do`)"
            self._draft.problem(section, message)
        actions = section / "do"
        if actions.value == [] and not actions.rejected:
            message = "`do` is empty; leave it out for a step that only waits"
            self._draft.problem(actions, message)
        if "at" in section:
            self._check_order(section / "at")
        without_actions = {} if "do" in section else {"actions": ()}
        return self._sections.read(Step, section, line=section.mark.line, **without_actions)

    def _check_order(self, at: Part) -> None:
        """Check that no step waits for an earlier time than the steps before it."""
        if at.value < self._last_at_us:
            earlier = f"{duration_text(self._last_at_us)} ({self._last_at.place()})"
            self._draft.problem(at, f"steps run in order, and an earlier one waits until {earlier}")
        else:
            self._last_at_us, self._last_at = at.value, at

    def _count_records(self, send: Send, part: Part) -> bool:
        """Count the records that a script sends, and return whether they are within the limit.

        Report the action that exceeds the limit.
        """
        was_within_limit = self._records <= self._records_max
        self._records += send.count or 1
        is_within_limit = self._records <= self._records_max
        if was_within_limit and not is_within_limit:
            message = f"a script may send {self._records_max} records in all; `limits.memory` raises that"
            self._draft.problem(part, message)
        return is_within_limit

    def action(self, section: Part) -> Action | None:
        """Read the action or fault that a section names; None if it does not name exactly one."""
        name = only_entry(self._draft, section, "action or fault", "; put a dash before each")
        if name is None:
            return None
        part = section / name
        if name in FAULTS:
            return self._faults.fault(name, part)
        kind = ACTIONS[name]
        release = self._draft.body.get("kafka") or DEFAULT_RELEASE
        if self._draft.body.is_sound("kafka") and not kind.exists_in(release):
            message = f"Kafka {release} has no {name}; it came with {kind.since}"
            self._draft.problem(part, message, at_key=True)
        if kind.sole_field is None:
            action = self._sections.read(kind, part)
            if isinstance(action, ReassignPartition):
                self._references.add_replicas(action.partition, action.replicas)
            return action if not isinstance(action, Send) or self._count_records(action, part) else None
        (item,) = fields_of(kind)
        return kind(**{item.attribute: self._sections.value(item, part)})
