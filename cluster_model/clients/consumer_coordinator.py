"""A consumer's part in its group: membership, heartbeats, commits (``AbstractCoordinator.java``, ``ConsumerCoordinator.java``)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.clients.assignors import STICKY, assign, is_cooperative
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.coordinator_lookup import CoordinatorLookup
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.coordinators.protocol import (
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    Subscription,
    SyncGroupRequest,
    SyncGroupResponse,
)
from harrow.cluster_model.events import CommitFailed, MembershipLost
from harrow.cluster_model.settings import ConsumerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS

UNJOINED: Final = "unjoined"
PREPARING: Final = "preparing"
COMPLETING: Final = "completing"
STABLE: Final = "stable"
"""The states of a member (``AbstractCoordinator.MemberState``)."""

_JOIN_LAPSE_US: Final = 5 * US_PER_SECOND
"""How much longer than a rebalance may take a member waits for its answer (``JOIN_GROUP_TIMEOUT_LAPSE``)."""

_MOVED: Final = frozenset(
    {
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.REQUEST_TIMED_OUT,
        errors.NETWORK_EXCEPTION,
    }
)
"""What says that the coordinator is to be looked for again; the last one stands for a lost connection."""
_RETRIABLE: Final = _MOVED | {errors.COORDINATOR_LOAD_IN_PROGRESS, errors.UNKNOWN_TOPIC_OR_PARTITION}
_FENCED: Final = frozenset({errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION})
_FATAL: Final = frozenset(
    {errors.FENCED_INSTANCE_ID, errors.INCONSISTENT_GROUP_PROTOCOL, errors.INVALID_SESSION_TIMEOUT}
)

OnCommitted = Callable[[str], None]
"""Called with what came of a commit, `errors.NONE` or an error."""


class GroupMetadata(NamedTuple):
    """Who a consumer is in its group, as its application may tell a transaction (``ConsumerGroupMetadata``, KIP-447)."""

    group: str
    generation: int
    member: str
    instance: str


class GroupListener(Protocol):
    """The consumer whose coordinator this is, and its application."""

    def is_polling(self) -> bool:
        """Return whether the application is in a poll."""

    def polled_us(self) -> int:
        """Return when it has begun to poll last."""

    def consumed(self) -> Mapping[str, int]:
        """Return up to where the application has polled its partitions."""

    def partitions_revoked(self, partitions: Sequence[str], *, lost: bool) -> None:
        """Read partitions no more; *lost* if others may read them already."""

    def partitions_assigned(self, partitions: Sequence[str]) -> None:
        """Read partitions, once it is known from where."""

    def begin_at(self, partition: str, offset: int) -> None:
        """Read a partition from where the group has committed, -1 where it has not."""

    def poll_goes_on(self) -> None:
        """Nothing keeps the poll any more from returning what there is."""

    def committing(self, offsets: Mapping[str, int]) -> None:
        """Note that offsets are about to be committed."""

    def commit_ended(self, offsets: Mapping[str, int], error: str) -> None:
        """Note what came of that."""

    def group_failed(self, error: str) -> None:
        """Give up: the application has got an exception that polling again does not help."""


class ConsumerCoordinator:
    """A member of a group, or who only commits for it (*subscribes* is False).

    What an application's poll does is done in `poll`, which it calls when it begins to, and which is called again in the poll when
    something has changed. Heartbeats go on beside that, as long as the application comes back in time.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClientMetadata,
        config: ConsumerConfig,
        listener: GroupListener,
        topics: Collection[str],
        *,
        subscribes: bool,
        auto_commits: bool,
        requires_stable: bool,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._config = config
        self._listener = listener
        self._topics = tuple(topics)
        self._subscribes = subscribes
        self._auto_commits = auto_commits
        self._requires_stable = requires_stable
        self._is_cooperative = is_cooperative(config.assignors)
        self._backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_max_us, host.choices.network
        )
        self._lookup = CoordinatorLookup(
            host,
            metadata,
            config,
            CONSUMER_OFFSETS,
            config.group,
            self._backoff,
            self._found,
            has_own_connection=True,
        )
        self.state = UNJOINED
        self.member = NO_MEMBER
        self.generation = NO_GENERATION
        self.owned: dict[str, None] = {}
        # What the sticky assignor is told: what was assigned last, and in which generation.
        self._last_owned: tuple[tuple[str, ...], int] = ((), NO_GENERATION)
        self._needs_join = subscribes
        self._is_preparing = False
        self._is_closed = False
        self._assigned_of: dict[str, tuple[str, ...]] | None = None
        self._join_retry_us = 0
        self._is_retry_set = False
        self._beat_set = False
        self._beat_in_flight = False
        self._heard_us = 0
        self._auto_commit_us = host.clock.now_us + config.auto_commit_interval_us
        self._auto_commit_set = False
        self._waiting: list[Callable[[], None]] = []
        self._without_offset: dict[str, None] = {}
        # Who this was when it last got partitions (``onJoinComplete``): that is what it says until it gets some again.
        self._joined_as = (NO_GENERATION, NO_MEMBER)
        self._fetching_offsets = False

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who this is, for transactions that commit offsets of the group."""
        config = self._config
        return GroupMetadata(config.group, *self._joined_as, config.group_instance)

    @property
    def blocks_poll(self) -> bool:
        """Whether a poll cannot return anything: it is about to give its partitions up."""
        return self._is_preparing

    # Within poll

    def poll(self) -> None:
        """Do what is due in a poll: join the group, commit, ask for offsets."""
        if self._is_closed:
            return
        now_us = self._host.clock.now_us
        if self._needs_join and self.state in (UNJOINED, STABLE) and not self._is_preparing:
            if now_us < self._join_retry_us:
                self._retry_later()
            elif self._lookup.connection() is None:
                self._lookup.find()
            else:
                self._prepare_join()
        elif self._auto_commits and not self._is_preparing:
            self._auto_commit()
        if self._without_offset:
            self._fetch_offsets()

    def _poll_again(self) -> None:
        if self._listener.is_polling():
            self.poll()

    def _retry_later(self) -> None:
        if not self._is_retry_set:
            self._is_retry_set = True
            wait_us = max(self._join_retry_us - self._host.clock.now_us, 1)
            self._host.set_timer(wait_us, self._retry)

    def _retry(self, _: None) -> None:
        self._is_retry_set = False
        self._poll_again()

    def _found(self) -> None:
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on()
        self._poll_again()

    def metadata_updated(self) -> None:
        """Have the group rebalance if its leader has assigned other partitions than there are now."""
        if self._assigned_of is not None and self._assigned_of != self._partitions():
            self._assigned_of = None
            self.rejoin()

    def rejoin(self) -> None:
        """Join again with the next poll."""
        if self._subscribes and not self._needs_join:
            self._needs_join = True
            self._poll_again()

    def _partitions(self) -> dict[str, tuple[str, ...]]:
        """Return the partitions of each topic that is known."""
        found: dict[str, list[str]] = {topic: [] for topic in self._topics}
        for name in self._metadata.leaders:
            topic = name.rpartition("-")[0]
            if topic in found:
                found[topic].append(name)
        return {topic: tuple(sorted(names, key=_number)) for topic, names in sorted(found.items()) if names}

    # Joining

    def _prepare_join(self) -> None:
        """Commit what was polled, then give up what others may get (``onJoinPrepare``)."""
        self._is_preparing = True
        consumed = self._listener.consumed()
        if self._auto_commits and consumed and self.state == STABLE:
            self.commit_sync(consumed, lambda _: self._join())
        else:
            self._join()

    def _join(self) -> None:
        if self._is_closed:
            return
        lost = self.generation == NO_GENERATION
        if self.owned and (lost or not self._is_cooperative):
            self._revoke(tuple(self.owned), lost=lost)
        self._is_preparing = False
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
            return
        self._needs_join = False
        self.state = PREPARING
        config = self._config
        request = JoinGroupRequest(
            config.group,
            config.session_timeout_us,
            config.max_poll_interval_us,
            self.member,
            config.group_instance,
            tuple((name, self._subscription(name)) for name in config.assignors),
        )
        timeout_us = max(config.request_timeout_us, config.max_poll_interval_us + _JOIN_LAPSE_US)
        connection.send(request, self._joined, timeout_us=timeout_us)
        self._listener.poll_goes_on()

    def _subscription(self, assignor: str) -> Subscription:
        if assignor == STICKY and not self._is_cooperative:
            return Subscription(self._topics, *self._last_owned)
        owned = tuple(self.owned)
        return Subscription(self._topics, owned, self.generation if owned else NO_GENERATION)

    def _joined(self, response: JoinGroupResponse | None, _: Any) -> None:
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if response is None or error != errors.NONE:
            if response is not None and error == errors.MEMBER_ID_REQUIRED:
                self.member = response.member
            self._join_failed(error, at_once=error in (errors.MEMBER_ID_REQUIRED, errors.UNKNOWN_MEMBER_ID))
            return
        self.member, self.generation = response.member, response.generation
        self.state = COMPLETING
        assignments: dict[str, tuple[str, ...]] = {}
        if response.leader == response.member:
            self._assigned_of = self._partitions()
            if not response.skip_assignment:
                assignments = assign(response.protocol, response.members, self._assigned_of)
        else:
            self._assigned_of = None
        connection = self._lookup.connection()
        if connection is None:
            self._join_failed(errors.NETWORK_EXCEPTION)
            return
        config = self._config
        request = SyncGroupRequest(
            config.group, self.generation, self.member, config.group_instance, assignments
        )
        connection.send(request, self._synced)

    def _join_failed(self, error: str, *, at_once: bool = False) -> None:
        self.state = UNJOINED
        self._needs_join = True
        if error in _MOVED:
            self._lookup.forget()
        elif error in _FENCED:
            self._lose(error)
        if error in _FATAL:
            self._fail(error)
            return
        wait_us = 0 if at_once else self._config.retry_backoff_us
        self._join_retry_us = self._host.clock.now_us + wait_us
        self._poll_again()

    def _synced(self, response: SyncGroupResponse | None, _: Any) -> None:
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if response is None or error != errors.NONE:
            self._join_failed(error, at_once=error == errors.REBALANCE_IN_PROGRESS)
            return
        self.state = STABLE
        self._joined_as = self.generation, self.member
        self._heard_us = self._host.clock.now_us
        assigned = response.partitions
        revoked = [name for name in self.owned if name not in assigned]
        if revoked:
            # Cooperative: it gives up now what others get with the next rebalance.
            self._revoke(revoked, lost=False)
            self._needs_join = True
        added = [name for name in assigned if name not in self.owned]
        self.owned = dict.fromkeys(assigned)
        self._last_owned = assigned, self.generation
        self._without_offset.update(dict.fromkeys(added))
        self._listener.partitions_assigned(added)
        self._watch_session()
        self._poll_again()

    def _revoke(self, partitions: Sequence[str], *, lost: bool) -> None:
        for name in partitions:
            self.owned.pop(name, None)
            self._without_offset.pop(name, None)
        self._listener.partitions_revoked(partitions, lost=lost)

    def _lose(self, reason: str) -> None:
        """Be no member any more; the application learns with its next poll that its partitions are lost."""
        if self.generation != NO_GENERATION or self.member != NO_MEMBER:
            self._host.emit(MembershipLost, self._host.name, self._config.group, reason)
        self.generation, self.member = NO_GENERATION, NO_MEMBER
        self.state = UNJOINED
        self._assigned_of = None
        self._needs_join = self._subscribes

    def _fail(self, error: str) -> None:
        self._is_closed = True
        self._host.emit(MembershipLost, self._host.name, self._config.group, error)
        if self.owned:
            self._revoke(tuple(self.owned), lost=True)
        self._listener.group_failed(error)

    # Heartbeats

    def _watch_session(self) -> None:
        if not self._beat_set and self._subscribes:
            self._beat_set = True
            self._host.set_timer(self._config.heartbeat_interval_us, self._beat)

    def _beat(self, _: None) -> None:
        """Say that this member is alive, unless its application has not polled for too long (KIP-62)."""
        self._beat_set = False
        if self._is_closed or self.state != STABLE:
            return
        now_us, config = self._host.clock.now_us, self._config
        left_us = config.max_poll_interval_us - (now_us - self._listener.polled_us())
        if not self._listener.is_polling() and left_us <= 0:
            self._leave("max.poll.interval.ms")
            return
        if now_us - self._heard_us >= config.session_timeout_us:
            self._heard_us = now_us
            self._lookup.forget()
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
        elif not self._beat_in_flight:
            self._beat_in_flight = True
            request = HeartbeatRequest(config.group, self.generation, self.member, config.group_instance)
            connection.send(request, self._beat_answered, self.generation)
        wait_us = config.heartbeat_interval_us
        if not self._listener.is_polling():
            wait_us = min(wait_us, max(left_us, 1))
        self._beat_set = True
        self._host.set_timer(wait_us, self._beat)

    def _beat_answered(self, response: HeartbeatResponse | None, generation: int) -> None:
        self._beat_in_flight = False
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if error == errors.NONE:
            self._heard_us = self._host.clock.now_us
        elif error in _MOVED:
            self._lookup.forget()
            self._lookup.find()
        elif self.state == STABLE and generation == self.generation:
            if error == errors.REBALANCE_IN_PROGRESS:
                self.rejoin()
            else:
                self._fenced(error)

    def _fenced(self, error: str) -> None:
        """Take note that the group goes on without this member."""
        if error in _FATAL:
            self._fail(error)
        elif error in _FENCED and self._subscribes:
            self._lose(error)
            self._poll_again()

    def _leave(self, reason: str) -> None:
        """Leave the group; a static member does not say so, for it may be back soon (``maybeLeaveGroup``)."""
        connection = self._lookup.connection()
        config = self._config
        if connection is not None and self.member != NO_MEMBER and config.group_instance == NO_INSTANCE:
            connection.send(LeaveGroupRequest(config.group, self.member), _ignore)
        self._lose(reason)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Commit what was polled and leave, then have the process end (``KafkaConsumer.close``)."""
        consumed = self._listener.consumed()
        if self._auto_commits and consumed and self.generation != NO_GENERATION:
            self.commit_sync(consumed, lambda _: self._close(on_closed))
        else:
            self._close(on_closed)

    def _close(self, on_closed: Callable[[], None]) -> None:
        connection, config = self._lookup.connection(), self._config
        self._is_closed = True
        if self.owned:
            self._revoke(tuple(self.owned), lost=False)
        if connection is None or self.member == NO_MEMBER or config.group_instance != NO_INSTANCE:
            on_closed()
        else:
            connection.send(LeaveGroupRequest(config.group, self.member), lambda _, __: on_closed())

    # Commits

    def _auto_commit(self) -> None:
        """Commit what was polled, each time that the interval is over (``maybeAutoCommitOffsetsAsync``)."""
        now_us = self._host.clock.now_us
        if now_us >= self._auto_commit_us:
            self._auto_commit_us = now_us + self._config.auto_commit_interval_us
            consumed = self._listener.consumed()
            if consumed and (self.state == STABLE or not self._subscribes):
                self.commit_async(consumed, _ignore_error)
        if not self._auto_commit_set:
            self._auto_commit_set = True
            self._host.set_timer(self._auto_commit_us - now_us, self._auto_commit_due)

    def _auto_commit_due(self, _: None) -> None:
        self._auto_commit_set = False
        self._poll_again()

    def commit_async(self, offsets: Mapping[str, int], on_done: OnCommitted) -> None:
        """Commit once; what comes of it is not waited for."""
        self._begin_commit(dict(offsets), on_done)

    def commit_sync(self, offsets: Mapping[str, int], on_done: OnCommitted) -> None:
        """Commit, again and again where that may help, for as long as ``default.api.timeout.ms`` allows."""
        asked, now_us = dict(offsets), self._host.clock.now_us
        timeout_us = self._config.api_timeout_us
        ends_us = None if timeout_us is None else now_us + timeout_us

        def ended(error: str) -> None:
            is_late = ends_us is not None and self._host.clock.now_us >= ends_us
            if error not in _RETRIABLE or is_late or self._is_closed:
                on_done(error)
            else:
                self._host.set_timer(self._config.retry_backoff_us, attempt)

        def attempt(_: Any) -> None:
            if self._is_closed:
                return
            if self._lookup.connection() is None:
                self._waiting.append(lambda: self._begin_commit(asked, ended))
                self._lookup.find()
            else:
                self._begin_commit(asked, ended)

        attempt(None)

    def _begin_commit(self, offsets: dict[str, int], on_done: OnCommitted) -> None:
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
            on_done(errors.COORDINATOR_NOT_AVAILABLE)
            return
        if self._subscribes and self.state != STABLE:
            # Who is about to join again, or has been left behind, cannot commit (``generationIfStable``).
            is_joining = self.state in (PREPARING, COMPLETING)
            error = errors.REBALANCE_IN_PROGRESS if is_joining else errors.UNKNOWN_MEMBER_ID
            self._listener.committing(offsets)
            self._end_commit(offsets, error, on_done)
            return
        self._listener.committing(offsets)
        request = OffsetCommitRequest(
            self._config.group, self.generation, self.member, self._config.group_instance, offsets
        )
        connection.send(request, self._commit_answered, (offsets, on_done, self.generation))

    def _commit_answered(
        self, response: OffsetCommitResponse | None, context: tuple[dict[str, int], OnCommitted, int]
    ) -> None:
        offsets, on_done, generation = context
        error = errors.NETWORK_EXCEPTION
        if response is not None:
            failed = [each for each in response.partitions.values() if each != errors.NONE]
            error = failed[0] if failed else errors.NONE
        if error in _MOVED:
            self._lookup.forget()
        elif generation == self.generation and not self._is_closed:
            if error == errors.REBALANCE_IN_PROGRESS:
                self.rejoin()
            else:
                self._fenced(error)
        self._end_commit(offsets, error, on_done)

    def _end_commit(self, offsets: dict[str, int], error: str, on_done: OnCommitted) -> None:
        if error != errors.NONE:
            pairs = tuple(offsets.items())
            self._host.emit(CommitFailed, self._host.name, self._config.group, error, pairs)
        self._listener.commit_ended(offsets, error)
        on_done(error)

    # Where to begin

    def ask_for_offsets(self, partitions: Collection[str]) -> None:
        """Ask where the group is in partitions that the consumer has assigned itself."""
        self._without_offset.update(dict.fromkeys(partitions))

    def is_settled(self) -> bool:
        """Return whether it has partitions, knows from where on to read them, and is not about to join again."""
        return self.state == STABLE and not (self._needs_join or self._without_offset)

    def position_known(self, partition: str) -> None:
        """Ask for no offset of a partition: its application has sought one."""
        self._without_offset.pop(partition, None)

    def _fetch_offsets(self) -> None:
        if self._fetching_offsets:
            return
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
            return
        self._fetching_offsets = True
        request = OffsetFetchRequest(self._config.group, tuple(self._without_offset), self._requires_stable)
        connection.send(request, self._offsets_fetched)

    def _offsets_fetched(self, response: OffsetFetchResponse | None, _: Any) -> None:
        self._fetching_offsets = False
        if self._is_closed:
            return
        found = {} if response is None else response.partitions
        if response is None or response.error in _MOVED:
            self._lookup.forget()
        for name, (error, offset) in found.items():
            if error == errors.NONE and name in self._without_offset:
                del self._without_offset[name]
                self._listener.begin_at(name, offset)
        if self._without_offset:
            self._host.set_timer(self._config.retry_backoff_us, self._retry_offsets)

    def _retry_offsets(self, _: None) -> None:
        if self._without_offset:
            self._poll_again()


def _number(partition: str) -> int:
    return int(partition.rpartition("-")[2])


def _ignore(_: Any, __: Any) -> None:
    """Go on without the answer."""


def _ignore_error(_: str) -> None:
    """Go on: the next commit says the same and more."""
