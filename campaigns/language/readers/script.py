"""The section ``script``: steps, and what they do."""

from typing import Final

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.plan import Step
from harrow.campaigns.language.plan_cost import records_max
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.faults import FaultReader
from harrow.campaigns.language.readers.references import References
from harrow.campaigns.language.readers.section import SectionReader, only_entry
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.release import DEFAULT_RELEASE
from harrow.faults.action import Action
from harrow.faults.actions import ACTIONS, ReassignPartition, Send
from harrow.faults.catalogue import FAULTS

_KEYS: Final = frozenset({"at", "after", "when", "do"})


class ScriptReader:
    """Reads steps and checks what they refer to."""

    def __init__(
        self, draft: Draft, sections: SectionReader, faults: FaultReader, references: References
    ) -> None:
        self._draft = draft
        self._references = references
        self._sections = sections
        self._faults = faults
        self._last_at_us = 0
        self._last_at_path: Path = ()
        self._records = 0
        limits = draft.body.get("limits")
        self._records_max = records_max(limits and limits.given().get("memory"))

    def step(self, section: Section, path: Path) -> Step:
        given = section.given()
        if not given.keys() & _KEYS and not self._draft.has_lost(path):
            self._draft.problem(path, "a step has something to wait for (`at`, `after`, `when`) or to `do`")
        if given.get("do") == [] and not self._draft.has_lost((*path, "do")):
            message = "there is nothing to do; leave `do` out for a step that only waits"
            self._draft.problem((*path, "do"), message)
        if "at" in given:
            self._check_order(given["at"], (*path, "at"))
        without_actions = {} if "do" in given else {"actions": ()}
        step: Step = self._sections.read(Step, section, path, line=self._draft.line(path), **without_actions)
        return step

    def _check_order(self, at_us: int, path: Path) -> None:
        """Check that a step does not wait for a time that an earlier one has waited for already."""
        if at_us < self._last_at_us:
            earlier = f"{duration_text(self._last_at_us)} ({self._draft.place(self._last_at_path)})"
            self._draft.problem(path, f"steps are taken in order, and an earlier one waits until {earlier}")
        else:
            self._last_at_us, self._last_at_path = at_us, path

    def _has_room(self, send: Send, path: Path) -> bool:
        """Count records, of which a step has one action each, and report the first that are too many."""
        had_room = self._records <= self._records_max
        self._records += send.count or 1
        has_room = self._records <= self._records_max
        if had_room and not has_room:
            message = f"a script may send {self._records_max} records in all; `limits.memory` raises that"
            self._draft.problem(path, message)
        return has_room

    def action(self, section: Section, path: Path) -> Action | None:
        """Return the action or fault that stands at *path*, None when it cannot be read."""
        entry = only_entry(self._draft, section, path, "action or fault", "; put a dash before each")
        if entry is None:
            return None
        name, value = entry
        place = (*path, name)
        if name in FAULTS:
            return self._faults.fault(name, value, place)
        kind = ACTIONS[name]
        release = self._draft.body.get("kafka") or DEFAULT_RELEASE
        if self._draft.is_intact("kafka") and not kind.exists_in(release):
            message = f"Kafka {release} has no {name}; it came with {kind.since}"
            self._draft.problem(place, message, at_key=True)
        if kind.whole is None:
            action: Action = self._sections.read(kind, value, place)
            if isinstance(action, ReassignPartition):
                self._references.add_replicas(action.partition, action.replicas)
            return action if not isinstance(action, Send) or self._has_room(action, place) else None
        (item,) = fields_of(kind)
        return kind(**{item.attribute: self._sections.value(item, value, place)})
