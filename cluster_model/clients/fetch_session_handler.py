"""Keeps a client's side of a fetch session (``FetchSessionHandler.java``, KIP-227).

A full fetch names every partition and opens a session on the broker. Later fetches name only
partitions that were added or removed or whose position has changed, and answers leave out
partitions without news. Before 1.1 every fetch and its answer name every partition. The model's
messages leave out partitions without news for those releases too, because the answer for such a
partition changes nothing. The differences that matter are in
`harrow.cluster_model.broker.fetch_session`.
"""

from collections.abc import Callable
from typing import cast

from harrow.cluster_model import errors, protocol


class FetchSessionHandler:
    """The partitions to fetch from one broker, and the partitions in the session with that broker.

    ``requested`` has the data of each partition that the last request fetched: the partitions that
    the request named, and those that the session already had. Only the next request changes
    ``requested``.
    """

    __slots__ = (
        "_changed_partitions",
        "_partitions",
        "_removed_partitions",
        "_session_epoch",
        "_session_id",
        "requested",
    )

    def __init__(self) -> None:
        self._partitions: dict[str, protocol.PartitionData] = {}
        # Since the last request: the data of changed partitions, None for those that were removed.
        # A removed partition may have been added again.
        self._changed_partitions: dict[str, protocol.PartitionData | None] = {}
        self._removed_partitions: dict[str, None] = {}
        self._session_id = protocol.NO_SESSION
        self._session_epoch = protocol.INITIAL_SESSION_EPOCH
        self.requested: dict[str, protocol.PartitionData] = {}

    def dismantle(self) -> None:
        """Drop the positions of all partitions (`Cluster.dismantle`)."""
        self._partitions.clear()
        self.requested.clear()
        self._changed_partitions.clear()

    def has_partitions(self) -> bool:
        """Return whether there are partitions to fetch."""
        return bool(self._partitions)

    def set_position(
        self,
        partition: str,
        offset: int,
        leader_epoch: int,
        last_epoch: int = protocol.NO_EPOCH,
        log_start: int = protocol.NO_LOG_START,
    ) -> None:
        """Fetch a partition from *offset*, for a replica whose log starts at *log_start*.

        The replica's record before *offset* has the leader epoch *last_epoch* (KIP-595).
        """
        data = protocol.PartitionData(offset, leader_epoch, last_epoch, log_start)
        self._partitions[partition] = self._changed_partitions[partition] = data

    def remove(self, partition: str) -> None:
        """Stop fetching a partition.

        If the partition is added again, the next request names it, even at the same offset.
        """
        if self._partitions.pop(partition, None) is not None:
            self._changed_partitions[partition] = self._removed_partitions[partition] = None

    def request(
        self,
        replica_id: int,
        max_wait_us: int,
        max_bytes: int,
        isolation_level: int = protocol.READ_UNCOMMITTED,
    ) -> protocol.FetchRequest:
        """Return the next request."""
        changed, self._changed_partitions = self._changed_partitions, {}
        if self._session_epoch == protocol.INITIAL_SESSION_EPOCH:
            self.requested = {}
            changed = {**self._partitions}
        requested = self.requested
        forgotten: tuple[str, ...] = ()
        omitted: tuple[str, ...] = ()
        for name, data in changed.items():
            previous = requested.get(name)
            if data is None:
                omitted += (name,)
                if previous is not None:
                    del requested[name]
                    forgotten += (name,)
            elif previous is None or previous.differs_from(data) or name in self._removed_partitions:
                requested[name] = data
            else:
                omitted += (name,)
        for name in omitted:
            del changed[name]
        if self._removed_partitions:
            self._removed_partitions.clear()
        return protocol.FetchRequest(
            replica_id,
            max_wait_us,
            max_bytes,
            cast("dict[str, protocol.PartitionData]", changed),
            isolation_level,
            self._session_id,
            self._session_epoch,
            forgotten,
        )

    def has_changed(self) -> bool:
        """Return whether the next request may name a partition."""
        return bool(self._changed_partitions)

    def next_request(self, request: protocol.FetchRequest) -> Callable[[int], None] | None:
        """Return a function that counts repetitions of *request*, if the request may be repeated.

        Return None if the request that follows an empty answer would differ.
        """
        if request.session_epoch <= protocol.INITIAL_SESSION_EPOCH or request.partitions or request.forgotten:
            return None
        return self._count_repetitions

    def _count_repetitions(self, requests: int) -> None:
        self._session_epoch += requests

    def handle_response(self, response: protocol.FetchResponse) -> bool:
        """Continue the session with an answer. Return False if the broker refused the fetch."""
        if response.error != errors.NONE:
            # The next full fetch closes the session whose id it carries, unless the broker does not
            # know that session.
            if response.error == errors.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = protocol.NO_SESSION
            self._session_epoch = protocol.INITIAL_SESSION_EPOCH
            return False
        self._session_id = response.session_id
        if response.session_id == protocol.NO_SESSION:
            self._session_epoch = protocol.INITIAL_SESSION_EPOCH
        else:
            self._session_epoch += 1
        return True

    def handle_error(self) -> None:
        """Make the next fetch a full one, after a lost connection. It closes the former session."""
        self._session_epoch = protocol.INITIAL_SESSION_EPOCH
