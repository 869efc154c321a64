"""Elects the leader of an ensemble (``FastLeaderElection.java``).

Each server votes for the best candidate that it knows: by the epoch, then by the end of the log,
then by the id of the candidate. When a server changes its vote, it notifies all others. A candidate
is elected if a majority votes for it, and no better vote arrives for 200 ms.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.zookeeper.quorum.protocol import (
    ELECTION_LISTENER,
    FOLLOWING,
    LEADING,
    LOOKING,
    Ballot,
    Notification,
)

FINALIZE_WAIT_US: Final = 200 * US_PER_MS
NOTIFICATION_INTERVAL_MAX_US: Final = 60 * US_PER_SECOND


class _Vote(NamedTuple):
    """The state, round and vote in the last message of another server."""

    state: str
    round: int
    ballot: Ballot


class FastLeaderElection:
    """Takes part in elections for one server, as long as its process runs."""

    def __init__(
        self,
        server_id: int,
        host: Host,
        peers: Mapping[int, str],
        own_ballot: Callable[[], Ballot],
        on_elected: Callable[[int], None],
    ) -> None:
        self._server_id = server_id
        self._host = host
        self._majority = (len(peers) + 1) // 2 + 1
        self._own_ballot = own_ballot
        self._on_elected = on_elected
        self._clients = {
            peer: NetworkClient(host, name, ELECTION_LISTENER, NOTIFICATION_INTERVAL_MAX_US)
            for peer, name in peers.items()
        }
        self._round = 0
        self._state = LOOKING
        self._ballot = own_ballot()
        # The votes of servers that look for a leader, and of settled ones, which follow or lead.
        self._votes: dict[int, _Vote] = {}
        self._votes_of_settled: dict[int, _Vote] = {}
        # The numbers of the current search and agreement, so that older timers are ignored.
        self._search = 0
        self._agreement = 0
        self._interval_us = FINALIZE_WAIT_US
        self._last_message_us = 0

    def look(self) -> None:
        """Begin a new round of the election, with a vote for this server."""
        self._state = LOOKING
        self._round += 1
        self._search += 1
        self._votes.clear()
        self._votes_of_settled.clear()
        self._ballot = self._own_ballot()
        self._interval_us = FINALIZE_WAIT_US
        self._last_message_us = self._host.clock.now_us
        self._notify_all()
        self._host.set_timer(self._interval_us, self._repeat, self._search)

    def receive(self, vote: Notification) -> None:
        if self._state != LOOKING:
            if vote.state == LOOKING:
                self._notify(vote.sender)
            return
        self._last_message_us = self._host.clock.now_us
        received = _Vote(vote.state, vote.round, vote.ballot)
        if vote.state == LOOKING:
            self._receive_vote(vote.sender, received)
        else:
            self._receive_settled(vote.sender, received)

    def _receive_vote(self, sender: int, vote: _Vote) -> None:
        if vote.round < self._round:
            self._notify(sender)
            return
        if vote.round > self._round:
            self._round = vote.round
            self._votes.clear()
            self._vote_for(max(vote.ballot, self._own_ballot(), key=_rank))
        elif _rank(vote.ballot) > _rank(self._ballot):
            self._vote_for(vote.ballot)
        self._votes[sender] = vote
        self._count()

    def _vote_for(self, ballot: Ballot) -> None:
        self._agreement += 1
        self._ballot = ballot
        self._notify_all()

    def _count(self) -> None:
        """If a majority shares this server's vote, wait a moment for a better vote."""
        supporters = 1 + sum(vote.ballot == self._ballot for vote in self._votes.values())
        if supporters >= self._majority:
            self._agreement += 1
            self._host.set_timer(FINALIZE_WAIT_US, self._finalize, self._agreement)

    def _finalize(self, agreement: int) -> None:
        if agreement == self._agreement and self._state == LOOKING:
            self._end(self._ballot.leader)

    def _receive_settled(self, sender: int, vote: _Vote) -> None:
        """Accept a settled server's leader, once a majority confirms that leader."""
        leader = vote.ballot.leader
        self._votes_of_settled[sender] = vote
        supporters = {
            each
            for each, settled in self._votes_of_settled.items()
            if (settled.ballot.leader, settled.ballot.epoch) == (leader, vote.ballot.epoch)
        }
        if vote.round == self._round:
            # The leader was elected in this round, so votes of this round count too.
            supporters |= {each for each, other in self._votes.items() if other.ballot.leader == leader}
            supporters |= {self._server_id} if self._ballot.leader == leader else set()
        leader_agrees = leader == self._server_id or (
            leader in self._votes_of_settled and self._votes_of_settled[leader].state == LEADING
        )
        if (
            len(supporters) >= self._majority
            and leader_agrees
            and (leader != self._server_id or vote.round == self._round)
        ):
            self._round = vote.round
            self._end(leader)

    def _end(self, leader: int) -> None:
        self._agreement += 1
        self._search += 1
        self._state = LEADING if leader == self._server_id else FOLLOWING
        if self._ballot.leader != leader:
            self._ballot = Ballot(self._ballot.epoch, self._ballot.position, leader)
        self._on_elected(leader)

    def _repeat(self, search: int) -> None:
        """Notify the others again after a silence, and double the interval."""
        if search != self._search:
            return
        quiet_us = self._host.clock.now_us - self._last_message_us
        if quiet_us >= self._interval_us:
            self._notify_all()
            self._interval_us = min(2 * self._interval_us, NOTIFICATION_INTERVAL_MAX_US)
            self._last_message_us = self._host.clock.now_us
            quiet_us = 0
        self._host.set_timer(self._interval_us - quiet_us, self._repeat, search)

    def _notify_all(self) -> None:
        for peer in self._clients:
            self._notify(peer)

    def _notify(self, peer: int) -> None:
        ballot = self._ballot
        if self._state != LOOKING:
            # All settled servers vote for the leader with the epoch of its term (ZOOKEEPER-1732).
            ballot = Ballot(self._own_ballot().epoch, ballot.position, ballot.leader)
        self._clients[peer].send_without_answer(
            Notification(self._server_id, self._state, self._round, ballot)
        )


def _rank(ballot: Ballot) -> tuple[int, tuple[int, int], int]:
    return ballot.epoch, ballot.position, ballot.leader
