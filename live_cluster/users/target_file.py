"""Reads the file that describes the user's cluster: addresses, and commands for its brokers."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.loader import read_file
from harrow.campaigns.language.part import Part, Section
from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.schema import cluster_file_section
from harrow.campaigns.language.shapes import (
    NAME,
    TEXT,
    Key,
    ListShape,
    MapShape,
    OneOrListShape,
    Reading,
    SectionShape,
    ValueShape,
    one_of,
    schema_of,
    whole,
)
from harrow.campaigns.language.spelling import quoted, suggestion
from harrow.campaigns.record.redaction import keep_secret, sounds_secret
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.releases.kafka_release import KafkaRelease, ReleaseError, release_of
from harrow.live_cluster.users.command import Command, CommandName
from harrow.live_cluster.users.command_word import (
    BROKER_PLACEHOLDERS,
    PEER_PLACEHOLDERS,
    CommandWord,
    UnsafeWordError,
)
from harrow.live_cluster.wire.security import MECHANISMS, PROTOCOLS, Security

HEALED_BY: Final[Mapping[CommandName, CommandName]] = {
    CommandName.KILL: CommandName.START,
    CommandName.STOP: CommandName.START,
    CommandName.PAUSE: CommandName.RESUME,
    CommandName.CUT: CommandName.RESTORE,
}
"""The commands that cause a fault, each with the command that undoes it."""
TOPICS: Final = "topics"
"""The permission to create topics, write to them, and delete them."""
ALLOWED: Final = (TOPICS, *HEALED_BY)
"""Every permission that a file can give."""
_LINK_COMMANDS: Final = frozenset({CommandName.CUT, CommandName.RESTORE})
_DEFAULT_LIMIT_US: Final = 60 * US_PER_SECOND
_BROKER_MAX: Final = 2**31 - 1
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,/\[\]]+):([0-9]{1,5})")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PORT_MAX: Final = 65_535
_SECURITY_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.")


class TargetFileError(FileError):
    """A target file has mistakes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBroker:
    """A broker in the file. ``variables`` are additional placeholders for its commands."""

    id: int
    variables: Mapping[str, CommandWord]
    commands: Mapping[CommandName, Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFile:
    """A target file. ``brokers`` are in the order of the file. Empty stands for all brokers."""

    path: Path
    bootstrap: tuple[tuple[str, int], ...]
    release: KafkaRelease | None
    security: Security
    brokers: Mapping[int, ListedBroker]
    commands: Mapping[CommandName, Command]
    allowed: frozenset[str]

    def command(self, name: CommandName, broker: int) -> Command | None:
        """Return a broker's own command, or else the common one, or else None."""
        listed = self.brokers.get(broker)
        own = None if listed is None else listed.commands.get(name)
        return own or self.commands.get(name)

    def placeholders(self, broker: int) -> frozenset[str]:
        """Return the placeholders in the commands for a broker."""
        commands = (self.command(name, broker) for name in CommandName)
        return frozenset(name for command in commands if command for name in command.placeholders())

    def has_broker(self, broker: int) -> bool:
        """Return whether campaigns may use a broker."""
        return not self.brokers or broker in self.brokers


def _argument(text: str) -> str:
    if "\0" in text:
        raise LiteralError("an argument of a command cannot contain NUL")
    return text


def _word(text: str) -> CommandWord:
    try:
        return CommandWord.of_file(text)
    except UnsafeWordError as error:
        raise LiteralError(str(error)) from None


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2]) <= _PORT_MAX:
        raise LiteralError(f"expected host:port, not {quoted(text)}")
    return match[1].strip("[]"), int(match[2])


def _release(text: str) -> KafkaRelease:
    try:
        return release_of(text)
    except ReleaseError as error:
        raise LiteralError(str(error)) from None


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise LiteralError(f"{quoted(text)} is not a valid placeholder name: letters, digits and underscores")
    if text in (*BROKER_PLACEHOLDERS, *PEER_PLACEHOLDERS):
        raise LiteralError(f"{text} is a placeholder of harrow's own")
    return text


class _CommandLine(OneOrListShape):
    """A line for the shell, or a list of arguments."""

    def read(self, node: nodes.Node, key: str, key_mark: nodes.Mark, reading: Reading) -> Part | None:
        if isinstance(node, nodes.Scalar) and not (node.is_null() or node.text.strip()):
            reading.refuse(node.mark, key, "the command is empty")
            return None
        return super().read(node, key, key_mark, reading)

    def schema(self, _definitions: Any) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "string"}, {"type": "array", "items": dict(self.json_schema), "minItems": 1}]
        }


_ARGUMENT: Final = ValueShape(_argument, TEXT.json_schema)
_LIMIT: Final = ValueShape(literals.positive_duration, {"type": "string", "examples": ["30s"]})
_COMMAND: Final = SectionShape(
    title="CommandSection",
    doc="A command: a program with its arguments, or a line for the shell, and its time limit.",
    keys={
        "run": Key(
            _CommandLine(_argument, TEXT.json_schema),
            "The program and its arguments, or a line for the shell, with {broker}, {host}, {port} and {rack}.",
            required=True,
        ),
        "timeout": Key(_LIMIT, "The time limit of the command; by default `timeout` of the file."),
    },
    short="run",
)
_COMMANDS: Final = SectionShape(
    title="CommandsSection",
    doc="Commands that act on a broker.",
    keys={
        CommandName.KILL: Key(_COMMAND, "Kills the process, and returns when it has ended."),
        CommandName.STOP: Key(_COMMAND, "Shuts the broker down; returns when it has stopped."),
        CommandName.START: Key(_COMMAND, "Starts the broker, and returns. Has no effect if the broker runs."),
        CommandName.PAUSE: Key(_COMMAND, "Pauses the process."),
        CommandName.RESUME: Key(_COMMAND, "Resumes the process. Has no effect if it is not paused."),
        CommandName.CUT: Key(_COMMAND, "Drops everything that {peer} (at {peer_host}) sends to {broker}."),
        CommandName.RESTORE: Key(_COMMAND, "Restores the link. Has no effect if it is not cut."),
    },
)
_BROKER: Final = SectionShape(
    title="ListedBrokerSection",
    doc="A broker.",
    keys={
        "id": Key(whole(0, _BROKER_MAX), "Its id.", required=True),
        "vars": Key(
            MapShape(ValueShape(_name, NAME.json_schema), ValueShape(_word, TEXT.json_schema)),
            "More placeholders for its commands, by name.",
        ),
        "commands": Key(_COMMANDS, "Commands for this broker alone."),
    },
)
_FILE: Final = SectionShape(
    title="TargetFileSection",
    doc="A cluster of your own.",
    keys={
        "bootstrap": Key(
            ListShape(
                ValueShape(_address, {"type": "string", "examples": ["kafka-1:9092"]}), accepts_single=True
            ),
            "Addresses of brokers, as host:port.",
            required=True,
        ),
        "kafka": Key(
            ValueShape(_release, {"type": "string", "examples": ["3.9.2"]}),
            "The release; by default harrow infers it from the brokers' requests.",
        ),
        "security": Key(
            MapShape(NAME, _ARGUMENT),
            "Settings of clients by librdkafka's names; ${NAME} is a variable of the environment.",
        ),
        "brokers": Key(ListShape(_BROKER), "The brokers that campaigns may use; by default all."),
        "commands": Key(_COMMANDS, "Commands for every broker."),
        "timeout": Key(_LIMIT, "The time limit of each command; by default 60s."),
        "allow": Key(
            ListShape(one_of(*ALLOWED), accepts_single=True),
            "The actions that harrow may take without --yes.",
        ),
    },
)


def load_target_file(path: Path, environ: Mapping[str, str] = os.environ) -> TargetFile:
    """Return the cluster that a file describes; *environ* has the variables for ``${NAME}``.

    Raise `FileError` if the file cannot be read or has mistakes.
    """
    text = read_file(path)
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        raise _refusal(path, error.mistakes) from None
    mistakes = list(document.mistakes)
    if not isinstance(document.root, nodes.MapNode):
        mistakes.append(nodes.Mistake(document.root.mark, "a cluster is a mapping (`key: value`)"))
        raise _refusal(path, mistakes)
    reading = Reading(_unknown_key, mistakes)
    body = _FILE.read(document.root, "", document.root.mark, reading)
    if body is None or len(mistakes) > len(document.mistakes):
        raise _refusal(path, mistakes)
    file = _TargetFileReader(path, body, environ, reading).read()
    if mistakes:
        raise _refusal(path, mistakes)
    return file


def target_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of target files."""
    return schema_of(_FILE)


def _refusal(path: Path, mistakes: Sequence[nodes.Mistake]) -> TargetFileError:
    places = sorted({(mistake.mark.line, mistake.mark.column, mistake.message) for mistake in mistakes})
    return TargetFileError([Problem(str(path), *place) for place in places])


def _unknown_key(section: SectionShape, key: str) -> str:
    if section is _FILE and key in cluster_file_section().keys:
        return f"`{key}` belongs to a cluster file, which describes a cluster for the model (--cluster)"
    return f"unknown key {quoted(key)}{suggestion(key, section.keys)}"


class _TargetFileReader:
    """Turns a well-formed file into a cluster, and reports keys that contradict each other."""

    def __init__(self, path: Path, body: Section, environ: Mapping[str, str], reading: Reading) -> None:
        self._path = path
        self._body = body
        self._environ = environ
        self._limit_us = body.get("timeout") or _DEFAULT_LIMIT_US
        self._problem = reading.problem

    def read(self) -> TargetFile:
        body = self._body
        listed = tuple(body / "brokers")
        self._check_ids(listed)
        variables = [broker.get("vars") or {} for broker in listed]
        # A common command may use only variables that every broker has.
        shared = set.intersection(*map(set, variables)) if listed else set()
        commands = self._commands(body / "commands", shared)
        brokers = {
            broker.get("id"): ListedBroker(
                id=broker.get("id"), variables=own, commands=self._commands(broker / "commands", set(own))
            )
            for broker, own in zip(listed, variables, strict=True)
        }
        self._check_healing(commands, brokers)
        return TargetFile(
            path=self._path,
            bootstrap=tuple(body.get("bootstrap")),
            release=body.get("kafka"),
            security=Security(self._security(body / "security")),
            brokers=brokers,
            commands=commands,
            allowed=frozenset(body.get("allow") or ()),
        )

    def _check_ids(self, listed: Sequence[Part]) -> None:
        ids = [broker.get("id") for broker in listed]
        for index, broker in enumerate(ids):
            if broker in ids[:index]:
                self._problem(listed[index] / "id", f"broker {broker} is listed twice")

    def _commands(self, section: Part, variables: set[str]) -> dict[CommandName, Command]:
        commands = {}
        for key, part in section.parts.items():
            name = CommandName(key)
            limit_us = part.get("timeout") or self._limit_us
            command = commands[name] = Command(part.get("run"), limit_us / US_PER_SECOND)
            peer_placeholders = PEER_PLACEHOLDERS if name in _LINK_COMMANDS else ()
            placeholders = [*BROKER_PLACEHOLDERS, *peer_placeholders, *sorted(variables)]
            for placeholder in command.placeholders():
                if placeholder not in placeholders:
                    hint = suggestion(placeholder, placeholders)
                    self._problem(part, f"{key}: unknown placeholder {{{placeholder}}}{hint}")
        return commands

    def _check_healing(
        self, commands: Mapping[CommandName, Command], brokers: Mapping[int, ListedBroker]
    ) -> None:
        """Report commands that no command undoes, and allowed commands that are missing."""
        for name, cure in HEALED_BY.items():
            message = f"{name} needs `{cure}`, which undoes it"
            if name in commands and cure not in commands:
                self._problem(self._body / "commands" / name, message, at_key=True)
            for index, broker in enumerate(brokers.values()):
                if name in broker.commands and cure not in {*broker.commands, *commands}:
                    self._problem(self._body.at("brokers", index, "commands", name), message, at_key=True)
        available = {TOPICS, *commands, *(name for broker in brokers.values() for name in broker.commands)}
        for word in self._body / "allow":
            if word.value not in available:
                self._problem(word, f"allow: there is no command {word.value}")

    def _security(self, section: Part) -> dict[str, str]:
        settings = {}
        for key, part in section.parts.items():
            if not key.startswith(_SECURITY_PREFIXES):
                self._problem(part, f"{quoted(key)} is not a security setting", at_key=True)
                continue
            settings[key] = self._from_environment(part)
            if settings[key] != part.value or sounds_secret(key):
                keep_secret(settings[key])
        protocol, mechanism = Security(settings).protocol, Security(settings).mechanism
        if protocol not in PROTOCOLS:
            self._problem(section / "security.protocol", f"expected {', '.join(PROTOCOLS)}")
        if mechanism not in (None, *MECHANISMS) or (protocol.startswith("SASL") and mechanism is None):
            message = f"harrow authenticates with {', '.join(MECHANISMS)}: set sasl.mechanism to one of them"
            self._problem(section, message, at_key=True)
        return settings

    def _from_environment(self, part: Part) -> str:
        value: str = part.value
        variable = _VARIABLE.fullmatch(value)
        if variable is None:
            return value
        if variable[1] not in self._environ:
            self._problem(part, f"{value} is not in the environment")
        return self._environ.get(variable[1], "")


Notify = Callable[[str], None]
"""Prints a line for the user."""


def described_permissions(file: TargetFile, permissions: Sequence[str]) -> Iterator[str]:
    """Yield a line for each permission, with the commands of the file."""
    for permission in permissions:
        if permission == TOPICS:
            yield "topics: create topics of its own (harrow-...), write to them, and delete them"
            continue
        name = CommandName(permission)
        if name in file.commands:
            commands = [str(file.commands[name])]
        else:
            own = (broker.commands for broker in file.brokers.values())
            commands = sorted({str(commands[name]) for commands in own if name in commands})
        yield f"{name}: run {' or '.join(commands)}, and to undo it `{HEALED_BY[name]}`"
