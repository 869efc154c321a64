"""Keeps a client's side of a fetch session (``FetchSessionHandler.java``, KIP-227).

A full fetch names every partition and opens a session on the broker. Later fetches name only
partitions that were added or removed or whose position has changed, and answers leave out
partitions without news. Before 1.1 every fetch and its answer name every partition. The model's
messages leave out partitions without news for those releases too, because the answer for such a
partition changes nothing. The differences that matter are in
`harrow.cluster_model.broker.fetch_session`.
"""

from collections.abc import Callable

from harrow.cluster_model import errors, protocol


class FetchSessionHandler:
    """The partitions to fetch from one broker, and the partitions in the session with that broker.

    ``requested`` has the offset and leader epoch of each partition that the last request fetched:
    the partitions that the request named, and those that the session already had. Only the next
    request changes ``requested``.
    """

    __slots__ = (
        "_changed_partitions",
        "_last_epochs",
        "_log_starts",
        "_partitions_to_name",
        "_positions",
        "_session_epoch",
        "_session_id",
        "requested",
    )

    def __init__(self) -> None:
        self._positions: dict[str, tuple[int, int]] = {}
        self._changed_partitions: dict[str, None] = {}
        # Changed partitions that the next request names even if their offset and leader epoch are
        # the same.
        self._partitions_to_name: dict[str, None] = {}
        self._last_epochs: dict[str, int] = {}
        self._log_starts: dict[str, int] = {}
        self._session_id = protocol.NO_SESSION
        self._session_epoch = protocol.INITIAL_SESSION_EPOCH
        self.requested: dict[str, tuple[int, int]] = {}

    def has_partitions(self) -> bool:
        """Return whether there are partitions to fetch."""
        return bool(self._positions)

    def set_position(
        self,
        partition: str,
        offset: int,
        leader_epoch: int,
        last_epoch: int = protocol.NO_EPOCH,
        log_start: int = 0,
    ) -> None:
        """Fetch a partition from *offset*, for a replica whose log starts at *log_start*.

        The replica's record before *offset* has the leader epoch *last_epoch* (KIP-595).
        """
        self._positions[partition] = (offset, leader_epoch)
        self._changed_partitions[partition] = None
        if last_epoch != self._last_epochs.get(partition, protocol.NO_EPOCH):
            self._last_epochs[partition] = last_epoch
            self._partitions_to_name[partition] = None
        if log_start != self._log_starts.get(partition, 0):
            self._log_starts[partition] = log_start
            self._partitions_to_name[partition] = None

    def remove(self, partition: str) -> None:
        """Stop fetching a partition.

        If the partition is added again, the next request names it, even at the same offset.
        """
        if self._positions.pop(partition, None) is not None:
            self._changed_partitions[partition] = self._partitions_to_name[partition] = None

    def request(
        self,
        replica_id: int,
        max_wait_us: int,
        max_bytes: int,
        isolation_level: int = protocol.READ_UNCOMMITTED,
    ) -> protocol.FetchRequest:
        """Return the next request."""
        forgotten: list[str] = []
        if self._session_epoch == protocol.INITIAL_SESSION_EPOCH:
            partitions = self._positions.copy()
            self.requested = self._positions.copy()
        else:
            partitions = {}
            for name in self._changed_partitions:
                position = self._positions.get(name)
                if position is None:
                    if self.requested.pop(name, None) is not None:
                        forgotten.append(name)
                elif name in self._partitions_to_name or self.requested.get(name) != position:
                    self.requested[name] = partitions[name] = position
        self._changed_partitions.clear()
        self._partitions_to_name.clear()
        epochs, starts = self._last_epochs, self._log_starts
        last_epochs = {name: epochs[name] for name in partitions if name in epochs} if epochs else {}
        return protocol.FetchRequest(
            replica_id,
            max_wait_us,
            max_bytes,
            partitions,
            isolation_level,
            self._session_id,
            self._session_epoch,
            tuple(forgotten),
            last_epochs,
            log_starts={name: starts[name] for name in partitions if name in starts} if starts else {},
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
