"""Reads the section ``faults``, and faults in other sections."""

from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.readers.draft import Draft
from harrow.campaigns.language.readers.section import SectionReader, only_entry
from harrow.campaigns.language.spelling import listed
from harrow.cluster_model.fields import FOR, LastsMarker, MessageRuleMarker, MessageRuleNameMarker, fields_of
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.faults.catalogue import FAULTS
from harrow.faults.control_plane import control_plane_of, where_metadata_is
from harrow.faults.fault import Fault
from harrow.faults.injection import TIMINGS, At, Every, Injection, Timing, When


class FaultReader:
    """Reads faults and checks their references."""

    def __init__(self, draft: Draft, sections: SectionReader, duration_us: int) -> None:
        self._draft = draft
        self._sections = sections
        self._duration_us = duration_us
        self._rules: dict[str, list[Fault]] = {}
        self._faults_read: list[tuple[Part, Fault]] = []
        self._releases: list[tuple[Part, str]] = []

    def one_fault(self, section: Part) -> Fault | None:
        """Read the fault that a section names; None if it does not name exactly one."""
        name = only_entry(self._draft, section, "fault")
        return None if name is None else self.fault(name, section / name)

    def fault(self, name: str, section: Part) -> Fault:
        fault = self._sections.read(FAULTS[name], section)
        for item in fields_of(type(fault)):
            if item.kind is LastsMarker and FOR in section and item.key in section:
                message = f"`{FOR}` and `{item.key}` mean the same: write only one of them"
                self._draft.problem(section / FOR, message, at_key=True)
            if item.kind is MessageRuleNameMarker:
                self._rules.setdefault(item.value_in(fault), []).append(fault)
            elif item.kind is MessageRuleMarker:
                self._releases.append((section / item.key, item.value_in(fault)))
        self._faults_read.append((section, fault))
        if (problem := fault.problem()) is not None and not section.rejected:
            self._draft.problem(section, problem)
        return fault

    def check_releases(self) -> None:
        """Check, after all faults are read, that each message rule to release exists."""
        if not self._draft.body.is_sound("script") or not self._draft.body.is_sound("faults"):
            return
        for part, rule in self._releases:
            if rule not in self._rules:
                self._draft.unknown(part, "message rule", rule, self._rules)

    def control_plane_of_rule(self, rule: str) -> str | None:
        """Return the only control plane whose messages a rule matches; None if it may be both."""
        planes = {control_plane_of(fault) for fault in self._rules.get(rule, ())}
        return planes.pop() if len(planes) == 1 else None

    def note_unmatched(self, metadata: str | None) -> None:
        """Note faults on messages that never occur, if an option has chosen the control plane."""
        body = self._draft.body
        by_option = (body / "kafka").is_from_option() or body.at("cluster", "metadata").is_from_option()
        if metadata is None or not by_option:
            return
        unmatched = [
            part for part, fault in self._faults_read if control_plane_of(fault) not in (None, metadata)
        ]
        if unmatched:
            others = {1: "", 2: " (nor does 1 other fault)"}.get(
                len(unmatched), f" (nor do {len(unmatched) - 1} other faults)"
            )
            release = self._draft.body.get("kafka") or DEFAULT_RELEASE
            why = where_metadata_is(release, metadata)
            self._draft.note(unmatched[0], f"this never matches a message{others}: {why}")

    def injections(self, section: Part) -> tuple[Injection, ...]:
        """Read an entry of ``faults``; return nothing if it has mistakes.

        Each of several faults under `do`, which strike together, becomes an injection of its own.
        """
        timing = self._timing(section)
        faults = self._faults(section)
        self._check_sequence(section)
        if timing is None or not faults:
            return ()
        entries = [(fault,) for fault in faults] if "do" in section else [faults]
        return tuple(
            self._sections.read(
                Injection,
                section,
                timing=timing,
                faults=entry,
                line=section.mark.line,
                serial="serial" in section,
            )
            for entry in entries
        )

    def _timing(self, section: Part) -> Timing | None:
        timings = [key for key in TIMINGS if key in section]
        if len(timings) != 1:
            if not section.rejected:
                actual = f"this has {listed(timings)}" if timings else "this has none"
                self._draft.problem(section, f"an entry needs one of {', '.join(TIMINGS)}; {actual}")
            return None
        kind = TIMINGS[timings[0]]
        self._check_keys_of_timing(section, timings[0])
        self._check_ever_strikes(kind, section)
        window = {} if kind in (At, When) else self._window(section)
        timing = self._sections.read(kind, section, **window)
        if (
            isinstance(timing, Every)
            and timing.start_us + timing.period_us >= timing.stop_us > timing.start_us
        ):
            first, last = duration_text(timing.start_us + timing.period_us), duration_text(timing.stop_us)
            message = f"this never strikes: the first time would be {first}, but the last is before {last}"
            self._draft.problem(section / "every", message)
        return timing

    def _check_keys_of_timing(self, section: Part, timing: str) -> None:
        """Check that an entry has no keys of other timings."""
        keys = {name: {item.key for item in fields_of(kind)} for name, kind in TIMINGS.items()}
        for key, part in section.parts.items():
            owners = [f"`{name}`" for name in TIMINGS if key in keys[name]]
            if owners and key not in keys[timing]:
                message = f"`{key}` goes with {' or '.join(owners)}, not with `{timing}`"
                self._draft.problem(part, message, at_key=True)

    def _check_ever_strikes(self, kind: type[Timing], section: Part) -> None:
        """Check that the workload lasts until the fault strikes, if the campaign has no script."""
        knows_end = self._draft.body.is_sound("workload", "duration") and self._draft.body.is_sound("script")
        if self._draft.body.get("script") or not knows_end:
            return
        if self._duration_us == 0 and kind in (At, When):
            message = "this never strikes: there is no script, and the workload has no `duration`"
            self._draft.problem(section, message)
        elif (section.get("at") or (0, 0))[0] > self._duration_us:
            message = f"this never strikes: the workload ends at {duration_text(self._duration_us)}"
            self._draft.problem(section / "at", message)

    def _window(self, section: Part) -> dict[str, int]:
        start_us, stop_us = section.get("from") or 0, section.get("until")
        stop_us = self._duration_us if stop_us is None else stop_us
        start, stop = duration_text(start_us), duration_text(stop_us)
        if "until" in section:
            if stop_us <= start_us:
                self._draft.problem(section / "until", f"the end at {stop} is not after the start at {start}")
        elif self._draft.body.is_sound("workload", "duration") and not section.rejected:
            if stop_us == 0:
                self._draft.problem(section, "this has no end: add `until`, or a `duration` of the workload")
            elif stop_us <= start_us:
                message = f"the start at {start} is not before the workload's end at {stop}"
                self._draft.problem(section / "from", message)
        return {"start_us": start_us, "stop_us": stop_us}

    def _check_sequence(self, section: Part) -> None:
        """Check that keys that apply to sequences of faults are in an entry with a sequence."""
        if "pause" in section and "serial" not in section and section.get("repeat") in (None, 1):
            self._draft.problem(section / "pause", "`pause` goes with `serial` or `repeat`", at_key=True)
        if "together" in section and "serial" in section:
            message = "faults of `serial` strike one after the other: leave `together` out"
            self._draft.problem(section / "together", message, at_key=True)

    def _faults(self, section: Part) -> tuple[Fault, ...]:
        keys = [key for key in ("do", "any_of", "serial") if key in section]
        if len(keys) != 1:
            if not section.rejected:
                message = (
                    "give one of `do` (a fault), `any_of` (a list of faults to choose from at random) and `serial` "
                    "(a list of faults that strike in sequence)"
                )
                self._draft.problem(section, message)
            return ()
        (key,) = keys
        choices = section / key
        if not choices.value and not choices.rejected:
            self._draft.problem(choices, f"{key}: name a fault")
        first_us, last_us = section.get("at") or (0, 1)
        is_at_one_time = "every" in section or first_us == last_us
        if key == "do" and len(choices.value) > 1 and not is_at_one_time:
            message = "`do` takes several faults only with `every`, or with a single time in `at`; `any_of` chooses one of several"
            self._draft.problem(choices, message)
        return tuple(fault for fault in map(self.one_fault, choices) if fault is not None)
