"""The section ``faults``, and faults wherever they stand."""

from collections.abc import Sequence
from typing import Any

from campaigns.generated_sections import FaultField, fault_fields
from campaigns.literal_texts import duration_text
from campaigns.schema import InjectionSection
from campaigns.section import Section
from campaigns.sections.conditions import ConditionReader
from campaigns.sections.draft import Draft
from campaigns.sections.references import References
from campaigns.spelling import listed
from campaigns.yaml_positions import Path
from faults import fields as markers
from faults.catalogue import FAULTS
from faults.condition import Condition
from faults.fault import Fault
from faults.injection import At, Every, Injection, Rate, Timing, When
from faults.message import Message, Release
from faults.partition import NetworkPartition

_TIMINGS = ("at", "when", "every", "rate")


class FaultReader:
    """Reads faults and checks what they refer to."""

    def __init__(
        self, draft: Draft, references: References, conditions: ConditionReader, duration_us: int
    ) -> None:
        self._draft = draft
        self._references = references
        self._conditions = conditions
        self._duration_us = duration_us
        self._rules: set[str] = set()
        self._releases: list[tuple[Path, str]] = []

    def fault(self, name: str, section: Section, path: Path) -> Fault:
        """Return the fault *name* that stands at *path*."""
        given = section.given()
        values: dict[str, Any] = {}
        for item in fault_fields(FAULTS[name]):
            if item.key not in given:
                continue
            value = given[item.key]
            if isinstance(value, list):
                self._check_list(item, value, (*path, item.key))
                value = tuple(value)
            else:
                self._check_reference(item, value, (*path, item.key))
            values[item.attribute] = value
        fault = FAULTS[name](**values)
        if isinstance(fault, Message):
            self._rules.add(fault.id)
        elif isinstance(fault, Release):
            self._releases.append(((*path, "id"), fault.id))
        elif isinstance(fault, NetworkPartition) and _has_ends(fault) and not fault.links():
            self._draft.problem(path, "this cuts no link: the same stands on both sides")
        return fault

    def check_releases(self) -> None:
        """Check, when all faults have been read, that what is released can have been held."""
        if not self._draft.is_intact("script") or not self._draft.is_intact("faults"):
            return
        for path, rule in self._releases:
            if rule not in self._rules:
                self._draft.unknown(path, "message rule", rule, self._rules)

    def _check_list(self, item: FaultField, values: list[Any], path: Path) -> None:
        if not values and not self._draft.has_lost(path):
            self._draft.problem(path, f"{item.key}: the list is empty")
        for index, value in enumerate(values):
            self._check_reference(item, value, (*path, index))

    def _check_reference(self, item: FaultField, value: Any, path: Path) -> None:
        if item.marker is markers.BrokerMarker:
            self._references.broker_reference(path, value)
        elif item.marker is markers.EndpointMarker:
            self._references.endpoint(path, value)
        elif item.marker is markers.ClientMarker:
            self._references.client(path, value)
        elif item.marker is markers.PartitionMarker:
            self._references.partition(path, value)

    def injection(self, section: InjectionSection, path: Path) -> Injection | None:
        """Return the entry of ``faults`` that stands at *path*, None when it cannot be read."""
        timing = self._timing(section, path)
        faults = self._faults(section, path)
        if timing is None or not faults:
            return None
        together = section.together or 1
        return Injection(timing=timing, faults=faults, together=together, line=self._draft.line(path))

    def _timing(self, section: InjectionSection, path: Path) -> Timing | None:
        given = section.given()
        timings = [key for key in _TIMINGS if key in given]
        if len(timings) != 1:
            if not self._draft.has_lost(path):
                found = f"this has {listed(timings)}" if timings else "this has none"
                self._draft.problem(path, f"an entry has one of {', '.join(_TIMINGS)}; {found}")
            return None
        self._check_belongs(given, "times", ("when",), timings[0], path)
        self._check_belongs(given, "from", ("every", "rate"), timings[0], path)
        self._check_belongs(given, "until", ("every", "rate"), timings[0], path)
        self._check_ever_strikes(section, path)
        if section.at is not None:
            return At(at_us=section.at)
        if section.when is not None:
            condition = self._conditions.read(section.when, (*path, "when")) or Condition()
            return When(condition=condition, times=section.times or 1)
        start_us, stop_us = self._window(section, path)
        if section.every is not None:
            if start_us + section.every >= stop_us > start_us:
                first, last = duration_text(start_us + section.every), duration_text(stop_us)
                message = (
                    f"this never strikes: the first time would be {first}, but the last is before {last}"
                )
                self._draft.problem((*path, "every"), message)
            return Every(period_us=section.every, start_us=start_us, stop_us=stop_us)
        return Rate(mean_us=section.rate or 1, start_us=start_us, stop_us=stop_us)

    def _check_ever_strikes(self, section: InjectionSection, path: Path) -> None:
        """Check that the workload lasts until a fault strikes; with a script nobody can tell."""
        knows_end = self._draft.is_intact("workload", "duration") and self._draft.is_intact("script")
        if self._draft.body.script or not knows_end:
            return
        if self._duration_us == 0 and (section.at is not None or section.when is not None):
            self._draft.problem(
                path, "this never strikes: there is no script, and the workload has no `duration`"
            )
        elif section.at is not None and section.at > self._duration_us:
            message = f"this never strikes: the workload ends at {duration_text(self._duration_us)}"
            self._draft.problem((*path, "at"), message)

    def _check_belongs(
        self, given: dict[str, Any], key: str, to: tuple[str, ...], timing: str, path: Path
    ) -> None:
        if key in given and timing not in to:
            owners = " or ".join(f"`{owner}`" for owner in to)
            self._draft.problem((*path, key), f"`{key}` goes with {owners}, not with `{timing}`", at_key=True)

    def _window(self, section: InjectionSection, path: Path) -> tuple[int, int]:
        """Return from when and until when faults strike."""
        start_us = section.from_ or 0
        stop_us = self._duration_us if section.until is None else section.until
        if section.until is not None:
            if stop_us <= start_us:
                message = (
                    f"until {duration_text(stop_us)} is not after its beginning at {duration_text(start_us)}"
                )
                self._draft.problem((*path, "until"), message)
        elif not self._draft.is_intact("workload", "duration") or self._draft.has_lost(path):
            return start_us, stop_us
        elif stop_us == 0:
            message = "this has no end: give it `until`, or the workload a `duration`"
            self._draft.problem(path, message)
        elif stop_us <= start_us:
            message = (
                f"from {duration_text(start_us)} is not before the workload's end at {duration_text(stop_us)}"
            )
            self._draft.problem((*path, "from"), message)
        return start_us, stop_us

    def _faults(self, section: InjectionSection, path: Path) -> tuple[Fault, ...]:
        key = "any_of" if section.do is None else "do"
        choices = section.any_of if section.do is None else section.do
        if (section.do is None) == (section.any_of is None):
            if not self._draft.has_lost(path):
                self._draft.problem(
                    path, "an entry has either `do`, one fault, or `any_of`, a list to draw from"
                )
            return ()
        place = (*path, key)
        if not choices and not self._draft.has_lost(place):
            self._draft.problem(place, f"{key}: name a fault")
        if key == "do" and len(choices or ()) > 1:
            message = (
                "`do` has one fault here; `any_of` draws one of several, and each can have its own entry"
            )
            self._draft.problem(place, message)
        return self.choices(choices or (), place)

    def choices(self, sections: Sequence[Section], path: Path) -> tuple[Fault, ...]:
        """Return the faults of a list that stands at *path*."""
        found = (self._one_fault(section, (*path, index)) for index, section in enumerate(sections))
        return tuple(fault for fault in found if fault is not None)

    def _one_fault(self, section: Section, path: Path) -> Fault | None:
        given = section.given()
        if len(given) != 1:
            if not self._draft.has_lost(path):
                self._draft.problem(path, f"name one fault{_several(given)}")
            return None
        (name, inner), *_ = given.items()
        return self.fault(name, inner, (*path, name))


def _has_ends(fault: NetworkPartition) -> bool:
    return bool(fault.between and fault.and_)


def _several(given: dict[str, Any]) -> str:
    return f", not {len(given)} ({listed(list(given))})" if given else ""
