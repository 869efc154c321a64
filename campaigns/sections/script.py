"""The section ``script``: steps, and what they do."""

from typing import Any

from campaigns.literal_texts import duration_text
from campaigns.plan import Action, ElectPreferredLeaders, Expect, RestartProducer, Send, Step, Wait
from campaigns.schema import SendSection, StepSection
from campaigns.section import Section
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.draft import Draft
from campaigns.sections.faults import FaultReader
from campaigns.sections.references import References
from campaigns.spelling import listed
from campaigns.yaml_positions import Path
from faults.condition import Condition

SENDS_MAX = 10_000

_KEYS = ("at", "after", "when", "do")


class ScriptReader:
    """Reads steps and checks what they refer to."""

    def __init__(
        self, draft: Draft, references: References, conditions: ConditionReader, faults: FaultReader
    ) -> None:
        self._draft = draft
        self._references = references
        self._conditions = conditions
        self._faults = faults
        self._last_at_us = 0
        self._last_at_path: Path = ()

    def step(self, section: StepSection, path: Path) -> Step:
        """Return the step that stands at *path*."""
        if not section.given().keys() & set(_KEYS) and not self._draft.has_lost(path):
            self._draft.problem(path, "a step has something to wait for (`at`, `after`, `when`) or to `do`")
        self._check_order(section, (*path, "at"))
        return Step(
            actions=self._actions(section, (*path, "do")),
            at_us=section.at,
            after_us=section.after,
            when=self._conditions.read(section.when, (*path, "when")),
            note=section.note or "",
            line=self._draft.line(path),
        )

    def _check_order(self, section: StepSection, path: Path) -> None:
        """Check that a step does not wait for a time that an earlier one has waited for already."""
        if section.at is None:
            return
        if section.at < self._last_at_us:
            earlier = f"{duration_text(self._last_at_us)} ({self._draft.place(self._last_at_path)})"
            self._draft.problem(path, f"steps are taken in order, and an earlier one waits until {earlier}")
        else:
            self._last_at_us, self._last_at_path = section.at, path

    def _actions(self, section: StepSection, path: Path) -> tuple[Action, ...]:
        if section.do is None:
            return (Wait(),)
        if not section.do and not self._draft.has_lost(path):
            self._draft.problem(path, "there is nothing to do; leave `do` out for a step that only waits")
        found: list[Action] = []
        for index, action in enumerate(section.do):
            place = (*path, index)
            given = action.given()
            if len(given) == 1:
                (name, value), *_ = given.items()
                found += self._action(name, value, (*place, name))
            elif not self._draft.has_lost(place):
                several = (
                    f", not {len(given)} ({listed(list(given))}); put a dash before each" if given else ""
                )
                self._draft.problem(place, f"name one action or fault{several}")
        return tuple(found)

    def _action(self, name: str, value: Any, path: Path) -> list[Action]:
        if isinstance(value, SendSection):
            return self._sends(value, path)
        return [self._single_action(name, value, path)]

    def _single_action(self, name: str, value: Any, path: Path) -> Action:
        if name == "restart_producer":
            self._references.producer(path, value)
            return RestartProducer(producer=value)
        if name == "elect_preferred_leaders":
            return ElectPreferredLeaders()
        if name == "wait":
            return Wait()
        if name == "expect":
            return Expect(condition=self._conditions.read(value, path) or Condition())
        section: Section = value
        return self._faults.fault(name, section, path)

    def _sends(self, section: SendSection, path: Path) -> list[Action]:
        if section.partition is not None:
            self._references.partition((*path, "partition"), section.partition)
        if section.producer is not None:
            self._references.producer((*path, "producer"), section.producer)
        if section.count is not None and section.count > SENDS_MAX:
            self._draft.problem((*path, "count"), f"at most {SENDS_MAX} records can be sent at once")
            return []
        producer = section.producer or self._references.only_producer(path)
        values = [section.value]
        if section.count is not None:
            values = [f"{section.value}-{number}" for number in range(section.count)]
        return [Send(producer=producer, value=value, partition=section.partition) for value in values]
