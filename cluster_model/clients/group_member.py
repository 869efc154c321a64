"""Commits offsets and fetches committed offsets, for members with either group protocol.

Modelled on ``ConsumerCoordinator.java`` and ``CommitRequestManager.java``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.coordinator_lookup import CoordinatorLookup
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.coordinators.protocol import (
    NO_GENERATION,
    NO_MEMBER,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from harrow.cluster_model.events import CommitFailed, MembershipLost
from harrow.cluster_model.settings import ConsumerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.topology import CONSUMER_OFFSETS

COORDINATOR_ERRORS: Final = frozenset(
    {
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.REQUEST_TIMED_OUT,
        errors.NETWORK_EXCEPTION,
    }
)
"""Errors after which the client must look up the coordinator again.

NETWORK_EXCEPTION stands for a lost connection.
"""
RETRIABLE: Final = COORDINATOR_ERRORS | {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
}

CommitCallback = Callable[[str], None]
"""Called with the outcome of a commit: `errors.NONE` or an error."""


class GroupMetadata(NamedTuple):
    """A consumer's identity in its group (``ConsumerGroupMetadata``).

    An application may pass it to a transaction (KIP-447).
    """

    group: str
    generation: int
    member: str
    instance: str


class GroupListener(Protocol):
    """The consumer to which a group member belongs, together with the consumer's application."""

    def is_polling(self) -> bool:
        """Return whether the application is in a poll."""

    def poll_start_us(self) -> int:
        """Return when the last poll began."""

    def poll_end_us(self) -> int:
        """Return when the last poll returned."""

    def consumed_offsets(self) -> Mapping[str, int]:
        """Return the offset up to which the application has polled each partition."""

    def on_partitions_revoked(self, partitions: Sequence[str], *, lost: bool) -> None:
        """Stop reading partitions; *lost* says whether other members may read them already."""

    def on_partitions_assigned(self, partitions: Sequence[str]) -> None:
        """Prepare to read partitions. `set_committed_offset` is called later for each of them."""

    def set_committed_offset(self, partition: str, offset: int) -> None:
        """Read a partition from the committed offset, which is -1 if there is none."""

    def on_partitions_paused(self, partitions: Sequence[str]) -> None:
        """Return no more records of partitions that are about to be revoked."""

    def resume_poll(self) -> None:
        """Let a waiting poll return its records."""

    def on_commit_started(self, offsets: Mapping[str, int]) -> None:
        """Note the start of a commit."""

    def on_commit_ended(self, offsets: Mapping[str, int], error: str) -> None:
        """Note the outcome of a commit."""

    def on_group_failed(self, error: str) -> None:
        """End the application: another poll would only repeat the exception."""


class GroupMember:
    """A member of a group; if *subscribes* is False, a consumer that only commits for the group.

    `poll` does the work of an application's poll. It is called at the beginning of a poll, and
    again during the poll when something has changed. Heartbeats continue in between, as long as the
    application polls in time.
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
            self._coordinator_found,
            has_own_connection=True,
        )
        self.member = NO_MEMBER
        self.generation = NO_GENERATION
        self.owned: dict[str, None] = {}
        self._is_closed = False
        self._auto_commit_us = host.clock.now_us + config.auto_commit_interval_us
        self._is_auto_commit_timer_set = False
        self._waiting_commits: list[Callable[[], None]] = []
        self._partitions_without_offset: dict[str, None] = {}
        self._is_fetching_offsets = False

    @property
    def identity(self) -> GroupMetadata:
        """The identity of this member in requests."""
        config = self._config
        return GroupMetadata(config.group, self.generation, self.member, config.group_instance)

    @property
    def group_metadata(self) -> GroupMetadata:
        """The identity for transactions that commit offsets of the group."""
        return self.identity

    def is_settled(self) -> bool:
        """Return whether the member has its partitions and offsets, and no rebalance is due."""
        raise NotImplementedError

    @property
    def blocks_poll(self) -> bool:
        """Whether polls return no records yet, because partitions are about to be revoked."""
        raise NotImplementedError

    def poll(self) -> None:
        """Do the work that is due in a poll: join the group, commit, fetch committed offsets."""
        raise NotImplementedError

    def metadata_updated(self) -> None:
        """React to new metadata."""
        raise NotImplementedError

    def close(self, on_closed: Callable[[], None]) -> None:
        """Commit polled offsets and leave, then call *on_closed* (``KafkaConsumer.close``)."""
        raise NotImplementedError

    def _poll_again(self) -> None:
        if self._listener.is_polling():
            self.poll()

    def _coordinator_found(self) -> None:
        waiting, self._waiting_commits = self._waiting_commits, []
        for resume in waiting:
            resume()
        self._poll_again()

    def _revoke(self, partitions: Sequence[str], *, lost: bool) -> None:
        for name in partitions:
            self.owned.pop(name, None)
            self._partitions_without_offset.pop(name, None)
        self._listener.on_partitions_revoked(partitions, lost=lost)

    def _fail(self, error: str) -> None:
        self._is_closed = True
        self._host.emit(MembershipLost, self._host.name, self._config.group, error)
        if self.owned:
            self._revoke(tuple(self.owned), lost=True)
        self._listener.on_group_failed(error)

    # Commits

    def _auto_commit(self) -> None:
        """Commit polled offsets if it is time for that (``maybeAutoCommitOffsetsAsync``)."""
        now_us = self._host.clock.now_us
        if now_us >= self._auto_commit_us:
            self._auto_commit_us = now_us + self._config.auto_commit_interval_us
            consumed = self._listener.consumed_offsets()
            if consumed and (self._is_in_group() or not self._subscribes):
                self.commit_async(consumed, _ignore_error)
        if not self._is_auto_commit_timer_set:
            self._is_auto_commit_timer_set = True
            self._host.set_timer(self._auto_commit_us - now_us, self._handle_auto_commit_timer)

    def _handle_auto_commit_timer(self, _: None) -> None:
        self._is_auto_commit_timer_set = False
        self._poll_again()

    def commit_async(self, offsets: Mapping[str, int], on_done: CommitCallback) -> None:
        """Commit once, without waiting for the outcome."""
        self._begin_commit(dict(offsets), on_done)

    def commit_sync(self, offsets: Mapping[str, int], on_done: CommitCallback) -> None:
        """Commit, and retry after retriable errors until ``default.api.timeout.ms`` is over."""
        to_commit, now_us = dict(offsets), self._host.clock.now_us
        timeout_us = self._config.api_timeout_us
        ends_us = None if timeout_us is None else now_us + timeout_us

        def ended(error: str) -> None:
            is_late = ends_us is not None and self._host.clock.now_us >= ends_us
            if error not in RETRIABLE or is_late or self._is_closed:
                on_done(error)
            else:
                self._host.set_timer(self._config.retry_backoff_us, attempt)

        def attempt(_: Any) -> None:
            if self._is_closed:
                return
            if self._lookup.connection() is None:
                self._waiting_commits.append(lambda: self._begin_commit(to_commit, ended))
                self._lookup.find()
            else:
                self._begin_commit(to_commit, ended)

        attempt(None)

    def _begin_commit(self, offsets: dict[str, int], on_done: CommitCallback) -> None:
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
            on_done(errors.COORDINATOR_NOT_AVAILABLE)
            return
        self._listener.on_commit_started(offsets)
        error = self._commit_error()
        if error != errors.NONE:
            self._end_commit(offsets, error, on_done)
            return
        identity = self.identity
        request = OffsetCommitRequest(
            identity.group, identity.generation, identity.member, identity.instance, offsets
        )
        connection.send(request, self._handle_commit_response, (offsets, on_done, identity.generation))

    def _handle_commit_response(
        self, response: OffsetCommitResponse | None, context: tuple[dict[str, int], CommitCallback, int]
    ) -> None:
        offsets, on_done, generation = context
        error = errors.NETWORK_EXCEPTION
        if response is not None:
            failures = [failure for failure in response.partitions.values() if failure != errors.NONE]
            error = failures[0] if failures else errors.NONE
        if error in COORDINATOR_ERRORS:
            self._lookup.forget()
        elif generation == self.generation and not self._is_closed:
            self._handle_commit_error(error)
        self._end_commit(offsets, error, on_done)

    def _is_in_group(self) -> bool:
        """Return whether the member is in its group, so that it may commit automatically."""
        raise NotImplementedError

    def _commit_error(self) -> str:
        """Return the error with which the client itself refuses a commit, or `errors.NONE`."""
        raise NotImplementedError

    def _handle_commit_error(self, error: str) -> None:
        """React to the outcome of a commit, if it affects the membership."""
        raise NotImplementedError

    def _end_commit(self, offsets: dict[str, int], error: str, on_done: CommitCallback) -> None:
        if error != errors.NONE:
            pairs = tuple(offsets.items())
            self._host.emit(CommitFailed, self._host.name, self._config.group, error, pairs)
        self._listener.on_commit_ended(offsets, error)
        on_done(error)

    # Committed offsets

    def request_offsets(self, partitions: Collection[str]) -> None:
        """Fetch the committed offsets of *partitions* with the next poll."""
        self._partitions_without_offset.update(dict.fromkeys(partitions))

    def skip_offset_fetch(self, partition: str) -> None:
        """Fetch no committed offset of a partition, because the application has called ``seek``."""
        self._partitions_without_offset.pop(partition, None)

    def _fetch_offsets(self) -> None:
        if self._is_fetching_offsets:
            return
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
            return
        self._is_fetching_offsets = True
        request = self._offset_fetch_request(tuple(self._partitions_without_offset))
        connection.send(request, self._handle_offsets_response)

    def _offset_fetch_request(self, partitions: tuple[str, ...]) -> OffsetFetchRequest:
        return OffsetFetchRequest(self._config.group, partitions, self._requires_stable)

    def _handle_offsets_response(self, response: OffsetFetchResponse | None, _: Any) -> None:
        self._is_fetching_offsets = False
        if self._is_closed:
            return
        offsets = {} if response is None else response.partitions
        if response is None or response.error in COORDINATOR_ERRORS:
            self._lookup.forget()
        for name, (error, offset) in offsets.items():
            if error == errors.NONE and name in self._partitions_without_offset:
                del self._partitions_without_offset[name]
                self._listener.set_committed_offset(name, offset)
        if self._partitions_without_offset:
            self._host.set_timer(self._config.retry_backoff_us, self._retry_offsets)

    def _retry_offsets(self, _: None) -> None:
        if self._partitions_without_offset:
            self._poll_again()


def _ignore_error(_: str) -> None:
    """Ignore the error, because the next commit covers the same offsets."""
