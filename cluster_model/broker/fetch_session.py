"""What a broker remembers of those that fetch from it (``FetchSession.scala``, KIP-227).

A session has the partitions of a follower or a consumer with their positions, and knows which of them have news: data
to read, a high watermark that has not been told, an error, or a position that has just changed. Only those are looked
at when a fetch comes, so that a fetch costs by what happens and not by the partitions that exist.

From 1.1 on sessions have ids and epochs, are kept in a cache of bounded size and outlive their connection. Before,
every fetch named every partition. The outcome is the same if what is as it was in the fetch before, on the same
connection, is left out of messages and work: then a session belongs to a connection, and a repeated request is
answered in full.
"""

from collections.abc import Iterable
from typing import Final, Protocol

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.sim.connection import Connection
from harrow.cluster_model.sim.idle_fetch import IdleFetch
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_EVICTION_US: Final = 120 * US_PER_SECOND
"""``KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS``."""

UNKNOWN_HIGH_WATERMARK: Final = -1


class WaitingFetch(Protocol):
    """A fetch of a session that waits for something to read."""

    completed: bool

    @property
    def age(self) -> tuple[int, int]:
        """Its place among those of the broker: since when it waits, and in order of connections."""

    @property
    def session(self) -> "FetchSession":
        """Whose fetch it is."""

    def try_complete(self, name: str) -> bool:
        """Answer if there is something to say of a partition."""

    def wait(self) -> None:
        """Expire at the deadline."""


class CachedPartition:
    """A partition of a session: from where it is fetched, and the high watermark and log start that were last answered."""

    __slots__ = ("hw", "last_epoch", "leader_epoch", "log_start_offset", "offset")

    def __init__(self, offset: int, leader_epoch: int) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.last_epoch = protocol.NO_EPOCH
        self.hw = UNKNOWN_HIGH_WATERMARK
        self.log_start_offset = 0

    def update_response_data(self, fetched: protocol.FetchedPartition) -> bool:
        """Return whether an answer says this of a partition, and note that it does (``maybeUpdateResponseData``)."""
        has_records = bool(fetched.batches) or fetched.corrupt_offset >= 0
        has_news = (
            has_records
            or fetched.error != errors.NONE
            or fetched.hw != self.hw
            or fetched.log_start_offset != self.log_start_offset
            or fetched.diverging is not None
            or fetched.preferred_read_replica is not None
        )
        self.log_start_offset = fetched.log_start_offset
        self.hw = UNKNOWN_HIGH_WATERMARK if fetched.error != errors.NONE else fetched.hw
        return has_news


class FetchSession:
    """What one follower or consumer fetches of one broker.

    ``news`` are the partitions to look at with the next fetch, in the order in which something happened to them.
    ``last_fetch_us`` is when the last fetch counted; of the partitions without news each did. ``used_us`` is when the last
    one came. While the session has an ``idle`` fetch, which repeats itself, both go with it; ``counted_us`` and ``came_us`` are
    about those that were handled one by one.
    """

    __slots__ = (
        "came_us",
        "counted_us",
        "created_us",
        "delayed",
        "epoch",
        "id",
        "idle",
        "is_kept",
        "is_privileged",
        "news",
        "partitions",
        "replica_epoch",
        "replica_id",
    )

    def __init__(self, session_id: int, replica_id: int, now_us: int, *, is_kept: bool) -> None:
        self.id = session_id
        self.epoch = protocol.INITIAL_SESSION_EPOCH + 1
        self.replica_id = replica_id
        self.replica_epoch = protocol.NO_EPOCH
        self.is_privileged = replica_id >= 0
        """Whether it was opened by a follower: others do not push it out of the cache."""
        self.created_us = self.came_us = self.counted_us = now_us
        self.is_kept = is_kept
        self.partitions: dict[str, CachedPartition] = {}
        self.news: dict[str, None] = {}
        self.delayed: WaitingFetch | None = None
        self.idle: IdleFetch | None = None

    @property
    def last_fetch_us(self) -> int:
        return self.counted_us if self.idle is None else self.idle.since_us

    @property
    def used_us(self) -> int:
        return self.came_us if self.idle is None else self.idle.since_us

    def repeated(self, fetches: int, at_us: int) -> None:
        """So many more fetches have come, the last of them at *at_us*; none is idle any more."""
        self.idle = None
        if fetches:
            self.epoch += fetches
            self.came_us = self.counted_us = at_us

    def once_more(self, now_us: int) -> "FetchSession":
        """Return a session for a request that is handled once more: its answer has everything, and is forgotten."""
        session = FetchSession(protocol.NO_SESSION, self.replica_id, now_us, is_kept=False)
        session.replica_epoch = self.replica_epoch
        session.update(
            {name: (cached.offset, cached.leader_epoch) for name, cached in self.partitions.items()},
            {name: cached.last_epoch for name, cached in self.partitions.items()},
        )
        return session

    def update(
        self,
        partitions: dict[str, tuple[int, int]],
        last_epochs: dict[str, int],
        *,
        keeps_epoch: bool = True,
        tells_again: bool = False,
    ) -> None:
        """Take over the positions of a request, and the epochs of the records before them. Kafka before 2.5 forgot their leader epochs (KAFKA-9338).

        A session leaves out a high watermark that it has told, also of a partition that a request names: a follower
        that has ignored the answer, because its leader epoch had changed, learns it with the next change only. With
        *tells_again* it is told, as before there were sessions.
        """
        for name, (offset, leader_epoch) in partitions.items():
            epoch = leader_epoch if keeps_epoch else protocol.NO_EPOCH
            cached = self.partitions.get(name)
            if cached is None:
                cached = self.partitions[name] = CachedPartition(offset, epoch)
            else:
                cached.offset, cached.leader_epoch = offset, epoch
                if tells_again:
                    cached.hw = UNKNOWN_HIGH_WATERMARK
            cached.last_epoch = last_epochs.get(name, protocol.NO_EPOCH)
            self.news[name] = None


class FetchWatchers:
    """The sessions that are told when something happens to a partition.

    A session watches the partitions of which it has no news, and while a fetch of it waits all of them.
    """

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: dict[str, dict[FetchSession, None]] = {}

    def watch(self, session: FetchSession, partitions: Iterable[str]) -> None:
        """Tell a session when something happens to one of these partitions."""
        for name in partitions:
            self._watchers.setdefault(name, {})[session] = None

    def unwatch(self, session: FetchSession, partitions: Iterable[str]) -> None:
        """Tell a session nothing of these partitions any more."""
        for name in partitions:
            watching = self._watchers.get(name)
            if watching is not None:
                watching.pop(session, None)

    def check(self, partition: str) -> None:
        """Something happened to a partition: it is news, and fetches that wait for it are tried, oldest first."""
        watching = self._watchers.pop(partition, None)
        if not watching:
            return
        waiting, woken = [], []
        for session in watching:
            if session.idle is not None:
                session.idle.wake(is_tried=True)
                if session.delayed is not None:
                    woken.append(session.delayed)
            session.news[partition] = None
            if session.delayed is not None:
                waiting.append(session.delayed)
        if len(waiting) > 1:
            waiting.sort(key=_age)
        for delayed in waiting:
            if not delayed.completed and not delayed.try_complete(partition):
                self.watch(delayed.session, (partition,))
        if woken:
            _wait_on(woken)

    def note(self, partition: str) -> None:
        """Something happened to a partition that the next fetches are to look at; those that wait are not answered for it."""
        watching = self._watchers.pop(partition, None)
        if not watching:
            return
        for session in watching:
            if session.idle is not None:
                session.idle.wake()
            session.news[partition] = None
            if session.delayed is not None:
                self.watch(session, (partition,))

    def wake(self, partition: str) -> None:
        """Have no fetch of a partition repeat itself: the next one may have to wait before it is handled."""
        for session in self._watchers.get(partition, ()):
            if session.idle is not None:
                session.idle.wake()


class FetchSessionCache:
    """The sessions of a broker."""

    __slots__ = ("_bound_to_connection", "_next_id", "_sessions", "_slots", "_watchers")

    def __init__(
        self, slots: int, watchers: FetchWatchers, *, first_id: int, bound_to_connection: bool
    ) -> None:
        self._slots = slots
        self._watchers = watchers
        self._bound_to_connection = bound_to_connection
        # By id, or by the connection's.
        self._sessions: dict[int, FetchSession] = {}
        self._next_id = first_id

    def __len__(self) -> int:
        return len(self._sessions)

    def session_of(
        self, request: protocol.FetchRequest, connection: Connection, now_us: int, *, keeps_epoch: bool
    ) -> FetchSession | str:
        """Return the session of a fetch with what it says (``FetchManager.newContext``), or why there is none."""
        if request.session_epoch <= protocol.INITIAL_SESSION_EPOCH:
            return self._opened(request, connection, now_us)
        session = self._sessions.get(connection.id if self._bound_to_connection else request.session_id)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return (
                session.once_more(now_us) if self._bound_to_connection else errors.INVALID_FETCH_SESSION_EPOCH
            )
        if not keeps_epoch and session.epoch == protocol.INITIAL_SESSION_EPOCH + 1:
            # Only the full fetch itself was held to the epochs that it named.
            for cached in session.partitions.values():
                cached.leader_epoch = protocol.NO_EPOCH
        session.epoch += 1
        session.came_us = now_us
        # Each fetch says whose it is; a session has no owner.
        session.replica_id = request.replica_id
        session.update(
            request.partitions,
            request.last_epochs,
            keeps_epoch=keeps_epoch,
            tells_again=self._bound_to_connection,
        )
        if request.forgotten:
            for name in request.forgotten:
                session.partitions.pop(name, None)
                session.news.pop(name, None)
            self._watchers.unwatch(session, request.forgotten)
        if not session.partitions and not self._bound_to_connection:
            # Without partitions it ends, and this is a fetch without a session of what it names (``FetchManager.newContext``).
            self.remove(session.id)
            last = FetchSession(protocol.NO_SESSION, request.replica_id, now_us, is_kept=False)
            last.update(request.partitions, request.last_epochs)
            return last
        return session

    def _opened(self, request: protocol.FetchRequest, connection: Connection, now_us: int) -> FetchSession:
        """Return the session of a full fetch, which is a new one; without room it is forgotten with the answer."""
        if self._bound_to_connection:
            # On a connection that has a session a full fetch is a repeated one.
            is_kept = connection.is_open and connection.id not in self._sessions
        else:
            self.remove(request.session_id)
            is_kept = self._has_room(request, now_us)
        is_kept = is_kept and request.session_epoch == protocol.INITIAL_SESSION_EPOCH
        session_id = protocol.NO_SESSION
        if is_kept:
            session_id = self._next_id
            self._next_id += 1
        session = FetchSession(session_id, request.replica_id, now_us, is_kept=is_kept)
        session.update(request.partitions, request.last_epochs)
        if is_kept:
            self._sessions[connection.id if self._bound_to_connection else session_id] = session
        return session

    def connection_closed(self, connection_id: int) -> None:
        """Close what is a session of the connection alone."""
        if self._bound_to_connection:
            self.remove(connection_id)

    def forget(self, session: FetchSession, connection: Connection) -> None:
        """Close a session that a fetch on a connection has opened, for its answer does not say so."""
        self.remove(connection.id if self._bound_to_connection else session.id)

    def remove(self, key: int) -> None:
        """Close a session, if there is one."""
        session = self._sessions.pop(key, None)
        if session is None:
            return
        if session.idle is not None:
            session.idle.wake()
        session.is_kept = False
        if session.delayed is None:  # A fetch that waits is answered all the same.
            self._watchers.unwatch(session, session.partitions)

    def _has_room(self, request: protocol.FetchRequest, now_us: int) -> bool:
        """Make room for a session, if need be at the cost of another one (``FetchSessionCache.tryEvict``)."""
        if len(self._sessions) < self._slots:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: (session.used_us, session.id))
        if now_us - oldest.used_us > _EVICTION_US:
            self.remove(oldest.id)
            return True
        is_privileged = request.replica_id >= 0
        evictable = [
            session
            for session in self._sessions.values()
            if now_us - session.created_us > _EVICTION_US or (is_privileged and not session.is_privileged)
        ]
        if not evictable:
            return False
        least = min(evictable, key=_worth)
        if (is_privileged, len(request.partitions), 0) < _worth(least):
            return False
        self.remove(least.id)
        return True


def _wait_on(woken: list[WaitingFetch]) -> None:
    """Give those that have been woken in vain the timer that they had not while they were idle."""
    for delayed in woken:
        if not delayed.completed:
            delayed.wait()


def _age(delayed: WaitingFetch) -> tuple[int, int]:
    return delayed.age


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return (session.is_privileged, len(session.partitions), session.id)
