"""Keeps a consumer in a group whose coordinator assigns the partitions (KIP-848).

Modelled on ``ConsumerMembershipManager.java`` and ``ConsumerHeartbeatRequestManager.java``. A
background thread sends heartbeats and gets assignments in the answers. The member reconciles its
partitions with its assignment without waiting for other members: it revokes and adds partitions,
and reports them in its next heartbeat, so that others can get what it has revoked. If a change
involves the application, because offsets are committed first or because the application has a
rebalance listener, the member waits for the next poll.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.group_member import (
    COORDINATOR_ERRORS,
    RETRIABLE,
    GroupListener,
    GroupMember,
    GroupMetadata,
)
from harrow.cluster_model.coordinators.protocol import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetFetchRequest,
)
from harrow.cluster_model.events import MembershipLost
from harrow.cluster_model.settings import ANY_ASSIGNOR, ConsumerConfig
from harrow.cluster_model.sim.host import Host

UNSUBSCRIBED: Final = "UNSUBSCRIBED"
JOINING: Final = "JOINING"
RECONCILING: Final = "RECONCILING"
ACKNOWLEDGING: Final = "ACKNOWLEDGING"
STABLE: Final = "STABLE"
FENCED: Final = "FENCED"
STALE: Final = "STALE"
FATAL: Final = "FATAL"
"""The states of a member (``MemberState.java``)."""

_ID_END: Final = 1 << 32
_NO_HEARTBEATS: Final = frozenset({UNSUBSCRIBED, FENCED, STALE, FATAL})
_FENCING_ERRORS: Final = frozenset({errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID})

LocalAssignment = tuple[int, tuple[str, ...]]
"""A number that increases with every change, and the partitions that a member owns or will own."""

_NO_ASSIGNMENT: Final[LocalAssignment] = (-1, ())


class ConsumerMembership(GroupMember):
    """A member of a group with the protocol of KIP-848.

    *has_listener* says whether the application is called when partitions are assigned or revoked.
    ``epoch`` is the member epoch. ``generation`` is the same number in commits, and `NO_GENERATION`
    while the member is not in the group.
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
        has_listener: bool,
    ) -> None:
        super().__init__(
            host,
            metadata,
            config,
            listener,
            topics,
            subscribes=subscribes,
            auto_commits=auto_commits,
            requires_stable=requires_stable,
        )
        self._needs_poll = auto_commits or has_listener
        self._has_listener = has_listener
        self.state = UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self._last_identity = (NO_GENERATION, NO_MEMBER)
        if subscribes:
            # The member chooses its own id, and keeps it until its process ends (KIP-1082).
            self.member = f"{host.name}-{host.choices.network.below(_ID_END):08x}"
        self._target: LocalAssignment = _NO_ASSIGNMENT
        self._local: LocalAssignment = _NO_ASSIGNMENT
        self._is_reconciling = False
        self._reconciliations = 0
        self._resume_in_next_poll: Callable[[], None] | None = None
        self._last_request_number = 0
        self._awaits_response = False
        self._failures = 0
        self._interval_us = 0
        self._heartbeat_due_us = 0
        self._sent_subscription = False
        self._sent_local: LocalAssignment | None = None
        self._last_timer_number = 0

    @property
    def identity(self) -> GroupMetadata:
        config = self._config
        member = self.member if self.epoch > 0 else NO_MEMBER
        return GroupMetadata(config.group, self.generation, member, config.group_instance)

    @property
    def group_metadata(self) -> GroupMetadata:
        """The identity for transactions that commit offsets of the group.

        A fenced member uses its former identity until it is a member again, so that its commits are
        refused (``AsyncKafkaConsumer.updateGroupMetadata``). The coordinator would accept commits
        without a member id.
        """
        return GroupMetadata(self._config.group, *self._last_identity, self._config.group_instance)

    @property
    def blocks_poll(self) -> bool:
        return False

    def is_settled(self) -> bool:
        return self.state == STABLE and not self._partitions_without_offset

    # Within poll

    def poll(self) -> None:
        if self._is_closed:
            return
        if self._subscribes and self.state in _NO_HEARTBEATS:
            self._revoke_lost_partitions()
            self._join()
        if self._resume_in_next_poll is not None:
            resume, self._resume_in_next_poll = self._resume_in_next_poll, None
            resume()
        if self.state == RECONCILING:
            self._maybe_reconcile()
        if self._auto_commits:
            self._auto_commit()
        if self._partitions_without_offset:
            self._fetch_offsets()

    def metadata_updated(self) -> None:
        """Do nothing, because the coordinator itself notices new partitions."""

    def _coordinator_found(self) -> None:
        super()._coordinator_found()
        self._maybe_heartbeat()

    # Heartbeats

    def _join(self) -> None:
        """Join the group by a heartbeat that is due now."""
        self.state = JOINING
        self._set_epoch(JOIN_EPOCH)
        self._heartbeat_due_us = self._host.clock.now_us
        self._maybe_heartbeat()

    def _maybe_heartbeat(self) -> None:
        """Send a due heartbeat, or leave if the application has not polled for too long.

        If no coordinator is known, look it up instead (``onHeartbeatRequestSkipped``).
        """
        if self._is_closed or self.state in _NO_HEARTBEATS:
            return
        now_us = self._host.clock.now_us
        is_due = not self._awaits_response and self._heartbeat_due_us <= now_us
        is_late = not self._listener.is_polling() and self._poll_expires_us() <= now_us
        if not (is_due or is_late):
            self._set_timer()
        elif self._lookup.connection() is None:
            self._lookup.find()
        elif is_late:
            self._leave_for_long_poll()
        else:
            self._send_heartbeat()
            self._set_timer()

    def _poll_expires_us(self) -> int:
        return self._listener.poll_end_us() + self._config.max_poll_interval_us

    def _set_timer(self) -> None:
        """Set a timer for the next heartbeat or the poll timeout, whichever is earlier."""
        now_us = self._host.clock.now_us
        deadlines_us = [] if self._awaits_response else [self._heartbeat_due_us]
        if not self._listener.is_polling():
            deadlines_us.append(self._poll_expires_us())
        self._last_timer_number += 1
        if deadlines_us:
            self._host.set_timer(
                max(min(deadlines_us) - now_us, 1), self._timer_expired, self._last_timer_number
            )

    def _timer_expired(self, number: int) -> None:
        if number == self._last_timer_number:
            self._maybe_heartbeat()

    def _send_heartbeat(self) -> None:
        config = self._config
        is_joining = self.state == JOINING
        request = ConsumerGroupHeartbeatRequest(config.group, self.member, self.epoch, config.group_instance)
        if is_joining or not self._sent_subscription:
            request.rebalance_timeout_us = config.max_poll_interval_us
            request.topics = self._topics
            if config.remote_assignor != ANY_ASSIGNOR:
                request.assignor = config.remote_assignor
            self._sent_subscription = True
        if is_joining or self._sent_local != self._local:
            request.owned = self._local[1]
            self._sent_local = self._local
        if self.state == ACKNOWLEDGING:
            self.state = STABLE if self._local == self._target else RECONCILING
        self._heartbeat_due_us = self._host.clock.now_us + self._interval_us
        self._awaits_response = True
        self._last_request_number += 1
        connection = self._lookup.connection()
        assert connection is not None, "a heartbeat without a coordinator"
        connection.send(request, self._handle_response, self._last_request_number)

    def _handle_response(self, response: ConsumerGroupHeartbeatResponse | None, number: int) -> None:
        if number != self._last_request_number:
            return  # The member has left the group since it sent this heartbeat.
        self._awaits_response = False
        if self._is_closed or self.state in _NO_HEARTBEATS:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if response is None or error != errors.NONE:
            self._handle_error(error)
        else:
            self._failures = 0
            if response.heartbeat_interval_us != self._interval_us:
                self._interval_us = response.heartbeat_interval_us
                self._heartbeat_due_us = self._host.clock.now_us + self._interval_us
            self._set_epoch(response.epoch)
            if response.assignment is not None:
                self._take_target(response.assignment)
        self._maybe_heartbeat()

    def _handle_error(self, error: str) -> None:
        """Handle an error, after which the next heartbeat has all fields (``onErrorResponse``)."""
        self._sent_subscription, self._sent_local = False, None
        self._heartbeat_due_us = self._host.clock.now_us
        if error in (errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE):
            self._lookup.forget()
            self._lookup.find()
        elif error in COORDINATOR_ERRORS or error == errors.COORDINATOR_LOAD_IN_PROGRESS:
            if error in COORDINATOR_ERRORS:
                self._lookup.forget()
                self._lookup.find()
            self._heartbeat_due_us += self._backoff.backoff_us(self._failures)
            self._failures += 1
        elif error in _FENCING_ERRORS:
            self._handle_fencing(error)
        else:
            self.state = FATAL
            self._fail(error)

    def _set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.generation = epoch if epoch > 0 else NO_GENERATION
        if epoch > 0:
            self._last_identity = (epoch, self.member)

    # Partitions

    def _take_target(self, partitions: tuple[str, ...]) -> None:
        """Accept a new target assignment (``processAssignmentReceived``)."""
        number, current = self._target
        if number == _NO_ASSIGNMENT[0] or current != partitions:
            self._target = number + 1, partitions
        if self._target != self._local:
            self.state = RECONCILING
            self._maybe_reconcile()
        elif self.state in (RECONCILING, JOINING):
            self.state = STABLE

    def _maybe_reconcile(self) -> None:
        """Auto-commit, then revoke and add partitions to reach the target (``maybeReconcile``)."""
        if self._is_reconciling or (self._needs_poll and not self._listener.is_polling()):
            return
        if self._target == self._local:
            return
        self._is_reconciling = True
        self._reconciliations += 1
        reconciliation, target = self._reconciliations, self._target
        revoked = [name for name in self.owned if name not in target[1]]
        if self._auto_commits and self._listener.consumed_offsets():
            if revoked:
                self._listener.on_partitions_paused(revoked)
            ends_us = self._host.clock.now_us + self._config.max_poll_interval_us
            self._commit_before_revocation(ends_us, lambda: self._revoke_and_assign(reconciliation, target))
        else:
            self._revoke_and_assign(reconciliation, target)

    def _commit_before_revocation(self, ends_us: int, resume: Callable[[], None]) -> None:
        """Commit polled offsets, with retries until *ends_us*; then call *resume*.

        A commit with a stale member epoch is retried too, because the member may learn its new
        epoch meanwhile. See ``maybeAutoCommitSyncBeforeRevocation``.
        """

        def ended(error: str) -> None:
            is_stale = error == errors.STALE_MEMBER_EPOCH and self.epoch > 0
            if (is_stale or error in RETRIABLE) and self._host.clock.now_us < ends_us:
                self._host.set_timer(self._config.retry_backoff_us, attempt)
            else:
                resume()

        def attempt(_: Any) -> None:
            if not self._is_closed:
                self.commit_async(dict(self._listener.consumed_offsets()), ended)

        attempt(None)

    def _revoke_and_assign(self, reconciliation: int, target: LocalAssignment) -> None:
        if reconciliation != self._reconciliations:
            return
        if self._has_listener and not self._listener.is_polling():
            # The application is called only during its polls.
            self._resume_in_next_poll = lambda: self._revoke_and_assign(reconciliation, target)
            return
        self._is_reconciling = False
        if self._is_closed or self.state != RECONCILING:
            return
        partitions = target[1]
        revoked = [name for name in self.owned if name not in partitions]
        if revoked:
            self._revoke(revoked, lost=False)
        added = [name for name in partitions if name not in self.owned]
        self.owned = dict.fromkeys(partitions)
        self._partitions_without_offset.update(dict.fromkeys(added))
        self._listener.on_partitions_assigned(added)
        self._local = target
        self._auto_commit_us = self._host.clock.now_us + self._config.auto_commit_interval_us
        self.state = ACKNOWLEDGING
        self._heartbeat_due_us = self._host.clock.now_us
        self._maybe_heartbeat()
        self._poll_again()

    # Leaving the group

    def _handle_fencing(self, reason: str) -> None:
        """Rejoin, and give up partitions that others may own by now (``transitionToFenced``)."""
        self.state = FENCED
        self._lose_membership(reason)
        if not self._has_listener or self._listener.is_polling():
            self._revoke_lost_partitions()
            self._join()

    def _leave_for_long_poll(self) -> None:
        """Leave because a poll is overdue; the next poll rejoins (``transitionToStale``)."""
        self.state = STALE
        self._send_leave(_ignore)
        self._lose_membership("max.poll.interval.ms")
        if not self._has_listener:
            self._revoke_lost_partitions()

    def _lose_membership(self, reason: str) -> None:
        if self.epoch > 0:
            self._host.emit(MembershipLost, self._host.name, self._config.group, reason)
        self._set_epoch(JOIN_EPOCH)
        self._reconciliations += 1
        self._is_reconciling = False
        self._target = self._local = _NO_ASSIGNMENT
        self._last_request_number += 1
        self._awaits_response = False

    def _revoke_lost_partitions(self) -> None:
        if self.owned:
            self._revoke(tuple(self.owned), lost=True)

    def _send_leave(self, on_complete: Callable[[Any, Any], None]) -> bool:
        """Send a heartbeat that leaves the group.

        Return False if no coordinator is known, or the member is not in the group.
        """
        connection, config = self._lookup.connection(), self._config
        if connection is None or self.epoch == JOIN_EPOCH:
            return False
        epoch = LEAVE_EPOCH if config.group_instance == NO_INSTANCE else LEAVE_STATIC_EPOCH
        request = ConsumerGroupHeartbeatRequest(config.group, self.member, epoch, config.group_instance)
        connection.send(request, on_complete)
        return True

    def close(self, on_closed: Callable[[], None]) -> None:
        consumed = self._listener.consumed_offsets()
        if self._auto_commits and consumed and self._is_in_group():
            self.commit_sync(consumed, lambda _: self._close(on_closed))
        else:
            self._close(on_closed)

    def _close(self, on_closed: Callable[[], None]) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self.owned:
            self._revoke(tuple(self.owned), lost=False)
        if not self._send_leave(lambda _, __: on_closed()):
            on_closed()

    # Commits

    def _is_in_group(self) -> bool:
        return self.epoch > 0

    def _commit_error(self) -> str:
        return errors.NONE

    def _handle_commit_error(self, error: str) -> None:
        """Do nothing, because only heartbeats end a membership."""

    def _offset_fetch_request(self, partitions: tuple[str, ...]) -> OffsetFetchRequest:
        request = super()._offset_fetch_request(partitions)
        if self.epoch > 0:
            request.member, request.epoch = self.member, self.epoch
        return request


def _ignore(_: Any, __: Any) -> None:
    """Ignore the answer."""
