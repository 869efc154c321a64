"""Reads what ``kafka-configs --describe`` prints about brokers and topics, also with ``--all``."""

import re
from collections.abc import Iterator
from typing import Final

from harrow.campaigns.sources.description import (
    BrokerSettings,
    Description,
    Fate,
    ImportedLine,
    SourceLine,
    TopicDescription,
)
from harrow.cluster_model.topology import BROKER_ID_MAX

_HEAD: Final = re.compile(
    r"(?:Dynamic |All |Default )?[Cc]onfigs for (?P<kind>[a-z-]+?)s? (?P<name>in the cluster|'[^']*'|\S+) are:?\s*(?P<rest>.*)"
)
_SETTING: Final = re.compile(
    r"\s+(?P<name>[^\s=]+)=(?P<value>.*?) sensitive=(?P<sensitive>true|false) synonyms=\{(?P<synonyms>.*)\}\s*"
)
_SHORT_SETTING: Final = re.compile(r"\s+(?P<name>[a-z][^\s=]*)=(?P<value>.*)")
_NEXT_SETTING: Final = re.compile(r",(?=[a-z][a-z0-9.]*=)")
_DEFAULT: Final = "DEFAULT_CONFIG"
_ALL: Final = "in the cluster"
_NULL: Final = "null"
_INTERNAL: Final = "__"


def read_printed_configs(file: str, text: str) -> Description | None:
    """Return the settings that a text describes, of brokers and of topics."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not any(map(_HEAD.fullmatch, lines)):
        return None
    return _PrintedConfigs(file).description(lines)


class _PrintedConfigs:
    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: list[ImportedLine] = []
        self._owners: dict[tuple[str, str], tuple[list[SourceLine], list[SourceLine]]] = {}
        self._owner: tuple[str, str] | None = None

    def description(self, lines: list[str]) -> Description:
        """Return what all lines describe."""
        for number, line in enumerate(lines, 1):
            if (head := _HEAD.fullmatch(line)) is not None:
                self._read_head(number, head)
            elif line.strip():
                self._read_setting(number, line)
        return Description(
            broker_settings=tuple(self._brokers()),
            topics=tuple(
                TopicDescription(name=name, entries=tuple(entries), defaults=tuple(defaults))
                for (kind, name), (entries, defaults) in self._owners.items()
                if kind == "topic"
            ),
            lines=tuple(self._lines),
        )

    def _brokers(self) -> Iterator[BrokerSettings]:
        for (kind, name), (entries, defaults) in self._owners.items():
            if kind == "broker":
                yield BrokerSettings(
                    id=None if name == _ALL else int(name), entries=tuple(entries), defaults=tuple(defaults)
                )

    def _read_head(self, number: int, head: re.Match[str]) -> None:
        kind, name = head["kind"], head["name"].strip("'")
        is_broker = kind == "broker" and (
            name == _ALL or (name.isdecimal() and name.isascii() and len(name) < 9)
        )
        if is_broker and name != _ALL and int(name) > BROKER_ID_MAX:
            self._owner = None
            self._note(number, kind, name, Fate.LACKING, f"ids of the model go up to {BROKER_ID_MAX}")
        elif is_broker or (kind == "topic" and name != _ALL and not name.startswith(_INTERNAL)):
            self._owner = (kind, name)
            own, _ = self._owners.setdefault(self._owner, ([], []))
            self._note(number, kind, name, Fate.TAKEN)
            for pair in _NEXT_SETTING.split(head["rest"]):
                if "=" in pair:
                    setting, _, value = pair.partition("=")
                    own.append(SourceLine(self._file, number, setting, value))
        else:
            self._owner = None
            self._note(number, kind, name, Fate.UNAFFECTED, "neither a broker nor a topic of yours")

    def _read_setting(self, number: int, line: str) -> None:
        match = _SETTING.fullmatch(line) or _SHORT_SETTING.fullmatch(line)
        if match is None or self._owner is None:
            self._note(number, "text", line.strip(), Fate.UNAFFECTED, "no setting of a broker or a topic")
            return
        groups = match.groupdict()
        entry = SourceLine(self._file, number, match["name"], match["value"])
        own, defaults = self._owners[self._owner]
        if groups.get("sensitive") == "true" or entry.value == _NULL:
            note = "Kafka does not print the value" if groups.get("sensitive") == "true" else "not set"
            self._lines.append(ImportedLine(entry=entry, fate=Fate.UNAFFECTED, note=note))
        elif groups.get("synonyms") is not None and _is_default(groups["synonyms"]):
            defaults.append(entry)
        else:
            own.append(entry)

    def _note(self, number: int, name: str, value: str, fate: Fate, note: str = "") -> None:
        self._lines.append(
            ImportedLine(entry=SourceLine(self._file, number, name, value), fate=fate, note=note)
        )


def _is_default(synonyms: str) -> bool:
    """Return whether a value is Kafka's default: nothing but a default decides it."""
    return not synonyms or synonyms.startswith(f"{_DEFAULT}:")
