"""What a client has asked one broker for, so that its next fetch says only what has changed (``FetchSessionHandler.java``).

KIP-227: a full fetch names every partition and opens a session on the broker; those after it name the partitions that
were added, have moved or are to be forgotten, and the answer leaves out what has no news. Before 1.1 every fetch names
everything. What a broker then answers for a partition without news changes nothing, so messages leave it out in every
release; `harrow.cluster_model.broker.fetch_session` has what differs.
"""

from collections.abc import Callable

from harrow.cluster_model import errors, protocol


class FetchSessionHandler:
    """The partitions that are to be fetched of one broker, and what the broker knows of that.

    ``asked`` is what the last request asked for, said in it or before: offset and leader epoch by partition. It
    changes with the next request alone.
    """

    __slots__ = (
        "_again",
        "_changed",
        "_last_epochs",
        "_log_starts",
        "_next",
        "_session_epoch",
        "_session_id",
        "asked",
    )

    def __init__(self) -> None:
        self._next: dict[str, tuple[int, int]] = {}
        self._changed: dict[str, None] = {}
        # Of these those that are said even where offset and leader epoch are as before.
        self._again: dict[str, None] = {}
        self._last_epochs: dict[str, int] = {}
        self._log_starts: dict[str, int] = {}
        self._session_id = protocol.NO_SESSION
        self._session_epoch = protocol.INITIAL_SESSION_EPOCH
        self.asked: dict[str, tuple[int, int]] = {}

    def has_partitions(self) -> bool:
        """Return whether there is anything to fetch."""
        return bool(self._next)

    def put(
        self,
        partition: str,
        offset: int,
        leader_epoch: int,
        last_epoch: int = protocol.NO_EPOCH,
        log_start: int = 0,
    ) -> None:
        """Fetch a partition from *offset* on, behind a record of the epoch *last_epoch* (KIP-595), into a log that begins at *log_start*."""
        self._next[partition] = (offset, leader_epoch)
        self._changed[partition] = None
        if last_epoch != self._last_epochs.get(partition, protocol.NO_EPOCH):
            self._last_epochs[partition] = last_epoch
            self._again[partition] = None
        if log_start != self._log_starts.get(partition, 0):
            self._log_starts[partition] = log_start
            self._again[partition] = None

    def remove(self, partition: str) -> None:
        """Fetch a partition no more; if it comes back it is said again, even where it stands as before."""
        if self._next.pop(partition, None) is not None:
            self._changed[partition] = self._again[partition] = None

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
            partitions = self._next.copy()
            self.asked = self._next.copy()
        else:
            partitions = {}
            for name in self._changed:
                wanted = self._next.get(name)
                if wanted is None:
                    if self.asked.pop(name, None) is not None:
                        forgotten.append(name)
                elif name in self._again or self.asked.get(name) != wanted:
                    self.asked[name] = partitions[name] = wanted
        self._changed.clear()
        self._again.clear()
        known, starts = self._last_epochs, self._log_starts
        last_epochs = {name: known[name] for name in partitions if name in known} if known else {}
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
        """Return whether the next request may say something that the last one has not said."""
        return bool(self._changed)

    def repetition(self, request: protocol.FetchRequest) -> Callable[[int], None] | None:
        """Return how to count repetitions of the last request, if after an empty answer the next one is the same."""
        if request.session_epoch <= protocol.INITIAL_SESSION_EPOCH or request.partitions or request.forgotten:
            return None
        return self._repeated

    def _repeated(self, requests: int) -> None:
        self._session_epoch += requests

    def handle_response(self, response: protocol.FetchResponse) -> bool:
        """Go on with the session as the broker says; return False where the whole fetch was refused."""
        if response.error != errors.NONE:
            # A session that is not known cannot be closed either.
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
        """The connection is gone: say everything again, and have the session of before closed."""
        self._session_epoch = protocol.INITIAL_SESSION_EPOCH
