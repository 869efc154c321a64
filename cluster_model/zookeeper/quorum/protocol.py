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
"""The end of a log: the epoch of the last transaction, and the number of transactions.

Servers compare positions as ZooKeeper's servers compare zxids.
"""


def quorum_name(process: str) -> str:
    """Return the network name under which the other servers of an ensemble reach a process."""
    return f"{process} quorum"


@dataclass(slots=True, frozen=True)
class LoggedTransaction:
    """A transaction in the log, with the epoch of the leader that proposed it.

    ``server`` is the server whose client requested the transaction. That server identifies the
    request by ``tag``.
    """

    epoch: int
    transaction: Transaction
    server: int
    tag: int


@dataclass(slots=True, frozen=True)
class Ballot:
    """A vote for a leader, with the current epoch and the log end of that server."""

    epoch: int
    position: Position
    leader: int


@dataclass(slots=True, frozen=True)
class Notification:
    """A server sends its state, its election round and its vote.

    A server that follows or leads votes for the present leader.
    """

    api: ClassVar[str] = "ZooKeeperElection"
    sender: int
    state: str
    round: int
    ballot: Ballot


@dataclass(slots=True, frozen=True)
class FollowerInfo:
    """A follower connects to its leader, with the newest epoch that it has promised."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    accepted_epoch: int


@dataclass(slots=True, frozen=True)
class LeaderInfo:
    """The leader proposes the epoch of its term."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    epoch: int


@dataclass(slots=True, frozen=True)
class AckEpoch:
    """A follower promises to ignore leaders of older epochs, and sends the end of its log.

    ``current_epoch`` is -1 if the follower has promised this epoch before. ``applied`` is the
    number of transactions that it has applied; these are the same on every server.
    """

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    current_epoch: int
    position: Position
    applied: int


@dataclass(slots=True, frozen=True)
class NewLeader:
    """The log that a follower must have: its first ``kept`` entries, and then ``entries``.

    The message stands for DIFF, TRUNC and NEWLEADER.
    """

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
    """Transactions that a follower must log, in the order of the log."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    entries: tuple[LoggedTransaction, ...]


@dataclass(slots=True, frozen=True)
class QuorumAck:
    """A follower reports the length of its log."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    sender: int
    logged: int


@dataclass(slots=True, frozen=True)
class Commit:
    """The leader reports how many transactions of the log a majority of servers has."""

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
    """A follower forwards a transaction that one of its clients requests (REQUEST)."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    transaction: Transaction
    tag: int


@dataclass(slots=True, frozen=True)
class Revalidate:
    """A follower asks whether the session of a client that has connected to it is alive."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int


@dataclass(slots=True, frozen=True)
class Revalidated:
    """The leader answers `Revalidate`: whether the session is alive."""

    api: ClassVar[str] = "ZooKeeperQuorum"
    session_id: int
    is_valid: bool
