"""Makes a cluster file from Kafka's ``.properties`` files, and reports what became of each line.

`Fate` has the four things that can become of a line. A line counts as *taken over* only if the
cluster file has its value.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Final

from harrow.campaigns.language.java_properties import Property, properties_of
from harrow.campaigns.language.kafka_settings import (
    hidden_without,
    is_without_effect,
    kafka_has,
    releases_with,
)
from harrow.campaigns.language.literals import LiteralError, setting_text, setting_value, whole_number
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import listed, quoted
from harrow.campaigns.language.yaml_text import Items, Rows, Word, yaml_text
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES
from harrow.cluster_model.settings import BROKER, CONSUMER, PRODUCER, SETTINGS, Setting, Value, scopes_of
from harrow.cluster_model.topology import BROKER_ID_MAX, KRAFT, ZOOKEEPER

BROKERS_DEFAULT: Final = 3
_NEWEST_WITH_ZOOKEEPER: Final = next(name for name in reversed(RELEASES) if ZOOKEEPER in RELEASES[name].modes)
_OTHER_UNITS: Final = {
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
}
"""Settings in other units, each with the setting in milliseconds that overrides it in Kafka, and
the number of milliseconds of its unit."""
_IDS: Final = ("node.id", "broker.id")
_VOTERS: Final = ("controller.quorum.voters", "controller.quorum.bootstrap.servers")
_TOPOLOGY_SETTINGS: Final = (*_IDS, *_VOTERS, "broker.rack", "process.roles", "zookeeper.connect")
"""Settings that decide which brokers and servers the cluster has."""
_BY_MODE: Final = {"process.roles": KRAFT, **dict.fromkeys(_VOTERS, KRAFT), "zookeeper.connect": ZOOKEEPER}
"""Settings that belong to one way of keeping metadata."""
_MODE_NAMES: Final = {KRAFT: "KRaft", ZOOKEEPER: "ZooKeeper"}
_GENERATED: Final = "-1"
"""Kafka's default for a broker's id: the broker gets one when it registers."""
_INT_MAX: Final = 2**31 - 1
_TIME_UNITS: Final = ("ms", "seconds")
_SINGLE_CLIENT_SETTINGS: Final = ("transactional.id", "group.instance.id")


class Fate(StrEnum):
    """What became of a line of a source."""

    TAKEN = "taken over"
    UNAFFECTED = "Kafka has it and the model is not affected"
    LACKING = "Kafka has it and the model lacks it"
    UNKNOWN = "no such setting in this release"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """A setting in a source, its position, and what became of it."""

    file: str
    line: int
    name: str
    value: str
    fate: Fate
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A cluster file, and the fate of each line of its sources."""

    text: str
    release: str
    lines: tuple[ImportedLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesFile:
    """A ``.properties`` file: its properties, and the scope of their settings, such as broker."""

    file: str
    properties: tuple[Property, ...]
    scope: str
    values: Mapping[str, str] = field(default_factory=dict)


def import_properties(
    files: Sequence[tuple[str, str]], *, release: str | None = None, brokers: int | None = None
) -> Imported:
    """Return the cluster of some ``.properties`` files, each with its name.

    A single file of a broker stands for *brokers* brokers. If there are several files of brokers,
    each stands for one broker. Files of producers and consumers add the settings of clients.

    Raises:
        CampaignError: A value is wrong, or the settings do not fit together.

    """
    sources = [_source(file, text) for file, text in files]
    return _Import(sources, release or _release_of(sources), brokers).run()


def _source(file: str, text: str) -> PropertiesFile:
    properties = tuple(properties_of(text, file))
    names = {prop.name for prop in properties}
    known = {
        scope: sum(bool(releases_with(name, (scope,))) for name in names)
        for scope in (BROKER, PRODUCER, CONSUMER)
    }
    scope = max(known, key=lambda each: known[each])
    if not known[scope]:
        raise CampaignError([Problem(file, 0, 0, "no setting of a broker, a producer or a consumer in it")])
    return PropertiesFile(
        file=file, properties=properties, scope=scope, values={prop.name: prop.value for prop in properties}
    )


def _release_of(sources: Sequence[PropertiesFile]) -> str:
    has_zookeeper = any("zookeeper.connect" in source.values for source in sources)
    has_quorum = any("process.roles" in source.values for source in sources)
    return _NEWEST_WITH_ZOOKEEPER if has_zookeeper and not has_quorum else NEWEST_RELEASE


class _Import:
    def __init__(self, sources: Sequence[PropertiesFile], release: str, brokers: int | None) -> None:
        self._sources = sources
        self._release = release
        self._brokers = brokers
        self._lines: list[ImportedLine] = []
        self._problems: list[Problem] = []
        self._clients: dict[str, Value] = {}
        broker_files = [source for source in sources if source.scope == BROKER and _is_of_broker(source)]
        self._is_for_all = len(broker_files) == 1 and brokers != 1
        self._mode = _mode_of(sources, release)

    def run(self) -> Imported:
        broker_sources = [source for source in self._sources if source.scope == BROKER]
        settings_by_source = [self._settings(source) for source in broker_sources]
        clients: list[tuple[PropertiesFile, Mapping[str, Value]]] = []
        for source in self._sources:
            if source.scope != BROKER:
                clients.append((source, self._settings(source)))
        if self._problems:
            raise CampaignError(self._problems)
        self._compare_clients(clients)
        self._compare_controllers(broker_sources, settings_by_source)
        text = yaml_text(self._document(broker_sources, settings_by_source), [self._comment()])
        self._check(text)
        return Imported(text=text, release=self._release, lines=tuple(self._lines))

    def _compare_clients(self, clients: Sequence[tuple[PropertiesFile, Mapping[str, Value]]]) -> None:
        """Take over what all clients of a kind agree on, because a cluster file has one value."""
        for scope in (PRODUCER, CONSUMER):
            each = [settings for source, settings in clients if source.scope == scope]
            files = {source.file for source, _ in clients if source.scope == scope}
            names = {name for settings in each for name in settings}
            same = {name for name in names if all(other.get(name) == each[0].get(name) for other in each)}
            self._clients |= {name: each[0][name] for name in same}
            note = f"the {scope}s differ: write it in the campaign's own"
            self._lines = [
                replace(line, fate=Fate.LACKING, note=note)
                if line.file in files and line.fate == Fate.TAKEN and line.name not in same
                else line
                for line in self._lines
            ]

    def _compare_controllers(
        self, sources: Sequence[PropertiesFile], settings_by_source: Sequence[Mapping[str, Value]]
    ) -> None:
        """Correct the fate of settings in which a controller differs from the brokers.

        They are not taken over, because controllers of the model have the settings of the brokers.
        """
        brokers = [
            settings
            for source, settings in zip(sources, settings_by_source, strict=True)
            if _is_of_broker(source)
        ]
        for source, settings in zip(sources, settings_by_source, strict=True):
            if _is_of_broker(source):
                continue
            different = {
                name
                for name in source.values
                if not brokers or any(_differs(name, settings, other) for other in brokers)
            }
            self._lines = [
                replace(line, fate=Fate.LACKING, note="its controllers have the brokers' settings")
                if line.file == source.file
                and line.fate == Fate.TAKEN
                and line.name in different - set(_TOPOLOGY_SETTINGS)
                else line
                for line in self._lines
            ]

    def _comment(self) -> str:
        files = listed([source.file for source in self._sources])
        return f"A cluster of Kafka {self._release}, imported from {files}."

    def _document(
        self, sources: Sequence[PropertiesFile], settings_by_source: Sequence[Mapping[str, Value]]
    ) -> Rows:
        broker_files = [
            (source, settings)
            for source, settings in zip(sources, settings_by_source, strict=True)
            if _is_of_broker(source)
        ]
        shared = {
            name: value
            for name, value in (broker_files[0][1] if broker_files else {}).items()
            if all(settings.get(name) == value for _, settings in broker_files) and _is_shared(name)
        }
        rows = Rows(kafka=self._release, settings=Rows(_texts({**shared, **self._clients})))
        rows |= self._metadata(sources)
        rows["brokers"] = self._broker_rows(broker_files, shared)
        return Rows((key, value) for key, value in rows.items() if value not in ({}, ""))

    def _broker_rows(
        self,
        broker_files: Sequence[tuple[PropertiesFile, Mapping[str, Value]]],
        shared: Mapping[str, Value],
    ) -> Items | int:
        rows = []
        for index, (source, settings) in enumerate(broker_files):
            row: dict[str, object] = {"id": index if (own := self._id_of(source)) is None else own}
            if "broker.rack" in source.values:
                row["rack"] = source.values["broker.rack"]
            if own_settings := _texts(
                {name: value for name, value in settings.items() if name not in shared}
            ):
                row["settings"] = own_settings
            rows.append(row)
        if len(rows) != 1:
            return Items(rows) if rows else self._brokers or BROKERS_DEFAULT
        (row,) = rows
        first = 0 if (own := self._id_of(broker_files[0][0])) is None else own
        if self._is_for_all:
            row.pop("rack", None)
        return Items({**row, "id": first + index} for index in range(self._brokers or BROKERS_DEFAULT))

    def _id_of(self, source: PropertiesFile) -> int | None:
        """Return the id of a broker, or None if Kafka generates it."""
        names = [name for name in _IDS if name in source.values and kafka_has(BROKER, name, self._release)]
        ids = [source.values[name] for name in names]
        return next((int(text) for text in ids if text != _GENERATED), None)

    def _metadata(self, sources: Sequence[PropertiesFile]) -> dict[str, object]:
        values = {name: value for source in sources for name, value in source.values.items()}
        if self._mode is None:
            return {}
        if self._mode == ZOOKEEPER:
            servers = len(values["zookeeper.connect"].split("/")[0].split(","))
            return {"metadata": ZOOKEEPER, "zookeeper": Rows(servers=servers)}
        roles = [source.values.get("process.roles", "") for source in sources]
        combined = any("broker" in role and "controller" in role for role in roles)
        controllers = sum("controller" in role for role in roles)
        voters = next((len(values[name].split(",")) for name in _VOTERS if name in values), controllers or 1)
        return {"metadata": KRAFT, "kraft": Rows(voters=voters, combined=combined)}

    def _settings(self, source: PropertiesFile) -> dict[str, Value]:
        """Return the settings for the cluster file from a source. Note the fate of each line."""
        last = {prop.name: prop for prop in source.properties}
        times = Counter(prop.name for prop in source.properties)
        settings: dict[str, Value] = {}
        for prop in source.properties:
            if times[prop.name] > 1 and last[prop.name] is not prop:
                line = last[prop.name].line
                self._note(source, prop, Fate.UNAFFECTED, f"line {line} sets it again")
                continue
            self._import_property(source, prop, settings)
        return settings

    def _note_topology_setting(self, source: PropertiesFile, prop: Property) -> None:
        """Note the fate of a setting that decides which brokers and servers the cluster has."""
        name = prop.name
        if not kafka_has(BROKER, name, self._release):
            self._note(source, prop, Fate.UNKNOWN, _note_on_releases(name, BROKER))
        elif name in _BY_MODE and self._mode != _BY_MODE[name]:
            missing = _MODE_NAMES[_BY_MODE[name]]
            note = (
                f"the brokers use {_MODE_NAMES[self._mode]}, so the model has no {missing}"
                if self._mode
                else f"the model has no {missing} in Kafka {self._release}"
            )
            self._note(source, prop, Fate.LACKING, note)
        elif name == "broker.rack" and self._is_for_all:
            self._note(source, prop, Fate.LACKING, "one file for all brokers: add the rack of each")
        elif name in _IDS and not _is_of_broker(source):
            self._note(source, prop, Fate.UNAFFECTED, "the model numbers its controllers")
        elif name in _IDS and prop.value == _GENERATED and "process.roles" not in source.values:
            self._note(source, prop, Fate.LACKING, "Kafka generates an id; harrow numbers brokers from 0")
        elif name in _IDS:
            try:
                whole_number(0, BROKER_ID_MAX)(_number_text(prop.value))
                self._note(source, prop, Fate.TAKEN)
            except LiteralError as error:
                self._problems.append(Problem(source.file, prop.line, 1, f"{name}: {error}"))
        else:
            self._note(source, prop, Fate.TAKEN)

    def _import_property(self, source: PropertiesFile, prop: Property, settings: dict[str, Value]) -> None:
        scope, name, text = source.scope, prop.name, prop.value
        if scope == BROKER and name in _TOPOLOGY_SETTINGS:
            self._note_topology_setting(source, prop)
        elif (
            name in _OTHER_UNITS
            and (scope, _OTHER_UNITS[name][0]) in SETTINGS
            and kafka_has(scope, name, self._release)
        ):
            exact, factor = _OTHER_UNITS[name]
            finer = [
                other
                for other, (other_exact, unit) in _OTHER_UNITS.items()
                if other_exact == exact and unit < factor
            ]
            winner = next((other for other in (exact, *finer) if other in source.values), None)
            if winner is not None:
                self._note(source, prop, Fate.UNAFFECTED, f"{winner} is set")
            elif (number := self._parsed(source, prop, exact, text)) is not None:
                settings[exact] = number * factor if isinstance(number, int) and number > 0 else number
                self._note(source, prop, Fate.TAKEN, f"as {exact}")
        elif not any(setting.exists_in(self._release) for setting in self._modelled(scope, name)):
            self._unmodelled(source, prop)
        elif name in _SINGLE_CLIENT_SETTINGS or (scope != BROKER and _is_for_both_clients(name)):
            note = "it would hold for every client: write it in the campaign's own"
            self._note(source, prop, Fate.LACKING, note)
        else:
            value = self._parsed(source, prop, name, text)
            if value is not None:
                settings[name] = value
                self._note(source, prop, Fate.TAKEN)

    def _modelled(self, scope: str, name: str) -> list[Setting]:
        return [SETTINGS[scope, name]] if (scope, name) in SETTINGS else []

    def _parsed(self, source: PropertiesFile, prop: Property, name: str, text: str) -> Value | None:
        setting = SETTINGS[source.scope, name]
        text = _number_text(text)
        try:
            if prop.name in _OTHER_UNITS:
                return whole_number(-1, _INT_MAX)(text)
            if setting.kind in _TIME_UNITS:
                return whole_number(setting.minimum, setting.maximum)(text)
            return setting_value(setting, text)
        except LiteralError as error:
            self._problems.append(Problem(source.file, prop.line, 1, f"{prop.name}: {error}"))
            return None

    def _unmodelled(self, source: PropertiesFile, prop: Property) -> None:
        name = prop.name
        if not kafka_has(source.scope, name, self._release):
            if name.startswith("listener.name."):
                self._note(source, prop, Fate.UNAFFECTED)
                return
            marked = "Kafka reads the byte order mark as part of the name" if name[:1] == "\ufeff" else ""
            self._note(source, prop, Fate.UNKNOWN, marked or _note_on_releases(name, source.scope))
        elif is_without_effect(name):
            self._note(source, prop, Fate.UNAFFECTED)
        else:
            self._note(source, prop, Fate.LACKING, hidden_without(name))

    def _note(self, source: PropertiesFile, prop: Property, fate: Fate, note: str = "") -> None:
        self._lines.append(
            ImportedLine(
                file=source.file, line=prop.line, name=prop.name, value=prop.value, fate=fate, note=note
            )
        )

    def _check(self, text: str) -> None:
        name = "imported.yaml"
        try:
            load_text(f"name: any\ncluster: {name}\n", "any.yaml", cluster_files={name: text})
        except CampaignError as error:
            files = listed([source.file for source in self._sources])
            raise CampaignError(Problem(files, 0, 0, each.message) for each in error.problems) from None


def _is_of_broker(source: PropertiesFile) -> bool:
    """Return whether a file belongs to a broker, not to a process that is only a controller."""
    return source.values.get("process.roles") != "controller"


def _mode_of(sources: Sequence[PropertiesFile], release: str) -> str | None:
    """Return where the brokers keep metadata, or None if the sources or the model do not say."""
    names = {name for source in sources for name in source.values}
    mode = KRAFT if "process.roles" in names else ZOOKEEPER if "zookeeper.connect" in names else None
    return mode if mode in RELEASES[release].modes else None


def _number_text(text: str) -> str:
    """Return a number as campaigns write it: Java also reads ``+1`` and ``007``."""
    return str(int(text)) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else text


def _differs(name: str, settings: Mapping[str, Value], others: Mapping[str, Value]) -> bool:
    exact = _OTHER_UNITS[name][0] if name in _OTHER_UNITS else name
    return settings.get(exact) != others.get(exact)


def _is_shared(name: str) -> bool:
    """Return whether a broker's setting may be in the section ``settings`` of the campaign.

    A setting that clients also have may not: from that section it would apply to clients too.
    """
    return not {PRODUCER, CONSUMER} & set(scopes_of(name))


def _is_for_both_clients(name: str) -> bool:
    return {PRODUCER, CONSUMER} <= set(scopes_of(name))


def _note_on_releases(name: str, scope: str) -> str:
    """Return a note on where else Kafka has a setting that the release lacks in this scope."""
    releases = releases_with(name, (scope,))
    if releases:
        return f"Kafka {listed(releases)} has it"
    return "" if not releases_with(name) else f"it is not a {scope}'s setting"


def _texts(settings: Mapping[str, Value]) -> dict[str, str]:
    return {name: Word(setting_text(name, value)) for name, value in settings.items()}


def described(line: ImportedLine) -> str:
    """Describe an imported line: its position, the setting, and the note."""
    note = f" ({line.note})" if line.note else ""
    return f"{line.file}:{line.line} {quoted(f'{line.name}={line.value}')}{note}"
