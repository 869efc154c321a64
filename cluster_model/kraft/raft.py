"""Implements Kafka's Raft, in which followers fetch from the leader (``KafkaRaftClient.java``).

A voter votes once in an epoch, for a candidate whose log is at least as up to date as its own. The
leader's high watermark is the offset up to which a majority of the voters has the log, once that
offset is in the leader's own epoch. Observers, which are brokers, fetch but do not vote. A follower
that needs records below the leader's log start first fetches the leader's latest snapshot
(KIP-630). The names of transitions come from ``QuorumState.java``.
"""

from collections.abc import Callable
from enum import Enum, unique
from typing import Any, Final, NamedTuple, Protocol, Self

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.controller.node_to_controller_channel import NO_NODE
from harrow.cluster_model.events import (
    CommittedMetadataCut,
    MetadataLogTruncated,
    QuorumElectionUndecided,
    QuorumMajorityLost,
)
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.delayed_raft_fetch import FETCH_WAIT_MAX_US, RaftFetchPurgatory
from harrow.cluster_model.kraft.metadata_log import MetadataLog, MetadataSnapshot, OffsetAndEpoch
from harrow.cluster_model.kraft.protocol import CONTROLLER_LISTENER, server_name
from harrow.cluster_model.kraft.records import LeaderChangeMessage, MetadataRecord
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.kraft import AFTER_REFUSAL, CAPPED, JITTERED, KRaftSwitches
from harrow.cluster_model.release.switch import ALWAYS, NEVER
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.connection import Exchange, Handlers, Q, register
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

RETRY_BACKOFF_US: Final = 20 * US_PER_MS
"""``controller.quorum.retry.backoff.ms``."""
BACKOFF_BASE_US: Final = 50 * US_PER_MS
"""The unit of a losing candidate's backoff (``KafkaRaftClient.RETRY_BACKOFF_BASE_MS``)."""
CAPPED_BACKOFF_BASE_US: Final = 100 * US_PER_MS
"""The unit of that backoff before 3.9.2."""
SHUTDOWN_MAX_US: Final = 5 * US_PER_SECOND
"""How long a voter that shuts down waits for another leader (``KafkaRaftClientDriver``)."""
OBSERVER_SESSION_TIMEOUT_US: Final = 300 * US_PER_SECOND
"""How long a leader remembers a silent observer (``LeaderState.OBSERVER_SESSION_TIMEOUT_MS``)."""


@unique
class Role(Enum):
    """The role of a node in the quorum (``QuorumState``)."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """The settings ``controller.quorum.*`` in microseconds, and the behaviour of a release.

    ``check_quorum``: a leader without fetches from a majority resigns (KAFKA-15489). ``pre_vote``:
    a voter asks before it becomes a candidate (KIP-996). ``tells_high_watermark``: a fetch is
    answered when the high watermark rises (KIP-1166). ``election_backoff`` says when a losing
    candidate backs off, and how long (KAFKA-18345). ``looks_for_leader``: voters, too, ask other
    voters for the leader (KAFKA-17030). ``begin_epoch_repeated`` says when a leader announces
    itself again (KAFKA-16536). Without ``one_vote``, a voter votes for several candidates in an
    epoch. Without ``keeps_log``, a node starts with only its latest snapshot.
    """

    election_timeout_us: int
    election_backoff_max_us: int
    fetch_timeout_us: int
    request_timeout_us: int
    check_quorum: bool
    pre_vote: bool
    tells_high_watermark: bool
    election_backoff: str
    looks_for_leader: bool
    begin_epoch_repeated: str
    one_vote: bool = True
    keeps_log: bool = True

    @classmethod
    def from_settings(cls, config: BrokerConfig, switches: KRaftSwitches) -> Self:
        """Return the configuration of a node with these settings and switches."""
        return cls(
            election_timeout_us=config.quorum_election_timeout_us,
            election_backoff_max_us=config.quorum_election_backoff_max_us,
            fetch_timeout_us=config.quorum_fetch_timeout_us,
            request_timeout_us=config.quorum_request_timeout_us,
            pre_vote=switches.pre_vote,
            check_quorum=switches.check_quorum,
            tells_high_watermark=switches.fetch_carries_high_watermark,
            election_backoff=switches.election_backoff,
            looks_for_leader=switches.voters_look_for_leader,
            begin_epoch_repeated=switches.begin_quorum_epoch_repeated,
            one_vote=switches.one_vote_per_epoch,
            keeps_log=switches.snapshot_replaces_only_shorter_log,
        )


class ReplicaDescription(NamedTuple):
    """The progress of a replica of the metadata log; -1 what its leader has not seen."""

    replica_id: int
    end_offset: int
    fetched_us: int
    caught_up_us: int


class QuorumDescription(NamedTuple):
    """The leader of a quorum, its epoch, its voters, and the observers that fetch from it."""

    leader: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]


@dataclass(slots=True, eq=False)
class ReplicaProgress:
    """A follower's progress in the leader's epoch (``LeaderState.ReplicaState``).

    ``caught_up_us`` is the last time at which the follower had all that the leader had then.
    """

    end_offset: int = -1
    fetched_us: int = -1
    caught_up_us: int = -1
    leader_end_offset: int = -1

    def update(self, now_us: int, fetch_offset: int, leader_end_offset: int) -> None:
        if fetch_offset >= leader_end_offset:
            self.caught_up_us = now_us
        elif 0 < self.leader_end_offset <= fetch_offset:
            # The previous fetch would have got all that this one has.
            self.caught_up_us = self.fetched_us
        self.end_offset, self.leader_end_offset = fetch_offset, leader_end_offset
        self.fetched_us = now_us

    def repeat(self, fetched_us: int) -> None:
        """Note that a waiting fetch, which had no news to get, arrived or repeated itself."""
        self.fetched_us = max(self.fetched_us, fetched_us)
        self.caught_up_us = max(self.caught_up_us, fetched_us)


class RaftListener(Protocol):
    """The controller or broker that applies the records of the metadata log."""

    def on_commit(self, high_watermark: int) -> None:
        """Apply the records below the high watermark. This node's log has them."""

    def on_truncation(self, offset: int) -> None:
        """Handle a truncation of this node's log to *offset*, never below the high watermark."""

    def on_leader_change(self) -> None:
        """Handle a change of the epoch, or of the leader that this node knows."""

    def on_snapshot(self, leader: int, log_end: int, snapshot: MetadataSnapshot) -> None:
        """Handle that a snapshot has replaced this node's log, which ended at *log_end*."""


class RaftClient:
    """One incarnation of a node of the quorum.

    It is an observer if its id is not among the voters.
    """

    def __init__(
        self,
        node: int,
        host: Host,
        voters: tuple[int, ...],
        log: MetadataLog,
        config: QuorumConfig,
        listener: RaftListener,
    ) -> None:
        self.node = node
        self.log = log
        self.high_watermark = 0
        self.leader = NO_NODE
        self.role = Role.UNATTACHED
        self._host = host
        self._voters = voters
        self._config = config
        self._listener = listener
        self._peers = {
            voter: NetworkClient(
                host, server_name(voter), CONTROLLER_LISTENER, config.request_timeout_us, RETRY_BACKOFF_US
            )
            for voter in voters
            if voter != node
        }
        # Incremented on every transition, so that earlier timers and answers are ignored.
        self._transition_number = 0
        self._next_voter = 0
        self._leader_failed = False
        self._has_fetched = False
        self._fetched_from: NetworkClient | None = None
        self._fetching_snapshot: OffsetAndEpoch | None = None
        # When a follower stops waiting for its leader, or when any other voter stops waiting for
        # the end of an election.
        self._deadline_us: int | None = None
        self._votes: dict[int, bool] = {}
        self._is_backing_off = False
        self._elections = 0
        # These are used by a leader: the start of its epoch, the progress of each replica, and for
        # each voter the times at which it last showed that it lives, and of the last answer.
        self._epoch_start = 0
        self._elected_us = 0
        self._replicas: dict[int, ReplicaProgress] = {}
        self._fetched_us: dict[int, int] = {}
        self._answered_us: dict[int, int] = {}
        self._repeats_begin_quorum_epoch = False
        self._fetch_purgatory = RaftFetchPurgatory(host, self._fetch_left)
        self._handlers: Handlers = {}
        register(self._handlers, protocol.RaftFetchRequest, self._handle_fetch)
        register(
            self._handlers, protocol.FetchSnapshotRequest, self._answered_by(self._handle_fetch_snapshot)
        )
        register(self._handlers, protocol.VoteRequest, self._answered_by(self._handle_vote))
        register(
            self._handlers,
            protocol.BeginQuorumEpochRequest,
            self._answered_by(self._handle_begin_quorum_epoch),
        )
        register(
            self._handlers, protocol.EndQuorumEpochRequest, self._answered_by(self._handle_end_quorum_epoch)
        )
        # These are used after a resignation: the voters that have not acknowledged it, and the
        # preferred successors.
        self._unacked_voters: dict[int, None] = {}
        self._preferred_successors: tuple[int, ...] = ()
        self._on_shutdown: Callable[[], None] | None = None
        self._is_closed = False

    @property
    def epoch(self) -> int:
        return self.log.epoch

    @property
    def is_voter(self) -> bool:
        return self.node in self._voters

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def has_committed_own_epoch(self) -> bool:
        """Whether this node leads and has committed all records of earlier epochs."""
        return self.is_leader and self.high_watermark > self._epoch_start

    def start(self) -> None:
        """Resume from what is on disk: follow the same leader, or be a candidate in the same epoch.

        A former leader resigns, because it must not lead again in its epoch. From 4.0 on, a
        follower's own vote is on disk, too. So a follower that was a candidate in the epoch asks
        for votes again before it follows (``QuorumState.initialize``).
        """
        latest = self.log.latest_snapshot
        if latest is not None and not self._config.keeps_log:
            self.log.start_from_snapshot(latest)
        leader = self.log.leader
        was_candidate = self.log.voted_for == self.node and (leader == NO_NODE or self._config.pre_vote)
        if self._voters == (self.node,):
            self._transition_to_candidate()
        elif leader == self.node:
            self._transition_to_resigned(())
        elif was_candidate and self.is_voter:
            self._elections = 1
            self._transition(Role.CANDIDATE, self.log.epoch, NO_NODE)
            self._ask_for_votes()
        elif leader in self._peers:
            self._transition_to_follower(self.log.epoch, leader)
        else:
            self._transition_to_unattached(self.log.epoch)

    def shutdown(self, on_ended: Callable[[], None]) -> None:
        """Shut down cleanly.

        A leader resigns, and waits up to 5 s for a successor (``GracefulShutdown``).
        """
        self._on_shutdown = on_ended
        self._host.set_timer(SHUTDOWN_MAX_US, lambda _: self._complete_shutdown())
        if self.is_leader:
            self.resign()
        self._maybe_complete_shutdown()

    def _maybe_complete_shutdown(self) -> None:
        is_dispensable = not self.is_voter or not self._peers or self.role is Role.FOLLOWER
        if self._on_shutdown is not None and is_dispensable:
            self._complete_shutdown()

    def _complete_shutdown(self) -> None:
        on_ended, self._on_shutdown = self._on_shutdown, None
        if on_ended is not None:
            self.close()
            on_ended()

    def close(self) -> None:
        """Stop all activity and all communication."""
        self._is_closed = True
        self._transition_number += 1
        self._fetch_purgatory.check(lambda _: True)
        for peer in self._peers.values():
            peer.close()

    def resign(self) -> None:
        """If this node leads, resign, and let other voters stand for election first."""
        if self.is_leader:
            states = self._replicas
            self._transition_to_resigned(
                tuple(sorted(self._peers, key=lambda voter: (-states[voter].end_offset, voter)))
            )

    def append(self, records: tuple[MetadataRecord, ...]) -> int:
        """Append records as the leader. Return the new end offset of the log."""
        assert self.is_leader
        for record in records:
            self.log.append(self.log.epoch, record)
        self._fetch_purgatory.check(self._has_news)
        self._maybe_commit()
        return self.log.end_offset

    # Transitions

    def _transition_to_unattached(self, epoch: int) -> None:
        """Enter an epoch whose leader is not known.

        A voter that already waits for an election keeps its deadline. Otherwise a candidate that
        cannot win could delay elections again and again, by raising the epoch.
        """
        deadline_us = self._deadline_us
        is_waiting = self.role in (Role.UNATTACHED, Role.CANDIDATE, Role.PROSPECTIVE) or (
            self.role is Role.RESIGNED and self._config.pre_vote
        )
        self._elections = 0
        self._transition(Role.UNATTACHED, epoch, NO_NODE)
        if not self.is_voter:
            self._fetch(self._transition_number)
            return
        if deadline_us is not None and is_waiting:
            timeout_us = max(deadline_us - self._host.clock.now_us, 0)
        else:
            timeout_us = self._random_election_timeout_us()
        self._await_election(timeout_us)
        if timeout_us and self._config.looks_for_leader:
            self._fetch(self._transition_number)

    def _transition_to_prospective(self) -> None:
        """Ask other voters if they would elect this node (KIP-996).

        The known leader stays known.
        """
        self._transition(Role.PROSPECTIVE, self.log.epoch, self.leader)
        self._await_election(self._random_election_timeout_us())
        self._send_vote_requests(pre_vote=True)

    def _transition_to_candidate(self) -> None:
        self._elections += 1
        self._transition(Role.CANDIDATE, self.log.epoch + 1, NO_NODE)
        self.log.voted_for = self.node
        self._ask_for_votes()

    def _ask_for_votes(self) -> None:
        self._await_election(self._random_election_timeout_us())
        self._send_vote_requests(pre_vote=False)

    def _transition_to_follower(self, epoch: int, leader: int) -> None:
        self._transition(Role.FOLLOWER, epoch, leader)
        self._elections = 0
        self._override_fetch_timeout(self._config.fetch_timeout_us)
        self._maybe_complete_shutdown()
        if not self._is_closed:
            self._fetch(self._transition_number)

    def _transition_to_leader(self) -> None:
        self._transition(Role.LEADER, self.log.epoch, self.node)
        self._elections = 0
        self._epoch_start = self.log.end_offset
        self._replicas = {voter: ReplicaProgress() for voter in self._voters}
        self._elected_us = self._host.clock.now_us
        self._fetched_us = dict.fromkeys(self._voters, self._elected_us)
        self._answered_us = dict(self._fetched_us)
        self._repeats_begin_quorum_epoch = False
        for voter in self._peers:
            self._send_begin_quorum_epoch(voter, self._transition_number)
        self._await_begin_quorum_epoch()
        if self._peers and self._config.check_quorum:
            self._set_timer(self._check_quorum_timeout_us(), self._check_quorum)
        self.append((LeaderChangeMessage(self.node),))
        if self._on_shutdown is not None:
            # The node has won an election during its shutdown, so it resigns at once.
            self.resign()

    def _transition_to_resigned(self, preferred_successors: tuple[int, ...]) -> None:
        self._transition(Role.RESIGNED, self.log.epoch, NO_NODE)
        # This is on disk, so that after a restart the node neither votes nor is a candidate in the
        # epoch that it led.
        self.log.leader = self.node
        self._preferred_successors = preferred_successors
        self._unacked_voters = dict.fromkeys(self._peers)
        self._await_election(self._random_election_timeout_us())
        for voter in tuple(self._unacked_voters):
            self._send_end_quorum_epoch(voter, self._transition_number)

    def _transition(self, role: Role, epoch: int, leader: int) -> None:
        if epoch > self.log.epoch:
            self.log.epoch, self.log.voted_for = epoch, NO_NODE
        was_leader = self.is_leader
        if self._fetched_from is not None:
            self._fetched_from.stop_repeating()
            self._fetched_from = None
        self.role = role
        self.leader = self.log.leader = leader
        self._leader_failed = self._has_fetched = self._is_backing_off = False
        self._fetching_snapshot = None
        self._transition_number += 1
        self._votes = {}
        if was_leader:
            self._fetch_purgatory.check(lambda _: True)
        self._listener.on_leader_change()

    def _maybe_transition(self, epoch: int, leader: int) -> bool:
        """Adopt a later epoch, or the leader of the current epoch, that another node has sent.

        Return whether there was a transition.
        """
        if leader == self.node:
            return False
        if epoch > self.log.epoch and leader == NO_NODE:
            self._transition_to_unattached(epoch)
        elif epoch > self.log.epoch or (
            epoch == self.log.epoch and leader != NO_NODE and self.leader == NO_NODE
        ):
            self._transition_to_follower(epoch, leader)
        else:
            return False
        return True

    def _set_timer(self, delay_us: int, callback: Callable[[int], None]) -> None:
        """Call *callback* after a delay, unless there is a transition before that."""
        self._host.set_timer(
            delay_us,
            lambda transition: callback(transition) if transition == self._transition_number else None,
            self._transition_number,
        )

    # Elections

    def _random_election_timeout_us(self) -> int:
        timeout_us = self._config.election_timeout_us
        return timeout_us + self._host.choices.network.below(timeout_us)

    def _await_election(self, timeout_us: int) -> None:
        self._deadline_us = self._host.clock.now_us + timeout_us
        self._set_timer(timeout_us, self._election_timed_out)

    def _election_timed_out(self, _: int) -> None:
        assert self._deadline_us is not None
        if self._host.clock.now_us < self._deadline_us or self._on_shutdown is not None:
            return
        if self._is_backing_off:
            return
        if self.role in (Role.CANDIDATE, Role.PROSPECTIVE) and not self._is_refused():
            self._host.publish(QuorumElectionUndecided, self.node, self.log.epoch)
        if self.role is Role.CANDIDATE and self._config.election_backoff in (CAPPED, JITTERED):
            self._start_backing_off()
        elif self.role is Role.RESIGNED and self._config.pre_vote:
            # In the current epoch, other voters would still name this node as the leader
            # (``pollResigned``).
            self._transition_to_unattached(self.log.epoch + 1)
        elif self.role is Role.PROSPECTIVE and self.leader != NO_NODE:
            self._transition_to_follower(self.log.epoch, self.leader)
        else:
            self._stand_for_election()

    def _start_backing_off(self) -> None:
        if not self._is_backing_off:
            self._is_backing_off = True
            self._set_timer(self._candidate_backoff_us(), lambda _: self._stand_for_election())

    def _candidate_backoff_us(self) -> int:
        """Return a losing candidate's backoff.

        It grows with each election. Modelled on ``binaryExponentialElectionBackoffMs``.
        """
        choices = self._host.choices.network
        backoff_max_us = self._config.election_backoff_max_us
        if self._config.election_backoff == CAPPED:
            factor = choices.below(2 << min(self._elections - 1, 20))
            return min(CAPPED_BACKOFF_BASE_US * factor, backoff_max_us)
        bound = 2 << min(self._elections - 1, 10)
        if self._config.election_backoff == AFTER_REFUSAL:
            bound -= 1  # From 4.0 on, the draw excludes the bound; 3.9.2 includes it.
        factor = 1 + choices.below(bound)
        jitter_us = choices.below(BACKOFF_BASE_US // US_PER_MS) * US_PER_MS
        return min(BACKOFF_BASE_US * factor, backoff_max_us + jitter_us)

    def _stand_for_election(self) -> None:
        if self._on_shutdown is not None:
            return
        if self._config.pre_vote:
            self._transition_to_prospective()
        else:
            self._transition_to_candidate()

    def _send_vote_requests(self, *, pre_vote: bool) -> None:
        log = self.log
        request = protocol.VoteRequest(log.epoch, self.node, log.last_epoch, log.end_offset, pre_vote)
        self._votes = {self.node: True}
        for voter in self._peers:
            self._send_vote_request(voter, request, self._transition_number)
        self._count_votes()

    def _send_vote_request(self, voter: int, request: protocol.VoteRequest, transition: int) -> None:
        def on_response(response: protocol.VoteResponse | None, _: Any) -> None:
            if transition != self._transition_number:
                return
            if response is None:
                if not self._is_backing_off and not self._is_refused():
                    self._set_timer(
                        RETRY_BACKOFF_US, lambda again: self._send_vote_request(voter, request, again)
                    )
            elif not self._maybe_transition(response.epoch, response.leader):
                self._votes[voter] = response.granted
                self._count_votes()

        self._peers[voter].send(request, on_response)

    def _is_refused(self) -> bool:
        """Return whether too many voters refused for a majority (``isVoteRejected``)."""
        return len(self._votes) - sum(self._votes.values()) > (len(self._voters) - 1) // 2

    def _count_votes(self) -> None:
        majority = len(self._voters) // 2 + 1
        granted = sum(self._votes.values())
        is_rejected = self._is_refused()
        if self.role is Role.PROSPECTIVE:
            if granted >= majority:
                self._transition_to_candidate()
            elif is_rejected and self.leader != NO_NODE:
                self._transition_to_follower(self.log.epoch, self.leader)
            elif is_rejected:
                self._deadline_us = None  # Wait for another whole timeout.
                self._transition_to_unattached(self.log.epoch)
        elif granted >= majority:
            self._transition_to_leader()
        elif is_rejected and self._config.election_backoff != NEVER:
            self._start_backing_off()

    # Following

    def _override_fetch_timeout(self, timeout_us: int) -> None:
        self._deadline_us = self._host.clock.now_us + timeout_us
        self._set_timer(timeout_us, self._check_fetch_timeout)

    def _check_fetch_timeout(self, _: int) -> None:
        """Stand for election or look for a leader, once the fetch timeout has passed."""
        repeated_us = None if self._fetched_from is None else self._fetched_from.repeated_us
        deadline_us = self._deadline_us
        assert deadline_us is not None
        if repeated_us is not None:
            deadline_us = max(deadline_us, repeated_us + self._config.fetch_timeout_us)
        remaining_us = deadline_us - self._host.clock.now_us
        if remaining_us > 0:
            self._set_timer(remaining_us, self._check_fetch_timeout)
        elif self.is_voter:
            self._stand_for_election()
        else:
            self._transition_to_unattached(self.log.epoch)

    def _fetch(self, transition: int) -> None:
        """Fetch from the leader.

        If none is known, or it does not answer, try the voters in turn. In old releases only
        observers try other voters when the leader does not answer.
        """
        source = self.leader
        if source == NO_NODE and self._on_shutdown is not None:
            return
        if source == NO_NODE or (
            self._leader_failed and (self._config.looks_for_leader or not self.is_voter)
        ):
            others = tuple(self._peers)
            source = others[self._next_voter % len(others)]
            self._next_voter += 1
        log = self.log
        if self._fetching_snapshot is not None and source == self.leader:
            self._fetch_snapshot(source, self._fetching_snapshot, transition)
            return
        request = protocol.RaftFetchRequest(
            log.epoch, self.node, log.end_offset, log.last_epoch, self.high_watermark
        )

        def on_response(response: protocol.RaftFetchResponse | None, _: Any) -> None:
            if transition == self._transition_number:
                self._handle_fetch_response(source, response)

        peer = self._fetched_from = self._peers[source]
        peer.send(
            request,
            on_response,
            None,
            self._on_repeated_fetches if self._has_fetched and source == self.leader else None,
        )

    def _on_repeated_fetches(self, _: int) -> None:
        """Extend the deadline, because the leader has answered idle fetches."""
        if self._fetched_from is not None:
            self._deadline_us = self._fetched_from.sent_us + self._config.fetch_timeout_us

    def _fetch_snapshot(self, source: int, snapshot: OffsetAndEpoch, transition: int) -> None:
        request = protocol.FetchSnapshotRequest(self.log.epoch, self.node, snapshot)

        def on_response(response: protocol.FetchSnapshotResponse | None, _: Any) -> None:
            if transition == self._transition_number:
                self._handle_snapshot(source, response)

        peer = self._fetched_from = self._peers[source]
        peer.send(request, on_response)

    def _handle_snapshot(self, source: int, response: protocol.FetchSnapshotResponse | None) -> None:
        """Replace the log by a snapshot from the leader.

        If the leader has deleted the snapshot, fetch again to learn of a later one. Modelled on
        ``handleFetchSnapshotResponse``.
        """
        if response is None or response.error not in (errors.NONE, errors.SNAPSHOT_NOT_FOUND):
            self._handle_fetch_error(source, response)
            return
        self._deadline_us = self._host.clock.now_us + self._config.fetch_timeout_us
        self._fetching_snapshot = None
        snapshot = response.snapshot
        if snapshot is not None:
            log_end = self.log.end_offset
            self.log.start_from_snapshot(snapshot)
            self._listener.on_snapshot(source, log_end, snapshot)
            self._commit(snapshot.end_offset)
        self._fetch(self._transition_number)

    def _handle_fetch_error(
        self, source: int, response: protocol.RaftFetchResponse | protocol.FetchSnapshotResponse | None
    ) -> None:
        if response is not None and self._maybe_transition(response.epoch, response.leader):
            return
        # Alternate between the leader and voters that may know another leader.
        self._leader_failed = source == self.leader
        self._set_timer(RETRY_BACKOFF_US, self._fetch)

    def _handle_fetch_response(self, source: int, response: protocol.RaftFetchResponse | None) -> None:
        if response is None or response.error != errors.NONE or source != response.leader:
            self._handle_fetch_error(source, response)
            return
        if self.role is not Role.FOLLOWER:
            self._transition_to_follower(response.epoch, source)
            return
        self._deadline_us = self._host.clock.now_us + self._config.fetch_timeout_us
        self._has_fetched, self._leader_failed = True, False
        if response.snapshot is not None:
            self._fetching_snapshot = response.snapshot
            self._fetch(self._transition_number)
            return
        if response.diverging is not None:
            end_offset = self.log.end_offset
            offset = self.log.truncate_to_divergence(*response.diverging)
            if offset < self.high_watermark:
                self._host.publish(CommittedMetadataCut, self.node, offset, self.high_watermark)
                # In Kafka an IllegalArgumentException ends the process here
                # (``KafkaMetadataLog.truncateTo``). The next incarnation starts without a high
                # watermark.
                self._host.halt()
                return
            self._host.publish(MetadataLogTruncated, self.node, end_offset, offset)
            self._listener.on_truncation(offset)
        for epoch, record in response.records:
            self.log.append(epoch, record)
        self._commit(min(response.high_watermark, self.log.end_offset))
        self._fetch(self._transition_number)

    def _commit(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._listener.on_commit(high_watermark)

    # Leading

    def _begin_quorum_epoch_timeout_us(self) -> int:
        """Return the interval between a leader's announcements (``beginQuorumEpochTimeoutMs``)."""
        return self._config.fetch_timeout_us // 2

    def _await_begin_quorum_epoch(self) -> None:
        """Schedule the leader's next announcement.

        A voter that fetches knows its leader. So while all voters fetch, there is no timer, and
        `_fetch_left` sets it again.
        """
        if (
            self.is_leader
            and self._peers
            and not self._repeats_begin_quorum_epoch
            and not self._is_closed
            and self._config.begin_epoch_repeated != NEVER
        ):
            self._repeats_begin_quorum_epoch = True
            period_us = self._begin_quorum_epoch_timeout_us()
            elapsed_us = self._host.clock.now_us - self._elected_us
            self._set_timer(period_us - elapsed_us % period_us, self._begin_quorum_epoch_again)

    def _begin_quorum_epoch_again(self, transition: int) -> None:
        self._repeats_begin_quorum_epoch = False
        waiting = self._fetch_purgatory.last_fetches()
        others = [voter for voter in self._peers if voter not in waiting]
        for voter in others:
            if self._is_silent(voter) and not self._peers[voter].in_flight_count:
                self._send_begin_quorum_epoch(voter, transition)
        if others:
            self._await_begin_quorum_epoch()

    def _is_silent(self, voter: int) -> bool:
        """Return whether a voter without a waiting fetch needs an announcement.

        A voter that has just got an answer may be about to fetch again.
        """
        now_us = self._host.clock.now_us
        if now_us - self._answered_us[voter] < FETCH_WAIT_MAX_US:
            return False
        silent_us = now_us - self._fetched_us[voter]
        return (
            self._config.begin_epoch_repeated == ALWAYS or silent_us >= self._begin_quorum_epoch_timeout_us()
        )

    def _send_begin_quorum_epoch(self, voter: int, transition: int) -> None:
        request = protocol.BeginQuorumEpochRequest(self.log.epoch, self.node)

        def on_response(response: protocol.QuorumResponse | None, _: Any) -> None:
            if transition != self._transition_number:
                return
            if response is None:
                # A voter that fetches knows the leader. From 3.9 on, a timer repeats announcements.
                if self._replicas[voter].end_offset < 0 and self._config.begin_epoch_repeated == NEVER:
                    self._set_timer(
                        RETRY_BACKOFF_US, lambda again: self._send_begin_quorum_epoch(voter, again)
                    )
            else:
                self._maybe_transition(response.epoch, response.leader)

        self._peers[voter].send(request, on_response)

    def _send_end_quorum_epoch(self, voter: int, transition: int) -> None:
        """Announce the resignation to a voter.

        Retry until the voter answers or there is a new leader.
        """
        request = protocol.EndQuorumEpochRequest(self.log.epoch, self.node, self._preferred_successors)

        def on_response(response: protocol.QuorumResponse | None, _: Any) -> None:
            if transition != self._transition_number:
                return
            if response is None:
                self._set_timer(RETRY_BACKOFF_US, lambda again: self._send_end_quorum_epoch(voter, again))
            elif not self._maybe_transition(response.epoch, response.leader):
                self._unacked_voters.pop(voter, None)

        if voter in self._unacked_voters:
            self._peers[voter].send(request, on_response)

    def _check_quorum_timeout_us(self) -> int:
        """Return how long a leader leads on without fetches (``CHECK_QUORUM_TIMEOUT_FACTOR``)."""
        return self._config.fetch_timeout_us * 3 // 2

    def _check_quorum(self, _: int) -> None:
        """Resign if a majority has not fetched for too long (KAFKA-15489)."""
        waiting = self._fetch_purgatory.last_fetches()
        fetched_us = sorted(
            (
                max(at_us, waiting.get(voter, at_us))
                for voter, at_us in self._fetched_us.items()
                if voter != self.node
            ),
            reverse=True,
        )
        # Together with the leader, a majority of the voters has fetched at this time or later.
        latest_us = fetched_us[len(self._voters) // 2 - 1]
        silent_us = self._host.clock.now_us - latest_us
        if silent_us >= self._check_quorum_timeout_us():
            self._host.publish(QuorumMajorityLost, self.node, self.log.epoch)
            self.resign()
        else:
            self._set_timer(self._check_quorum_timeout_us() - silent_us, self._check_quorum)

    def _fetch_left(self, replica: int, fetched_us: int, answered_us: int) -> None:
        if replica in self._replicas:
            self._replicas[replica].repeat(fetched_us)
        if replica in self._fetched_us:
            self._fetched_us[replica] = max(self._fetched_us[replica], fetched_us)
            self._answered_us[replica] = max(self._answered_us[replica], answered_us)
            self._await_begin_quorum_epoch()

    def _maybe_commit(self) -> None:
        ends = [
            self.log.end_offset if voter == self.node else self._replicas[voter].end_offset
            for voter in self._voters
        ]
        reached = sorted(ends, reverse=True)[len(self._voters) // 2]
        if reached > max(self._epoch_start, self.high_watermark):
            self._commit(reached)
            self._fetch_purgatory.check(self._has_news)

    # Requests

    def handle(self, exchange: Exchange[Body]) -> None:
        """Handle a request from another node of the quorum."""
        self._handlers[type(exchange.request)](exchange)

    def _answered_by(self, answer: Callable[[Q], Body]) -> Callable[[Exchange[Q]], None]:
        """Return a handler for requests that are answered at once."""
        return lambda exchange: self._respond(exchange, answer(exchange.request))

    def _respond(self, exchange: Exchange[Body], answer: Body) -> None:
        self._host.send_response(exchange.connection, exchange.correlation_id, answer)

    def _handle_vote(self, request: protocol.VoteRequest) -> protocol.VoteResponse:
        log = self.log
        is_up_to_date = (request.last_epoch, request.end_offset) >= (log.last_epoch, log.end_offset)
        if request.epoch > log.epoch:
            self._transition_to_unattached(request.epoch)
        if request.pre_vote:
            # A voter that hears from its leader refuses a pre-vote (KIP-996).
            hears_leader = self.is_leader or (self.role is Role.FOLLOWER and self._has_fetched)
            granted = is_up_to_date and request.epoch == log.epoch and not hears_leader
            return protocol.VoteResponse(log.epoch, self.leader, granted)
        granted = (
            request.epoch == log.epoch
            and self.leader == NO_NODE
            and (log.voted_for in (NO_NODE, request.candidate) or not self._config.one_vote)
            and is_up_to_date
        )
        if granted:
            if log.voted_for == NO_NODE and self.role is Role.UNATTACHED:
                # After its vote, the voter gives the candidate time
                # (transitionToUnattachedVotedState).
                self._await_election(self._random_election_timeout_us())
            log.voted_for = request.candidate
        return protocol.VoteResponse(log.epoch, self.leader, granted)

    def _handle_begin_quorum_epoch(
        self, request: protocol.BeginQuorumEpochRequest
    ) -> protocol.QuorumResponse:
        self._maybe_transition(request.epoch, request.leader)
        return protocol.QuorumResponse(request.api, self.log.epoch, self.leader)

    def _handle_end_quorum_epoch(self, request: protocol.EndQuorumEpochRequest) -> protocol.QuorumResponse:
        """Schedule an election after the leader's resignation.

        The preferred successor starts at once.
        """
        self._maybe_transition(request.epoch, request.leader)
        if (
            self.role is Role.FOLLOWER
            and request.epoch == self.log.epoch
            and request.leader == self.leader
            and not self._is_closed
        ):
            self._override_fetch_timeout(self._election_backoff_us(request.preferred_successors))
        return protocol.QuorumResponse(request.api, self.log.epoch, self.leader)

    def _election_backoff_us(self, successors: tuple[int, ...]) -> int:
        """Return this node's wait after a resignation (``strictExponentialElectionBackoffMs``)."""
        backoff_max_us = self._config.election_backoff_max_us
        if self.node not in successors:
            return backoff_max_us
        place = successors.index(self.node)
        if place == 0:
            return 0
        base_ms = backoff_max_us // US_PER_MS >> (len(successors) - 1)
        return min(backoff_max_us, (base_ms << (place - 1)) * US_PER_MS)

    def _handle_fetch(self, exchange: Exchange[protocol.RaftFetchRequest]) -> None:
        """Answer with records, a snapshot id or a divergence.

        If there is no news, let the fetch wait.
        """
        request = exchange.request
        error = self._leader_only_error(request.epoch)
        if error != errors.NONE:
            self._respond(exchange, self._refusal(error))
            return
        snapshot = self.log.snapshot_for(request.fetch_offset, request.last_fetched_epoch)
        if snapshot is not None:
            answer = protocol.RaftFetchResponse(
                errors.NONE, self.log.epoch, self.node, self.high_watermark, snapshot=snapshot.id
            )
            self._respond(exchange, answer)
            return
        diverging = self.log.divergence(request.fetch_offset, request.last_fetched_epoch)
        if diverging is not None:
            answer = protocol.RaftFetchResponse(
                errors.NONE, self.log.epoch, self.node, self.high_watermark, (), diverging
            )
            self._respond(exchange, answer)
            return
        replica, now_us = request.replica_id, self._host.clock.now_us
        state = self._replicas.get(replica)
        if state is None:
            state = self._replicas[replica] = ReplicaProgress()
        is_new_end = state.end_offset != request.fetch_offset
        state.update(now_us, request.fetch_offset, self.log.end_offset)
        if replica in self._fetched_us:
            self._fetched_us[replica] = self._answered_us[replica] = now_us
            if is_new_end:
                self._maybe_commit()
        if self._has_news(request):
            self._respond(exchange, self._fetch_answer(request))
            return
        self._fetch_purgatory.watch(
            exchange,
            lambda: self._fetch_answer(request),
            is_idle=request.high_watermark == self.high_watermark,
        )

    def _leader_only_error(self, epoch: int) -> str:
        """Return the error of a request that only a leader answers (``validateLeaderOnlyRequest``).

        A request with a later epoch does not depose the leader.
        """
        if not self.is_leader or epoch > self.log.epoch:
            return errors.NOT_LEADER_FOR_PARTITION
        return errors.FENCED_LEADER_EPOCH if epoch < self.log.epoch else errors.NONE

    def _handle_fetch_snapshot(
        self, request: protocol.FetchSnapshotRequest
    ) -> protocol.FetchSnapshotResponse:
        error = self._leader_only_error(request.epoch)
        if error != errors.NONE:
            leader = NO_NODE if self._is_closed else self.leader
            return protocol.FetchSnapshotResponse(error, self.log.epoch, leader)
        snapshot = next((own for own in self.log.snapshots if own.id == request.snapshot), None)
        if snapshot is not None and request.replica_id in self._fetched_us:
            # Fetching a snapshot counts as a fetch when the leader checks the quorum
            # (updateCheckQuorumForFollowingVoter).
            self._fetched_us[request.replica_id] = self._host.clock.now_us
        error = errors.SNAPSHOT_NOT_FOUND if snapshot is None else errors.NONE
        return protocol.FetchSnapshotResponse(error, self.log.epoch, self.node, snapshot)

    def describe(self) -> "QuorumDescription":
        """Describe the quorum, on its leader (``LeaderState.voterStates``, ``observerStates``).

        The leader forgets observers that have not fetched for a while.
        """
        now_us = self._host.clock.now_us
        for replica, fetched_us in self._fetch_purgatory.last_fetches().items():
            self._replicas[replica].repeat(fetched_us)
        replicas = {
            **{
                replica: ReplicaDescription(replica, state.end_offset, state.fetched_us, state.caught_up_us)
                for replica, state in self._replicas.items()
            },
            self.node: ReplicaDescription(self.node, self.log.end_offset, now_us, now_us),
        }
        return QuorumDescription(
            *(self.node, self.log.epoch, self.high_watermark),
            tuple([replicas[voter] for voter in self._voters]),
            tuple(
                [
                    each
                    for replica, each in replicas.items()
                    if replica not in self._voters and now_us - each.fetched_us < OBSERVER_SESSION_TIMEOUT_US
                ]
            ),
        )

    def _has_news(self, request: protocol.RaftFetchRequest) -> bool:
        return request.fetch_offset < self.log.end_offset or (
            self._config.tells_high_watermark and request.high_watermark < self.high_watermark
        )

    def _fetch_answer(self, request: protocol.RaftFetchRequest) -> protocol.RaftFetchResponse:
        if not self.is_leader or self._is_closed:
            return self._refusal(errors.NOT_LEADER_FOR_PARTITION)
        records = self.log.read(request.fetch_offset)
        return protocol.RaftFetchResponse(
            errors.NONE, self.log.epoch, self.node, self.high_watermark, records
        )

    def _refusal(self, error: str) -> protocol.RaftFetchResponse:
        return protocol.RaftFetchResponse(error, self.log.epoch, NO_NODE if self._is_closed else self.leader)
