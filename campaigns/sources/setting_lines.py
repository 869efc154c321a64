"""Decides what becomes of each line of a source that sets something."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from harrow.campaigns.language.kafka_settings import (
    accepts,
    hidden_without,
    is_without_effect,
    kafka_has,
    refusal,
    releases_with,
)
from harrow.campaigns.language.literals import LiteralError, setting_value, whole_number
from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import listed
from harrow.campaigns.sources.description import Fate, ImportedLine, SourceLine
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import (
    BROKER,
    INT_MAX,
    SETTINGS,
    Setting,
    Value,
)
from harrow.cluster_model.topology import CONTROL_PLANES

OTHER_UNITS: Final = {
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
}
"""Settings in other units, each with the setting in milliseconds that overrides it in Kafka, and
the number of milliseconds of its unit."""
_RETENTION: Final = "log.retention.ms"
_TIME_UNITS: Final = ("ms", "seconds")
_WORST_FIRST: Final = (Fate.LACKING, Fate.TAKEN, Fate.UNAFFECTED, Fate.UNKNOWN)
"""Which fate counts if a line holds for several brokers, and they differ."""


class SettingLines:
    """Reads settings, and collects the fates of their lines, and the problems in them."""

    def __init__(self, release: str, metadata: str | None, decided: Sequence[ImportedLine]) -> None:
        self.problems: list[Problem] = []
        self._release = release
        self._metadata = metadata
        self._lines = list(decided)

    def lines(self) -> Iterator[ImportedLine]:
        """Yield each line once, in the order of its file, even if several brokers have it."""
        fates: dict[SourceLine, ImportedLine] = {}
        for line in self._lines:
            known = fates.setdefault(line.entry, line)
            if _WORST_FIRST.index(line.fate) < _WORST_FIRST.index(known.fate):
                fates[line.entry] = line
        files = {file: number for number, file in enumerate(dict.fromkeys(entry.file for entry in fates))}
        yield from sorted(fates.values(), key=lambda line: (files[line.entry.file], line.entry.line))

    def note(self, entry: SourceLine, fate: Fate, note: str = "") -> None:
        """Note what became of a line."""
        self._lines.append(ImportedLine(entry=entry, fate=fate, note=note))

    def refuse(self, entry: SourceLine, message: object) -> None:
        """Report a wrong value."""
        self.problems.append(Problem(entry.file, entry.line, 1, f"{entry.name}: {message}"))

    def not_taken(self, is_meant: Callable[[SourceLine], bool], note: str) -> None:
        """Correct the fate of lines that were to be taken over."""
        self._lines = [
            replace(line, fate=Fate.LACKING, note=note)
            if line.fate == Fate.TAKEN and is_meant(line.entry)
            else line
            for line in self._lines
        ]

    def settings(
        self,
        scope: str,
        entries: Sequence[SourceLine],
        is_special: Callable[[SourceLine], bool] = lambda _: False,
    ) -> dict[str, Value]:
        """Return the settings of a broker, a topic or a client for the cluster file.

        Lines that *is_special* accepts are left to it.
        """
        last = {entry.name: entry for entry in entries}
        settings: dict[str, Value] = {}
        for entry in entries:
            if (later := last[entry.name]) is not entry:
                place = f"line {later.line}" if later.file == entry.file else f"{later.file}:{later.line}"
                self.note(entry, Fate.UNAFFECTED, f"{place} sets it again")
            elif not is_special(entry):
                self._import(scope, entry, last, settings)
        return settings

    def defaults(self, scope: str, entries: Sequence[SourceLine]) -> dict[str, Value]:
        """Return the defaults of a real cluster that the model's release does not have."""
        different: dict[str, Value] = {}
        for entry in entries:
            setting = SETTINGS.get((scope, entry.name))
            is_modelled = setting is not None and setting.exists_in(self._release)
            if setting is None or not is_modelled or self._belongs_to_other_control_plane(setting):
                self.note(entry, Fate.UNAFFECTED, "Kafka's default")
                continue
            try:
                value = _value(setting, entry)
            except LiteralError as error:
                self.note(entry, Fate.LACKING, str(error))
                continue
            self.note(entry, Fate.TAKEN, "Kafka's default")
            if value != setting.default(self._release):
                different[entry.name] = value
        return different

    def _import(
        self, scope: str, entry: SourceLine, given: Mapping[str, SourceLine], settings: dict[str, Value]
    ) -> None:
        name = entry.name
        if self._is_in_other_unit(scope, name):
            exact, factor = OTHER_UNITS[name]
            winner = next((other for other in _finer(name) if other in given), None)
            if winner is not None:
                self.note(entry, Fate.UNAFFECTED, f"{winner} is set")
            elif (number := self._parsed(scope, entry, exact)) is not None:
                settings[exact] = number * factor if isinstance(number, int) and number > 0 else number
                self.note(entry, Fate.TAKEN, f"as {exact}")
        elif (scope, name) not in SETTINGS or not SETTINGS[scope, name].exists_in(self._release):
            self._note_unmodelled(scope, entry)
        elif self._belongs_to_other_control_plane(SETTINGS[scope, name]):
            self.note(entry, Fate.UNAFFECTED, f"the brokers use {CONTROL_PLANES[self._metadata or '']}")
        elif (value := self._parsed(scope, entry, name)) is not None:
            settings[name] = value
            self.note(entry, Fate.TAKEN)

    def _belongs_to_other_control_plane(self, setting: Setting) -> bool:
        return bool(self._metadata and setting.metadata) and setting.metadata != self._metadata

    def _is_in_other_unit(self, scope: str, name: str) -> bool:
        return scope == BROKER and name in OTHER_UNITS and kafka_has(scope, name, self._release)

    def _parsed(self, scope: str, entry: SourceLine, name: str) -> Value | None:
        try:
            return _value(SETTINGS[scope, name], entry)
        except LiteralError as error:
            if accepts(scope, entry.name, entry.value):
                hides = hidden_without(entry.name)
                self.note(entry, Fate.LACKING, f"{error}{f': {hides}' if hides else ''}")
            else:
                self.refuse(entry, error)
            return None

    def _note_unmodelled(self, scope: str, entry: SourceLine) -> None:
        name = entry.name
        if kafka_has(scope, name, self._release):
            fate = Fate.UNAFFECTED if is_without_effect(name) else Fate.LACKING
            self.note(entry, fate, refusal(scope, name, entry.value) or hidden_without(name))
        else:
            marked = "Kafka reads the byte order mark as part of the name" if name[:1] == "\ufeff" else ""
            self.note(entry, Fate.UNKNOWN, marked or note_on_releases(name, scope))


def _value(setting: Setting, entry: SourceLine) -> Value:
    text = number_text(entry.value)
    if exact_name(entry.name) == _RETENTION and text == "0":
        raise LiteralError("Kafka refuses 0: at least 1, or -1 for no limit")
    if entry.name in OTHER_UNITS:
        return whole_number(setting.minimum, INT_MAX)(text)
    if setting.kind in _TIME_UNITS:
        return whole_number(setting.minimum, setting.maximum)(text)
    return setting_value(setting, text)


def number_text(text: str) -> str:
    """Return a number as campaigns write it: Java also reads ``+1`` and ``007``."""
    return str(int(text)) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else text


def exact_name(name: str) -> str:
    """Return the setting in milliseconds instead of the same in another unit."""
    return OTHER_UNITS[name][0] if name in OTHER_UNITS else name


def note_on_releases(name: str, scope: str) -> str:
    """Return a note on where else Kafka has a setting that the release lacks in this scope."""
    releases = releases_with(name, (scope,))
    if releases:
        return f"Kafka {listed(releases)} has it"
    return "" if not releases_with(name) else f"it is not a {scope}'s setting"


def _finer(name: str) -> list[str]:
    """Return the settings that override a setting in another unit, the strongest first."""
    exact, factor = OTHER_UNITS[name]
    finer = [other for other, (same, unit) in OTHER_UNITS.items() if same == exact and unit < factor]
    return [exact, *finer]
