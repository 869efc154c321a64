"""What a source says about a cluster, in the words of Kafka's own configuration.

Each kind of source is one module with a function that reads it. `harrow.campaigns.sources.kinds`
lists them, and `harrow.campaigns.sources.cluster_import` makes a cluster file from what they
return. A source decides only what is special about it: that the number of replicas in a resource
stands for as many brokers, for example. What becomes of a setting is decided in one place.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from harrow.cluster_model.lazy_dataclass import dataclass


class Fate(StrEnum):
    """What became of a line of a source."""

    TAKEN = "taken over"
    UNAFFECTED = "Kafka has it and the model is not affected"
    LACKING = "Kafka has it and the model lacks it"
    UNKNOWN = "no such setting in this release"


class SourceLine(NamedTuple):
    """A setting in a source, or another line of it, and its position."""

    file: str
    line: int
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """A line of a source, and what became of it."""

    entry: SourceLine
    fate: Fate
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A broker, a controller, or both in one process.

    ``facts`` are settings that follow from the source without a line of their own, such as the
    ``node.id`` of a numbered replica. They override the lines. ``defaults`` are the defaults of the
    server's own release. A *template* may stand for any number of brokers. ``zones`` are lines that
    say where a server runs, by the label of Kubernetes whose value they are.
    """

    entries: tuple[SourceLine, ...] = ()
    defaults: tuple[SourceLine, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    is_template: bool = False
    zones: Mapping[str, SourceLine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of one broker or, without an id, of all brokers.

    They override those of the servers. ``defaults`` are defaults of the broker's own release.
    """

    entries: tuple[SourceLine, ...]
    defaults: tuple[SourceLine, ...] = ()
    id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic. None stands for what the brokers' settings decide, such as ``num.partitions``.

    ``defaults`` are defaults of the brokers' own release.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: tuple[tuple[int, ...], ...] = ()
    entries: tuple[SourceLine, ...] = ()
    defaults: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings of a producer or a consumer (``scope``)."""

    scope: str
    entries: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRelease:
    """A line that names a version of Kafka, or of an image with Kafka, and that of Kafka."""

    entry: SourceLine
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A cluster, or the part of it that a source describes.

    ``broker_ids`` are brokers that the source only mentions, for example as replicas. ``lines`` are
    lines that set nothing, with what became of them. ``clusters`` are lines that name a cluster.
    ``rack_labels`` are lines with the label of Kubernetes whose value is a broker's rack.
    """

    servers: tuple[Server, ...] = ()
    broker_settings: tuple[BrokerSettings, ...] = ()
    broker_ids: frozenset[int] = frozenset()
    topics: tuple[TopicDescription, ...] = ()
    clients: tuple[ClientSettings, ...] = ()
    lines: tuple[ImportedLine, ...] = ()
    releases: tuple[StatedRelease, ...] = ()
    zookeeper_servers: int | None = None
    clusters: tuple[SourceLine, ...] = ()
    rack_labels: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of source.

    ``read`` returns what the text of a file describes, or None if the text is of another kind.
    """

    name: str
    read: Callable[[str, str], Description | None]
