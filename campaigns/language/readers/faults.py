"""The section ``faults``, and faults wherever they stand."""

from collections.abc import Mapping
from typing import Any

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Section
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader, only_entry
from harrow.campaigns.language.spelling import listed
from harrow.campaigns.language.yaml_positions import Path
from harrow.cluster_model.fields import FOR, LastsMarker, MessageRuleMarker, MessageRuleNameMarker, fields_of
from harrow.cluster_model.release import DEFAULT_RELEASE
from harrow.faults.catalogue import FAULTS
from harrow.faults.control_plane.features import control_plane_of, where_kept
from harrow.faults.fault import Fault
from harrow.faults.injection import TIMINGS, At, Every, Injection, Timing, When


class FaultReader:
    """Reads faults and checks what they refer to."""

    def __init__(self, draft: Draft, sections: SectionReader, duration_us: int) -> None:
        self._draft = draft
        self._sections = sections
        self._duration_us = duration_us
        self._rules: dict[str, list[Fault]] = {}
        self._faults_read: list[tuple[Path, Fault]] = []
        self._releases: list[tuple[Path, str]] = []

    def one_fault(self, section: Section, path: Path) -> Fault | None:
        """Return the fault that stands at *path*, by its name; None when it cannot be read."""
        entry = only_entry(self._draft, section, path, "fault")
        return None if entry is None else self.fault(*entry, (*path, entry[0]))

    def fault(self, name: str, section: Section, path: Path) -> Fault:
        fault: Fault = self._sections.read(FAULTS[name], section, path)
        given = section.given()
        for item in fields_of(type(fault)):
            if item.kind is LastsMarker and FOR in given and item.key in given:
                message = f"`{FOR}` and `{item.key}` are the same: write one of them"
                self._draft.problem((*path, FOR), message, at_key=True)
            if item.kind is MessageRuleNameMarker:
                self._rules.setdefault(item.of(fault), []).append(fault)
            elif item.kind is MessageRuleMarker:
                self._releases.append(((*path, item.key), item.of(fault)))
        self._faults_read.append((path, fault))
        if (problem := fault.problem()) is not None and not self._draft.has_lost(path):
            self._draft.problem(path, problem)
        return fault

    def check_releases(self) -> None:
        """Check, when all faults have been read, that what is released can have been held."""
        if not self._draft.is_intact("script") or not self._draft.is_intact("faults"):
            return
        for path, rule in self._releases:
            if rule not in self._rules:
                self._draft.unknown(path, "message rule", rule, self._rules)

    def control_plane_of_rule(self, rule: str) -> str | None:
        """Return the only control plane that has what message rules of this name meet; None where both have some."""
        found = {control_plane_of(fault) for fault in self._rules.get(rule, ())}
        return found.pop() if len(found) == 1 else None

    def note_unmet(self, metadata: str | None) -> None:
        """Note, for somebody who tries another release, that faults are for messages which its control plane does not have."""
        by_option = any(self._draft.is_from_option(path) for path in (("kafka",), ("cluster", "metadata")))
        if metadata is None or not by_option:
            return
        unmet = [path for path, fault in self._faults_read if control_plane_of(fault) not in (None, metadata)]
        if unmet:
            others = {1: "", 2: " (nor does 1 other fault)"}.get(
                len(unmet), f" (nor do {len(unmet) - 1} other faults)"
            )
            release = self._draft.body.get("kafka") or DEFAULT_RELEASE
            why = where_kept(release, metadata)
            self._draft.note(unmet[0], f"this never meets a message{others}: {why}")

    def injections(self, section: Section, path: Path) -> tuple[Injection, ...]:
        """Return the entry of ``faults`` that stands at *path*, nothing when it cannot be read.

        Faults that strike together at their time are an entry each.
        """
        given = section.given()
        timing = self._timing(section, given, path)
        faults = self._faults(given, path)
        self._check_sequence(given, path)
        if timing is None or not faults:
            return ()
        line = self._draft.line(path)
        entries = [(fault,) for fault in faults] if "do" in given else [faults]
        return tuple(
            self._sections.read(
                Injection, section, path, timing=timing, faults=entry, line=line, serial="serial" in given
            )
            for entry in entries
        )

    def _timing(self, section: Section, given: Mapping[str, Any], path: Path) -> Timing | None:
        timings = [key for key in TIMINGS if key in given]
        if len(timings) != 1:
            if not self._draft.has_lost(path):
                found = f"this has {listed(timings)}" if timings else "this has none"
                self._draft.problem(path, f"an entry has one of {', '.join(TIMINGS)}; {found}")
            return None
        kind = TIMINGS[timings[0]]
        self._check_belongs(given, timings[0], path)
        self._check_ever_strikes(kind, given, path)
        window = {} if kind in (At, When) else self._window(given, path)
        timing: Timing = self._sections.read(kind, section, path, **window)
        if (
            isinstance(timing, Every)
            and timing.start_us + timing.period_us >= timing.stop_us > timing.start_us
        ):
            first, last = duration_text(timing.start_us + timing.period_us), duration_text(timing.stop_us)
            message = f"this never strikes: the first time would be {first}, but the last is before {last}"
            self._draft.problem((*path, "every"), message)
        return timing

    def _check_belongs(self, given: Mapping[str, Any], timing: str, path: Path) -> None:
        """Check that an entry has no keys of other timings than its own."""
        keys = {name: {item.key for item in fields_of(kind)} for name, kind in TIMINGS.items()}
        for key in given:
            owners = [f"`{name}`" for name in TIMINGS if key in keys[name]]
            if owners and key not in keys[timing]:
                message = f"`{key}` goes with {' or '.join(owners)}, not with `{timing}`"
                self._draft.problem((*path, key), message, at_key=True)

    def _check_ever_strikes(self, kind: type[Timing], given: Mapping[str, Any], path: Path) -> None:
        """Check that the workload lasts until a fault strikes; how long a script takes is unknown."""
        knows_end = self._draft.is_intact("workload", "duration") and self._draft.is_intact("script")
        if self._draft.body.get("script") or not knows_end:
            return
        if self._duration_us == 0 and kind in (At, When):
            message = "this never strikes: there is no script, and the workload has no `duration`"
            self._draft.problem(path, message)
        elif given.get("at", (0, 0))[0] > self._duration_us:
            message = f"this never strikes: the workload ends at {duration_text(self._duration_us)}"
            self._draft.problem((*path, "at"), message)

    def _window(self, given: Mapping[str, Any], path: Path) -> dict[str, int]:
        start_us, stop_us = given.get("from", 0), given.get("until", self._duration_us)
        start, stop = duration_text(start_us), duration_text(stop_us)
        if "until" in given:
            if stop_us <= start_us:
                self._draft.problem((*path, "until"), f"until {stop} is not after its beginning at {start}")
        elif self._draft.is_intact("workload", "duration") and not self._draft.has_lost(path):
            if stop_us == 0:
                self._draft.problem(path, "this has no end: give it `until`, or the workload a `duration`")
            elif stop_us <= start_us:
                message = f"from {start} is not before the workload's end at {stop}"
                self._draft.problem((*path, "from"), message)
        return {"start_us": start_us, "stop_us": stop_us}

    def _check_sequence(self, given: Mapping[str, Any], path: Path) -> None:
        """Check that what is about a sequence stands with one."""
        if "pause" in given and "serial" not in given and given.get("repeat", 1) == 1:
            self._draft.problem((*path, "pause"), "`pause` goes with `serial` or `repeat`", at_key=True)
        if "together" in given and "serial" in given:
            message = "of `serial` one strikes after the other: leave `together` out"
            self._draft.problem((*path, "together"), message, at_key=True)

    def _faults(self, given: Mapping[str, Any], path: Path) -> tuple[Fault, ...]:
        keys = [key for key in ("do", "any_of", "serial") if key in given]
        if len(keys) != 1:
            if not self._draft.has_lost(path):
                message = (
                    "an entry has either `do`, what strikes, or `any_of`, a list to draw from, or `serial`, a list "
                    "that strikes one after the other"
                )
                self._draft.problem(path, message)
            return ()
        (key,) = keys
        place, choices = (*path, key), given[key]
        if not choices and not self._draft.has_lost(place):
            self._draft.problem(place, f"{key}: name a fault")
        first_us, last_us = given.get("at", (0, 0))
        is_at_one_time = "every" in given or ("at" in given and first_us == last_us)
        if key == "do" and len(choices) > 1 and not is_at_one_time:
            message = (
                "`do` has several faults only with `every` or `at` one time; `any_of` draws one of several"
            )
            self._draft.problem(place, message)
        found = (self.one_fault(section, (*place, index)) for index, section in enumerate(choices))
        return tuple(fault for fault in found if fault is not None)
