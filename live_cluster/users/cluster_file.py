"""A cluster of the user's, as a file describes it: where it is, and the commands that do something to its brokers."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from harrow.campaigns.language import literals
from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.literals import LiteralError
from harrow.campaigns.language.loader import read_file
from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.readers.shape import mistake_of, validated
from harrow.campaigns.language.section import TEXT, Leaf, OneOrMany, Section, nearest_section, whole
from harrow.campaigns.language.spelling import quoted, suggestion
from harrow.campaigns.record.redaction import keep_secret, sounds_secret
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.reach.rehearsal import Deed
from harrow.live_cluster.releases.kafka_release import KafkaRelease, ReleaseError, release_of
from harrow.live_cluster.users.command import Command
from harrow.live_cluster.users.command_word import (
    BROKER_PLACEHOLDERS,
    PEER_PLACEHOLDERS,
    CommandWord,
    UnsafeWordError,
)
from harrow.live_cluster.wire.security import MECHANISMS, PROTOCOLS, Security

HEALED_BY: Final[Mapping[Deed, Deed]] = {
    Deed.KILL: Deed.START,
    Deed.STOP: Deed.START,
    Deed.PAUSE: Deed.RESUME,
    Deed.CUT: Deed.RESTORE,
}
"""What can be done to a broker by a command, and what undoes it."""
COMMANDS: Final = (*HEALED_BY, Deed.START, Deed.RESUME, Deed.RESTORE)
TOPICS: Final = "topics"
"""To create topics, write to them, and delete them."""
ALLOWED: Final = (TOPICS, *HEALED_BY)
_LINK_DEEDS: Final = frozenset({Deed.CUT, Deed.RESTORE})
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
    commands: Mapping[Deed, Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFile:
    """The file. ``brokers`` are those that it lists, in their order; where it lists none, all of the cluster are meant."""

    path: Path
    bootstrap: tuple[tuple[str, int], ...]
    release: KafkaRelease | None
    security: Security
    brokers: Mapping[int, ListedBroker]
    commands: Mapping[Deed, Command]
    allowed: frozenset[str]

    def command(self, deed: Deed, broker: int) -> Command | None:
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


_ARGUMENT: Final = Leaf(_argument, TEXT.schema)
_VALUE: Final = Leaf(_word, TEXT.schema)
_LIMIT: Final = Leaf(literals.positive_duration, {"type": "string", "examples": ["30s"]})


class _Written:
    """Marks a section that may be written as its key ``run`` alone: a list, or a line for the shell."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_before_validator_function(self._long, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        arguments = {"type": "array", "items": dict(TEXT.schema), "minItems": 1}
        return {"anyOf": [{"type": "string"}, arguments, handler(core)]}

    def _long(self, value: Any) -> Any:
        return value if isinstance(value, dict) else {"run": value}


class _Run:
    """Reads a list of arguments, or a line for the shell."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": dict(TEXT.schema), "minItems": 1}]}

    def _validate(self, value: Any) -> tuple[str, ...] | str:
        if not isinstance(value, list):
            line: str = _ARGUMENT.validate(value)
            if not line.strip():
                raise LiteralError("the command is empty")
            return line
        if not value:
            raise LiteralError("the list is empty")
        return tuple(_ARGUMENT.validate(part) for part in value)


class CommandSection(Section):
    """A command: a program with its arguments, or a line for the shell, and how long it may take."""

    run: Annotated[Any, _Run()] = Field(
        description="The program and its arguments, or a line for the shell. {broker}, {host}, {port} and {rack} stand for the broker."
    )
    timeout: Annotated[Any, _LIMIT] = Field(None, description="How long it may take; by default `timeout`.")


_Command = Annotated[CommandSection, _Written()]


class CommandsSection(Section):
    """What does something to a broker."""

    kill: _Command | None = Field(None, description="Ends its process at once; comes back when it is gone.")
    stop: _Command | None = Field(None, description="Stops it in good order; comes back when it has stopped.")
    start: _Command | None = Field(
        None, description="Starts it; comes back while it runs, and does no harm to one that runs."
    )
    pause: _Command | None = Field(None, description="Lets its process stand still.")
    resume: _Command | None = Field(
        None, description="Lets it go on; does no harm to one that was not paused."
    )
    cut: _Command | None = Field(
        None, description="Lets nothing through that {peer} (at {peer_host}) sends to {broker}."
    )
    restore: _Command | None = Field(
        None, description="Lets it through again; does no harm to a link that was not cut."
    )


class ListedBrokerSection(Section):
    """A broker."""

    id: Annotated[Any, whole(0, _BROKER_MAX)] = Field(description="Its id.")
    vars: dict[Annotated[str, Leaf(_name, {"type": "string"})], Annotated[Any, _VALUE]] | None = Field(
        None, description="What else can stand in its commands, by name."
    )
    commands: CommandsSection | None = Field(None, description="Commands of its own.")


class ClusterFileSection(Section):
    """A cluster of the user's."""

    bootstrap: Annotated[
        list[Annotated[Any, Leaf(_address, {"type": "string", "examples": ["kafka-1:9092"]})]], OneOrMany()
    ] = Field(description="Where brokers are found, as host:port.")
    kafka: Annotated[Any, Leaf(_release, {"type": "string", "examples": ["3.9.2"]})] = Field(
        None, description="The release; by default as the brokers' requests tell."
    )
    security: dict[str, Annotated[str, _ARGUMENT]] | None = Field(
        None,
        description="Settings of clients, under the names of librdkafka; ${NAME} is taken from the environment.",
    )
    brokers: list[ListedBrokerSection] | None = Field(
        None, description="The brokers that campaigns may use; by default all."
    )
    commands: CommandsSection | None = Field(None, description="Commands for every broker.")
    timeout: Annotated[Any, _LIMIT] = Field(None, description="How long a command may take; by default 60s.")
    allow: (
        Annotated[list[Annotated[Any, Leaf(literals.choice(ALLOWED), {"enum": list(ALLOWED)})]], OneOrMany()]
        | None
    ) = Field(None, description="What may be done without asking.")


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
    body, errors = validated(ClusterFileSection, document.root)
    mistakes += [mistake_of(error, document.root, _unknown_key) for error in errors]
    if body is None:
        raise _refused(path, mistakes)
    reader = _ClusterFileReader(path, document.root, body, environ)
    found = reader.read()
    if mistakes := [*mistakes, *reader.mistakes]:
        raise _refused(path, mistakes)
    return found


def cluster_file_schema() -> dict[str, Any]:
    """Return the JSON Schema of such files."""
    return ClusterFileSection.model_json_schema()


def _refused(path: Path, mistakes: Sequence[nodes.Mistake]) -> ClusterFileError:
    places = sorted({(found.mark.line, found.mark.column, found.message) for found in mistakes})
    return ClusterFileError([Problem(str(path), *place) for place in places])


def _unknown_key(location: nodes.Path) -> str:
    key = str(location[-1])
    section = nearest_section(ClusterFileSection, location[:-1]) or ClusterFileSection
    return f"unknown key {quoted(key)}{suggestion(key, section.keys())}"


class _ClusterFileReader:
    """Makes a cluster of a file that has the right shape, and takes note of what does not fit together."""

    def __init__(
        self, path: Path, root: nodes.Node, body: ClusterFileSection, environ: Mapping[str, str]
    ) -> None:
        self._path = path
        self._root = root
        self._body = body
        self._environ = environ
        self._limit_us = body.timeout or _LIMIT_US
        self.mistakes: list[nodes.Mistake] = []

    def read(self) -> ClusterFile:
        body = self._body
        listed = body.brokers or []
        self._check_ids(listed)
        # A variable that stands in everybody's commands has to stand for something everywhere.
        shared = set.intersection(*(set(each.vars or {}) for each in listed)) if listed else set()
        commands = self._commands(body.commands, ("commands",), shared)
        brokers = {
            each.id: ListedBroker(
                id=each.id,
                variables=dict(each.vars or {}),
                commands=self._commands(each.commands, ("brokers", index, "commands"), set(each.vars or {})),
            )
            for index, each in enumerate(listed)
        }
        self._check_healing(commands, brokers)
        return ClusterFile(
            path=self._path,
            bootstrap=tuple(body.bootstrap),
            release=body.kafka,
            security=Security(self._security(body.security or {})),
            brokers=brokers,
            commands=commands,
            allowed=frozenset(body.allow or ()),
        )

    def _problem(self, path: nodes.Path, message: str, *, at_key: bool = False) -> None:
        _, key_mark, node = nodes.lookup(self._root, path)
        self.mistakes.append(nodes.Mistake(key_mark if at_key else node.mark, message))

    def _check_ids(self, listed: Sequence[ListedBrokerSection]) -> None:
        ids = [each.id for each in listed]
        for index, broker in enumerate(ids):
            if broker in ids[:index]:
                self._problem(("brokers", index, "id"), f"broker {broker} stands here twice")

    def _commands(
        self, section: CommandsSection | None, path: nodes.Path, variables: set[str]
    ) -> dict[Deed, Command]:
        found = {}
        for key, given in ({} if section is None else section.given()).items():
            if given is None:
                continue
            deed = Deed(key)
            limit_us = given.timeout or self._limit_us
            command = found[deed] = Command(given.run, limit_us / US_PER_SECOND)
            known = [
                *BROKER_PLACEHOLDERS,
                *(PEER_PLACEHOLDERS if deed in _LINK_DEEDS else ()),
                *sorted(variables),
            ]
            for name in command.placeholders():
                if name not in known:
                    message = f"{key}: unknown placeholder {{{name}}}{suggestion(name, known)}"
                    self._problem((*path, key), message)
        return found

    def _check_healing(self, commands: Mapping[Deed, Command], brokers: Mapping[int, ListedBroker]) -> None:
        """Report what can be done and not be undone, and what is allowed and cannot be done."""
        for deed, cure in HEALED_BY.items():
            if deed in commands and cure not in commands:
                self._problem(("commands", deed), f"{deed} needs `{cure}`, which undoes it", at_key=True)
            for index, broker in enumerate(brokers.values()):
                if deed in broker.commands and cure not in {*broker.commands, *commands}:
                    message = f"{deed} needs `{cure}`, which undoes it"
                    self._problem(("brokers", index, "commands", deed), message, at_key=True)
        known = {TOPICS, *commands, *(deed for broker in brokers.values() for deed in broker.commands)}
        for index, word in enumerate(self._body.allow or ()):
            if word not in known:
                self._problem(("allow", index), f"allow: there is no command that does {word}")

    def _security(self, given: Mapping[str, str]) -> dict[str, str]:
        found = {}
        for key, value in given.items():
            path: nodes.Path = ("security", key)
            if not key.startswith(_FOR_CLIENTS):
                self._problem(path, f"{quoted(key)} is no setting of security", at_key=True)
                continue
            found[key] = self._from_environment(value, path)
            if found[key] != value or sounds_secret(key):
                keep_secret(found[key])
        protocol, mechanism = Security(found).protocol, Security(found).mechanism
        if protocol not in PROTOCOLS:
            self._problem(("security", "security.protocol"), f"expected {', '.join(PROTOCOLS)}")
        if mechanism not in (None, *MECHANISMS) or (protocol.startswith("SASL") and mechanism is None):
            message = f"harrow authenticates by {', '.join(MECHANISMS)}: give one of them as sasl.mechanism"
            self._problem(("security",), message, at_key=True)
        return found

    def _from_environment(self, value: str, path: nodes.Path) -> str:
        found = _VARIABLE.fullmatch(value)
        if found is None:
            return value
        if found[1] not in self._environ:
            self._problem(path, f"{value} is not in the environment")
        return self._environ.get(found[1], "")


Notify = Callable[[str], None]
"""Takes a line for the user."""


def words_of(commands: ClusterFile, deeds: Sequence[str]) -> Iterator[str]:
    """Yield in words what deeds come to with the commands of a file."""
    for deed in deeds:
        if deed == TOPICS:
            yield "topics: create topics of its own (harrow-...), write to them, and delete them"
            continue
        done = Deed(deed)
        cure = HEALED_BY[done]
        own = {str(each.commands[done]) for each in commands.brokers.values() if done in each.commands}
        given = [str(commands.commands[done])] if done in commands.commands else sorted(own)
        yield f"{deed}: run {' or '.join(given)}, and to undo it `{cure}`"
