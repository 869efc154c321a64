"""What the servers of an ensemble say to each other.

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
"""How far a log goes: the epoch of its last transaction, and how many it has (a zxid)."""


def quorum_name(process: str) -> str:
    """Return what a server listens as for the others of its ensemble."""
    return f"{process} quorum"


@dataclass(slots=True, frozen=True)
class LoggedTransaction:
    """A transaction in the log, with the epoch of the leader that proposed it.

    ``server`` and ``tag`` say whose client has asked for it.
    """

    epoch: int
    transaction: Transaction
    server: int
    tag: int


@dataclass(slots=True, frozen=True)
class Ballot:
    """A vote: the proposed leader, how far its log goes, and its epoch."""

    epoch: int
    position: Position
    leader: int


@dataclass(slots=True, frozen=True)
class Notification:
    """A server's election round and vote; one that does not look sends its leader's."""

    api: ClassVar[str] = "ZooKeeperElection"
    sender: int
    state: str
    round: int
    ballot: Ballot


@dataclass(slots=True, frozen=True)
class FollowerInfo:
    """A follower comes to its leader."""

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
    """A follower will hear no leader of an older epoch, and says how far it is.

    ``current_epoch`` is -1 where it had promised that before. What it has *applied* every server
    has in common with it.
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
    """A follower may serve clients; so much of its log is committed."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    committed: int


@dataclass(slots=True, frozen=True)
class Proposal:
    """Transactions, in the order in which they will be applied."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    entries: tuple[LoggedTransaction, ...]


@dataclass(slots=True, frozen=True)
class QuorumAck:
    """A follower's log has so many entries."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    logged: int


@dataclass(slots=True, frozen=True)
class Commit:
    """So much of the log is on a majority of servers."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    committed: int


@dataclass(slots=True, frozen=True)
class LeaderPing:
    """The leader is there."""

    api: ClassVar[str] = "ZooKeeperQuorum"


@dataclass(slots=True, frozen=True)
class FollowerPing:
    """A follower is there, and has heard of the clients of these sessions."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sessions: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class ForwardedRequest:
    """A client of a follower wants this (REQUEST)."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    transaction: Transaction
    tag: int


@dataclass(slots=True, frozen=True)
class Revalidate:
    """A client has come to a follower with a session."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int


@dataclass(slots=True, frozen=True)
class Revalidated:
    """Whether that session goes on."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int
    is_valid: bool
