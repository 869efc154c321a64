"""Defines the messages between brokers and ZooKeeper, and the paths that Kafka uses."""

from functools import cache
from typing import Any, ClassVar, Final

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
CONFIG_TOPICS: Final = "/config/topics"
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


def config_path(topic: str) -> str:
    """Return the path of the settings that administrators have set for a topic."""
    return f"{CONFIG_TOPICS}/{topic}"


def is_topic_path(path: str) -> bool:
    """Return whether a path is the path of a topic's assignment (see `topic_path`)."""
    return path.startswith(f"{BROKER_TOPICS}/") and path.count("/") == BROKER_TOPICS.count("/") + 1


def topic_of(topic_path: str) -> str:
    """Return the topic whose assignment is at a path (see `topic_path`)."""
    return topic_path.rpartition("/")[2]


@cache
def state_path(partition: str) -> str:
    """Return the path of a partition's leader and ISR."""
    topic, number = partition.rsplit("-", 1)
    return f"{BROKER_TOPICS}/{topic}/partitions/{number}/state"


def is_state_path(path: str) -> bool:
    """Return whether a path is the path of a partition's leader and ISR (see `state_path`)."""
    return path.startswith(BROKER_TOPICS) and path.endswith("/state")


def partition_of(state_path: str) -> str:
    """Return the partition whose leader and ISR are at a path (see `state_path`)."""
    _, _, _, topic, _, number, _ = state_path.split("/")
    return f"{topic}-{number}"


def broker_of(client: str) -> int:
    """Return the broker id in the name of a process such as `broker-1`."""
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


NO_CLIENT: Final = ""
"""Stands for an administrator instead of a client of ZooKeeper."""


@dataclass(slots=True, frozen=True)
class Create:
    """Create a znode. The name of a ``sequential`` znode gets a rising number appended."""

    path: str
    data: Any = None
    ephemeral: bool = False
    sequential: bool = False


@dataclass(slots=True, frozen=True)
class SetData:
    """Set the data of a znode if it has this version; `ANY_VERSION` always matches."""

    path: str
    data: Any
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class GetData:
    """Read a znode. A watch fires once, when the znode is created, changed or deleted."""

    path: str
    watch: bool = False


@dataclass(slots=True, frozen=True)
class GetChildren:
    """List a znode's children. A watch fires once, when a child is created or deleted."""

    path: str
    watch: bool = False


@dataclass(slots=True, frozen=True)
class Delete:
    """Delete a znode if it has this version."""

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

    If a `Create` finds an ephemeral znode at its path, ``owner`` is the session of that znode.
    Kafka's client reads the owner in another request if it needs the owner.
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
    """Operations, in order. If they are ``atomic``, all of them happen or none.

    If the ``guard`` does not hold, the response to the whole request is BADVERSION. KafkaZkClient
    wraps each operation into a transaction with such a check.
    """

    api: ClassVar[str] = "ZooKeeper"
    session_id: int
    operations: tuple[ZooKeeperOperation, ...]
    atomic: bool = False
    guard: Check | None = None

    @property
    def znodes(self) -> tuple[str, ...]:
        """The paths of the operations, without the numbers of sequential znodes."""
        return tuple(operation.path for operation in self.operations)


@dataclass(slots=True, frozen=True)
class ZooKeeperResponse:
    """The outcome of each operation, or one error for all of them.

    ``request`` is None if the response closes a session, or if the client itself makes the response
    because its session has expired. ``zxid`` is the last change that the server had applied.
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

    ``last_zxid`` is the last change that the client has seen. Watches that missed a later change
    fire at once, and the other watches are restored. ZooKeeper's client sends its watches in a
    separate request (SetWatches).
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
    """The session that was opened or continued, or the error SESSIONEXPIRED."""

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
    """A watch has fired: its path, and whether the children or the data changed."""

    api: ClassVar[str] = "ZooKeeper"
    path: str
    children: bool

    @property
    def znodes(self) -> tuple[str, ...]:
        """The path of the watch."""
        return (self.path,)
