"""What controllers and brokers say to each other in KRaft. Names are those of Kafka's protocol.

Kafka fetches metadata with Fetch, as if the log were a partition of ``__cluster_metadata``. It is `RaftFetchRequest` here,
so that faults that name Fetch mean the replication of records.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from harrow.cluster_model import errors
from harrow.cluster_model.kraft.metadata_log import MetadataSnapshot
from harrow.cluster_model.kraft.records import MetadataRecord
from harrow.cluster_model.protocol import AlterPartitionResponse
from harrow.cluster_model.sim.message import Request
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

CONTROLLER_LISTENER: Final = "controller"
PRODUCER_IDS_BLOCK: Final = 1_000
CONTROLLED_SHUTDOWN_MAX_US: Final = 300 * US_PER_SECOND
"""How long a broker that stops waits for the controller (``BrokerServer.shutdown``)."""


def server_name(controller: int) -> str:
    """Return what a controller listens as, in a process of its own or in that of the broker of the same id."""
    return f"controller-{controller}"


# The quorum


@dataclass(slots=True, frozen=True)
class VoteRequest(Request):
    """A candidate asks for a vote; with ``pre_vote`` whether it would get it (KIP-996).

    ``last_epoch`` and ``end_offset`` say how far its log goes.
    """

    api: ClassVar[str] = "Vote"
    epoch: int
    candidate: int
    last_epoch: int
    end_offset: int
    pre_vote: bool = False


@dataclass(slots=True, frozen=True)
class VoteResponse:
    """A vote, and who leads in which epoch, as far as the voter knows."""

    api: ClassVar[str] = "Vote"
    epoch: int
    leader: int
    granted: bool


@dataclass(slots=True, frozen=True)
class BeginQuorumEpochRequest(Request):
    """A new leader makes itself known."""

    api: ClassVar[str] = "BeginQuorumEpoch"
    epoch: int
    leader: int


@dataclass(slots=True, frozen=True)
class EndQuorumEpochRequest(Request):
    """A leader resigns; the successors that it prefers, those whose logs go furthest first."""

    api: ClassVar[str] = "EndQuorumEpoch"
    epoch: int
    leader: int
    preferred_successors: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class QuorumResponse:
    """The answer to either; the epoch and the leader that the receiver knows."""

    api: str
    epoch: int
    leader: int
    error: str = errors.NONE


@dataclass(slots=True, frozen=True)
class RaftFetchRequest(Request):
    """A voter or an observer fetches the metadata log."""

    api: ClassVar[str] = "Fetch"
    epoch: int
    replica_id: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int


@dataclass(slots=True, frozen=True)
class RaftFetchResponse:
    """Records with the epochs in which they were appended, from the fetch offset on.

    ``diverging`` is the epoch and its end offset where the follower's log is another one, ``snapshot`` the end offset and epoch of the
    snapshot that it has to begin with. ``leader`` is `NO_NODE` where the receiver knows of none.
    """

    api: ClassVar[str] = "Fetch"
    error: str
    epoch: int
    leader: int
    high_watermark: int = 0
    records: tuple[tuple[int, MetadataRecord], ...] = ()
    diverging: tuple[int, int] | None = None
    snapshot: tuple[int, int] | None = None


@dataclass(slots=True, frozen=True)
class FetchSnapshotRequest(Request):
    """A voter or an observer wants the snapshot that the leader has named (KIP-630)."""

    api: ClassVar[str] = "FetchSnapshot"
    epoch: int
    replica_id: int
    snapshot: tuple[int, int]


@dataclass(slots=True, frozen=True)
class FetchSnapshotResponse:
    """The snapshot. Kafka sends a large one in parts of 8 MiB (``KafkaRaftClient.MAX_FETCH_SIZE_BYTES``)."""

    api: ClassVar[str] = "FetchSnapshot"
    error: str
    epoch: int
    leader: int
    snapshot: MetadataSnapshot | None = None


# Brokers and the active controller


@dataclass(slots=True, frozen=True)
class BrokerRegistrationRequest(Request):
    """A broker that starts registers; it knows its broker epoch of before if it has stopped in good order (-1: it has not)."""

    api: ClassVar[str] = "BrokerRegistration"
    broker: int
    incarnation: int
    previous_broker_epoch: int


@dataclass(slots=True, frozen=True)
class BrokerRegistrationResponse:
    """The broker epoch."""

    api: ClassVar[str] = "BrokerRegistration"
    error: str
    broker_epoch: int = -1


@dataclass(slots=True, frozen=True)
class BrokerHeartbeatRequest(Request):
    """A broker is alive, knows the metadata up to an offset, and may want to be fenced or to stop.

    ``offline`` are its replicas in log directories that have failed. Kafka's brokers name the directories, and controllers know which
    replicas are in which (KIP-858).
    """

    api: ClassVar[str] = "BrokerHeartbeat"
    broker: int
    broker_epoch: int
    metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline: frozenset[str] = frozenset()


@dataclass(slots=True, frozen=True)
class BrokerHeartbeatResponse:
    """What the controller takes the broker for."""

    api: ClassVar[str] = "BrokerHeartbeat"
    error: str
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(slots=True, frozen=True)
class AllocateProducerIdsRequest(Request):
    """A broker wants a block of producer ids."""

    api: ClassVar[str] = "AllocateProducerIds"
    broker: int
    broker_epoch: int


@dataclass(slots=True, frozen=True)
class AllocateProducerIdsResponse:
    """The first of a block of producer ids."""

    api: ClassVar[str] = "AllocateProducerIds"
    error: str
    first: int = -1


ControllerResponse = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | AlterPartitionResponse
    | AllocateProducerIdsResponse
)
