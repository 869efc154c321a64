"""The steps of a sequence: requests relative to the state of the broker, and real elections.

A relative value is resolved at its step, so a sequence stays meaningful when steps are left out: "a
fetch at the log end offset minus one" asks for different offsets on a log of three records and on
an empty one.
"""

from typing import Literal

from harrow.cluster_model.lazy_dataclass import dataclass

Place = Literal["start", "hw", "end"]
"""The base of an offset: the log start offset, the high watermark, the log end offset."""
Session = Literal["none", "new", "last", "first", "unknown", "close"]
"""The fetch session (KIP-227): none, a new one, the last or first opened one, one that does not
exist, or the last one, which this fetch closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceStep:
    """Produce a batch; without a *producer* it is not idempotent and has no sequence number.

    ``sequence`` is relative to the next expected one, None for an absolute 0.
    """

    kind: Literal["produce"] = "produce"
    partition: int = 0
    records: int = 1
    acks: int = 1
    producer: int | None = None
    epoch: int = 0
    sequence: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStep:
    """Retry an earlier batch of the partition; ``back`` counts from the last one."""

    kind: Literal["retry"] = "retry"
    partition: int = 0
    back: int = 0
    acks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetch:
    """A partition of a fetch.

    ``epoch`` is relative to the leader epoch, None if the fetch has none.
    """

    partition: int = 0
    place: Place = "end"
    plus: int = 0
    epoch: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStep:
    """Fetch as the follower or as a consumer; ``session_epoch`` is relative to the expected one.

    With ``racks`` the consumer sends its rack, so that followers answer it, too (KIP-392).
    """

    kind: Literal["fetch"] = "fetch"
    places: tuple[PartitionFetch, ...] = (PartitionFetch(),)
    follower: bool = False
    committed: bool = False
    session: Session = "none"
    session_epoch: int = 0
    forgotten: tuple[int, ...] = ()
    waits: bool = False
    racks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsStep:
    """Ask for the end of a partition, as the follower or as a consumer (ListOffsets)."""

    kind: Literal["end"] = "end"
    partition: int = 0
    follower: bool = False
    committed: bool = False
    epoch: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndStep:
    """Ask for the end of a leader epoch (OffsetsForLeaderEpoch); both epochs are relative."""

    kind: Literal["epoch-end"] = "epoch-end"
    partition: int = 0
    epoch: int | None = 0
    requested: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdStep:
    """Ask for a producer id (InitProducerId)."""

    kind: Literal["producer-id"] = "producer-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStep:
    """Ask for metadata."""

    kind: Literal["metadata"] = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerStep:
    """The follower registers, unregisters, or is elected: it is the preferred leader.

    It is elected only where it is in the ISR. When it goes, it leaves its ISRs, and its partitions
    get another leader. Both its going and its election begin new leader epochs.
    """

    kind: Literal["follower"] = "follower"
    does: Literal["comes", "goes", "leads"] = "comes"


Step = (
    ProduceStep
    | RetryStep
    | FetchStep
    | ListOffsetsStep
    | EpochEndStep
    | ProducerIdStep
    | MetadataStep
    | FollowerStep
)

CLOSING: tuple[Step, ...] = (
    FollowerStep(does="goes"),
    *(
        FetchStep(places=(PartitionFetch(partition=number, place="start"),), follower=True)
        for number in (0, 1)
    ),
    *(ListOffsetsStep(partition=number) for number in (0, 1)),
)
"""The end of every sequence: the broker leads, and all of its logs are read."""
