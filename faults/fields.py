"""The types of a fault's campaign fields, and how a field is documented.

A fault is a frozen dataclass; its fields are what a campaign may say about it. The
markers here tell the loader how to read and check a value, so that a new fault
brings its whole syntax with it.
"""

from dataclasses import MISSING, field
from typing import Annotated, Any, Final

from cluster_model.choices import Stream, between


class DurationMarker:
    """A time such as ``500ms``, ``2s`` or ``1m``; microseconds here."""


class DurationRangeMarker:
    """A time, or a range to draw one from such as ``1s..10s``; a pair of microseconds here."""


class BrokerMarker:
    """A broker: its id, or ``any``, ``controller``, ``leader of t-0``, ``follower of t-0``."""


class EndpointMarker:
    """One end of a link: a broker's id, the name of a client, or ``zookeeper``."""


class ClientMarker:
    """The name of a client."""


class PartitionMarker:
    """A partition such as ``t-0``."""


class ProbabilityMarker:
    """A probability from 0 to 1."""


class CountMarker:
    """A whole number of at least 1."""


class SkipMarker:
    """A whole number of at least 0."""


class ApiMarker:
    """The name of a request such as ``Fetch``."""


Duration = Annotated[int, DurationMarker]
DurationRange = Annotated[tuple[int, int], DurationRangeMarker]
Broker = Annotated[int | str, BrokerMarker]
Endpoint = Annotated[int | str, EndpointMarker]
Client = Annotated[str, ClientMarker]
Partition = Annotated[str, PartitionMarker]
Probability = Annotated[float, ProbabilityMarker]
Count = Annotated[int, CountMarker]
Skip = Annotated[int, SkipMarker]
Api = Annotated[str, ApiMarker]

APIS: Final = (
    "Produce",
    "Fetch",
    "OffsetsForLeaderEpoch",
    "ListOffsets",
    "Metadata",
    "InitProducerId",
    "LeaderAndIsr",
    "UpdateMetadata",
    "StopReplica",
    "ZooKeeper",
)
"""The APIs whose messages can be named."""


def described(doc: str, *, default: Any = MISSING) -> Any:
    """Return a dataclass field with its documentation."""
    if default is MISSING:
        return field(metadata={"doc": doc})
    return field(default=default, metadata={"doc": doc})


def draw_duration(stream: Stream, duration: tuple[int, int]) -> int:
    """Return a duration from a range, in whole milliseconds."""
    low, high = duration
    return low if low == high else between(stream, low // 1_000, high // 1_000) * 1_000
