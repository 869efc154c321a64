"""The steps of a sequence: requests whose values are relative to what the broker has, and real elections.

What is relative is resolved when its turn comes, so that a sequence still means something when steps are left out of it: "a fetch at
the log end offset less one" is one request on a log of three records, and another on an empty log.
"""

from dataclasses import dataclass
from typing import Literal

Place = Literal["start", "hw", "end"]
"""What an offset is counted from: the log start offset, the high watermark, the log end offset."""
Session = Literal["none", "new", "last", "first", "unknown", "close"]
"""Of a fetch session (KIP-227): none, one that is opened, the last or first that was, one that is not there, the last for the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceStep:
    """A batch of so many records. Without a *producer* it is not idempotent, and has no sequence number.

    ``sequence`` is relative to the one that would follow, or None for 0.
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
    """A batch once more, as a producer retries it: of those that the partition was sent so many back."""

    kind: Literal["retry"] = "retry"
    partition: int = 0
    back: int = 0
    acks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPlace:
    """A partition of a fetch; ``epoch`` is relative to the leader epoch, None for a fetcher that knows none."""

    partition: int = 0
    place: Place = "end"
    plus: int = 0
    epoch: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStep:
    """A fetch of the follower or of a consumer; ``session_epoch`` is relative to the one that would follow.

    A consumer that knows of *racks* is answered by who follows, too, where the release has that (KIP-392).
    """

    kind: Literal["fetch"] = "fetch"
    places: tuple[FetchedPlace, ...] = (FetchedPlace(),)
    follower: bool = False
    committed: bool = False
    session: Session = "none"
    session_epoch: int = 0
    forgotten: tuple[int, ...] = ()
    waits: bool = False
    racks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStep:
    """Asks where a partition ends, for the follower or for a consumer (ListOffsets)."""

    kind: Literal["end"] = "end"
    partition: int = 0
    follower: bool = False
    committed: bool = False
    epoch: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndStep:
    """Asks where a leader epoch ends (OffsetsForLeaderEpoch); both epochs are relative to the present one."""

    kind: Literal["epoch-end"] = "epoch-end"
    partition: int = 0
    epoch: int | None = 0
    requested: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdStep:
    """A producer asks for its id (InitProducerId)."""

    kind: Literal["producer-id"] = "producer-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataStep:
    """A client asks who leads."""

    kind: Literal["metadata"] = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerStep:
    """The follower's broker registers, goes, or is elected leader of what it is in sync with: the preferred one.

    Going, it leaves the ISRs that it was in, and what it led is elected away from it. A leader epoch begins in each case but the first.
    """

    kind: Literal["follower"] = "follower"
    does: Literal["comes", "goes", "leads"] = "comes"


Step = (
    ProduceStep
    | RetryStep
    | FetchStep
    | EndStep
    | EpochEndStep
    | ProducerIdStep
    | MetadataStep
    | FollowerStep
)

CLOSING: tuple[Step, ...] = (
    FollowerStep(does="goes"),
    *(FetchStep(places=(FetchedPlace(partition=number, place="start"),), follower=True) for number in (0, 1)),
    *(EndStep(partition=number) for number in (0, 1)),
)
"""What ends each sequence: the broker leads, and tells all of its logs."""
