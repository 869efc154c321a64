"""Defines the messages between brokers and ZooKeeper, and the paths that Kafka uses."""

# Plain Python: code reads `api` from its classes, but a compiled class has it only in its objects.

from typing import Annotated, Any, ClassVar, Final

from harrow.cluster_model.events import Event, FieldKind, Number, ProcessName, Text, notice
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.sim.message import Request

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
BROKER_TOPICS: Final = "/brokers/topics"
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"

OK: Final = "OK"
NO_NODE: Final = "NONODE"
NODE_EXISTS: Final = "NODEEXISTS"
BAD_VERSION: Final = "BADVERSION"
SESSION_EXPIRED: Final = "SESSIONEXPIRED"

ANY_VERSION: Final = -1


ROOTS: Final = (
    LOG_DIR_EVENT_NOTIFICATION,
    BROKER_IDS,
    BROKER_TOPICS,
    ISR_CHANGE_NOTIFICATION,
    "/admin",
    CONTROLLER_EPOCH,
)
"""The initial znodes (``KafkaZkClient.createTopLevelPaths``)."""


def parent_of(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def broker_path(broker: int) -> str:
    return f"{BROKER_IDS}/{broker}"


def topic_path(topic: str) -> str:
    return f"{BROKER_TOPICS}/{topic}"


def is_topic_path(path: str) -> bool:
    """Return whether a path is that of a topic's assignment (see `topic_path`)."""
    return path.startswith(f"{BROKER_TOPICS}/") and path.count("/") == BROKER_TOPICS.count("/") + 1


def topic_of(topic_path: str) -> str:
    """Return the topic whose assignment is at a path (see `topic_path`)."""
    return topic_path.rpartition("/")[2]


def state_path(partition: str) -> str:
    """Return the path of a partition's leader and ISR."""
    topic, number = partition.rsplit("-", 1)
    return f"{BROKER_TOPICS}/{topic}/partitions/{number}/state"


def is_state_path(path: str) -> bool:
    """Return whether a path is that of a partition's leader and ISR (see `state_path`)."""
    return path.startswith(BROKER_TOPICS) and path.endswith("/state")


def partition_of(state_path: str) -> str:
    """Return the partition whose leader and ISR are at a path (see `state_path`)."""
    _, _, _, topic, _, number, _ = state_path.split("/")
    return f"{topic}-{number}"


def broker_of(client: str) -> int:
    """Return the broker of a process such as `broker-1`."""
    return int(client.rsplit("-", 1)[-1])


@dataclass(slots=True, frozen=True)
class TopicPartitionState:
    """The content of a partition's state znode (``TopicPartitionStateZNode``)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int

    def leader_and_isr(self, version: int) -> LeaderAndIsr:
        """Return the partition's state, whose partition epoch is the version of the znode."""
        return LeaderAndIsr(self.leader, self.leader_epoch, self.isr, version)


@notice("znode_created")
class ZnodeCreated(Event):
    """A client of ZooKeeper has created a znode."""

    client: ProcessName
    path: Text
    czxid: Number


@notice("znode_deleted")
class ZnodeDeleted(Event):
    """A znode is gone."""

    path: Text


@notice("znode_written")
class ZnodeWritten(Event):
    """A client of ZooKeeper has set a znode's data; `NO_CLIENT` stands for an administrator."""

    client: ProcessName
    path: Text
    before: Annotated[object, FieldKind.OBJECT]
    data: Annotated[object, FieldKind.OBJECT]
    version: Number


NO_CLIENT: Final = ""


@dataclass(slots=True, frozen=True)
class Create:
    """Create a znode; a sequential one gets a rising number appended to its name."""

    path: str
    data: Any = None
    ephemeral: bool = False
    sequential: bool = False


@dataclass(slots=True, frozen=True)
class SetData:
    """Write a znode if it has the expected version; `ANY_VERSION` always fits."""

    path: str
    data: Any
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class GetData:
    """Read a znode; a watch fires once, when it is created, changed or deleted."""

    path: str
    watch: bool = False


@dataclass(slots=True, frozen=True)
class GetChildren:
    """List a znode's children; a watch fires once, when one is created or deleted."""

    path: str
    watch: bool = False


@dataclass(slots=True, frozen=True)
class Delete:
    """Delete a znode if it has the expected version."""

    path: str
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class Check:
    """Fail unless a znode has this version (only within a transaction)."""

    path: str
    version: int


ZooKeeperOperation = Create | SetData | GetData | GetChildren | Delete | Check


@dataclass(slots=True, frozen=True)
class ZooKeeperResult:
    """The outcome of one operation; ``czxid`` is the transaction that created the znode.

    If the znode exists already, ``owner`` is the session of an ephemeral one. In Kafka the client
    reads that next if it needs it.
    """

    error: str
    data: Any = None
    version: int = -1
    czxid: int = -1
    children: tuple[str, ...] = ()
    path: str = ""
    owner: int = 0


@dataclass(slots=True, frozen=True)
class ZooKeeperRequest(Request):
    """Operations in order; with ``atomic`` all of them happen or none.

    If a ``guard`` does not hold, the answer to the whole request is BADVERSION. KafkaZkClient wraps
    each operation into a transaction with such a check.
    """

    api: ClassVar[str] = "ZooKeeper"
    session_id: int
    operations: tuple[ZooKeeperOperation, ...]
    atomic: bool = False
    guard: Check | None = None

    @property
    def znodes(self) -> tuple[str, ...]:
        """The paths of its operations, without the numbers of sequential znodes."""
        return tuple(operation.path for operation in self.operations)


@dataclass(slots=True, frozen=True)
class ZooKeeperResponse:
    """The outcome of each operation, or one error for all of them.

    ``request`` is None after the end of a session. ``zxid`` is the last change that the server had
    applied.
    """

    api: ClassVar[str] = "ZooKeeper"
    error: str
    results: tuple[ZooKeeperResult, ...]
    request: ZooKeeperRequest | None = None
    zxid: int = -1

    @property
    def znodes(self) -> tuple[str, ...]:
        """The paths of the request, and those of created znodes."""
        requested = () if self.request is None else self.request.znodes
        return (*requested, *(result.path for result in self.results if result.path))


@dataclass(slots=True, frozen=True)
class ConnectRequest(Request):
    """Open a session, or continue one (``session_id`` > 0) over a new connection.

    ``last_zxid`` is the last change that the client has seen. Of its watches, those that missed a
    later change fire at once, and the others are restored. ZooKeeper's client sends them in a
    request of their own (SetWatches).
    """

    api: ClassVar[str] = "ZooKeeper"
    session_id: int
    timeout_us: int
    last_zxid: int = -1
    data_watches: tuple[str, ...] = ()
    exist_watches: tuple[str, ...] = ()
    child_watches: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class ConnectResponse:
    """The session, or SESSIONEXPIRED."""

    api: ClassVar[str] = "ZooKeeper"
    error: str
    session_id: int


@dataclass(slots=True, frozen=True)
class CloseRequest(Request):
    """End a session, and delete its ephemeral nodes at once."""

    api: ClassVar[str] = "ZooKeeper"
    session_id: int


@dataclass(slots=True, frozen=True)
class WatchEvent:
    """A watch has fired: its path, and whether the data or the children changed."""

    api: ClassVar[str] = "ZooKeeper"
    path: str
    children: bool

    @property
    def znodes(self) -> tuple[str, ...]:
        """The path of the watch."""
        return (self.path,)
