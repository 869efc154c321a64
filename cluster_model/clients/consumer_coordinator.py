"""Keeps a consumer in a group with the classic protocol: joins, syncs and sends heartbeats.

Modelled on ``AbstractCoordinator.java`` and ``ConsumerCoordinator.java``.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.assignors import STICKY, assign, is_cooperative
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.group_member import (
    COORDINATOR_ERRORS,
    GroupListener,
    GroupMember,
    GroupMetadata,
)
from harrow.cluster_model.coordinators.protocol import (
    NO_GENERATION,
    NO_INSTANCE,
    NO_MEMBER,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Subscription,
    SyncGroupRequest,
    SyncGroupResponse,
)
from harrow.cluster_model.events import MembershipLost
from harrow.cluster_model.settings import ConsumerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

UNJOINED: Final = "unjoined"
PREPARING: Final = "preparing"
COMPLETING: Final = "completing"
STABLE: Final = "stable"
"""The states of a member (``AbstractCoordinator.MemberState``)."""

_JOIN_LAPSE_US: Final = 5 * US_PER_SECOND
"""How long a JoinGroup may take beyond the rebalance timeout (``JOIN_GROUP_TIMEOUT_LAPSE``)."""

_FENCING_ERRORS: Final = frozenset({errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION})
_FATAL_ERRORS: Final = frozenset(
    {errors.FENCED_INSTANCE_ID, errors.INCONSISTENT_GROUP_PROTOCOL, errors.INVALID_SESSION_TIMEOUT}
)


class ConsumerCoordinator(GroupMember):
    """A member of a classic group.

    All members join again for each generation, and one of them assigns the partitions.
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
        self._is_cooperative = is_cooperative(config.assignors)
        self.state = UNJOINED
        # The last assignment and its generation, which the sticky assignor needs.
        self._last_owned: tuple[tuple[str, ...], int] = ((), NO_GENERATION)
        self._needs_join = subscribes
        self._is_preparing = False
        self._assignment_snapshot: dict[str, tuple[str, ...]] | None = None
        self._join_retry_us = 0
        self._is_retry_scheduled = False
        self._is_heartbeat_scheduled = False
        self._is_heartbeat_in_flight = False
        self._last_answer_us = 0
        # Generation and member id at the last assignment (``onJoinComplete``), for transactions.
        self._last_membership = (NO_GENERATION, NO_MEMBER)

    @property
    def group_metadata(self) -> GroupMetadata:
        config = self._config
        return GroupMetadata(config.group, *self._last_membership, config.group_instance)

    @property
    def blocks_poll(self) -> bool:
        return self._is_preparing

    def is_settled(self) -> bool:
        return self.state == STABLE and not (self._needs_join or self._partitions_without_offset)

    # Within poll

    def poll(self) -> None:
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
        if self._partitions_without_offset:
            self._fetch_offsets()

    def _retry_later(self) -> None:
        if not self._is_retry_scheduled:
            self._is_retry_scheduled = True
            wait_us = max(self._join_retry_us - self._host.clock.now_us, 1)
            self._host.set_timer(wait_us, self._retry)

    def _retry(self, _: None) -> None:
        self._is_retry_scheduled = False
        self._poll_again()

    def metadata_updated(self) -> None:
        """Rebalance if partitions have changed since this member, as leader, assigned them."""
        if self._assignment_snapshot is not None and self._assignment_snapshot != self._partitions():
            self._assignment_snapshot = None
            self.rejoin()

    def rejoin(self) -> None:
        """Join again with the next poll."""
        if self._subscribes and not self._needs_join:
            self._needs_join = True
            self._poll_again()

    def _partitions(self) -> dict[str, tuple[str, ...]]:
        """Return the partitions of each subscribed topic in the metadata."""
        by_topic: dict[str, list[str]] = {topic: [] for topic in self._topics}
        for name in self._metadata.leaders:
            topic = name.rpartition("-")[0]
            if topic in by_topic:
                by_topic[topic].append(name)
        return {
            topic: tuple(sorted(names, key=_number)) for topic, names in sorted(by_topic.items()) if names
        }

    # Joining

    def _prepare_join(self) -> None:
        """Commit polled offsets, then join, if needed after a revocation (``onJoinPrepare``)."""
        self._is_preparing = True
        consumed = self._listener.consumed_offsets()
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
        connection.send(request, self._handle_join_response, timeout_us=timeout_us)
        self._listener.resume_poll()

    def _subscription(self, assignor: str) -> Subscription:
        if assignor == STICKY and not self._is_cooperative:
            return Subscription(self._topics, *self._last_owned)
        owned = tuple(self.owned)
        return Subscription(self._topics, owned, self.generation if owned else NO_GENERATION)

    def _handle_join_response(self, response: JoinGroupResponse | None, _: Any) -> None:
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if response is None or error != errors.NONE:
            if response is not None and error == errors.MEMBER_ID_REQUIRED:
                self.member = response.member
            self._handle_join_error(
                error, at_once=error in (errors.MEMBER_ID_REQUIRED, errors.UNKNOWN_MEMBER_ID)
            )
            return
        self.member, self.generation = response.member, response.generation
        self.state = COMPLETING
        assignments: dict[str, tuple[str, ...]] = {}
        if response.leader == response.member:
            self._assignment_snapshot = self._partitions()
            if not response.skip_assignment:
                assignments = assign(response.protocol, response.members, self._assignment_snapshot)
        else:
            self._assignment_snapshot = None
        connection = self._lookup.connection()
        if connection is None:
            self._handle_join_error(errors.NETWORK_EXCEPTION)
            return
        config = self._config
        request = SyncGroupRequest(
            config.group, self.generation, self.member, config.group_instance, assignments
        )
        connection.send(request, self._handle_sync_response)

    def _handle_join_error(self, error: str, *, at_once: bool = False) -> None:
        self.state = UNJOINED
        self._needs_join = True
        if error in COORDINATOR_ERRORS:
            self._lookup.forget()
        elif error in _FENCING_ERRORS:
            self._lose_membership(error)
        if error in _FATAL_ERRORS:
            self._fail(error)
            return
        wait_us = 0 if at_once else self._config.retry_backoff_us
        self._join_retry_us = self._host.clock.now_us + wait_us
        self._poll_again()

    def _handle_sync_response(self, response: SyncGroupResponse | None, _: Any) -> None:
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if response is None or error != errors.NONE:
            self._handle_join_error(error, at_once=error == errors.REBALANCE_IN_PROGRESS)
            return
        self.state = STABLE
        self._last_membership = self.generation, self.member
        self._last_answer_us = self._host.clock.now_us
        assigned = response.partitions
        revoked = [name for name in self.owned if name not in assigned]
        if revoked:
            # With cooperative assignors the member gives up partitions now, and their new owners
            # get them in the next rebalance.
            self._revoke(revoked, lost=False)
            self._needs_join = True
        added = [name for name in assigned if name not in self.owned]
        self.owned = dict.fromkeys(assigned)
        self._last_owned = assigned, self.generation
        self._partitions_without_offset.update(dict.fromkeys(added))
        self._listener.on_partitions_assigned(added)
        self._schedule_heartbeat()
        self._poll_again()

    def _lose_membership(self, reason: str) -> None:
        """Give up the membership after an error or a timeout.

        The application learns in its next poll that it has lost its partitions.
        """
        if self.generation != NO_GENERATION or self.member != NO_MEMBER:
            self._host.emit(MembershipLost, self._host.name, self._config.group, reason)
        self.generation, self.member = NO_GENERATION, NO_MEMBER
        self.state = UNJOINED
        self._assignment_snapshot = None
        self._needs_join = self._subscribes

    # Heartbeats

    def _schedule_heartbeat(self) -> None:
        if not self._is_heartbeat_scheduled and self._subscribes:
            self._is_heartbeat_scheduled = True
            self._host.set_timer(self._config.heartbeat_interval_us, self._send_heartbeat)

    def _send_heartbeat(self, _: None) -> None:
        """Send a heartbeat, or leave if the application has not polled for too long (KIP-62)."""
        self._is_heartbeat_scheduled = False
        if self._is_closed or self.state != STABLE:
            return
        now_us, config = self._host.clock.now_us, self._config
        remaining_us = config.max_poll_interval_us - (now_us - self._listener.poll_start_us())
        if not self._listener.is_polling() and remaining_us <= 0:
            self._leave("max.poll.interval.ms")
            return
        if now_us - self._last_answer_us >= config.session_timeout_us:
            self._last_answer_us = now_us
            self._lookup.forget()
        connection = self._lookup.connection()
        if connection is None:
            self._lookup.find()
        elif not self._is_heartbeat_in_flight:
            self._is_heartbeat_in_flight = True
            request = HeartbeatRequest(config.group, self.generation, self.member, config.group_instance)
            connection.send(request, self._handle_heartbeat_response, self.generation)
        wait_us = config.heartbeat_interval_us
        if not self._listener.is_polling():
            wait_us = min(wait_us, max(remaining_us, 1))
        self._is_heartbeat_scheduled = True
        self._host.set_timer(wait_us, self._send_heartbeat)

    def _handle_heartbeat_response(self, response: HeartbeatResponse | None, generation: int) -> None:
        self._is_heartbeat_in_flight = False
        if self._is_closed:
            return
        error = errors.NETWORK_EXCEPTION if response is None else response.error
        if error == errors.NONE:
            self._last_answer_us = self._host.clock.now_us
        elif error in COORDINATOR_ERRORS:
            self._lookup.forget()
            self._lookup.find()
        elif self.state == STABLE and generation == self.generation:
            if error == errors.REBALANCE_IN_PROGRESS:
                self.rejoin()
            else:
                self._handle_fencing(error)

    def _handle_fencing(self, error: str) -> None:
        """Handle an error which shows that the group continues without this member."""
        if error in _FATAL_ERRORS:
            self._fail(error)
        elif error in _FENCING_ERRORS and self._subscribes:
            self._lose_membership(error)
            self._poll_again()

    def _leave(self, reason: str) -> None:
        """Leave the group.

        A static member sends no request, because it may be back soon (``maybeLeaveGroup``).
        """
        connection = self._lookup.connection()
        config = self._config
        if connection is not None and self.member != NO_MEMBER and config.group_instance == NO_INSTANCE:
            connection.send(LeaveGroupRequest(config.group, self.member), _ignore)
        self._lose_membership(reason)

    def _is_in_group(self) -> bool:
        return self.state == STABLE

    def _commit_error(self) -> str:
        """Refuse commits during a join and outside of the group (``generationIfStable``)."""
        if not self._subscribes or self.state == STABLE:
            return errors.NONE
        return (
            errors.REBALANCE_IN_PROGRESS
            if self.state in (PREPARING, COMPLETING)
            else errors.UNKNOWN_MEMBER_ID
        )

    def _handle_commit_error(self, error: str) -> None:
        if error == errors.REBALANCE_IN_PROGRESS:
            self.rejoin()
        else:
            self._handle_fencing(error)

    def close(self, on_closed: Callable[[], None]) -> None:
        consumed = self._listener.consumed_offsets()
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


def _number(partition: str) -> int:
    return int(partition.rpartition("-")[2])


def _ignore(_: Any, __: Any) -> None:
    """Ignore the answer."""
