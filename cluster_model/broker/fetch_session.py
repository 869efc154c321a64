"""Keeps fetch sessions: the broker's state of each follower or consumer that fetches from it.

Modelled on ``FetchSession.scala`` (KIP-227). A session has the partitions of its client with their
positions, and tracks which partitions have news: data to read, a new high watermark, an error, or a
position that has just changed. A fetch checks only partitions with news, so its cost depends on
what happens and not on the number of partitions.

Since 1.1 sessions have ids and epochs. They live in a cache of bounded size and outlive their
connection. Before 1.1 every fetch named every partition. For these releases too the model leaves
out partitions that are unchanged since the previous fetch on the same connection, because the
outcome is the same. A session then belongs to a connection, and a repeated request gets a full
answer.
"""

from typing import Final, final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.purgatory import DelayedOperation, TimedOperation, Watchers
from harrow.cluster_model.broker.replica import CountedSession
from harrow.cluster_model.sim.connection import Connection
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_EVICTION_US: Final = 120 * US_PER_SECOND
"""How long a session is safe from eviction.

See ``KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS``.
"""

UNKNOWN_HIGH_WATERMARK: Final = -1


class WaitingFetch(TimedOperation):
    """A fetch of a session that has waited for something to read since ``since_us``."""

    __slots__ = ("connection_id", "session", "since_us")

    connection_id: int
    session: "FetchSession"
    since_us: int

    def is_older_than(self, other: "WaitingFetch") -> bool:
        """Return whether this fetch came first; the connection ids order simultaneous fetches."""
        if self.since_us == other.since_us:
            return self.connection_id < other.connection_id
        return self.since_us < other.since_us

    def try_complete(self, cached: "CachedPartition") -> bool:
        """Answer if a partition of the session has something to report."""
        raise NotImplementedError

    def wait(self) -> None:
        """Expire at the deadline."""
        raise NotImplementedError


@final
class HostedPartition:
    """A partition on a broker: its replica, and requests that wait for it (``HostedPartition``).

    The object stays when the replica is deleted, and gets the next replica of that name. So a
    session may refer to it for as long as the broker runs. ``watchers`` are the entries of sessions
    to notify when something happens to the partition. A session watches those of its partitions
    that have no news, and all of them while one of its fetches waits.
    """

    __slots__ = ("_deletions", "_produces", "name", "partition", "watchers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.partition: Partition | None = None
        # None until the first request waits.
        self._produces: Watchers | None = None
        self._deletions: Watchers | None = None
        self.watchers: list[CachedPartition] = []

    def check(self) -> None:
        """Try the requests that wait for the partition, after a change of the partition."""
        self.check_produces()
        self.check_deletions()
        self.check_fetches()

    def watch_produce(self, delayed: DelayedOperation) -> None:
        """Try a produce again whenever followers may have fetched more of the partition."""
        if self._produces is None:
            self._produces = Watchers()
        self._produces.watch(delayed)

    def watch_deletion(self, delayed: DelayedOperation) -> None:
        """Try a deletion of records again whenever a follower may have deleted them."""
        if self._deletions is None:
            self._deletions = Watchers()
        self._deletions.watch(delayed)

    def check_produces(self) -> None:
        """Try the produces that wait for followers."""
        if self._produces is not None:
            self._produces.check()

    def check_deletions(self) -> None:
        """Try the deletions of records that wait for followers."""
        if self._deletions is not None:
            self._deletions.check()

    def check_fetches(self) -> None:
        """Mark the partition as news for its sessions; try their waiting fetches, oldest first."""
        watching = self.watchers
        if not watching:
            return
        self.watchers = []
        waiting: list[CachedPartition] = []
        woken: list[WaitingFetch] = []
        for cached in watching:
            cached.is_watching = False
            session = cached.session
            if session.idle is not None:
                session.idle.wake(is_tried=True)
                if session.delayed is not None:
                    woken.append(session.delayed)
            session.add_news(cached)
            if session.delayed is not None:
                _add_by_age(waiting, cached, session.delayed)
        for cached in waiting:
            delayed = cached.session.delayed
            if delayed is not None and not delayed.try_complete(cached):
                self.watch(cached)
        # These fetches were idle, so they had no timer for their deadline.
        for delayed in woken:
            if not delayed.completed:
                delayed.wait()

    def note_news(self) -> None:
        """Mark the partition as news for the next fetches, but do not try the waiting fetches."""
        watching = self.watchers
        if not watching:
            return
        self.watchers = []
        for cached in watching:
            cached.is_watching = False
            session = cached.session
            if session.idle is not None:
                session.idle.wake()
            session.add_news(cached)
            if session.delayed is not None:
                self.watch(cached)

    def watch(self, cached: "CachedPartition") -> None:
        """Notify the entry of a session when something happens to the partition."""
        if not cached.is_watching:
            cached.is_watching = True
            self.watchers.append(cached)

    def unwatch(self, cached: "CachedPartition") -> None:
        """Undo `watch`."""
        if cached.is_watching:
            cached.is_watching = False
            self.watchers.remove(cached)

    def wake_fetches(self) -> None:
        """Stop idle fetches of the partition, because the next fetch may be held back."""
        for cached in self.watchers:
            if cached.session.idle is not None:
                cached.session.idle.wake()


def _add_by_age(waiting: list["CachedPartition"], cached: "CachedPartition", delayed: WaitingFetch) -> None:
    """Insert the entry of a waiting fetch into *waiting*, which has the oldest fetch first."""
    index = len(waiting)
    while index:
        other = waiting[index - 1].session.delayed
        if other is not None and not delayed.is_older_than(other):
            break
        index -= 1
    waiting.insert(index, cached)


@final
class HostedPartitions:
    """The partitions that a broker hosts or that clients have named, by name."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        self._by_name: dict[str, HostedPartition] = {}

    def hosted_partition(self, name: str) -> HostedPartition:
        hosted = self._by_name.get(name)
        if hosted is None:
            hosted = self._by_name[name] = HostedPartition(name)
        return hosted

    def dismantle(self) -> None:
        """Break the cycles of partitions, sessions and waiting requests (`Cluster.dismantle`)."""
        for hosted in self._by_name.values():
            hosted.watchers.clear()
        self._by_name.clear()


@final
class CachedPartition:
    """A partition in a session: its position, and the last high watermark and log start sent.

    ``has_news`` says whether it is among the news of its session, and ``is_watching`` whether it is
    among the watchers of the hosted partition.
    """

    __slots__ = (
        "has_news",
        "hosted",
        "hw",
        "is_watching",
        "last_epoch",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "session",
    )

    def __init__(
        self, session: "FetchSession", hosted: HostedPartition, offset: int, leader_epoch: int
    ) -> None:
        self.session = session
        self.hosted = hosted
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.last_epoch = protocol.NO_EPOCH
        self.hw = UNKNOWN_HIGH_WATERMARK
        self.log_start_offset = 0
        self.has_news = False
        self.is_watching = False

    def update_response_data(self, fetched: protocol.FetchedPartition) -> bool:
        """Remember an answer. Return whether it has news (``maybeUpdateResponseData``)."""
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


@final
class FetchSession(CountedSession):
    """The state of one follower or consumer that fetches from one broker.

    ``news`` has the partitions that the next fetch has to check, in the order of their changes. For
    a partition without news, every fetch of the session counts as a fetch by the follower (see
    `CountedSession`). ``used_us`` is the time of the last fetch, even if that fetch did not count
    for the ISR. ``received_us`` is the time of the last fetch that was not idle.
    """

    __slots__ = (
        "created_us",
        "delayed",
        "epoch",
        "id",
        "is_cached",
        "is_privileged",
        "news",
        "partitions",
        "received_us",
        "replica_epoch",
        "replica_id",
    )

    def __init__(self, session_id: int, replica_id: int, now_us: int, *, is_cached: bool) -> None:
        self.id = session_id
        self.epoch = protocol.INITIAL_SESSION_EPOCH + 1
        self.replica_id = replica_id
        self.replica_epoch = protocol.NO_EPOCH
        self.is_privileged = replica_id >= 0
        """Whether a follower opened the session. A consumer's session cannot evict it."""
        self.created_us = self.received_us = self.counted_us = now_us
        self.is_cached = is_cached
        self.partitions: dict[str, CachedPartition] = {}
        self.news: list[CachedPartition] = []
        self.delayed: WaitingFetch | None = None
        self.idle = None

    @property
    def used_us(self) -> int:
        return self.received_us if self.idle is None else self.idle.since_us

    def mark_news(self, partition: str) -> None:
        cached = self.partitions.get(partition)
        if cached is not None:
            self.add_news(cached)

    def add_news(self, cached: CachedPartition) -> None:
        """Let the next fetch check one of the session's partitions."""
        if not cached.has_news:
            cached.has_news = True
            self.news.append(cached)

    def drop(self, partition: str) -> None:
        """Remove a partition from the session."""
        cached = self.partitions.pop(partition, None)
        if cached is not None:
            if cached.has_news:
                self.news.remove(cached)
            cached.hosted.unwatch(cached)

    def advance(self, fetches: int, at_us: int) -> None:
        """Count *fetches* repetitions of the idle fetch, the last one at *at_us*, and end it."""
        self.idle = None
        if fetches:
            self.epoch += fetches
            self.received_us = self.counted_us = at_us

    def copy_for_repeat(self, now_us: int) -> "FetchSession":
        """Return an uncached session for a repeated request, whose answer has all partitions."""
        session = FetchSession(protocol.NO_SESSION, self.replica_id, now_us, is_cached=False)
        session.replica_epoch = self.replica_epoch
        for name, cached in self.partitions.items():
            copy = CachedPartition(session, cached.hosted, cached.offset, cached.leader_epoch)
            copy.last_epoch = cached.last_epoch
            session.partitions[name] = copy
            session.add_news(copy)
        return session

    def update(
        self,
        request: protocol.FetchRequest,
        hosted: HostedPartitions,
        *,
        keeps_epoch: bool = True,
        repeats_hw: bool = False,
    ) -> None:
        """Take over the positions in a request, and the epochs of the records before them.

        With *keeps_epoch* off, the session drops the leader epochs in the request, as Kafka did
        before 2.5 (KAFKA-9338). An answer omits a high watermark that the session has already sent,
        even for a partition that the request names. A follower that ignored the earlier answer,
        because its leader epoch had changed, then learns the high watermark only when that changes
        again. With *repeats_hw* the session sends the high watermark again, as before sessions
        existed.
        """
        for name, data in request.partitions.items():
            epoch = data.leader_epoch if keeps_epoch else protocol.NO_EPOCH
            cached = self.partitions.get(name)
            if cached is None:
                cached = CachedPartition(self, hosted.hosted_partition(name), data.offset, epoch)
                self.partitions[name] = cached
            else:
                cached.offset, cached.leader_epoch = data.offset, epoch
                if repeats_hw:
                    cached.hw = UNKNOWN_HIGH_WATERMARK
            cached.last_epoch = data.last_epoch
            self.add_news(cached)

    def watch(self) -> None:
        """Let partitions with news notify the session too, because one of its fetches waits."""
        for cached in self.news:
            cached.hosted.watch(cached)

    def unwatch(self) -> None:
        """Stop all partitions from notifying the session."""
        for cached in self.partitions.values():
            cached.hosted.unwatch(cached)


class FetchSessionCache:
    """The fetch sessions of a broker."""

    __slots__ = ("_bound_to_connection", "_hosted", "_next_id", "_sessions", "_slots")

    def __init__(
        self, slots: int, hosted: HostedPartitions, *, first_id: int, bound_to_connection: bool
    ) -> None:
        self._slots = slots
        self._hosted = hosted
        self._bound_to_connection = bound_to_connection
        # By session id, or by connection id if sessions are bound to connections.
        self._sessions: dict[int, FetchSession] = {}
        self._next_id = first_id

    def __len__(self) -> int:
        return len(self._sessions)

    def dismantle(self) -> None:
        """Break the cycles of sessions and their partitions (`Cluster.dismantle`)."""
        for session in self._sessions.values():
            session.partitions.clear()
            session.news.clear()

    def session_of(
        self, request: protocol.FetchRequest, connection: Connection, now_us: int, *, keeps_epoch: bool
    ) -> FetchSession | str:
        """Return the session of a fetch after updating it, or an error (``newContext``)."""
        if request.session_epoch <= protocol.INITIAL_SESSION_EPOCH:
            return self._open_session(request, connection, now_us)
        session = self._sessions.get(connection.id if self._bound_to_connection else request.session_id)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return (
                session.copy_for_repeat(now_us)
                if self._bound_to_connection
                else errors.INVALID_FETCH_SESSION_EPOCH
            )
        if not keeps_epoch and session.epoch == protocol.INITIAL_SESSION_EPOCH + 1:
            # Before 2.5 leader epochs counted only for the full fetch that contained them.
            for cached in session.partitions.values():
                cached.leader_epoch = protocol.NO_EPOCH
        session.epoch += 1
        session.received_us = now_us
        # A session has no owner, so each fetch decides which replica fetches.
        session.replica_id = request.replica_id
        session.update(request, self._hosted, keeps_epoch=keeps_epoch, repeats_hw=self._bound_to_connection)
        for name in request.forgotten:
            session.drop(name)
        if not session.partitions and not self._bound_to_connection:
            # A session without partitions ends, and this fetch counts as a fetch without a session
            # (``FetchManager.newContext``).
            self.remove(session.id)
            last = FetchSession(protocol.NO_SESSION, request.replica_id, now_us, is_cached=False)
            last.update(request, self._hosted)
            return last
        return session

    def _open_session(
        self, request: protocol.FetchRequest, connection: Connection, now_us: int
    ) -> FetchSession:
        """Return a new session for a full fetch.

        If the cache has no room, the session lasts for one answer.
        """
        if self._bound_to_connection:
            # On a connection that has a session, a full fetch is a repetition.
            is_cached = connection.is_open and connection.id not in self._sessions
        else:
            self.remove(request.session_id)
            is_cached = self._has_room(request, now_us)
        is_cached = is_cached and request.session_epoch == protocol.INITIAL_SESSION_EPOCH
        session_id = protocol.NO_SESSION
        if is_cached:
            session_id = self._next_id
            self._next_id += 1
        session = FetchSession(session_id, request.replica_id, now_us, is_cached=is_cached)
        session.update(request, self._hosted)
        if is_cached:
            self._sessions[connection.id if self._bound_to_connection else session_id] = session
        return session

    def connection_closed(self, connection_id: int) -> None:
        """Close the session that is bound to a closed connection."""
        if self._bound_to_connection:
            self.remove(connection_id)

    def forget(self, session: FetchSession, connection: Connection) -> None:
        """Close a session that was just opened, because the answer will not carry its id."""
        self.remove(connection.id if self._bound_to_connection else session.id)

    def remove(self, key: int) -> None:
        """Close the session with this session id or connection id, if there is one."""
        session = self._sessions.pop(key, None)
        if session is None:
            return
        if session.idle is not None:
            session.idle.wake()
        session.is_cached = False
        if session.delayed is None:  # A waiting fetch still gets its answer.
            session.unwatch()

    def _has_room(self, request: protocol.FetchRequest, now_us: int) -> bool:
        """Make room for a session, if necessary by evicting another (``tryEvict``)."""
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
        victim = min(evictable, key=_eviction_rank)
        if (is_privileged, len(request.partitions), 0) < _eviction_rank(victim):
            return False
        self.remove(victim.id)
        return True


def _eviction_rank(session: FetchSession) -> tuple[bool, int, int]:
    """Return the rank of a session. The one with the lowest rank is evicted (``EvictableKey``)."""
    return (session.is_privileged, len(session.partitions), session.id)
