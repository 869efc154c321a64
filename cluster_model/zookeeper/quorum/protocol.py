"""Defines the messages between the servers of an ensemble.

Names are those of ZooKeeper's packets (``Leader.java``, ``FastLeaderElection.java``).
"""

from typing import ClassVar, Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.zookeeper.service.data_tree import Transaction

ELECTION_LISTENER: Final = "zookeeper-election"
QUORUM_LISTENER: Final = "zookeeper-quorum"

LOOKING: Final = "LOOKING"
FOLLOWING: Final = "FOLLOWING"
LEADING: Final = "LEADING"

Position = tuple[int, int]
"""The end of a log, like a zxid: the epoch of its last transaction, and its length."""


def quorum_name(process: str) -> str:
    """Return the server name of a process for the other servers of its ensemble."""
    return f"{process} quorum"


@dataclass(slots=True, frozen=True)
class LoggedTransaction:
    """A transaction in the log, with the epoch of the leader that proposed it.

    ``server`` is the server of the requesting client, which identifies the request by ``tag``.
    """

    epoch: int
    transaction: Transaction
    server: int
    tag: int


@dataclass(slots=True, frozen=True)
class Ballot:
    """A vote: the proposed leader, the end of its log, and its epoch."""

    epoch: int
    position: Position
    leader: int


@dataclass(slots=True, frozen=True)
class Notification:
    """A server's election round and vote; a server with a leader votes for it."""

    api: ClassVar[str] = "ZooKeeperElection"
    sender: int
    state: str
    round: int
    ballot: Ballot


@dataclass(slots=True, frozen=True)
class FollowerInfo:
    """A follower connects to its leader."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    accepted_epoch: int


@dataclass(slots=True, frozen=True)
class LeaderInfo:
    """The leader names its epoch."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    epoch: int


@dataclass(slots=True, frozen=True)
class AckEpoch:
    """A follower promises to ignore leaders of older epochs, and sends the end of its log.

    ``current_epoch`` is -1 if it has promised this epoch before. The first ``applied`` transactions
    are the same on every server.
    """

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    current_epoch: int
    position: Position
    applied: int


@dataclass(slots=True, frozen=True)
class NewLeader:
    """A follower's future log: *kept* own entries, then these (DIFF, TRUNC and NEWLEADER)."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    epoch: int
    kept: int
    entries: tuple[LoggedTransaction, ...]


@dataclass(slots=True, frozen=True)
class UpToDate:
    """A follower may serve clients; its log is committed up to ``committed``."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    committed: int


@dataclass(slots=True, frozen=True)
class Proposal:
    """Transactions, in their order of application."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    entries: tuple[LoggedTransaction, ...]


@dataclass(slots=True, frozen=True)
class QuorumAck:
    """The length of a follower's log."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    logged: int


@dataclass(slots=True, frozen=True)
class Commit:
    """The length of the log that a majority of servers has."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    committed: int


@dataclass(slots=True, frozen=True)
class LeaderPing:
    """The leader is alive."""

    api: ClassVar[str] = "ZooKeeperQuorum"


@dataclass(slots=True, frozen=True)
class FollowerPing:
    """A follower is alive, and has heard from the clients of these sessions."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sessions: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class ForwardedRequest:
    """A transaction for a client of a follower (REQUEST)."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    transaction: Transaction
    tag: int


@dataclass(slots=True, frozen=True)
class Revalidate:
    """A client has connected to a follower with a session."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int


@dataclass(slots=True, frozen=True)
class Revalidated:
    """Whether that session is alive."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int
    is_valid: bool
