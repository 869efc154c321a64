"""A cluster of the user's, as a file describes it: where it is, and the commands that do something to its brokers."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.loader import read_file
from harrow.campaigns.language.part import Part, Section
from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.shapes import (
    NAME,
    TEXT,
    Key,
    Leaf,
    Listed,
    Mapped,
    OneOrSeveral,
    Reading,
    SectionShape,
    one_of,
    schema_of,
    whole,
)
from harrow.campaigns.language.spelling import quoted, suggestion
from harrow.campaigns.record.redaction import keep_secret, sounds_secret
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
"""What can be done to a broker by a command, and what undoes it."""
COMMANDS: Final = tuple(CommandName)
TOPICS: Final = "topics"
"""To create topics, write to them, and delete them."""
ALLOWED: Final = (TOPICS, *HEALED_BY)
_LINK_DEEDS: Final = frozenset({CommandName.CUT, CommandName.RESTORE})
_LIMIT_US: Final = 60 * US_PER_SECOND
_BROKER_MAX: Final = 2**31 - 1
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,/\[\]]+):([0-9]{1,5})")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PORT_MAX: Final = 65_535
_FOR_CLIENTS: Final = ("security.", "sasl.", "ssl.", "enable.ssl.")


class ClusterFileError(FileError):
    """A file of a cluster that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBroker:
    """A broker of which the file says something. ``variables`` stand for themselves in its commands."""

    id: int
    variables: Mapping[str, CommandWord]
    commands: Mapping[CommandName, Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFile:
    """The file. ``brokers`` are those that it lists, in their order; where it lists none, all of the cluster are meant."""

    path: Path
    bootstrap: tuple[tuple[str, int], ...]
    release: KafkaRelease | None
    security: Security
    brokers: Mapping[int, ListedBroker]
    commands: Mapping[CommandName, Command]
    allowed: frozenset[str]

    def command(self, deed: CommandName, broker: int) -> Command | None:
        """Return the command that does something to a broker, None where there is none."""
        listed = self.brokers.get(broker)
        own = None if listed is None else listed.commands.get(deed)
        return own or self.commands.get(deed)

    def placeholders(self, broker: int) -> frozenset[str]:
        """Return what the commands for a broker need to know."""
        found = (self.command(deed, broker) for deed in COMMANDS)
        return frozenset(name for command in found if command for name in command.placeholders())


def _argument(text: str) -> str:
    if "\0" in text:
        raise LiteralError("no argument of a command can have a NUL")
    return text


def _word(text: str) -> CommandWord:
    try:
        return CommandWord.of_file(text)
    except UnsafeWordError as error:
        raise LiteralError(str(error)) from None


def _address(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _PORT_MAX:
        raise LiteralError(f"expected host:port, not {quoted(text)}")
    return found[1].strip("[]"), int(found[2])


def _release(text: str) -> KafkaRelease:
    try:
        return release_of(text)
    except ReleaseError as error:
        raise LiteralError(str(error)) from None


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise LiteralError(f"{quoted(text)} is no name for a placeholder: letters, digits and underscores")
    if text in (*BROKER_PLACEHOLDERS, *PEER_PLACEHOLDERS):
        raise LiteralError(f"{text} stands for something already")
    return text


class _Run(OneOrSeveral):
    """A line for the shell, or a list of arguments."""

    def read(self, node: nodes.Node, key: str, key_mark: nodes.Mark, reading: Reading) -> Part | None:
        if isinstance(node, nodes.Scalar) and not (node.is_null() or node.text.strip()):
            reading.refuse(node.mark, key, "the command is empty")
            return None
        return super().read(node, key, key_mark, reading)

    def schema(self, _definitions: Any) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": dict(self.says), "minItems": 1}]}


_ARGUMENT: Final = Leaf(_argument, TEXT.says)
_LIMIT: Final = Leaf(literals.positive_duration, {"type": "string", "examples": ["30s"]})
_COMMAND: Final = SectionShape(
    title="CommandSection",
    doc="A command: a program with its arguments, or a line for the shell, and how long it may take.",
    keys={
        "run": Key(
            _Run(_argument, TEXT.says),
            "The program and its arguments, or a line for the shell. {broker}, {host}, {port} and {rack} stand for the broker.",
            required=True,
        ),
        "timeout": Key(_LIMIT, "How long it may take; by default `timeout`."),
    },
    short="run",
)
_COMMANDS: Final = SectionShape(
    title="CommandsSection",
    doc="What does something to a broker.",
    keys={
        CommandName.KILL: Key(_COMMAND, "Ends its process at once; comes back when it is gone."),
        CommandName.STOP: Key(_COMMAND, "Stops it in good order; comes back when it has stopped."),
        CommandName.START: Key(
            _COMMAND, "Starts it; comes back while it runs, and does no harm to one that runs."
        ),
        CommandName.PAUSE: Key(_COMMAND, "Lets its process stand still."),
        CommandName.RESUME: Key(_COMMAND, "Lets it go on; does no harm to one that was not paused."),
        CommandName.CUT: Key(
            _COMMAND, "Lets nothing through that {peer} (at {peer_host}) sends to {broker}."
        ),
        CommandName.RESTORE: Key(_COMMAND, "Lets it through again; does no harm to a link that was not cut."),
    },
)
_BROKER: Final = SectionShape(
    title="ListedBrokerSection",
    doc="A broker.",
    keys={
        "id": Key(whole(0, _BROKER_MAX), "Its id.", required=True),
        "vars": Key(
            Mapped(Leaf(_name, NAME.says), Leaf(_word, TEXT.says)),
            "What else can stand in its commands, by name.",
        ),
        "commands": Key(_COMMANDS, "Commands of its own."),
    },
)
_FILE: Final = SectionShape(
    title="ClusterFileSection",
    doc="A cluster of the user's.",
    keys={
        "bootstrap": Key(
            Listed(Leaf(_address, {"type": "string", "examples": ["kafka-1:9092"]}), one_will_do=True),
            "Where brokers are found, as host:port.",
            required=True,
        ),
        "kafka": Key(
            Leaf(_release, {"type": "string", "examples": ["3.9.2"]}),
            "The release; by default as the brokers' requests tell.",
        ),
        "security": Key(
            Mapped(NAME, _ARGUMENT),
            "Settings of clients, under the names of librdkafka; ${NAME} is taken from the environment.",
        ),
        "brokers": Key(Listed(_BROKER), "The brokers that campaigns may use; by default all."),
        "commands": Key(_COMMANDS, "Commands for every broker."),
        "timeout": Key(_LIMIT, "How long a command may take; by default 60s."),
        "allow": Key(Listed(one_of(*ALLOWED), one_will_do=True), "What may be done without asking."),
    },
)


def load_cluster_file(path: Path, environ: Mapping[str, str] = os.environ) -> ClusterFile:
    """Return the cluster that a file describes; *environ* has what ``${NAME}`` stands for.

    Raises:
        FileError: the file cannot be read, or has mistakes.

    """
    text = read_file(path)
    try:
        document = nodes.compose(text)
    except nodes.YamlError as error:
        raise _refused(path, error.mistakes) from None
    mistakes = list(document.mistakes)
    if not isinstance(document.root, nodes.MapNode):
        mistakes.append(nodes.Mistake(document.root.mark, "a cluster is a mapping (`key: value`)"))
        raise _refused(path, mistakes)
    reading = Reading(_unknown_key, mistakes)
    body = _FILE.read(document.root, "", document.root.mark, reading)
    if body is None or len(mistakes) > len(document.mistakes):
        raise _refused(path, mistakes)
    found = _ClusterFileReader(path, body, environ, reading).read()
    if mistakes:
        raise _refused(path, mistakes)
    return found


def cluster_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of such files."""
    return schema_of(_FILE)


def _refused(path: Path, mistakes: Sequence[nodes.Mistake]) -> ClusterFileError:
    places = sorted({(found.mark.line, found.mark.column, found.message) for found in mistakes})
    return ClusterFileError([Problem(str(path), *place) for place in places])


def _unknown_key(section: SectionShape, key: str) -> str:
    return f"unknown key {quoted(key)}{suggestion(key, section.keys)}"


class _ClusterFileReader:
    """Makes a cluster of a file that has the right shape, and takes note of what does not fit together."""

    def __init__(self, path: Path, body: Section, environ: Mapping[str, str], reading: Reading) -> None:
        self._path = path
        self._body = body
        self._environ = environ
        self._limit_us = body.get("timeout") or _LIMIT_US
        self._problem = reading.problem

    def read(self) -> ClusterFile:
        body = self._body
        listed = tuple(body / "brokers")
        self._check_ids(listed)
        variables = [each.get("vars") or {} for each in listed]
        # A variable that stands in everybody's commands has to stand for something everywhere.
        shared = set.intersection(*map(set, variables)) if listed else set()
        commands = self._commands(body / "commands", shared)
        brokers = {
            each.get("id"): ListedBroker(
                id=each.get("id"), variables=own, commands=self._commands(each / "commands", set(own))
            )
            for each, own in zip(listed, variables, strict=True)
        }
        self._check_healing(commands, brokers)
        return ClusterFile(
            path=self._path,
            bootstrap=tuple(body.get("bootstrap")),
            release=body.get("kafka"),
            security=Security(self._security(body / "security")),
            brokers=brokers,
            commands=commands,
            allowed=frozenset(body.get("allow") or ()),
        )

    def _check_ids(self, listed: Sequence[Part]) -> None:
        ids = [each.get("id") for each in listed]
        for index, broker in enumerate(ids):
            if broker in ids[:index]:
                self._problem(listed[index] / "id", f"broker {broker} stands here twice")

    def _commands(self, section: Part, variables: set[str]) -> dict[CommandName, Command]:
        found = {}
        for key, given in section.parts.items():
            deed = CommandName(key)
            limit_us = given.get("timeout") or self._limit_us
            command = found[deed] = Command(given.get("run"), limit_us / US_PER_SECOND)
            known = [
                *BROKER_PLACEHOLDERS,
                *(PEER_PLACEHOLDERS if deed in _LINK_DEEDS else ()),
                *sorted(variables),
            ]
            for name in command.placeholders():
                if name not in known:
                    message = f"{key}: unknown placeholder {{{name}}}{suggestion(name, known)}"
                    self._problem(given, message)
        return found

    def _check_healing(
        self, commands: Mapping[CommandName, Command], brokers: Mapping[int, ListedBroker]
    ) -> None:
        """Report what can be done and not be undone, and what is allowed and cannot be done."""
        for deed, cure in HEALED_BY.items():
            if deed in commands and cure not in commands:
                message = f"{deed} needs `{cure}`, which undoes it"
                self._problem(self._body / "commands" / deed, message, at_key=True)
            for index, broker in enumerate(brokers.values()):
                if deed in broker.commands and cure not in {*broker.commands, *commands}:
                    message = f"{deed} needs `{cure}`, which undoes it"
                    self._problem(self._body.at("brokers", index, "commands", deed), message, at_key=True)
        known = {TOPICS, *commands, *(deed for broker in brokers.values() for deed in broker.commands)}
        for word in self._body / "allow":
            if word.value not in known:
                self._problem(word, f"allow: there is no command that does {word.value}")

    def _security(self, section: Part) -> dict[str, str]:
        found = {}
        for key, given in section.parts.items():
            if not key.startswith(_FOR_CLIENTS):
                self._problem(given, f"{quoted(key)} is no setting of security", at_key=True)
                continue
            found[key] = self._from_environment(given)
            if found[key] != given.value or sounds_secret(key):
                keep_secret(found[key])
        protocol, mechanism = Security(found).protocol, Security(found).mechanism
        if protocol not in PROTOCOLS:
            self._problem(section / "security.protocol", f"expected {', '.join(PROTOCOLS)}")
        if mechanism not in (None, *MECHANISMS) or (protocol.startswith("SASL") and mechanism is None):
            message = f"harrow authenticates by {', '.join(MECHANISMS)}: give one of them as sasl.mechanism"
            self._problem(section, message, at_key=True)
        return found

    def _from_environment(self, given: Part) -> str:
        value: str = given.value
        found = _VARIABLE.fullmatch(value)
        if found is None:
            return value
        if found[1] not in self._environ:
            self._problem(given, f"{value} is not in the environment")
        return self._environ.get(found[1], "")


Notify = Callable[[str], None]
"""Takes a line for the user."""


def words_of(commands: ClusterFile, deeds: Sequence[str]) -> Iterator[str]:
    """Yield in words what deeds come to with the commands of a file."""
    for deed in deeds:
        if deed == TOPICS:
            yield "topics: create topics of its own (harrow-...), write to them, and delete them"
            continue
        done = CommandName(deed)
        cure = HEALED_BY[done]
        own = {str(each.commands[done]) for each in commands.brokers.values() if done in each.commands}
        given = [str(commands.commands[done])] if done in commands.commands else sorted(own)
        yield f"{deed}: run {' or '.join(given)}, and to undo it `{cure}`"
