"""Raft as Kafka has it: a quorum of voters of which one leads, and followers that fetch (``KafkaRaftClient.java``).

A voter votes once in an epoch, for a candidate whose log goes at least as far as its own. The leader's high watermark is
what a majority of the voters has fetched, once that reaches into its own epoch. Observers fetch and vote for nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Final, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.controller.node_to_controller_channel import NO_NODE
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.protocol import CONTROLLER_LISTENER, server_name
from harrow.cluster_model.kraft.records import LeaderChangeMessage, MetadataRecord
from harrow.cluster_model.sim.connection import Message
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

FETCH_WAIT_MAX_US: Final = 500 * US_PER_MS
"""How long a fetch waits for records (``KafkaRaftClient.MAX_FETCH_WAIT_MS``)."""
RETRY_BACKOFF_US: Final = 20 * US_PER_MS
"""``controller.quorum.retry.backoff.ms``."""
BACKOFF_BASE_US: Final = 100 * US_PER_MS
"""What a voter that was not elected begins with (``KafkaRaftClient.RETRY_BACKOFF_BASE_MS``)."""


@unique
class Role(Enum):
    """What a node of the quorum is (``QuorumState``)."""

    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumConfig:
    """``controller.quorum.*``, in microseconds; ``pre_vote`` is KIP-996, ``tells_high_watermark`` KIP-1166."""

    election_timeout_us: int
    election_backoff_max_us: int
    fetch_timeout_us: int
    request_timeout_us: int
    pre_vote: bool
    tells_high_watermark: bool


class RaftListener(Protocol):
    """Who is told what the quorum does."""

    def committed(self, high_watermark: int) -> None:
        """Everything below this offset is committed, and in this node's log."""

    def truncated(self, offset: int) -> None:
        """This node's log has been cut back; nothing below the high watermark is gone."""

    def leader_changed(self) -> None:
        """This node knows of another leader, or of none, or of another epoch."""


class RaftClient:
    """One life of a node: a voter, or an observer, which has no id among the voters."""

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
        # Whatever was begun in an earlier role is over.
        self._turn = 0
        self._next_asked = 0
        self._has_fetched = False
        self._heard_us = 0
        self._election_due_us: int | None = None
        self._votes: dict[int, bool] = {}
        self._elections = 0
        # As leader: where its epoch begins, how far each node has fetched and when, and the fetches that wait.
        self._epoch_start = 0
        self._end_offsets: dict[int, int] = {}
        self._fetched_us: dict[int, int] = {}
        self._waiting: dict[int, tuple[Message, protocol.RaftFetchRequest]] = {}
        self._next_waiting = 0
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
        """Whether a leader knows that everything before its epoch is committed."""
        return self.is_leader and self.high_watermark > self._epoch_start

    def start(self) -> None:
        """Go on with the leader of before; without one observers look for it, and voters run after their election timeout."""
        leader = self.log.leader
        if leader in self._peers:
            self._become(Role.FOLLOWER, self.log.epoch, leader)
        elif self._voters == (self.node,):
            self._stand(self._turn)
        else:
            # Who led before does not do so again in the same epoch.
            self._become(Role.RESIGNED if leader == self.node else Role.UNATTACHED, self.log.epoch, NO_NODE)

    def close(self) -> None:
        """Resign as leader, and do nothing more."""
        if self.is_leader:
            self._end_epoch()
        self._is_closed = True
        self._turn += 1
        self._fail_waiting()
        for peer in self._peers.values():
            peer.close()

    def resign(self) -> None:
        """Give the office up, and leave it to others to run for it first."""
        if self.is_leader:
            self._end_epoch()
            self._become(Role.RESIGNED, self.log.epoch, NO_NODE)

    def append(self, records: tuple[MetadataRecord, ...]) -> int:
        """Append as leader, and return the offset behind the last record."""
        assert self.is_leader
        for record in records:
            self.log.append(self.log.epoch, record)
        self._answer_waiting()
        self._maybe_commit()
        return self.log.end_offset

    # Roles

    def _become(self, role: Role, epoch: int, leader: int) -> None:
        if epoch > self.log.epoch:
            self.log.epoch, self.log.voted_for = epoch, NO_NODE
        was_leader = self.is_leader
        patience_us = self._patience_us(role)
        self.role = role
        self.leader = self.log.leader = leader
        self._has_fetched = False
        self._turn += 1
        self._votes = {}
        if was_leader:
            self._fail_waiting()
        self._listener.leader_changed()
        self._heard_us = self._host.clock.now_us
        if role is Role.FOLLOWER:
            self._elections = 0
            self._watch_leader(self._turn)
            self._fetch(self._turn)
        elif role is Role.LEADER:
            self._lead()
        elif self.is_voter:
            self._election_due_us = self._host.clock.now_us + patience_us
            self._after(patience_us, self._election_timed_out)
        else:
            self._fetch(self._turn)

    def _patience_us(self, role: Role) -> int:
        """Return how long a voter is to wait before it runs for office.

        One that is told of a later epoch, of a candidate that cannot win, waits no longer for that (``transitionToUnattached``).
        """
        now_us = self._host.clock.now_us
        if role is not Role.UNATTACHED or self.role is Role.LEADER:
            return self._election_timeout_us()
        if self.role is Role.FOLLOWER:
            return max(self._heard_us + self._config.fetch_timeout_us - now_us, 0)
        if self._election_due_us is None:
            return self._election_timeout_us()
        return max(self._election_due_us - now_us, 0)

    def _after(self, delay_us: int, callback: Callable[[int], None]) -> None:
        """Call back in this role; in another one it is none of its business."""
        self._host.set_timer(
            delay_us, lambda turn: callback(turn) if turn == self._turn else None, self._turn
        )

    def _election_timeout_us(self) -> int:
        timeout_us = self._config.election_timeout_us
        return timeout_us + self._host.choices.network.below(timeout_us)

    def _election_timed_out(self, _: int) -> None:
        if self.role is Role.CANDIDATE:
            self._back_off()
        elif self.role is Role.PROSPECTIVE and self.leader != NO_NODE:
            self._become(Role.FOLLOWER, self.log.epoch, self.leader)
        else:
            self._run_for_office(self._turn)

    def _back_off(self) -> None:
        """Wait longer each time, for as long as it draws (``binaryExponentialElectionBackoffMs``)."""
        drawn = self._host.choices.network.below(2 << min(self._elections - 1, 20))
        self._after(min(BACKOFF_BASE_US * drawn, self._config.election_backoff_max_us), self._run_for_office)

    def _run_for_office(self, turn: int) -> None:
        if self._config.pre_vote:
            self._become(Role.PROSPECTIVE, self.log.epoch, self.leader)
            self._ask_for_votes(pre_vote=True)
        else:
            self._stand(turn)

    def _stand(self, _: int) -> None:
        self._elections += 1
        self._become(Role.CANDIDATE, self.log.epoch + 1, NO_NODE)
        self.log.voted_for = self.node
        self._ask_for_votes(pre_vote=False)

    def _ask_for_votes(self, *, pre_vote: bool) -> None:
        log = self.log
        request = protocol.VoteRequest(log.epoch, self.node, log.last_epoch, log.end_offset, pre_vote)
        self._votes = {self.node: True}
        for voter in self._peers:
            self._ask_voter(voter, request, self._turn)
        self._count_votes()

    def _ask_voter(self, voter: int, request: protocol.VoteRequest, turn: int) -> None:
        def answered(response: protocol.VoteResponse | None, _: Any) -> None:
            if turn != self._turn:
                return
            if response is None:
                self._after(RETRY_BACKOFF_US, lambda again: self._ask_voter(voter, request, again))
            elif not self._goes_by(response.epoch, response.leader):
                self._votes[voter] = response.granted
                self._count_votes()

        self._peers[voter].send(request, answered)

    def _count_votes(self) -> None:
        majority = len(self._voters) // 2 + 1
        granted = sum(self._votes.values())
        is_lost = len(self._votes) - granted > len(self._voters) - majority
        if self.role is Role.PROSPECTIVE:
            if granted >= majority:
                self._stand(self._turn)
            elif is_lost:
                role = Role.UNATTACHED if self.leader == NO_NODE else Role.FOLLOWER
                self._become(role, self.log.epoch, self.leader)
        elif granted >= majority:
            self._become(Role.LEADER, self.log.epoch, self.node)
        elif is_lost:
            self._back_off()

    def _goes_by(self, epoch: int, leader: int) -> bool:
        """Take over what another node knows of a later epoch, or of a leader of this one; return whether it was news."""
        if epoch > self.log.epoch or (
            epoch == self.log.epoch and leader != NO_NODE and self.leader == NO_NODE
        ):
            if leader == self.node:
                return False
            self._become(Role.UNATTACHED if leader == NO_NODE else Role.FOLLOWER, epoch, leader)
            return True
        return False

    # Following

    def _watch_leader(self, turn: int) -> None:
        """Run for office, or look for another leader, where nothing has come for ``controller.quorum.fetch.timeout.ms``."""
        silent_us = self._host.clock.now_us - self._heard_us
        if silent_us < self._config.fetch_timeout_us:
            self._after(self._config.fetch_timeout_us - silent_us, self._watch_leader)
        elif self.is_voter:
            self._run_for_office(turn)
        else:
            self._become(Role.UNATTACHED, self.log.epoch, NO_NODE)

    def _fetch(self, turn: int) -> None:
        """Fetch from the leader, or from one voter after the other while none is known."""
        asked = self.leader
        if asked == NO_NODE:
            others = tuple(self._peers)
            if not others:
                return
            asked = others[self._next_asked % len(others)]
            self._next_asked += 1
        log = self.log
        request = protocol.RaftFetchRequest(
            log.epoch, self.node, log.end_offset, log.last_epoch, self.high_watermark
        )

        def answered(response: protocol.RaftFetchResponse | None, _: Any) -> None:
            if turn == self._turn:
                self._fetched(asked, response)

        self._peers[asked].send(request, answered)

    def _fetched(self, asked: int, response: protocol.RaftFetchResponse | None) -> None:
        if response is None or response.error != errors.NONE or asked != response.leader:
            if response is not None and self._goes_by(response.epoch, response.leader):
                return
            self._after(RETRY_BACKOFF_US, self._fetch)
            return
        if self.role is not Role.FOLLOWER:
            self._become(Role.FOLLOWER, response.epoch, asked)
            return
        self._heard_us = self._host.clock.now_us
        self._has_fetched = True
        if response.diverging is not None:
            offset = self.log.truncate_to_divergence(*response.diverging)
            assert offset >= self.high_watermark, "what is committed is not cut off"
            self._listener.truncated(offset)
        for epoch, record in response.records:
            self.log.append(epoch, record)
        self._commit(min(response.high_watermark, self.log.end_offset))
        self._fetch(self._turn)

    def _commit(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._listener.committed(high_watermark)

    # Leading

    def _lead(self) -> None:
        self._elections = 0
        self._epoch_start = self.log.end_offset
        now_us = self._host.clock.now_us
        self._end_offsets = dict.fromkeys(self._voters, -1)
        self._fetched_us = dict.fromkeys(self._voters, now_us)
        for voter in self._peers:
            self._make_known(voter, self._turn)
        if self._peers:
            self._after(self._majority_timeout_us(), self._check_majority)
        self.append((LeaderChangeMessage(self.node),))

    def _make_known(self, voter: int, turn: int) -> None:
        request = protocol.BeginQuorumEpochRequest(self.log.epoch, self.node)

        def answered(response: protocol.QuorumResponse | None, _: Any) -> None:
            if turn != self._turn:
                return
            if response is None:
                # One that fetches knows.
                if self._end_offsets[voter] < 0:
                    self._after(RETRY_BACKOFF_US, lambda again: self._make_known(voter, again))
            else:
                self._goes_by(response.epoch, response.leader)

        self._peers[voter].send(request, answered)

    def _majority_timeout_us(self) -> int:
        """Return how long a leader goes on unheard (``LeaderState.CHECK_QUORUM_TIMEOUT_FACTOR``)."""
        return self._config.fetch_timeout_us * 3 // 2

    def _check_majority(self, _: int) -> None:
        """Resign where no majority has fetched for too long (KAFKA-15489)."""
        fetched_us = sorted(
            (at for voter, at in self._fetched_us.items() if voter != self.node), reverse=True
        )
        # With itself these make a majority.
        latest_us = fetched_us[len(self._voters) // 2 - 1]
        silent_us = self._host.clock.now_us - latest_us
        if silent_us >= self._majority_timeout_us():
            self.resign()
        else:
            self._after(self._majority_timeout_us() - silent_us, self._check_majority)

    def _end_epoch(self) -> None:
        ends = self._end_offsets
        successors = tuple(sorted(self._peers, key=lambda voter: (-ends[voter], voter)))
        for peer in self._peers.values():
            peer.send(protocol.EndQuorumEpochRequest(self.log.epoch, self.node, successors), lambda *_: None)

    def _maybe_commit(self) -> None:
        ends = {**self._end_offsets, self.node: self.log.end_offset}
        reached = sorted((ends[voter] for voter in self._voters), reverse=True)[len(self._voters) // 2]
        if reached > max(self._epoch_start, self.high_watermark):
            self._commit(reached)
            if self._config.tells_high_watermark:
                self._answer_waiting()

    # Requests

    def handle(self, message: Message) -> None:
        """Handle what another node says to a voter."""
        request: protocol.QuorumRequest = message[2]
        if isinstance(request, protocol.RaftFetchRequest):
            self._handle_fetch(message, request)
            return
        if isinstance(request, protocol.VoteRequest):
            answer: object = self._vote(request)
        elif isinstance(request, protocol.BeginQuorumEpochRequest):
            answer = self._begin_epoch(request)
        else:
            answer = self._handle_end_epoch(request)
        self._respond(message, answer)

    def _respond(self, message: Message, answer: object) -> None:
        self._host.send_response(message[0], message[1], answer)

    def _vote(self, request: protocol.VoteRequest) -> protocol.VoteResponse:
        log = self.log
        goes_as_far = (request.last_epoch, request.end_offset) >= (log.last_epoch, log.end_offset)
        if request.epoch > log.epoch:
            self._become(Role.UNATTACHED, request.epoch, NO_NODE)
        if request.pre_vote:
            # KIP-996: who has heard from the leader is against an election.
            hears_leader = self.is_leader or (self.role is Role.FOLLOWER and self._has_fetched)
            granted = goes_as_far and request.epoch == log.epoch and not hears_leader
            return protocol.VoteResponse(log.epoch, self.leader, granted)
        granted = (
            request.epoch == log.epoch
            and self.leader == NO_NODE
            and log.voted_for in (NO_NODE, request.candidate)
            and goes_as_far
        )
        if granted:
            log.voted_for = request.candidate
        return protocol.VoteResponse(log.epoch, self.leader, granted)

    def _begin_epoch(self, request: protocol.BeginQuorumEpochRequest) -> protocol.QuorumResponse:
        self._goes_by(request.epoch, request.leader)
        return protocol.QuorumResponse(request.api, self.log.epoch, self.leader)

    def _handle_end_epoch(self, request: protocol.EndQuorumEpochRequest) -> protocol.QuorumResponse:
        """The leader resigns: the successor that it prefers runs at once, the others a little later."""
        if request.epoch >= self.log.epoch and self.role in (Role.FOLLOWER, Role.UNATTACHED):
            self._become(Role.UNATTACHED, request.epoch, NO_NODE)
            place = request.preferred_successors.index(self.node)
            delay_us = min(BACKOFF_BASE_US << place, self._config.election_backoff_max_us) if place else 0
            self._after(delay_us, self._run_for_office)
        return protocol.QuorumResponse(request.api, self.log.epoch, self.leader)

    def _handle_fetch(self, message: Message, request: protocol.RaftFetchRequest) -> None:
        """Answer as leader with what follows, or with where the logs part; wait where there is nothing."""
        if not self.is_leader or request.epoch > self.log.epoch:
            # Who has heard of a later epoch deposes nobody (validateLeaderOnlyRequest).
            self._respond(
                message,
                protocol.RaftFetchResponse(errors.NOT_LEADER_FOR_PARTITION, self.log.epoch, self.leader),
            )
            return
        if request.epoch < self.log.epoch:
            answer = protocol.RaftFetchResponse(errors.FENCED_LEADER_EPOCH, self.log.epoch, self.leader)
            self._respond(message, answer)
            return
        diverging = self.log.divergence(request.fetch_offset, request.last_fetched_epoch)
        if diverging is not None:
            answer = protocol.RaftFetchResponse(
                errors.NONE, self.log.epoch, self.node, self.high_watermark, (), diverging
            )
            self._respond(message, answer)
            return
        if request.replica_id in self._end_offsets:
            self._fetched_us[request.replica_id] = self._host.clock.now_us
            self._end_offsets[request.replica_id] = request.fetch_offset
            self._maybe_commit()
        if self._has_news(request):
            self._answer_fetch(message, request)
            return
        number = self._next_waiting
        self._next_waiting += 1
        self._waiting[number] = (message, request)
        self._host.set_timer(FETCH_WAIT_MAX_US, self._answer_one, number)

    def _has_news(self, request: protocol.RaftFetchRequest) -> bool:
        return request.fetch_offset < self.log.end_offset or (
            self._config.tells_high_watermark and request.high_watermark < self.high_watermark
        )

    def _answer_one(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            self._answer_fetch(*waiting)

    def _answer_waiting(self) -> None:
        for number, (_, request) in list(self._waiting.items()):
            if self._has_news(request):
                self._answer_one(number)

    def _fail_waiting(self) -> None:
        """Tell those whose fetches wait that this node leads no longer."""
        waiting, self._waiting = self._waiting, {}
        for message, _ in waiting.values():
            answer = protocol.RaftFetchResponse(
                errors.NOT_LEADER_FOR_PARTITION, self.log.epoch, NO_NODE if self._is_closed else self.leader
            )
            self._respond(message, answer)

    def _answer_fetch(self, message: Message, request: protocol.RaftFetchRequest) -> None:
        records = self.log.read(request.fetch_offset)
        answer = protocol.RaftFetchResponse(
            errors.NONE, self.log.epoch, self.node, self.high_watermark, records
        )
        self._respond(message, answer)
