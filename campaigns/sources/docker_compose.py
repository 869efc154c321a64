"""Reads docker-compose files: each service with an image of Kafka is a broker or a controller.

The images turn variables of the environment into settings, each by a rule of its own.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.kafka_settings import is_without_effect, kafka_has
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.sources.description import (
    Description,
    Fate,
    Server,
    SourceLine,
    StatedRelease,
    TopicDescription,
)
from harrow.campaigns.sources.source_text import file_text
from harrow.campaigns.sources.yaml_source import YamlSource, given, scalars, section, shown
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import BROKER
from harrow.cluster_model.topology import BROKERS_MAX

_LOOKS_LIKE_COMPOSE: Final = re.compile(r"^services\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFamily:
    """A family of images: which variables are settings, and how their names change.

    An underscore stands for a dot, and ``marks`` for other characters. ``not_settings`` are
    variables with the prefix that configure something else, such as the Java machine. ``others``
    are settings by variables without the prefix.
    """

    names: tuple[str, ...]
    prefix: str
    marks: Mapping[str, str] = field(default_factory=dict)
    not_settings: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    version: Callable[[str], str] = str

    def setting(self, variable: str) -> str | None:
        """Return the setting that a variable sets; None if it sets none."""
        if variable in self.others:
            return self.others[variable]
        if not variable.startswith(self.prefix) or variable in self.not_settings:
            return None
        name = variable.removeprefix(self.prefix).lower()
        marks = {"_": ".", **self.marks}
        pattern = "|".join(sorted(marks, key=len, reverse=True))
        return re.sub(pattern, lambda match: marks[match[0]], name)


def _kafka_of_confluent(tag: str) -> str:
    """Return the version of Kafka in a release of Confluent Platform: 7.5 has Kafka 3.5."""
    match = re.match(r"([0-9]{1,3})\.([0-9]{1,3})", tag)
    if match is None:
        return tag
    major, minor = int(match[1]), int(match[2])
    return f"{major - 4}.{minor}" if major >= 7 else _OLDER_CONFLUENT.get(f"{major}.{minor}", "0.10.2")


_OLDER_CONFLUENT: Final = {
    "3.3": "0.11",
    "4.0": "1.0",
    "4.1": "1.1",
    "5.0": "2.0",
    "5.1": "2.1",
    "5.2": "2.2",
    "5.3": "2.3",
    "5.4": "2.4",
    "5.5": "2.5",
    "6.0": "2.6",
    "6.1": "2.7",
    "6.2": "2.8",
}
_MARKS: Final = {"___": "-", "__": "_"}
_CREATE_TOPICS: Final = "KAFKA_CREATE_TOPICS"
"""Topics that the image of wurstmeister creates: name, partitions, replicas, and a policy."""
_CREATED_TOPIC: Final = re.compile(
    r"(?P<name>[^:]+):(?P<partitions>[0-9]{1,5}):(?P<replicas>[0-9]{1,3})(?::(?P<policy>[a-z]+))?"
)
_JAVA: Final = (
    *(
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
    ),
    *("KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_LOGGERS"),
    *("KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_HOME", _CREATE_TOPICS),
)
APACHE: Final = ImageFamily(
    names=("apache/kafka", "apache/kafka-native"), prefix="KAFKA_", marks=_MARKS, not_settings=_JAVA
)
"""The rule of Apache's image (``KafkaDockerWrapper``)."""
IMAGES: Final = (
    APACHE,
    ImageFamily(
        names=("confluentinc/cp-kafka", "confluentinc/cp-server", "confluentinc/confluent-local"),
        prefix="KAFKA_",
        marks=_MARKS,
        not_settings=_JAVA,
        version=_kafka_of_confluent,
    ),
    ImageFamily(
        names=("bitnami/kafka", "bitnamilegacy/kafka", "bitnamisecure/kafka"),
        prefix="KAFKA_CFG_",
        others={"KAFKA_ZOOKEEPER_CONNECT": "zookeeper.connect", "KAFKA_BROKER_ID": "broker.id"},
    ),
    ImageFamily(
        names=("wurstmeister/kafka",),
        prefix="KAFKA_",
        not_settings=_JAVA,
        version=lambda tag: tag.rpartition("-")[2],
    ),
)
_BITNAMI: Final = IMAGES[2]
"""The usual images. Others are recognised by the variables that only a broker has."""
_VARIABLES_OF_BROKERS: Final = (
    "KAFKA_NODE_ID",
    "KAFKA_BROKER_ID",
    "KAFKA_PROCESS_ROLES",
    "KAFKA_ZOOKEEPER_CONNECT",
)
_REFERENCE: Final = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<braced>[A-Za-z_]\w*)(?:(?P<operator>:?[-?+])(?P<word>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w*))",
    re.ASCII,
)
_ENV_LINE: Final = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][\w.]*)\s*=\s*(?P<value>.*?)\s*", re.ASCII)
_SERVICE_KEYS: Final = ("image", "environment", "env_file", "scale", "deploy")


def read_compose(file: str, text: str) -> Description | None:
    """Return the brokers and controllers among the services of a file.

    Raises:
        CampaignError: The file is not YAML, it has no service with Kafka, or a value is wrong.

    """
    if not _LOOKS_LIKE_COMPOSE.search(text):
        return None
    return _Compose(file, text).description()


class _Compose:
    def __init__(self, file: str, text: str) -> None:
        self._source = YamlSource(file, text)
        self._folder = Path(file).parent
        self._variables = {entry.name: entry.value for entry in self._env_file(".env", is_optional=True)}
        self._releases: list[StatedRelease] = []
        self._topics: list[TopicDescription] = []

    def description(self) -> Description:
        """Return what all services describe."""
        servers: list[Server] = []
        for root in self._source.documents:
            self._source.leave(root, "", ("services",))
            for name, found in section(root, "services").entries.items():
                service = found.value if isinstance(found.value, nodes.MapNode) else section(root, "")
                environment = list(self._environment(service))
                image = self._image_of(service, {entry.name for entry, _ in environment})
                if image is None:
                    note = shown(service.entries["image"].value) if "image" in service.entries else ""
                    self._source.decide(
                        f"services.{name}", found, Fate.UNAFFECTED, note and f"image {quoted(note)}"
                    )
                else:
                    servers += self._servers(name, service, image, environment)
        if not servers:
            message = "no service in it has an image of Kafka, or the variables of a broker"
            raise CampaignError([Problem(self._source.file, 0, 0, message)])
        return Description(
            servers=tuple(servers),
            topics=tuple(self._topics),
            releases=tuple(self._releases),
            lines=tuple(self._source.lines),
        )

    def _image_of(self, service: nodes.MapNode, variables: Collection[str]) -> ImageFamily | None:
        """Return the family of a service's image, and state the version in its tag."""
        found = service.entries.get("image")
        text, missing = ("", ()) if found is None else self._interpolated(shown(found.value))
        name, _, tag = (
            text.partition("@")[0].rpartition(":") if ":" in text.rpartition("/")[2] else (text, "", "latest")
        )
        image = next(
            (
                each
                for each in IMAGES
                if name.endswith(tuple(f"/{own}" for own in each.names)) or name in each.names
            ),
            None,
        )
        if image is None or missing:
            if any(variable.startswith(_BITNAMI.prefix) for variable in variables):
                image = _BITNAMI
            elif any(variable in variables for variable in _VARIABLES_OF_BROKERS):
                image = image or APACHE
            if image is not None and found is not None:
                self._source.decide("image", found, Fate.UNAFFECTED, "the image names no version of Kafka")
            return image
        assert found is not None, "its name is that of a known image"
        version = image.version(tag)
        if re.match(r"[0-9]{1,4}\.[0-9]{1,4}", version):
            self._releases.append(StatedRelease(entry=self._source.entry("image", found), version=version))
        else:
            self._source.decide("image", found, Fate.UNAFFECTED, "the tag names no version of Kafka")
        return image

    def _servers(
        self, name: str, service: nodes.MapNode, image: ImageFamily, environment: list[tuple[SourceLine, str]]
    ) -> Iterator[Server]:
        self._source.leave(service, f"services.{name}.", _SERVICE_KEYS)
        entries = []
        for entry, problem in environment:
            setting = image.setting(entry.name)
            if entry.name == _CREATE_TOPICS:
                self._create_topics(entry)
            elif setting is None:
                foreign = entry.name.startswith("KAFKA_") and image.prefix != "KAFKA_"
                note = f"this image passes on only {image.prefix} variables" if foreign else ""
                self._source.decide_entry(entry, Fate.UNAFFECTED, note)
            elif problem:
                self._source.decide_entry(entry._replace(name=setting), _fate_without_value(setting), problem)
            else:
                entries.append(entry._replace(name=setting))
        for _ in range(self._copies(name, service)):
            yield Server(entries=tuple(entries))

    def _create_topics(self, entry: SourceLine) -> None:
        topics = []
        for text in filter(None, map(str.strip, entry.value.split(","))):
            match = _CREATED_TOPIC.fullmatch(text)
            if match is None:
                self._source.decide_entry(
                    entry, Fate.LACKING, f"{quoted(text)} is no topic with partitions and replicas"
                )
                return
            policy = (
                ()
                if match["policy"] is None
                else (entry._replace(name="cleanup.policy", value=match["policy"]),)
            )
            topics.append(
                TopicDescription(
                    name=match["name"],
                    partitions=int(match["partitions"]),
                    replication_factor=int(match["replicas"]),
                    entries=policy,
                )
            )
        self._source.decide_entry(entry, Fate.TAKEN)
        self._topics += topics

    def _copies(self, name: str, service: nodes.MapNode) -> int:
        deploy = section(service, "deploy")
        self._source.leave(deploy, f"services.{name}.deploy.", ("replicas",))
        found = given(deploy, "replicas") or given(service, "scale")
        if found is None:
            return 1
        self._source.decide("replicas", found, Fate.TAKEN)
        return self._source.number(found, 0, BROKERS_MAX)

    def _environment(self, service: nodes.MapNode) -> Iterator[tuple[SourceLine, str]]:
        """Yield each variable of a service, and the reason why its value is unknown."""
        entries: dict[str, tuple[SourceLine, str]] = {}
        files = service.entries.get("env_file")
        for name, is_optional in _env_files(files.value) if files is not None else ():
            for entry in self._env_file(self._interpolated(name)[0], is_optional=is_optional):
                entries[entry.name] = (entry, "")
        environment = service.entries.get("environment")
        if environment is not None and isinstance(environment.value, nodes.MapNode):
            for name, found in environment.value.entries.items():
                is_set = not (isinstance(found.value, nodes.Scalar) and found.value.is_null())
                entries[name] = self._variable(self._source.entry(name, found), is_set=is_set)
        elif environment is not None:
            for item in scalars(environment.value):
                name, equals, value = item.text.partition("=")
                entry = SourceLine(self._source.file, item.mark.line, name, value)
                entries[name] = self._variable(entry, is_set=bool(equals))
        yield from entries.values()

    def _variable(self, entry: SourceLine, *, is_set: bool) -> tuple[SourceLine, str]:
        if not is_set:
            return entry, "its value comes from the shell"
        value, missing = self._interpolated(entry.value)
        return entry._replace(value=value), f"${missing[0]} is not in .env" if missing else ""

    def _interpolated(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a text with its variables replaced, and the variables that are not known."""
        missing = []

        def value(match: re.Match[str]) -> str:
            if match["dollar"]:
                return "$"
            name, operator = match["braced"] or match["plain"], match["operator"] or ""
            known = self._variables.get(name)
            is_known = bool(known) if operator.startswith(":") else known is not None
            if operator.endswith("+"):
                return str(match["word"]) if is_known else ""
            if is_known:
                return known or ""
            if operator.endswith("-"):
                return str(match["word"])
            missing.append(name)
            return match[0]

        return _REFERENCE.sub(value, text), tuple(missing)

    def _env_file(self, name: str, *, is_optional: bool) -> Iterator[SourceLine]:
        path = self._folder / name
        if is_optional and not path.exists():
            return
        text = file_text(path)
        for number, line in enumerate(text.splitlines(), 1):
            if (match := _ENV_LINE.fullmatch(line)) is not None and not line.lstrip().startswith("#"):
                yield SourceLine(str(path), number, match["name"], _without_quotes(match["value"]))


def _fate_without_value(setting: str) -> Fate:
    if not any(kafka_has(BROKER, setting, release) for release in RELEASES):
        return Fate.UNKNOWN
    return Fate.UNAFFECTED if is_without_effect(setting) else Fate.LACKING


def _env_files(node: nodes.Node) -> Iterator[tuple[str, bool]]:
    """Yield the names of the files with variables, and whether a file may be missing."""
    items = node.items if isinstance(node, nodes.ListNode) else (node,)
    for item in items:
        if isinstance(item, nodes.Scalar) and not item.is_null():
            yield item.text, False
        elif isinstance(item, nodes.MapNode) and "path" in item.entries:
            required = item.entries.get("required")
            yield shown(item.entries["path"].value), required is not None and shown(required.value) == "false"


def _without_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
