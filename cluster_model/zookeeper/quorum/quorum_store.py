"""Stores a server's log of transactions, and the tree to which they are applied, on its disk."""

from dataclasses import field

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.zookeeper.quorum.protocol import Ballot, LoggedTransaction, Position
from harrow.cluster_model.zookeeper.service.data_tree import DataTree
from harrow.cluster_model.zookeeper.service.server import ServerStore


@dataclass(slots=True)
class QuorumStore:
    """The log of transactions. The first ``applied`` transactions have been applied to the tree.

    A transaction is on disk before the server acknowledges it (``forceSync``). ``accepted_epoch``
    is the newest epoch that the server has promised. ``current_epoch`` is the epoch of the last
    leader whose log the server has.
    """

    server: ServerStore
    log: list[LoggedTransaction] = field(default_factory=list)
    applied: int = 0
    accepted_epoch: int = 0
    current_epoch: int = 0

    @property
    def server_id(self) -> int:
        return self.server.server_id

    @property
    def tree(self) -> DataTree:
        return self.server.tree

    def position(self) -> Position:
        return (self.log[-1].epoch if self.log else 0), len(self.log)

    def ballot(self) -> Ballot:
        """Return a vote for this server."""
        return Ballot(self.current_epoch, self.position(), self.server_id)


class CommittedHistory:
    """The largest number of transactions that any server has applied, for observers."""

    def __init__(self, tree: DataTree) -> None:
        self.tree = tree
        """The tree of a server that has applied all of these transactions."""
        self._applied = 0

    def advance(self, applied: int, tree: DataTree) -> bool:
        """Record that a server applies a transaction. Return whether it is the first to do so."""
        if applied <= self._applied:
            return False
        self._applied = applied
        self.tree = tree
        return True
