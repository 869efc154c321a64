"""Defines the messages between controllers and brokers in KRaft, named as in Kafka's protocol.

Kafka fetches metadata with Fetch, as a partition of the topic ``__cluster_metadata``. Here there is
a separate class, `RaftFetchRequest`.
"""

from typing import ClassVar, Final

from harrow.cluster_model import errors
from harrow.cluster_model.kraft.metadata_log import MetadataSnapshot
from harrow.cluster_model.kraft.records import MetadataRecord
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import AlterPartitionResponse
from harrow.cluster_model.sim.message import Request
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

CONTROLLER_LISTENER: Final = "controller"
PRODUCER_IDS_BLOCK: Final = 1_000
CONTROLLED_SHUTDOWN_MAX_US: Final = 300 * US_PER_SECOND
"""How long a broker waits for the controller during shutdown (``BrokerServer.shutdown``)."""


def server_name(controller: int) -> str:
    """Return the network name of a controller, whatever process it runs in."""
    return f"controller-{controller}"


def observer_id(broker: int) -> int:
    """Return the id with which a broker fetches metadata, and from that id the broker.

    A controller in the same process has another id.
    """
    return -broker - 2


# The quorum


@dataclass(slots=True, frozen=True)
class VoteRequest(Request):
    """A candidate asks for a vote. With ``pre_vote`` it asks whether it would get one (KIP-996).

    ``last_epoch`` and ``end_offset`` describe the end of its log.
    """

    api: ClassVar[str] = "Vote"
    epoch: int
    candidate: int
    last_epoch: int
    end_offset: int
    pre_vote: bool = False


@dataclass(slots=True, frozen=True)
class VoteResponse:
    """The answer to a Vote: the vote, and the epoch and leader that the voter knows."""

    api: ClassVar[str] = "Vote"
    epoch: int
    leader: int
    granted: bool


@dataclass(slots=True, frozen=True)
class BeginQuorumEpochRequest(Request):
    """A new leader announces itself."""

    api: ClassVar[str] = "BeginQuorumEpoch"
    epoch: int
    leader: int


@dataclass(slots=True, frozen=True)
class EndQuorumEpochRequest(Request):
    """A leader resigns, and names its preferred successors, the longest log first."""

    api: ClassVar[str] = "EndQuorumEpoch"
    epoch: int
    leader: int
    preferred_successors: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class QuorumResponse:
    """The answer to BeginQuorumEpoch and EndQuorumEpoch: the receiver's epoch and leader."""

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
    """The records from the fetch offset on, with the epochs in which they were appended.

    ``diverging`` is the epoch and end offset to which the follower must truncate. ``snapshot`` is
    the end offset and epoch of the snapshot that the follower must fetch first. ``leader`` is
    `NO_NODE` if the answering node knows no leader.
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
    """A voter or an observer fetches the snapshot that the leader named (KIP-630)."""

    api: ClassVar[str] = "FetchSnapshot"
    epoch: int
    replica_id: int
    snapshot: tuple[int, int]


@dataclass(slots=True, frozen=True)
class FetchSnapshotResponse:
    """A whole snapshot.

    Kafka sends it in chunks of 8 MiB (``KafkaRaftClient.MAX_FETCH_SIZE_BYTES``).
    """

    api: ClassVar[str] = "FetchSnapshot"
    error: str
    epoch: int
    leader: int
    snapshot: MetadataSnapshot | None = None


# Brokers and the active controller


@dataclass(slots=True, frozen=True)
class BrokerRegistrationRequest(Request):
    """A starting broker registers.

    ``previous_broker_epoch`` proves a clean shutdown. It is -1 after an unclean shutdown.
    """

    api: ClassVar[str] = "BrokerRegistration"
    broker: int
    incarnation: int
    previous_broker_epoch: int


@dataclass(slots=True, frozen=True)
class BrokerRegistrationResponse:
    """The broker epoch of a new registration, or an error."""

    api: ClassVar[str] = "BrokerRegistration"
    error: str
    broker_epoch: int = -1


@dataclass(slots=True, frozen=True)
class BrokerHeartbeatRequest(Request):
    """A broker is alive and has the metadata up to an offset.

    It may want to be fenced or to shut down. ``offline`` are its replicas in failed log
    directories. In Kafka, brokers name the failed directories instead, and controllers know which
    replicas each of them has (KIP-858).
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
    """The broker's state, as the controller sees it."""

    api: ClassVar[str] = "BrokerHeartbeat"
    error: str
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(slots=True, frozen=True)
class AllocateProducerIdsRequest(Request):
    """A broker requests a block of producer ids."""

    api: ClassVar[str] = "AllocateProducerIds"
    broker: int
    broker_epoch: int


@dataclass(slots=True, frozen=True)
class AllocateProducerIdsResponse:
    """The first id of a block of producer ids."""

    api: ClassVar[str] = "AllocateProducerIds"
    error: str
    first: int = -1


ControllerResponse = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | AlterPartitionResponse
    | AllocateProducerIdsResponse
)
